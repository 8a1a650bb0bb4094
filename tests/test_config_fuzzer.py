"""Hostile configurations: each is loaded, or refused by a `UsageError`, and nothing else happens."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.loading import dump, from_mapping, load
from regard.config.presets import PRESETS
from regard.config.run import RunConfig
from regard.config.schema import paths
from regard.foundation.errors import UsageError

COPY: dict[str, Any] = {"data": {"train": {"generate": "copy"}}}


def written(directory: Path, text: str | bytes) -> Path:
    path = directory / "my.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


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
        assert from_mapping(yaml.safe_load(dump(config))) == config


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
@settings(deadline=None, max_examples=200)
def test_any_text_as_override_is_taken_or_refused_cleanly(override: str) -> None:
    is_clean(lambda: from_mapping(COPY, [override]))


@given(st.data())
@settings(deadline=None, max_examples=200)
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
