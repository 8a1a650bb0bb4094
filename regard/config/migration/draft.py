"""A configuration of Regard in the making, from the options of another tool.

Every option of the other tool becomes a setting, with the option as its comment, or is listed with the reason why it
has no counterpart. Nothing is dropped silently.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from regard.config.document import noun, one_line, scalar
from regard.config.run import LEAST_WITH_BYTES
from regard.foundation.errors import UsageError

LONGEST_COMMENT = 160
TOKENS_PER_SENTENCE = 30
"""For batch sizes in sentences, which Regard does not have."""

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "none", "null")
_ORDER = (
    *("data", "text", "model", "training", "decoding"),
    *("model.width", "model.dropout", "model.encoder", "model.decoder", "model.join", "model.attention"),
    *("model.positions", "model.embeddings", "training.steps", "training.batch_tokens", "training.accumulate"),
    *("training.optimizer", "training.schedule"),
)
"""The order in which sections and settings are written; those that are not listed follow as they come."""
NO_EARLY_STOPPING = 1000
"""A patience that is never exhausted, for tools that train to the end by default."""


@dataclass
class Options:
    """The options of a configuration of another tool, by name."""

    file: str
    tool: str
    values: dict[str, Any]
    prefix: str = ""
    """What precedes the name of an option as a user writes it: `--` on a command line."""
    written: dict[str, str] = field(default_factory=dict)
    """The name that the user wrote, for options with several names."""
    taken: set[str] = field(default_factory=set)

    def label(self, name: str) -> str:
        """Return the name of an option as the user wrote it."""
        return one_line(self.prefix + self.written.get(name, name))

    def take(self, name: str) -> Any:
        """Return the value of an option and mark it as taken; `None` if it is not set."""
        self.taken.add(name)
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """Return whether an option is set."""
        return self.values.get(name) is not None

    def number(self, name: str) -> float | None:
        """Take an option that is a number, or a list of which the first is meant."""
        value = self.take(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str):
            value = scalar(value.strip("[]() "))
        if value is None or _is_variable(value):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{self.file}: {self.label(name)} must be a number, not {noun(value)}.")
        return value

    def integer(self, name: str) -> int | None:
        """Take an option that is a whole number."""
        value = self.number(name)
        if value is None:
            return None
        if not float(value).is_integer():
            raise UsageError(f"{self.file}: {self.label(name)} must be a whole number, not {value:g}.")
        return int(value)

    def flag(self, name: str) -> bool | None:
        """Take an option that is on or off."""
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word not in _TRUE + _FALSE:
            raise UsageError(f"{self.file}: {self.label(name)} must be true or false, not {noun(value)}.")
        return word in _TRUE

    def word(self, name: str) -> str | None:
        """Take an option that is a name or a path."""
        value = self.take(name)
        if isinstance(value, list | Mapping):
            raise UsageError(f"{self.file}: {self.label(name)} must be a word, not {noun(value)}.")
        return None if value is None else str(value)

    def shown(self, *names: str) -> str:
        """Return options as a user wrote them, for a comment."""
        parts = (self.label(name) + _value_text(self.values[name], self.prefix) for name in names if self.has(name))
        return one_line(" ".join(parts))[:LONGEST_COMMENT]


@dataclass
class Draft:
    """Settings of Regard, each with its origin, and the options that have no counterpart."""

    options: Options
    settings: dict[str, Any] = field(default_factory=dict)
    """Values by path, such as `model.encoder.layers`."""
    comments: dict[str, str] = field(default_factory=dict)
    left: list[tuple[str, str]] = field(default_factory=list)
    """Options without a counterpart, and why."""
    notes: list[str] = field(default_factory=list)
    """What the user has to know or to do."""

    def put(self, path: str, value: Any, comment: str = "") -> None:
        """Set a value; the comment is its origin."""
        self.settings[path] = value
        self.comments[path] = one_line(comment)

    def move(
        self,
        path: str,
        *names: str,
        read: Callable[[str], Any],
        default: Any = None,
        convert: Callable[[Any], Any] = lambda value: value,
    ) -> Any:
        """Set a value from the first of these options that is set, or from the other tool's default; return it."""
        found = None
        for name in names:
            value = read(name)
            if value is None:
                continue
            if found is None:
                found = convert(value)
                self.put(path, found, self.options.shown(name))
            else:
                self.leave(name, f"{self.comments[path]} is used")
        if found is None and default is not None:
            found = default
            self.put(path, default, f"default of {self.options.tool}")
        return found

    def leave(self, name: str, reason: str) -> None:
        """List an option without a counterpart, if it is set."""
        if self.options.has(name):
            self.options.taken.add(name)
            self.left.append((self.options.shown(name), reason))

    def leave_rest(self, reasons: Mapping[str, str]) -> None:
        """List all options that no comment mentions, with the reason if there is a known one."""
        mentioned = [*self.comments.values(), *(setting for setting, _ in self.left)]
        for name in self.options.values:
            start = re.compile(rf"(?<![\w.-]){re.escape(self.options.label(name))}(?![\w.-])")
            if self.options.has(name) and not any(start.search(text) for text in mentioned):
                taken = name in self.options.taken
                default = "changes nothing here" if taken else "no counterpart"
                if taken and _is_variable(self.options.values[name]):
                    default = "the script does not set this variable; choose a value"
                self.leave(name, reasons.get(name, default))

    def render(self, *, next_command: str) -> str:
        """Return the configuration as YAML with comments."""
        options = self.options
        lines = [f"# Converted from {options.file} ({options.tool}) by `regard config convert`."]
        lines += [f"# {one_line(note)}" for note in self.notes]
        lines += [f"# Next: {next_command}", ""]
        tree: dict[str, Any] = {}
        for path, value in sorted(self.settings.items(), key=_rank):
            *parents, last = path.split(".")
            section = tree
            for parent in parents:
                section = section.setdefault(parent, {})
            section[last] = _Leaf(value, self.comments[path])
        lines += _section_lines(tree, "")
        if self.left:
            lines += ["", f"# These settings of {options.file} have no counterpart in Regard and were left out:"]
            lines += [f"#   {setting}: {reason}" for setting, reason in self.left]
        return "\n".join(lines) + "\n"


def _rank(item: tuple[str, Any]) -> tuple[int, int]:
    """Return the place of a setting: by its section, then by its part of the section."""
    parts = item[0].split(".")
    part = ".".join(parts[:2])
    return _ORDER.index(parts[0]), _ORDER.index(part) if part in _ORDER else len(_ORDER)


@dataclass(frozen=True)
class _Leaf:
    value: Any
    comment: str


def _section_lines(section: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for name, inner in section.items():
        if isinstance(inner, _Leaf):
            comment = f"  # {inner.comment}" if inner.comment else ""
            lines.append(f"{indent}{name}: {_yaml_value(inner.value)}{comment}")
        else:
            lines += [f"{indent}{name}:", *_section_lines(inner, indent + "  ")]
    return lines


def _yaml_value(value: Any) -> str:
    """Return a value as YAML on one line, which is read back as the same value."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        plain = value.isprintable() and isinstance(scalar(value), str)
        text: str = yaml.safe_dump(
            value, default_style=None if plain else '"', default_flow_style=True, width=1_000_000, allow_unicode=True
        )
        text = text.removesuffix("...\n").strip()
        return (
            text
            if not plain or not set(text) & set(",[]{}")
            else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        )
    return str(value)


def _is_variable(value: Any) -> bool:
    """Return whether a value has a variable of the shell that the script does not set."""
    return isinstance(value, str) and "$" in value


def _value_text(value: Any, prefix: str) -> str:
    """Return the value of an option as a comment shows it, with the sign that separates it from the name."""
    if value is True and prefix:
        return ""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f" {shown}" if prefix else f": {shown}"


def put_patience(draft: Draft, patience: int | None, comment: str) -> None:
    """Set the patience of early stopping, which other tools do without by default."""
    if patience is not None and patience > 0:
        draft.put("training.early_stopping.patience", patience, comment)
    else:
        origin = comment or f"default of {draft.options.tool}"
        draft.put("training.early_stopping.patience", NO_EARLY_STOPPING, f"{origin}: no early stopping")


def put_vocabulary(draft: Draft, path: str, name: str, size: int | None) -> None:
    """Set the size of the vocabulary of the tokenizer at `path`, unless it is too small for its 256 bytes."""
    if size is None or size <= 0:
        return
    if draft.settings.get(f"{path}.kind", "bpe") != "words" and size < LEAST_WITH_BYTES:
        draft.leave(name, f"a vocabulary has at least {LEAST_WITH_BYTES} tokens, for it has all bytes")
    else:
        draft.put(f"{path}.vocabulary", size, draft.options.shown(name))


def put_noam(draft: Draft, factor: float, width: int, warmup: int, comment: str) -> None:
    """Set the schedule of Vaswani et al. (2017), whose peak rate follows from a factor, the width and the warm-up."""
    if min(width, warmup) < 1:
        raise UsageError(f"{draft.options.file}: the noam schedule needs a width and a warm-up of at least 1.")
    draft.put("training.schedule.kind", "inverse-sqrt", comment)
    draft.put(
        "training.optimizer.learning_rate",
        factor * width**-0.5 * warmup**-0.5,
        f"peak of noam: {factor:g} × {width}^-0.5 × {warmup}^-0.5",
    )


def put_batch(draft: Draft, size: int | None, kind: str, comment: str) -> None:
    """Set the batch size, which is given in tokens or in sentences."""
    if size is None:
        return
    if kind.startswith("token"):
        draft.put("training.batch_tokens", size, comment)
    else:
        tokens = size * TOKENS_PER_SENTENCE
        draft.put(
            "training.batch_tokens", tokens, f"{comment}; in sentences, here of {TOKENS_PER_SENTENCE} tokens each"
        )
