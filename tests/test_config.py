"""Laws of configuration: nothing is coerced, every mistake is told where it is and how to fix it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.config.document import scalar
from regard.config.loading import dump, from_mapping, load
from regard.config.presets import PRESETS
from regard.config.run import RunConfig
from regard.config.schema import json_schema, paths
from regard.foundation.errors import UsageError

COPY: dict[str, Any] = {"data": {"train": {"generate": "copy"}}}


def written(directory: Path, text: str | bytes) -> Path:
    path = directory / "my.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(text: str | bytes, directory: Path, *overrides: str) -> str:
    """The message a file is refused with, without the directory."""
    with pytest.raises(UsageError) as refused:
        load(written(directory, text), overrides)
    return str(refused.value).replace(f"{directory}/", "")


def refused_override(*overrides: str, mapping: dict[str, Any] = COPY) -> str:
    with pytest.raises(UsageError) as refused:
        from_mapping(mapping, overrides)
    return str(refused.value)


# Back to a file


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_dumped_loads_as_an_equal_configuration(preset: str, tmp_path: Path) -> None:
    config = from_mapping({"preset": preset, **COPY}, ["data.validation.jsonl=[v.jsonl, w.jsonl.gz]"])
    assert load(written(tmp_path, dump(config))) == config


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(WORDS, WORDS)
@example("1e3", "no")
@example("6_000", "null")
@example(".inf", "- [a: b")
@example("\x85\u2028", "é\ufeff\U0001f600 # x")
@settings(deadline=None, max_examples=50)
def test_any_text_survives_dump_and_load(name: str, field: str) -> None:
    config = from_mapping({"data": {"train": {"jsonl": ["./" + name, name], "source_field": field}}})
    assert from_mapping_of(dump(config)) == config


def from_mapping_of(text: str) -> RunConfig:
    from regard.config.document import read

    return from_mapping(read(text, "dump").values)


# How scalars are read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6_000", 6000),
        ("1e-3", 0.001),
        ("1E5", 100_000),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-3", -3),
        ("true", True),
        ("null", None),
        ("no", "no"),
        ("yes", "yes"),
        ("010", 10),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        ("2018-05-09", "2018-05-09"),
        (".", "."),
        ("e5", "e5"),
        ("1__0", "1__0"),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize(
    "override",
    [
        "training.steps=3.7",
        "training.steps=true",
        "training.steps='3'",
        "training.steps=yes",
        "training.clip='1'",
        "training.clip=true",
        "training.tensorboard=1",
        "training.tensorboard=yes",
        "training.device=1",
        "data.train.languages=de",
    ],
)
def test_nothing_is_coerced(override: str) -> None:
    assert "must be" in refused_override(override)


# What is said about mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "data:\n  train: {generate: copy}\nmodel:\n  encoder:\n    laiers: 3\n",
            "my.yaml:5: model.encoder.laiers is not a setting; did you mean layers?",
        ),
        (
            "data: {train: {generate: copy}}\ntraining:\n  steps: many\n",
            'my.yaml:3: training.steps must be a whole number of at least 1, not "many"',
        ),
        (
            "data: {train: {generate: copy}}\nmodel:\n  decoder:\n    kind: lstm\n",
            'my.yaml:4: model.decoder.kind must be one of rnn, conv, transformer, not "lstm"',
        ),
        (
            "data: {train: {generate: copy}}\nmodel: {encoder: {kind: transfomer}}\n",
            "my.yaml:2: model.encoder.kind must be one of bag, rnn, conv, transformer, image, sound, "
            'not "transfomer"; did you mean transformer?',
        ),
        (
            "data: {train: {generate: copy}}\nmodel:\n  encoder:\n    kind: rnn\n    feed_forward: 3\n",
            "my.yaml:5: model.encoder.feed_forward is a setting of kind transformer, but this one is rnn",
        ),
        (
            "data: {train: {generate: copy}}\nmodel:\n  width: 255\n  encoder:\n    layers: 1\n",
            "my.yaml:4: model.encoder.width is 255, which is not divisible by 4 attention heads.",
        ),
        (
            "data: {train: {generate: copy}}\nsteps: 3\n",
            "my.yaml:2: steps is not a setting; did you mean training.steps?",
        ),
        (
            "training: {steps: 3}\n",
            "data.train is missing. Set table, or dataset, or source and target, or tsv, or jsonl, or records",
        ),
        (
            "data:\n  train: {size: 3}\n",
            "my.yaml:2: data.train.size belongs to generate or spoken_words or speech. Set that instead, or remove it",
        ),
        (
            "data:\n  train:\n    sourc: a\n    target: b\n",
            "my.yaml:3: data.train.sourc is not a setting; did you mean source?",
        ),
        (
            "data:\n  train:\n    source: a\n",
            "my.yaml:2: data.train.target is missing. It must be a file name, or a list",
        ),
        ("data: {train: {source: [a, b], target: c}}\n", "data.train has 2 source and 1 target files"),
        (
            "data: {train: {generate: copy}}\nmodel: {positions: rotary}\n",
            "did you mean to set model.positions.kind to rotary?",
        ),
        (
            "data: 3\n",
            "my.yaml:1: data must be a section with settings such as corpus, train, validation, test, not 3",
        ),
        (
            "preset: bahdenau\ndata: {train: {generate: copy}}\n",
            'my.yaml:1: "bahdenau" is not a preset; did you mean bahdanau?',
        ),
        ("data: {train: {generate: copy}}\ndata: {}\n", "my.yaml:2: data is set twice. Keep one."),
        ("training:\n\tsteps: 3\n", "my.yaml:2:1: not valid YAML: found character '\\t' that cannot start any token"),
        ("data: [\n", "my.yaml:2:1: not valid YAML"),
        ("", "my.yaml is empty. A configuration needs at least a corpus"),
        ("# nothing\n", "my.yaml is empty"),
        ("- data\n", "my.yaml: a configuration is a mapping such as `data: {train: …}`, not a list."),
        ("just words\n", "my.yaml: a configuration is a mapping"),
        ("1: 2\n", "my.yaml:1: the name of a setting must be a word, not 1."),
        ("[1, 2]: 2\n", "my.yaml:1: the name of a setting must be a word, not a list."),
        (
            "data: {train: {generate: copy}}\ntraining: {clip: .nan}\n",
            "my.yaml:2: training.clip must be a finite number.",
        ),
        (
            "data: {train: {generate: copy}}\ntraining: {clip: 1e999}\n",
            "my.yaml:2: training.clip must be a finite number.",
        ),
        (
            "data: {train: {generate: copy}}\ntraining: {steps: 99999999999999999999}\n",
            "training.steps is too large a number.",
        ),
        ("data: !!python/object:os.system {}\n", "is a YAML tag, which a configuration must not have."),
        ("a: 1\n---\nb: 2\n", "not valid YAML: but found another document"),
        ("[" * 5000, "my.yaml: nested too deeply to be a configuration."),
        ("a: " + "[" * 60 + "]" * 60, "nested too deeply to be a configuration."),
        ("a: &a [*a]\n", "nested too deeply to be a configuration."),
        (b"data:\n  train: \xff\n", "my.yaml:2: not UTF-8 text. Save the file as UTF-8."),
        ("data:\n  train: a\x00b\n", "my.yaml:2: the character '\\x00' is not allowed in YAML."),
        ('data: "\\ud800"\n', "my.yaml:1: data contains a character that is not text."),
        ('data: "\\UFFFFFFFF"\n', "my.yaml: not valid YAML: an escaped character is out of range."),
        (b"\xef\xbb\xbfdata: 3\n", "my.yaml:1: data must be a section"),
        (b"# " + b"x" * 1_000_000, "my.yaml is over 1 MB, which is too large for a configuration."),
    ],
)
def test_a_mistake_is_told_with_its_place_and_remedy(text: str | bytes, message: str, tmp_path: Path) -> None:
    assert message in refusal(text, tmp_path)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.stesp=3", "command line: training.stesp is not a setting; did you mean steps?"),
        ("training.learning_rate=1", "did you mean training.optimizer.learning_rate?"),
        ("modle.width=3", "command line: modle is not a setting; did you mean model?"),
        ("training.steps", '"training.steps" is not a setting. Write key.path=value without spaces'),
        ("=3", '"=3" is not a setting. Write key.path=value'),
        ("model..width=3", "Write key.path=value"),
        ("training.steps=", "command line: training.steps must be a whole number of at least 1, not empty"),
        ("training.steps=[1", "command line: training.steps: not valid YAML: "),
        ("model.encoder=rnn", "model.encoder is a section; did you mean to set model.encoder.kind to rnn?"),
        ("model.attention.score=scaled_dot", "did you mean scaled-dot?"),
        ("data.train.generate=date", 'questions, shape-names, not "date"; did you mean dates?'),
        ("training.schedule.kind=cosin", "did you mean cosine?"),
        ("preset=3", "command line: preset must be the name of a preset, or a list of names, not 3."),
        ("model.join.order=before", "command line: model.join.order and input_feeding concern the recurrence"),
    ],
)
def test_a_wrong_override_says_how_to_write_it(override: str, message: str) -> None:
    assert message in refused_override(override)


def test_a_missing_file_hints_at_a_similar_name(tmp_path: Path) -> None:
    path = written(tmp_path, "data: {train: {generate: copy}}")
    with pytest.raises(UsageError, match=r"my\.yml does not exist; did you mean .*my\.yaml\?$"):
        load(path.with_suffix(".yml"))
    with pytest.raises(UsageError, match=r"does not exist\.$"):
        load(tmp_path / "far" / "away.yaml")


def test_a_directory_is_not_a_file_but_a_run_has_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a directory, not a configuration file\.$"):
        load(tmp_path)
    (tmp_path / "config.yaml").touch()
    with pytest.raises(UsageError, match=r"is a directory; did you mean .*config\.yaml\?$"):
        load(tmp_path)


def test_many_mistakes_are_told_five_at_a_time(tmp_path: Path) -> None:
    text = "data: {train: {generate: copy}}\n" + "".join(f"wrong{number}: 1\n" for number in range(9))
    lines = refusal(text, tmp_path).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "… and 4 more."


def test_a_billion_laughs_are_cut_short(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "a configuration may have at most" in refusal("\n".join(lines), tmp_path)


def test_a_small_anchor_is_fine(tmp_path: Path) -> None:
    text = "data: {train: {generate: copy}}\nmodel: {encoder: &side {layers: 2}, decoder: *side}\n"
    assert load(written(tmp_path, text)).model.decoder.model_dump()["layers"] == 2


def test_the_json_schema_describes_every_setting() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == {"preset", *RunConfig.model_fields}
    sections = [schema, *schema["$defs"].values()]
    described = {
        name
        for section in sections
        for name, field in section["properties"].items()
        if field.keys() & {"description", "$ref"}
    }
    assert {path[-1] for path in paths()} <= described | {"kind"}
    assert list(PRESETS) == schema["properties"]["preset"]["anyOf"][0]["enum"]


def test_warm_up_takes_a_fifth_of_a_short_course_and_400_steps_of_a_long_one():
    data = {"train": {"generate": "copy"}}
    short = from_mapping({"data": data, "training": {"steps": 100}})
    long = from_mapping({"data": data, "training": {"steps": 10_000}})
    said = from_mapping({"data": data, "training": {"steps": 100, "schedule": {"warmup": 60}}})
    assert [c.training.schedule.warmup for c in (short, long, said)] == [20, 400, 60]


def test_learned_positions_must_reach_as_far_as_cleaning_lets_texts_be():
    settings = {"data": {"train": {"generate": "copy"}}, "model": {"positions": {"kind": "learned", "max_length": 256}}}
    with pytest.raises(UsageError, match="at least 257"):
        from_mapping(settings)
    from_mapping(settings, ["data.cleaning.max_length=255"])


def test_dropping_merges_needs_merges():
    with pytest.raises(UsageError, match="bpe_dropout"):
        from_mapping(
            {"data": {"train": {"generate": "copy"}}, "text": {"bpe_dropout": 0.1, "tokenizer": {"kind": "words"}}}
        )


def test_a_vocabulary_too_small_for_bytes_is_refused_before_any_data_is_read():
    with pytest.raises(UsageError, match="at least 263"):
        from_mapping({"data": {"train": {"tsv": "absent.tsv"}}, "text": {"tokenizer": {"vocabulary": 17}}})
    from_mapping({"data": {"train": {"tsv": "absent.tsv"}}, "text": {"tokenizer": {"vocabulary": 17, "kind": "words"}}})


@pytest.mark.parametrize("task, corpus", [("tagging", {"conllu": "a.conllu"}), ("language-model", {"text": "a.txt"})])
def test_words_are_not_cut_anew_where_tokens_keep_their_places(task: str, corpus: dict[str, str]):
    settings = {"task": {"kind": task}, "data": {"train": corpus}}
    assert from_mapping(settings).text.bpe_dropout == 0
    with pytest.raises(UsageError, match="needs the same tokens every time"):
        from_mapping(settings, ["text.bpe_dropout=0.1"])


@pytest.mark.parametrize(
    ("model", "score"),
    [
        ({"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}, "join": {"order": "before"}}, "additive"),
        ({"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}, "join": {"order": "after"}}, "bilinear"),
        ({"encoder": {"kind": "conv"}, "decoder": {"kind": "conv"}}, "scaled-dot"),
        ({"encoder": {"kind": "transformer"}, "decoder": {"kind": "rnn"}}, "scaled-dot"),
    ],
    ids=["Bahdanau", "Luong", "Gehring", "Vaswani"],
)
def test_attention_scores_by_default_as_the_paper_of_its_place_does(model: dict[str, Any], score: str):
    assert from_mapping({**COPY, "model": model}).model.attention.score == score
