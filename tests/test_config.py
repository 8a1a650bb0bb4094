"""Laws of configuration: later layers win, nothing is coerced, every mistake is told where it is and how to mend it."""

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
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


# Layers


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_resolves_and_says_more_than_the_defaults(preset: str) -> None:
    config = from_mapping({"preset": preset, **COPY})
    assert config.resolved() == config
    assert config != from_mapping(COPY)
    assert PRESETS[preset].description.endswith(".")
    assert PRESETS[preset].paper


@pytest.mark.parametrize(("one", "other"), list(itertools.product(PRESETS, repeat=2)))
def test_a_preset_laid_over_another_is_still_itself(one: str, other: str) -> None:
    assert from_mapping({"preset": [one, other], **COPY}).model == from_mapping({"preset": other, **COPY}).model


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_laid_over_a_complete_file_is_still_itself(preset: str, tmp_path: Path) -> None:
    path = written(tmp_path, dump(from_mapping(COPY, ["preset=modern"])))
    assert load(path, [f"preset={preset}"]).model == from_mapping({"preset": preset, **COPY}).model


def test_override_wins_over_file_wins_over_preset() -> None:
    preset = {"preset": "transformer-tiny", **COPY}
    assert from_mapping(preset).model.width == 128
    assert from_mapping({**preset, "model": {"width": 64}}).model.width == 64
    assert from_mapping({**preset, "model": {"width": 64}}, ["model.width=32"]).model.width == 32
    assert from_mapping(preset, ["model.width=64", "model.width=32"]).model.width == 32


def test_a_preset_on_the_command_line_wins_over_the_file() -> None:
    config = from_mapping({**COPY, "model": {"encoder": {"kind": "conv"}}}, ["preset=bahdanau", "model.width=64"])
    assert (config.model.cell, config.model.width) == ("rnn → rnn, attention (additive)", 64)


def test_a_change_of_kind_drops_what_only_other_kinds_know_and_keeps_the_rest() -> None:
    file = {**COPY, "model": {"encoder": {"kind": "transformer", "layers": 3, "feed_forward": 64, "width": 32}}}
    encoder = from_mapping(file, ["model.encoder.kind=rnn", "model.encoder.cell=lstm"]).model.encoder
    assert encoder.model_dump() == {"kind": "rnn", "cell": "lstm", "layers": 3, "width": 32, "direction": "both"}


def test_a_change_of_corpus_drops_what_only_the_other_sort_knows() -> None:
    file = {"data": {"train": {"generate": "dates", "size": 10}, "validation": {"tsv": "v.tsv", "source_column": 3}}}
    overrides = ["data.train.source=a.txt", "data.train.target=b.txt", "data.validation.generate=sort"]
    data = from_mapping(file, overrides).data
    assert data.train.model_dump() == {"source": ["a.txt"], "target": ["b.txt"]}
    assert data.validation is not None
    assert data.validation.model_dump()["generate"] == "sort"


def test_a_name_that_two_sorts_of_corpus_share_is_what_the_sort_says() -> None:
    made = {"task": {"kind": "captioning"}, "data": {"train": {"generate": "shapes", "size": 10, "captions": 2}}}
    files = {"task": {"kind": "captioning"}, "data": {"train": {"images": "photos", "captions": "a.tsv"}}}
    assert from_mapping(made, ["data.train.captions=3"]).data.train.model_dump()["captions"] == 3
    assert from_mapping(made, ["data.train.size=5", "data.train.captions=3"]).data.train.model_dump()["size"] == 5
    assert from_mapping(files, ["data.train.captions=b.tsv"]).data.train.model_dump()["captions"] == ["b.tsv"]
    assert from_mapping(files, ["data.train.generate=shapes"]).data.train.model_dump()["captions"] == 2
    over = ["data.train.images=photos", "data.train.captions=a.tsv"]
    assert from_mapping(made, over).data.train == from_mapping(files).data.train
    assert "data.train.captions is missing" in refused_override("data.train.images=photos", mapping=made)


@pytest.mark.parametrize(
    ("kind", "corpus", "remedy"),
    [
        ("visual-questions", {"generate": "shapes"}, "generate: questions"),
        ("visual-questions", {"images": "photos", "captions": "a.tsv"}, "set question_column"),
        ("captioning", {"generate": "questions"}, "set task.kind to visual-questions"),
    ],
)
def test_questions_beside_pictures_are_for_a_shape_that_reads_them(kind: str, corpus: Any, remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        from_mapping({"task": {"kind": kind}, "data": {"train": corpus}})


def test_a_misspelt_key_is_never_dropped_by_a_change_of_kind() -> None:
    file = {**COPY, "model": {"encoder": {"kind": "transformer", "laiers": 3}}}
    assert "did you mean layers?" in refused_override("model.encoder.kind=rnn", mapping=file)


def test_an_empty_section_changes_nothing_and_an_optional_one_can_be_emptied(tmp_path: Path) -> None:
    path = written(tmp_path, "preset: modern\ndata:\n  train: {generate: copy}\ntraining:\nmodel:\n  positions:\n")
    config = load(path)
    assert config.training == from_mapping({"preset": "modern", **COPY}).training
    assert config.model.positions is not None
    assert config.model.positions.kind == "sinusoidal"


def test_the_kind_of_a_section_may_be_left_out() -> None:
    assert from_mapping(COPY, ["model.encoder.feed_forward=64"]).model.encoder.kind == "transformer"


def test_a_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    config = from_mapping({"data": {"train": {"source": "~/a", "target": ["b~"]}}})
    assert config.data.train.model_dump() == {"source": ["/home/ada/a"], "target": ["b~"]}


def test_python_users_may_give_paths_and_tuples(tmp_path: Path) -> None:
    config = from_mapping({"data": {"train": {"tsv": (tmp_path / "a.tsv", "b.tsv")}}})
    assert config.data.train.model_dump()["tsv"] == [str(tmp_path / "a.tsv"), "b.tsv"]


def test_the_mapping_and_the_presets_are_left_as_they_were() -> None:
    before = copy.deepcopy({name: preset.settings for name, preset in PRESETS.items()})
    mapping = {"preset": "luong", "data": {"train": {"generate": "copy"}}, "model": {"encoder": {"layers": 1}}}
    said = copy.deepcopy(mapping)
    from_mapping(mapping, ["model.encoder.kind=conv", "model.encoder.kernel=5", "model.join.input_feeding=false"])
    assert mapping == said
    assert {name: preset.settings for name, preset in PRESETS.items()} == before


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
            "my.yaml:2: model.encoder.kind must be one of bag, rnn, conv, transformer, image, "
            'not "transfomer"; did you mean transformer?',
        ),
        (
            "data: {train: {generate: copy}}\nmodel:\n  encoder:\n    kind: rnn\n    feed_forward: 3\n",
            "my.yaml:5: model.encoder.feed_forward is a setting of kind transformer, and this one is rnn",
        ),
        (
            "data: {train: {generate: copy}}\nmodel:\n  width: 255\n  encoder:\n    layers: 1\n",
            "my.yaml:4: model.encoder.width is 255, which 4 attention heads cannot share equally.",
        ),
        (
            "data: {train: {generate: copy}}\nsteps: 3\n",
            "my.yaml:2: steps is not a setting; did you mean training.steps?",
        ),
        (
            "training: {steps: 3}\n",
            "data.train is missing: give table, or source and target, or tsv, or jsonl, or generate",
        ),
        (
            "data:\n  train: {size: 3}\n",
            "my.yaml:2: data.train.size goes with generate: give that instead, or leave it out",
        ),
        (
            "data:\n  train:\n    sourc: a\n    target: b\n",
            "my.yaml:3: data.train.sourc is not a setting; did you mean source?",
        ),
        (
            "data:\n  train:\n    source: a\n",
            "my.yaml:2: data.train.target is missing: it must be a file name, or a list",
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
        ("data: {train: {generate: copy}}\ndata: {}\n", "my.yaml:2: data is set twice; keep one."),
        ("training:\n\tsteps: 3\n", "my.yaml:2:1: not valid YAML: found character '\\t' that cannot start any token"),
        ("data: [\n", "my.yaml:2:1: not valid YAML"),
        ("", "my.yaml is empty: a configuration names at least a corpus"),
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
        ("data: !!python/object:os.system {}\n", "is a YAML tag, and a configuration has none."),
        ("a: 1\n---\nb: 2\n", "not valid YAML: but found another document"),
        ("[" * 5000, "my.yaml: nested too deeply to be a configuration."),
        ("a: " + "[" * 60 + "]" * 60, "nested too deeply to be a configuration."),
        ("a: &a [*a]\n", "nested too deeply to be a configuration."),
        (b"data:\n  train: \xff\n", "my.yaml:2: not UTF-8 text; save the file as UTF-8."),
        ("data:\n  train: a\x00b\n", "my.yaml:2: the character '\\x00' cannot stand in YAML."),
        ('data: "\\ud800"\n', "my.yaml:1: data holds a character that is not text."),
        ('data: "\\UFFFFFFFF"\n', "my.yaml: not valid YAML: an escaped character is out of range."),
        (b"\xef\xbb\xbfdata: 3\n", "my.yaml:1: data must be a section"),
        (b"# " + b"x" * 1_000_000, "my.yaml is over 1 MB: too large to be a configuration."),
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
        ("training.steps", '"training.steps" is not a setting: write key.path=value without spaces'),
        ("=3", '"=3" is not a setting: write key.path=value'),
        ("model..width=3", "write key.path=value"),
        ("training.steps=", "command line: training.steps must be a whole number of at least 1, not empty"),
        ("training.steps=[1", "command line: training.steps: not valid YAML: "),
        ("model.encoder=rnn", "model.encoder is a section; did you mean to set model.encoder.kind to rnn?"),
        ("model.attention.score=scaled_dot", "did you mean scaled-dot?"),
        ("data.train.generate=date", 'copy, reverse, sort, shapes, questions, not "date"; did you mean dates?'),
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
    assert "values are too many for a configuration" in refusal("\n".join(lines), tmp_path)


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


# Hostile input: a configuration or a `UsageError`, never anything else

SEEDS = [
    {"preset": name, "data": {"train": {"generate": "copy", "size": 50}}, "training": {"steps": 10}} for name in PRESETS
] + [yaml.safe_load(dump(from_mapping({"preset": name, **COPY}))) for name in ("modern", "luong", "convs2s")]

HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["rnn", "none", "both", "1e3", "\n" * 50, "\ud800", "[bold]", "x" * 5000, 10**400, b"bytes", object()]
    ),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.one_of(st.text(max_size=8), st.integers(), st.none()), st.integers(), max_size=3),
    st.sampled_from(["kind", "generate", "source"]).flatmap(
        lambda key: st.fixed_dictionaries({key: st.text(max_size=5)})
    ),
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good configuration with one to four things renamed, deleted, retyped or moved at random places."""
    tree = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        section = tree
        while True:
            key = draw(st.sampled_from(list(section)))
            if not (isinstance(section[key], dict) and section[key]) or draw(st.integers(0, 3)) == 0:
                break
            section = section[key]
        value = section.pop(key)
        match draw(st.sampled_from(["delete", "rename", "retype", "add"])):
            case "rename":
                name = draw(st.one_of(st.text(max_size=10), st.integers(), st.sampled_from([str(key)[1:], "kind"])))
                section[name] = value
            case "retype":
                section[key] = draw(HOSTILE)
            case "add":
                section[key] = value
                section[draw(st.sampled_from(["kind", "layers", "tsv", "cell", "x\n", "preset"]))] = draw(HOSTILE)
        if not tree:
            break
    return tree


def is_clean(attempt: Any) -> None:
    """What is loaded is a configuration; what is refused is refused in a few short lines."""
    try:
        config = attempt()
    except UsageError as refused:
        lines = str(refused).split("\n")
        assert 1 <= len(lines) <= 6, refused
        assert all(0 < len(line) < 600 and line.isprintable() for line in lines), refused
    else:
        assert isinstance(config, RunConfig)
        assert from_mapping_of(dump(config)) == config


@given(mutated())
@settings(deadline=None, max_examples=300)
def test_a_mutated_configuration_is_loaded_or_refused_cleanly(tree: Any) -> None:
    is_clean(lambda: from_mapping(tree))


@given(
    st.sampled_from(list(paths())),
    st.one_of(st.text(max_size=12), st.sampled_from(["{", "[a, b]", "{kind: rnn}", "~"])),
)
@settings(deadline=None, max_examples=200)
def test_any_override_of_any_setting_is_taken_or_refused_cleanly(path: tuple[str, ...], value: str) -> None:
    is_clean(lambda: from_mapping(COPY, [f"{'.'.join(path)}={value}"]))


@given(st.text(max_size=40))
@settings(deadline=None, max_examples=100)
def test_any_text_as_override_is_taken_or_refused_cleanly(override: str) -> None:
    is_clean(lambda: from_mapping(COPY, [override]))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_a_file_with_damaged_bytes_is_loaded_or_refused_cleanly(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(dump(from_mapping({"preset": "luong", **COPY})).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content)))
        removed = data.draw(st.integers(0, 20))
        added = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b": ", b"- ", b"\n", b"&a ", b"*a", b"[", b"'", b"\t"]))
        )
        content[place : place + removed] = added
    path = written(tmp_path_factory.getbasetemp(), bytes(content))
    is_clean(lambda: load(path))


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


@pytest.mark.parametrize("shape, corpus", [("tagging", {"conllu": "a.conllu"}), ("language-model", {"text": "a.txt"})])
def test_words_are_not_cut_anew_where_tokens_keep_their_places(shape: str, corpus: dict[str, str]):
    settings = {"task": {"kind": shape}, "data": {"train": corpus}}
    assert from_mapping(settings).text.bpe_dropout == 0
    with pytest.raises(UsageError, match="needs the same tokens every time"):
        from_mapping(settings, ["text.bpe_dropout=0.1"])
