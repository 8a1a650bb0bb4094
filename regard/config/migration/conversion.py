"""Recognises the configuration of another tool and converts it."""

from collections.abc import Mapping
from typing import Any

from regard.config.document import read
from regard.config.loading import from_mapping, read_text
from regard.config.migration import fairseq, joeynmt, opennmt
from regard.config.migration.draft import Draft
from regard.foundation.errors import UsageError

CONVERTIBLE = (
    "a shell script with `fairseq-train …`, the YAML of fairseq-hydra-train, OpenNMT-py or JoeyNMT can be converted"
)


def convert_file(path: str, *, next_command: str) -> str:
    """Return the configuration of Regard, as YAML with comments, for that of another tool in a file."""
    text, name = read_text(path)
    draft = _convert(text, name)
    converted = draft.render(next_command=next_command)
    try:
        from_mapping(read(converted, name).values)
    except UsageError as error:
        problem = str(error).replace("configuration: ", "")
        raise UsageError(
            f"{name} was read, but the settings do not fit Regard: {problem} Change them in {name}."
        ) from None
    return converted


def _convert(text: str, name: str) -> Draft:
    if not text.strip():
        raise UsageError(f"{name} is empty; {CONVERTIBLE}.")
    if fairseq.is_fairseq_script(text):
        return fairseq.convert_script(text, name)
    values = _mapping(text, name)
    if fairseq.is_hydra(values):
        return fairseq.convert_hydra(values, name)
    if joeynmt.is_joeynmt(values):
        return joeynmt.convert(values, name)
    if opennmt.is_opennmt(values):
        return opennmt.convert(values, name)
    if _is_ours(values):
        raise UsageError(f"{name} is a configuration of Regard already. Train it with: regard train {name}")
    raise UsageError(f"{name} is not a configuration that is known here; {CONVERTIBLE}.")


def _mapping(text: str, name: str) -> Mapping[str, Any]:
    """Return the settings of a YAML text."""
    try:
        return read(text, name).values
    except UsageError as error:
        if "a configuration is a mapping" in str(error):
            raise UsageError(f"{name} is not a configuration that is known here; {CONVERTIBLE}.") from None
        raise


def _is_ours(values: Mapping[str, Any]) -> bool:
    data = values.get("data")
    return "preset" in values or (
        isinstance(data, Mapping) and ("corpus" in data or isinstance(data.get("train"), Mapping))
    )
