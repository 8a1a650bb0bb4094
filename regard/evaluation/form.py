"""Forms for human judges: sampled sentences with shuffled, anonymous candidates, and a separate key."""

import csv
import hashlib
import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError

COLUMNS = ("form", "item", "source", "reference", "candidate", "text", "adequate", "fluent", "better")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Item:
    """One sentence as a judge sees it: the different outputs of the systems in random order."""

    id: int
    source: str
    reference: str | None
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """The form for a judge, which does not reveal the system of an output."""

    form: str
    items: tuple[Item, ...]

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return asdict(self)

    def as_csv(self) -> str:
        """Return a table to fill in: yes or no for adequate and fluent, an x for the better one (for all, if equal)."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(COLUMNS)
        for item in self.items:
            for letter, candidate in zip(LETTERS, item.candidates, strict=False):
                cells = (_cell(item.source), _cell(item.reference or ""), letter, _cell(candidate))
                table.writerow((self.form, item.id, *cells, "", "", ""))
        return text.getvalue()


@dataclass(frozen=True)
class Key:
    """The key that maps candidates to systems."""

    form: str
    systems: tuple[str, ...]
    items: Mapping[int, tuple[tuple[str, ...], ...]]
    """The systems of each candidate, by item; more than one if their outputs are equal."""
    lines: Mapping[int, int]
    """The line of each item in the files, counted from 1."""

    def save(self, path: Path) -> None:
        """Write the key; do not show it to the judges."""
        durable.write(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Key":
        """Load a key that `save` wrote."""
        facts = read_json(path)
        try:
            items = {int(item): tuple(tuple(some) for some in names) for item, names in facts["items"].items()}
            lines = {int(item): int(line) for item, line in facts["lines"].items()}
            return cls(str(facts["form"]), tuple(facts["systems"]), items, lines)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RegardError(f"{path} is not the key of a form. Name the .key.json that `judge make` wrote.") from None


def make_form(
    sources: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str] | None = None,
    *,
    count: int = 50,
    seed: int = 1,
) -> tuple[Form, Key]:
    """Sample sentences and shuffle the outputs of the systems; the same seed gives the same form."""
    if not 1 <= len(systems) <= len(LETTERS):
        raise UsageError(f"A form needs 1 to {len(LETTERS)} systems, not {len(systems)}.")
    for name, outputs in systems.items():
        if len(outputs) != len(sources):
            raise UsageError(f"There are {len(outputs):,} outputs of `{name}` for {len(sources):,} sources.")
    chance = random.Random(seed)
    chosen = chance.sample(range(len(sources)), min(count, len(sources)))
    items, candidate_systems = [], {}
    for number, index in enumerate(chosen, start=1):
        systems_by_text: dict[str, list[str]] = {}
        for name, outputs in systems.items():
            systems_by_text.setdefault(outputs[index], []).append(name)
        candidates = chance.sample(list(systems_by_text), len(systems_by_text))
        reference = references[index] if references else None
        items.append(Item(number, sources[index], reference, tuple(candidates)))
        candidate_systems[number] = tuple(tuple(systems_by_text[candidate]) for candidate in candidates)
    content = json.dumps([asdict(item) for item in items])
    form = Form(hashlib.sha256(content.encode()).hexdigest()[:12], tuple(items))
    lines = {number: index + 1 for number, index in enumerate(chosen, start=1)}
    return form, Key(form.form, tuple(systems), candidate_systems, lines)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{path} is not valid JSON ({error}). Save or export it again.") from None


def _cell(text: str) -> str:
    """Return text that spreadsheets do not interpret as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
