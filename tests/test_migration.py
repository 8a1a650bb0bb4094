"""`regard config convert`: configurations of fairseq, OpenNMT-py and JoeyNMT become valid ones of Regard."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from regard.cli import main
from regard.config.loading import load
from regard.config.migration.conversion import convert_file
from regard.config.run import RunConfig
from regard.foundation.errors import UsageError
from tests.documentation import ROOT, blocks

CONFIGS = Path(__file__).parent / "fixtures" / "migration"
FILES = sorted(path.name for path in CONFIGS.iterdir())


def convert(text: str, tmp_path: Path, name: str = "given.yaml") -> tuple[RunConfig, str]:
    """Return the configuration that a text becomes, and its YAML."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    converted = convert_file(str(tmp_path / name), next_command="regard train my.yaml")
    (tmp_path / "my.yaml").write_text(converted, encoding="utf-8")
    return load(tmp_path / "my.yaml"), converted


def stored(name: str, tmp_path: Path) -> tuple[RunConfig, str]:
    return convert((CONFIGS / name).read_text(encoding="utf-8"), tmp_path, name)


def option_names(name: str) -> set[str]:
    """Return the options that a stored configuration sets, found without the code under test."""
    text = (CONFIGS / name).read_text(encoding="utf-8")
    if name.endswith(".sh"):
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return set(re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", "\n".join(lines)))

    def paths(values: dict[str, Any]) -> set[str]:
        found: set[str] = set()
        for key, value in values.items():
            if value is not None:  # not set
                found |= {f"{key}.{inner}" for inner in paths(value)} if isinstance(value, dict) else {str(key)}
        return found

    found = paths(yaml.safe_load(text))
    if "hydra" in name:
        found = {path.rpartition(".")[2].replace("_", "-") for path in found if not path.endswith("_name")} - {"data"}
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_setting_becomes_one_of_ours_or_is_listed(name: str, tmp_path: Path) -> None:
    """Nothing is dropped silently: the name of every option is in a comment of the result."""
    _, converted = stored(name, tmp_path)
    comments = "\n".join(line.partition("#")[2] for line in converted.splitlines())
    missing = {o for o in option_names(name) if not re.search(rf"(?<![\w.-]){re.escape(o)}(?![\w.-])", comments)}
    assert not missing
    assert len(option_names(name)) > 10


EXPECTED: dict[str, dict[str, Any]] = {
    "fairseq-iwslt.sh": {
        "data.train.source": ["data/iwslt14/train.de"],
        "data.validation.target": ["data/iwslt14/valid.en"],
        "text.joint": True,
        "model.width": 512,
        "model.encoder.layers": 6,
        "model.decoder.feed_forward": 1024,
        "model.encoder.norm_place": "post",
        "model.attention.heads": 4,
        "model.dropout": 0.3,
        "model.embeddings.tie": "target",
        "training.batch_tokens": 4096,
        "training.accumulate": 2,
        "training.clip": 0.0,
        "training.optimizer.learning_rate": 0.0005,
        "training.optimizer.weight_decay": 0.0001,
        "training.optimizer.beta2": 0.98,
        "training.schedule.kind": "inverse-sqrt",
        "training.schedule.warmup": 4000,
        "training.label_smoothing": 0.1,
        "training.precision": "float16",
        "training.early_stopping.metric": "bleu",
        "decoding.beam": 5,
        "decoding.length_penalty": 0.6,
    },
    "fairseq-lstm.sh": {
        "model.encoder.kind": "rnn",
        "model.encoder.cell": "lstm",
        "model.encoder.width": 512,  # 256 in each direction
        "model.encoder.direction": "both",
        "model.width": 256,
        "model.embeddings.width": 128,
        "model.embeddings.tie": "all",
        "training.steps": 20000,
        "training.batch_tokens": 32 * 30,  # 32 sentences of 30 tokens
        "training.schedule.kind": "plateau",
        "training.schedule.factor": 0.5,
        "training.schedule.patience": 3,
        "training.label_smoothing": 0.0,
    },
    "fairseq-hydra.yaml": {
        "model.width": 1024,
        "model.attention.heads": 16,
        "model.encoder.norm_place": "pre",
        "model.embeddings.tie": "all",
        "training.steps": 30000,
        "training.optimizer.learning_rate": 0.001,
        "training.schedule.warmup": 3000,
        "training.batch_tokens": 3584,
        "training.label_smoothing": 0.2,
    },
    "opennmt-transformer.yaml": {
        "data.train.source": ["data/europarl.en", "data/news.en"],
        "data.validation.source": ["data/valid.en"],
        "data.cleaning.max_length": 150,
        "text.tokenizer.kind": "sentencepiece",
        "text.tokenizer.model": "data/joint.model",
        "model.width": 512,
        "model.decoder.layers": 6,
        "model.encoder.norm_place": "pre",
        "model.attention.dropout": 0.1,
        "training.batch_tokens": 4096,
        "training.accumulate": 8,
        "training.optimizer.learning_rate": pytest.approx(2 * 512**-0.5 * 8000**-0.5, rel=1e-5),
        "training.schedule.warmup": 8000,
        "training.early_stopping.patience": 4,
    },
    "opennmt-rnn.yaml": {
        "model.encoder.kind": "rnn",
        "model.encoder.direction": "both",
        "model.encoder.layers": 2,
        "model.decoder.layers": 1,
        "model.attention.score": "additive",
        "model.join.input_feeding": True,
        "model.embeddings.width": 300,
        "model.embeddings.tie": "none",
        "text.joint": False,
        "training.optimizer.kind": "sgd",
        "training.schedule.kind": "constant",
        "training.clip": 5.0,
        "training.batch_tokens": 64 * 30,
    },
    "joeynmt-transformer.yaml": {
        "data.test.source": ["data/multi30k/test.de"],
        "text.tokenizer.vocabulary": 8000,
        "text.target.vocabulary": 6000,
        "text.tokenizer.lower": True,
        "model.width": 256,
        "model.encoder.layers": 4,
        "model.decoder.layers": 3,
        "training.optimizer.learning_rate": 0.0003,
        "training.schedule.kind": "inverse-sqrt",
        "training.schedule.warmup": 2000,
        "training.early_stopping.metric": "bleu",
        "decoding.max_length": 150,
    },
    "joeynmt-rnn.yaml": {  # the format of version 1
        "data.train.target": ["data/toy/train.en"],
        "text.tokenizer.kind": "characters",
        "model.encoder.kind": "rnn",
        "model.encoder.width": 2 * 64,
        "model.width": 128,
        "model.decoder.cell": "lstm",
        "model.attention.score": "additive",
        "model.embeddings.width": 32,
        "training.schedule.kind": "plateau",
        "training.schedule.patience": 6,
        "training.batch_tokens": 20 * 30,
        "training.optimizer.learning_rate": 0.001,
    },
}


@pytest.mark.parametrize("name", FILES)
def test_values_are_mapped(name: str, tmp_path: Path) -> None:
    config, _ = stored(name, tmp_path)
    for path, expected in EXPECTED[name].items():
        value: Any = config
        for part in path.split("."):
            value = getattr(value, part)
        assert value == expected, path


@pytest.mark.parametrize("name", FILES)
def test_any_value_of_any_setting_is_converted_or_refused(name: str, tmp_path: Path) -> None:
    """A setting may have any type and size: the result is valid, or the message is a sentence that names the file."""
    text = (CONFIGS / name).read_text(encoding="utf-8")
    hostile = ["[]", "{a: [1, 2]}", "-7", "1e300", "'ä\\\\n'", "null", "99999999999999999999", "0", "true", "[1, x]"]
    pattern = r"(?m)^(\s*[\w]+:) *(\S.*)$" if name.endswith(".yaml") else r"(--[a-z-]+) +([^-\s\\][^\s]*)"
    places = list(re.finditer(pattern, text))
    assert len(places) > 10
    for number, place in enumerate(places):
        for value in (hostile[number % len(hostile)], hostile[(number * 3 + 1) % len(hostile)]):
            given = value if name.endswith(".yaml") else f"'{value}'" if "'" not in value else value
            changed = text[: place.start(2)] + given + text[place.end(2) :]
            try:
                convert(changed, tmp_path, name)
            except UsageError as error:
                assert name in str(error) and str(error).endswith((".", "?")), (place[0], value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("just some words\n", "not a configuration that is known here"),
        ("- a\n- b\n", "not a configuration that is known here"),
        ("a: 1\nb: {c: 2}\n", "not a configuration that is known here"),
        ("data: {train: {generate: copy}}\n", "is a configuration of Regard already"),
        ("model: {encoder: {type: transformer}\n", "not valid YAML"),
        ("a: &a [*a]\n", "nested too deeply"),
        ("rnn_size: !!python/name:os.system x\n", "is a YAML tag"),
        ("[" * 3000, "not valid YAML|nested too deeply"),
        ("fairseq-train data-bin --arch 'transformer\n", "quotation mark is not closed"),
        ("# how to call fairseq-train\necho hello\n", "no command"),
        ("fairseq-train d --arch levenshtein_transformer\n", "has no counterpart in Regard"),
        ("fairseq-train d --task language_modeling\n", "only translation"),
        ("fairseq-train d --arch transformer --encoder-layers many\n", "--encoder-layers must be a number"),
        (
            "fairseq-train d --arch transformer --encoder-embed-dim 500 --encoder-attention-heads 7\n",
            "do not fit Regard",
        ),
        ("encoder_type: ggnn\ndecoder_type: rnn\n", "has no counterpart in Regard"),
    ],
)
def test_hostile_files_are_refused_with_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        convert(text, tmp_path)


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["encoder_type: rnn", "train_steps: 5", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(UsageError, match="at most 50,000 values"):
        convert("\n".join(lines), tmp_path)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "large.yaml").write_text("a: b\n" * 300_000)
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    for name, message in (("large.yaml", "too large"), ("binary.yaml", "not UTF-8"), ("none.yaml", "does not exist")):
        assert main(["config", "convert", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert main(["config", "convert", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_variables_of_the_script_are_filled_in_and_others_are_reported(tmp_path: Path) -> None:
    script = "ARCH=transformer_tiny\nexport W=${ARCH}\nfairseq-train $DATA -a $W --lr $1 --max-update $STEPS\n"
    config, converted = convert(script, tmp_path)
    assert config.model.width == 64
    assert "#   --lr $1: the script does not set this variable; choose a value" in converted
    assert "--max-update has a shell variable that the script does not set: $STEPS" in converted


def test_a_second_training_is_mentioned(tmp_path: Path) -> None:
    script = "fairseq-train a --arch transformer_tiny\nfairseq-train b --arch transformer --lr 1\n"
    config, converted = convert(script, tmp_path)
    assert config.model.width == 64 and "line 2 has another" in converted


def test_an_unknown_architecture_says_what_was_assumed(tmp_path: Path) -> None:
    config, converted = convert("python train.py d --arch transformer_of_mine --encoder-layers 3\n", tmp_path)
    assert (config.model.encoder.layers, config.model.decoder.layers) == (3, 6)
    assert "transformer_of_mine are not known here" in converted


def test_a_value_never_ends_its_comment_or_becomes_yaml(tmp_path: Path) -> None:
    """A line break in a value cannot add a setting to the result."""
    text = 'encoder_type: rnn\ntrain_steps: 9\nsave_model: "x\\ntraining: {steps: 1}"\nnote: "a # b: c"\n'
    config, converted = convert(text, tmp_path)
    assert config.training.steps == 9 and "\ntraining: {" not in converted


def test_the_page_shows_lines_of_the_result(tmp_path: Path) -> None:
    page = ROOT / "docs" / "migrating.md"
    (script,) = (block.text for block in blocks(page) if block.title == "train.sh")
    (shown,) = (block.text for block in blocks(page) if block.language == "yaml")
    _, converted = convert(script, tmp_path, "train.sh")
    converted = converted.replace(str(tmp_path / "train.sh"), "train.sh")
    assert [line for line in shown.splitlines() if line not in converted.splitlines()] == []


def test_the_command_prints_or_writes_and_says_what_to_type_next(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = str(CONFIGS / "joeynmt-transformer.yaml")
    assert main(["config", "convert", given]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["model"]["width"] == 256
    assert "regard train my.yaml" in printed.err
    assert main(["config", "convert", given, "-o", "new.yaml"]) == 0
    assert "Wrote new.yaml. Next: check the paths under `data`, then: regard train new.yaml" in capsys.readouterr().out
    assert load("new.yaml").training.steps == 20000
    assert main(["config", "convert", given, "-o", "new.yaml"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["config", "convert", given, "-o", "none/new.yaml"]) == 2


def test_what_was_converted_trains(tmp_path: Path, monkeypatch) -> None:
    """With the text files that it names, a converted configuration trains without another change."""
    monkeypatch.chdir(tmp_path)
    for part, count in (("train", 300), ("valid", 20)):
        for side in ("src", "tgt"):
            (tmp_path / f"{part}.{side}").write_text("".join(f"a b {n % 7} c{n}\n" for n in range(count)))
    script = (
        "fairseq-train data-bin --arch transformer_tiny --optimizer adam --lr 1e-3 --max-update 3 --max-tokens 256\n"
    )
    (tmp_path / "train.sh").write_text(script)
    assert main(["config", "convert", "train.sh", "-o", "my.yaml"]) == 0
    assert main(["--quiet", "train", "my.yaml"]) == 0


def test_a_section_of_joeynmt_that_is_no_mapping_is_refused(tmp_path):
    file = tmp_path / "joey.yaml"
    file.write_text("data: {src: {lang: de}, trg: {lang: en}}\nmodel: {encoder: transformer}\ntraining: {epochs: 3}\n")
    with pytest.raises(UsageError, match=r"`model.encoder` must have settings below it, but it is 'transformer'"):
        convert_file(str(file), next_command="regard train my.yaml")
