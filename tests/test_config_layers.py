"""Layers of a configuration: an override wins over the file, the file over a preset, and nothing else changes."""

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest

from regard.config.loading import dump, from_mapping, load
from regard.config.presets import PRESETS
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
        ("visual-questions", {"images": "photos", "captions": "a.tsv"}, "Set question_column"),
        ("captioning", {"generate": "questions"}, "Set task.kind to visual-questions"),
    ],
)
def test_questions_with_pictures_are_for_a_task_that_reads_them(kind: str, corpus: Any, remedy: str) -> None:
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
