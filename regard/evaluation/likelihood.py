"""Log-probabilities of given targets, computed in batches by teacher forcing.

Axes: B batch, S source positions, T target positions, E output width, V vocabulary.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.data.batches import cut, pad_rows
from regard.data.corpus import Pair
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.models import Model
from regard.tasks.loaded import LoadedRun
from regard.text.specials import BOS, EOS, PAD

LOGITS = 4_000_000
"""Largest number of logits in memory at a time (16 MB), also for long batches and large vocabularies."""


POSITION_ENDS = (1, 2, 5, 10, 20, 50)
"""Last positions of the bins that are printed."""


@dataclass(frozen=True)
class Likelihood:
    """log P(target | source) = Σ log P(token | tokens before, source), with the end symbol as the last token."""

    log_probs: tuple[float, ...]
    """Log-probability of each token in nats, that of the end symbol last."""
    words: int
    """Number of whitespace-separated words in the normalised target, plus one for the end symbol."""
    characters: int
    """Number of characters of the normalised target, plus one for the end symbol (the line break)."""

    @property
    def log_prob(self) -> float:
        """The log-probability of the whole target, in nats."""
        return math.fsum(self.log_probs)


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """exp(−log P / n) of some targets; n counts tokens, words or characters, including the end of each target."""

    log_prob: float
    sentences: int
    tokens: int
    words: int
    characters: int

    @property
    def per_token(self) -> float:
        """Comparable only between models with the same tokenizer."""
        return _perplexity(self.log_prob, self.tokens)

    @property
    def per_word(self) -> float:
        """Comparable between any models of the same text."""
        return _perplexity(self.log_prob, self.words)

    @property
    def per_character(self) -> float:
        """Comparable between any models of the same text, also for languages without spaces."""
        return _perplexity(self.log_prob, self.characters)

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {
            "log_prob": self.log_prob,
            "perplexity": {"token": self.per_token, "word": self.per_word, "character": self.per_character},
            "sentences": self.sentences,
            "tokens": self.tokens,
            "words": self.words,
            "characters": self.characters,
        }


def perplexity(probabilities: Iterable[float]) -> float:
    """Return exp(−Σ p log p) of a distribution: the number of equally likely outcomes with the same entropy."""
    return math.exp(-math.fsum(p * math.log(p) for p in probabilities if p > 0))


def total(likelihoods: Sequence[Likelihood]) -> Perplexity:
    """Return the perplexity of several targets taken together."""
    return Perplexity(
        log_prob=math.fsum(likelihood.log_prob for likelihood in likelihoods),
        sentences=len(likelihoods),
        tokens=sum(len(likelihood.log_probs) for likelihood in likelihoods),
        words=sum(likelihood.words for likelihood in likelihoods),
        characters=sum(likelihood.characters for likelihood in likelihoods),
    )


@dataclass(frozen=True)
class Position:
    """Perplexity of the tokens at one position of all targets that reach it."""

    targets: int
    """Number of targets that reach it."""
    perplexity: float


def by_position(likelihoods: Sequence[Likelihood]) -> list[Position]:
    """Return the perplexity at each position; the first position first."""
    columns: list[list[float]] = []
    for likelihood in likelihoods:
        columns.extend([] for _ in range(len(likelihood.log_probs) - len(columns)))
        for column, log_prob in zip(columns, likelihood.log_probs, strict=False):
            column.append(log_prob)
    return [Position(len(column), _perplexity(math.fsum(column), len(column))) for column in columns]


def position_line(positions: Sequence[Position]) -> str:
    """Return perplexities by position in one line, later positions together: `1: 9.1, 2: 4.0, 3–5: 3.2, …`."""
    parts, start = [], 0
    for end in (*POSITION_ENDS, len(positions)):
        some = positions[start:end]
        if some:
            count = sum(position.targets for position in some)
            log_prob = -math.fsum(position.targets * math.log(position.perplexity) for position in some)
            name = f"{start + 1}" if len(some) == 1 else f"{start + 1}–{start + len(some)}"
            parts.append(f"{name}: {_perplexity(log_prob, count):.2f}")
        start = max(start, end)
    return ", ".join(parts)


def likelihoods(
    translator: LoadedRun,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    cut: bool = False,
    progress: Progress | None = None,
) -> list[Likelihood]:
    """Return the likelihood of each target given its source, in the given order; results do not depend on batching.

    Texts that are too long for the model raise an error; with `cut` they are shortened.
    """
    if len(sources) != len(targets):
        raise UsageError(f"There are {len(sources):,} sources for {len(targets):,} targets. The numbers must be equal.")
    pairs = [Pair(source, target) for source, target in zip(sources, targets, strict=True)]
    source_ids, target_ids = translator.input.encode(sources), translator.output.targets(pairs)
    most = _most_tokens(translator)
    if cut:
        source_ids, target_ids = [ids[:most] for ids in source_ids], [ids[:most] for ids in target_ids]
    _check_lengths(translator, source_ids, target_ids)
    tokens = translator.config.decoding.batch_tokens
    rows = log_probs(translator.model, source_ids, target_ids, tokens=tokens, progress=progress)
    tokenizer = translator.target_tokenizer
    normal = [
        tokenizer.decode(ids) if cut and len(ids) == most else tokenizer.normalise(target)
        for ids, target in zip(target_ids, targets, strict=True)
    ]
    return [Likelihood(row, len(text.split()) + 1, len(text) + 1) for row, text in zip(rows, normal, strict=True)]


@torch.inference_mode()
def log_probs(
    model: Model,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    tokens: int = 4096,
    progress: Progress | None = None,
) -> list[tuple[float, ...]]:
    """Return the log-probabilities of target tokens and end symbols, in batches of similar length.

    Sources and targets are token ids without special ones; a batch has at most `tokens` padded tokens on its longer
    side.
    """
    longest = np.array([max(len(s), len(t) + 1) + 1 for s, t in zip(sources, targets, strict=True)], dtype=np.int32)
    order = np.lexsort((np.array([len(s) for s in sources]), longest))
    found: list[tuple[float, ...]] = [()] * len(order)
    training = model.training
    model.eval()
    try:
        for start, end in cut(longest[order], tokens) if len(order) else ():
            batch = [int(index) for index in order[start:end]]
            rows = _batch(model, [sources[index] for index in batch], [targets[index] for index in batch])
            for index, row in zip(batch, rows, strict=True):
                found[index] = row
            if progress:
                progress("scoring", int(end), len(order))
    finally:
        model.train(training)
    return found


def _batch(model: Model, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
    device = model.output_bias.device
    source = pad_rows([np.asarray(ids, dtype=np.int64) for ids in sources], [], [EOS]).to(device)  # B×S
    target = pad_rows([np.asarray(ids, dtype=np.int64) for ids in targets], [BOS], [EOS]).to(device)  # B×T+1
    wanted = target[:, 1:].reshape(-1)  # BT
    states = model.decode(model.encode(source), target[:, :-1]).flatten(0, 1)  # BT×E
    kept = torch.nonzero(wanted != PAD).squeeze(1)  # N
    chunk = max(1, LOGITS // len(model.output_bias))
    parts = []
    for rows in torch.split(kept, chunk):
        scores = torch.log_softmax(model.scores(states[rows]).float(), dim=-1)  # N×V
        parts.append(scores.gather(1, wanted[rows, None]).squeeze(1))  # N
    values, start, found = torch.cat(parts).tolist(), 0, []
    for ids in targets:
        found.append(tuple(values[start : start + len(ids) + 1]))
        start += len(ids) + 1
    return found


def longer_than_readable(translator: LoadedRun, sources: Sequence[str], targets: Sequence[str]) -> int:
    """Return the number of pairs with a side that the model cannot read at once."""
    most = _most_tokens(translator)
    sides = translator.source_tokenizer.encode_batch(sources), translator.target_tokenizer.encode_batch(targets)
    return sum(max(len(source), len(target)) > most for source, target in zip(*sides, strict=True))


def _most_tokens(translator: LoadedRun) -> int:
    """Return the most tokens that the model can read at once, without the end symbol."""
    most = translator.config.decoding.batch_tokens
    return min(most, translator.config.model.learned_positions or most) - 1


def _check_lengths(translator: LoadedRun, sources: list[list[int]], targets: list[list[int]]) -> None:
    """Raise if a text is too long for the model, since splitting it would change its probability."""
    learned, batch = translator.config.model.learned_positions, translator.config.decoding.batch_tokens
    for side, rows in (("Source", sources), ("Target", targets)):
        for number, ids in enumerate(rows, start=1):
            count = len(ids) + 1  # with the end symbol
            if learned is not None and count > learned:
                raise RegardError(
                    f"{side} {number:,} has {len(ids):,} tokens, but this model has learned {learned:,} positions (one "
                    "is for the end symbol). Split it or leave it out."
                )
            if count > batch:
                raise RegardError(
                    f"{side} {number:,} has {len(ids):,} tokens, but a batch holds {batch:,}. Split it, leave it out, "
                    f"or allow more memory with decoding.batch_tokens={count}."
                )


def _perplexity(log_prob: float, count: int) -> float:
    return math.exp(min(-log_prob / max(1, count), 700.0))
