"""Which map of a model word alignments are read from: chosen once, on validation pairs, and stored in the run.

One sentence cannot tell a right reading from one that is off by a word, and two directions of a wrong map agree nearly
as well as those of a right one. What tells them apart without any gold is whether the words that are linked also occur
together in other pairs: the mean Dice coefficient of linked words, 2·c(s, t) / (c(s) + c(t)), over many pairs.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.align.links import Links
from regard.inspection.analyses.align.word_weights import (
    METHODS,
    READINGS,
    Choice,
    Method,
    Pair,
    Reading,
    token_maps,
    word_weights,
)
from regard.runs.run import Run
from regard.tasks.loaded import LoadedRun
from regard.tasks.preparation import is_prepared, prepare

FILE, FORMAT = "alignment.json", 1
"""Where a run keeps its choices."""

MOST_PAIRS: dict[Method, int] = {"attention": 500, "contributions": 100}
"""Pairs that a choice is made on."""

FEWEST_PAIRS = 50
"""Pairs below which a choice is called unreliable."""

LARGEST_FILE = 1_000_000
"""Bytes of the file that are read at most."""

Basis = Literal["validation", "given", "gold", "asked"]

Directed = dict[Choice, tuple[list[Links], list[Links]]]
"""For each choice the links of every pair: the maxima of rows, and those of columns."""


@dataclass(frozen=True)
class Asked:
    """What the user wants of the maps; the rest is tried."""

    method: Method
    layer: int | None = None
    head: int | None = None
    reading: Reading | None = None

    @property
    def is_free(self) -> bool:
        """Whether the user left everything open."""
        return self.layer is None and self.head is None and self.reading is None

    def choices(self, keys: Iterable[tuple[int | None, int | None]]) -> list[Choice]:
        """All readings of the maps that fit."""
        keys = list(keys)
        layers = sorted({layer for layer, _ in keys if layer is not None})
        heads = sorted({head for layer, head in keys if self.layer in (None, layer) and head is not None})
        if self.layer is not None and self.layer not in layers:
            raise UsageError(
                f"There is no layer {self.layer} that looks at the source: layers are {', '.join(map(str, layers))}."
            )
        if self.head is not None and self.head not in heads:
            which = f"heads are {', '.join(map(str, heads))}" if heads else "contributions are of all heads together"
            raise UsageError(f"There is no head {self.head} there: {which}.")
        wanted: list[int | None] = [layer for layer in layers if (layer, self.head) in keys]
        if self.layer is not None:
            wanted = [self.layer]
        elif self.head is None and len(layers) > 1:
            wanted.append(None)
        readings = [self.reading] if self.reading is not None else list(READINGS)
        return [Choice(layer, self.head, reading) for layer in wanted for reading in readings]


@dataclass(frozen=True)
class Candidate:
    """One way of reading the maps, and how well it did on the pairs that the choice was made on."""

    choice: Choice
    association: float
    """Mean Dice coefficient of the words that it links, 0 for a target word without link."""
    agreement: float
    """Of the maxima of rows with those of columns: 2 |A∩B| / (|A| + |B|)."""


@dataclass(frozen=True)
class Chosen:
    """The reading that alignments go by, and what it was chosen on."""

    choice: Choice
    basis: Basis
    pairs: int
    """How many it was chosen on."""
    candidates: tuple[Candidate, ...]
    diagonal: float
    """The association of the diagonal, a baseline without a model."""

    @property
    def association(self) -> float:
        """That of the choice."""
        return next((candidate.association for candidate in self.candidates if candidate.choice == self.choice), 0.0)

    def __str__(self) -> str:
        if self.basis == "asked":
            return "Read as asked for"
        what = {"validation": "validation pairs of the run", "given": "pairs given", "gold": "pairs with gold links"}
        sentence = f"Chosen among {len(self.candidates)} readings on {self.pairs:,} {what[self.basis]}"
        if self.basis == "gold":
            return f"{sentence}: the error rate is that of a choice made on this gold itself, and too low"
        sentence += f": words it links occur together by {self.association:.2f} (Dice), those of the diagonal by "
        sentence += f"{self.diagonal:.2f}"
        return f"{sentence}; so few pairs cannot tell a right reading from a wrong one" if self._is_weak else sentence

    @property
    def _is_weak(self) -> bool:
        return self.basis == "given" and self.pairs < FEWEST_PAIRS

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        return {
            "layer": self.choice.layer,
            "head": self.choice.head,
            "reading": self.choice.reading,
            "basis": self.basis,
            "pairs": self.pairs,
            "association": self.association,
            "diagonal_association": self.diagonal,
            "candidates": [
                {
                    "layer": candidate.choice.layer,
                    "head": candidate.choice.head,
                    "reading": candidate.choice.reading,
                    "association": candidate.association,
                    "agreement": candidate.agreement,
                }
                for candidate in self.candidates
            ],
        }


class Association:
    """How often words of two sides occur in the same pairs, whatever their case."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.words = [([w.lower() for w in pair.source], [w.lower() for w in pair.target]) for pair in pairs]
        self.sources = Counter(word for source, _ in self.words for word in set(source))
        self.targets = Counter(word for _, target in self.words for word in set(target))
        self.both = Counter((s, t) for source, target in self.words for s in set(source) for t in set(target))

    def mean(self, links: Sequence[Links]) -> float:
        """Return the mean Dice coefficient of linked words over all target words; one without link counts 0."""
        total, count = 0.0, 0
        for (source, target), some in zip(self.words, links, strict=True):
            count += len(target)
            for s, t in some:
                total += 2 * self.both[source[s], target[t]] / (self.sources[source[s]] + self.targets[target[t]])
        return total / max(1, count)


def diagonal(pair: Pair) -> Links:
    """Return the links of the diagonal: each target word with the source word at the same relative place."""
    if not pair.source:
        return frozenset()
    step = (len(pair.source) - 1) / max(1, len(pair.target) - 1)
    return frozenset((math.floor(target * step + 0.5), target) for target in range(len(pair.target)))


def agreement(one: Iterable[Links], other: Iterable[Links]) -> float:
    """How far two sets of links are the same: 2 |A∩B| / (|A| + |B|)."""
    both, total = 0, 0
    for first, second in zip(one, other, strict=True):
        both, total = both + len(first & second), total + len(first) + len(second)
    return 2 * both / total if total else 0.0


def maxima(weights: Tensor, pair: Pair) -> tuple[Links, Links]:
    """Of weights T×(S+1): the best source word of each target word, and the best target word of each source word.

    A target word whose best is the end symbol (the last column) has no link; nor has a word without tokens.
    """
    rows = [
        (int(source), target)
        for target, source in enumerate(weights.argmax(1).tolist())
        if pair.target_tokens[target] and source < len(pair.source)
    ]
    best = weights[:, : len(pair.source)].argmax(0).tolist()
    columns_ = [(source, int(target)) for source, target in enumerate(best) if pair.source_tokens[source]]
    return frozenset(rows), frozenset(columns_)


def directed(
    translator: LoadedRun, pairs: Sequence[Pair], asked: Asked, only: Choice | None, progress: Progress | None
) -> Directed:
    """Return the links of every pair by each requested reading, or by one alone."""
    none: Links = frozenset()
    found: Directed = {}
    for index, maps in token_maps(translator, pairs, asked.method, progress=progress):
        if only is not None and (only.layer, only.head) not in maps:
            raise RegardError(
                f"This model has no map for {only}: the choice stored with it is another model's. Delete {FILE} in the "
                "run, and it is made again."
            )
        for choice in found or ([only] if only is not None else asked.choices(maps)):
            rows, columns_ = found.setdefault(choice, ([none] * len(pairs), [none] * len(pairs)))
            weights = word_weights(maps[choice.layer, choice.head], pairs[index], choice.reading)
            rows[index], columns_[index] = maxima(weights, pairs[index])
    if not found:
        choice = only or Choice(asked.layer, asked.head, asked.reading or "reads")
        found[choice] = [none] * len(pairs), [none] * len(pairs)
    return found


def choose(pairs: Sequence[Pair], found: Directed, basis: Basis) -> Chosen:
    """Choose the reading whose links join words that occur together most; of equals the one that agrees best."""
    words = Association(pairs)
    candidates = [
        Candidate(choice, words.mean(rows), agreement(rows, columns_)) for choice, (rows, columns_) in found.items()
    ]
    best = max(candidates, key=lambda candidate: (round(candidate.association, 9), candidate.agreement))
    return Chosen(best.choice, basis, len(pairs), tuple(candidates), words.mean([diagonal(pair) for pair in pairs]))


def choose_for_run(
    translator: LoadedRun, run: Path | str, asked: Asked, progress: Progress | None = None
) -> Chosen | None:
    """Return the choice stored in a run, or make it on its validation pairs and store it; `None` without such pairs.

    What the user asks for narrows the choice; only one that was made without is stored.
    """
    opened = Run.open(run)
    weights = _fingerprint(opened.directory)
    stored = _read(opened.directory) if asked.is_free else {}
    if (known := stored.get(asked.method)) is not None and known[0] == weights:
        return known[1]
    if not is_prepared(opened.directory):
        return None
    examples = prepare(opened.config, opened.directory).validation_pairs
    usable = [pair for pair in examples if pair.source.strip() and pair.target.strip()]
    pairs = [Pair.of(translator, pair.source, pair.target) for pair in usable[: MOST_PAIRS[asked.method]]]
    longest = _longest_pair(translator)
    pairs = [pair for pair in pairs if max(len(pair.source_ids), len(pair.target_ids)) < longest]
    if not pairs:
        return None
    chosen = choose(pairs, directed(translator, pairs, asked, None, progress), "validation")
    if asked.is_free:
        _write(opened.directory, {**stored, asked.method: (weights, chosen)})
    return chosen


def _longest_pair(translator: LoadedRun) -> int:
    """Return the tokens from which on a pair is too long to be read for a choice."""
    positions, most = translator.config.model.positions, translator.config.data.cleaning.max_length + 1
    return min(most, positions.max_length) if positions is not None and positions.kind == "learned" else most


def _fingerprint(directory: Path) -> str:
    """Return a hash of the ends and the size of a run's weights: other weights need another choice."""
    path = directory / "model.safetensors"
    found = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            found.update(f"{size}:".encode() + file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            found.update(file.read(1 << 20))
    except OSError as error:
        raise RegardError(f"{path} cannot be read ({error.strerror}). Put the weights of the run back.") from None
    return found.hexdigest()


def _write(directory: Path, choices: dict[Method, tuple[str, Chosen]]) -> None:
    """Store choices in a run; in one that is read-only, nothing is stored, and the next call chooses again."""
    content = {
        "format": FORMAT,
        "choices": {method: {"weights": weights, **chosen.to_json()} for method, (weights, chosen) in choices.items()},
    }
    try:
        durable.write(directory / FILE, json.dumps(content, indent=2) + "\n")
    except (OSError, RegardError):
        return


def _read(directory: Path) -> dict[Method, tuple[str, Chosen]]:
    """Return the choices stored in a run by method, each with the weights that it was made for."""
    path = directory / FILE
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise ValueError("it is not a small plain file")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        choices = content["choices"]
        if not isinstance(choices, dict) or not set(choices) <= set(METHODS):
            raise ValueError("its choices are not by method")
        return {method: (_text(choice["weights"]), _parse_chosen(choice)) for method, choice in choices.items()}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise RegardError(
            f"{path} holds no valid choice of alignment reading ({type(error).__name__}: {str(error)[:80]}). Delete "
            "it, and it is made again."
        ) from None


def _parse_chosen(facts: Any) -> Chosen:
    candidates = tuple(
        Candidate(_choice(candidate), _share(candidate["association"]), _share(candidate["agreement"]))
        for candidate in facts["candidates"]
    )
    chosen = Chosen(
        _choice(facts), "validation", _number(facts["pairs"]), candidates, _share(facts["diagonal_association"])
    )
    if facts["basis"] != "validation" or chosen.choice not in {candidate.choice for candidate in candidates}:
        raise ValueError("the choice is not one of its candidates")
    return chosen


def _choice(facts: Any) -> Choice:
    layer, head, reading = facts["layer"], facts["head"], facts["reading"]
    if reading not in READINGS:
        raise ValueError("there is no such reading")
    return Choice(None if layer is None else _number(layer), None if head is None else _number(head), reading)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1_000_000:
        raise ValueError("a number is not one")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a share is not between 0 and 1")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a hash is not text")
    return value
