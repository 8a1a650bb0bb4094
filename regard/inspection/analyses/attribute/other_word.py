"""Another word in place of a word of the output: at which position, and how likely it is as a whole."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.foundation.errors import UsageError
from regard.tasks.trace import Side, Trace, trace
from regard.text.normalising import WORD_START
from regard.text.specials import BOS, EOS, UNK

PLACES_SHOWN = 5


@dataclass(frozen=True)
class OtherWord:
    """A word in place of a word of the output, with all of its tokens."""

    text: str
    word: int
    """The target word that it is compared with, counted from 0."""
    places: list[int]
    """The target tokens of that word."""
    trace: Trace
    """The same pass with the other word at that position, and nothing after it."""
    own: list[int]
    """The target tokens of the other word there."""
    original: Trace
    """The pass with the original output."""

    @property
    def log_probs(self) -> tuple[float, float]:
        """Return log P of the whole word of the output, and of the whole other word, in nats."""
        written, other = self.original.target_log_probs[self.places], self.trace.target_log_probs[self.own]
        return float(written.sum()), float(other.sum())

    def __str__(self) -> str:
        written, other = self.log_probs
        name = self.original.target.word_texts[self.word]
        return (
            f"Compared at word {self.word + 1}, “{name}”: log P {written:+.2f} for it, {other:+.2f} for “{self.text}” "
            f"({len(self.own)} token{'s' if len(self.own) > 1 else ''}), both as whole words."
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        written, other = self.log_probs
        return {
            "word": self.word + 1,
            "output": self.original.target.word_texts[self.word],
            "instead": self.text,
            "log_prob": written,
            "instead_log_prob": other,
        }


def compare_with_word(seen: Trace, text: str, at: int | None = None) -> OtherWord:
    """Set a word against the target word `at` (counted from 1), which may be left out where there is only one.

    The other word takes over the punctuation of the word that it replaces, unless it has its own: "rennt." is compared
    with "Hund.", not with "Hund".
    """
    ids = word_ids(seen, text)
    words = _words(seen)
    if at is not None and at - 1 not in words:
        raise UsageError(f"There is no word {at} to replace: the output has words 1 to {len(words)}.")
    if not words:
        raise UsageError("The output is empty, so no other word can be compared with it: give a --target.")
    if at is None and len(words) > 1:
        raise UsageError(_ask_for_place(seen, text.strip(), _log_probs(seen, ids, words)))
    word = next(iter(words)) if at is None else at - 1
    name = seen.target.word_texts[word]
    text = with_punctuation(text.strip(), name)
    ids = word_ids(seen, text)
    if ids == [seen.target.ids[position] for position in words[word]]:
        raise UsageError(f'Word {word + 1} of the output is "{name}" already. Give another word, or another --at.')
    first = words[word][0]
    written = [*seen.target.ids[:first], *ids, EOS]
    tokenizer = seen.tokenizer
    assert tokenizer is not None
    target, inputs = Side.of(tokenizer, written), Side.of(tokenizer, [BOS, *written[:-1]])
    other = trace(seen.model, seen.source, target, inputs, tokenizer=tokenizer)
    return OtherWord(text.strip(), word, words[word], other, list(range(first, first + len(ids))), seen)


def with_punctuation(text: str, replaced: str) -> str:
    """Return a word with the punctuation around the word that it replaces, unless it has punctuation of its own."""
    lead, core, tail = _split_punctuation(replaced)
    own_lead, own_core, own_tail = _split_punctuation(text)
    return lead + text + tail if core and own_core and not own_lead and not own_tail else text


def _split_punctuation(word: str) -> tuple[str, str, str]:
    """Split a text into punctuation before the first letter or digit, the word itself, and punctuation after it."""
    found = re.fullmatch(r"([\W_]*)(.*?)([\W_]*)", word.strip(), re.DOTALL)
    assert found is not None
    return found[1], found[2], found[3]


def _ask_for_place(seen: Trace, text: str, likely: dict[int, float]) -> str:
    best = sorted(likely, key=lambda word: -likely[word])[:PLACES_SHOWN]
    places = ", ".join(f"word {word + 1} “{seen.target.word_texts[word]}” ({likely[word]:+.2f})" for word in best)
    return (
        f'The output has {len(likely)} words, and "{text[:80]}" can be compared with any of them: name one with --at N '
        f'(in Python at=N). The log-probability of "{text[:80]}" is highest in place of {places}.'
    )


def word_ids(seen: Trace, text: str) -> list[int]:
    """Return the tokens of one word that a model can write, or refuse it."""
    tokenizer = seen.tokenizer
    if tokenizer is None:
        raise UsageError("This trace has no tokenizer, so no other word can be encoded: trace with a loaded run.")
    shown = text.strip()[:80]
    ids: list[int] = list(tokenizer.encode(text).ids)
    if not ids or UNK in ids:
        raise UsageError(f'"{shown}" is not a word that this model can write: use words of its vocabulary.')
    if len(text.split()) > 1:
        raise UsageError(f'One word is compared with another, but "{shown}" is several: give one.')
    if len(ids) > 1 and tokenizer.vocabulary[ids[0]] == WORD_START:
        raise UsageError(
            f'"{shown}" begins with the bare space mark "{WORD_START}" in this vocabulary, a token that any word may '
            "begin with, so its amounts say nothing about this word. Choose a word whose first token has letters."
        )
    return ids


def _words(seen: Trace) -> dict[int, list[int]]:
    """Return the tokens of each target word, without special ones."""
    found: dict[int, list[int]] = {}
    for position, (word, special) in enumerate(zip(seen.target.words, seen.target.special, strict=True)):
        if not special:
            found.setdefault(word, []).append(position)
    return found


def _log_probs(seen: Trace, ids: Sequence[int], words: dict[int, list[int]]) -> dict[int, float]:
    """Return the log-probability of the whole other word at the place of each word."""
    found = {}
    for word, places in words.items():
        inputs = [BOS, *seen.target.ids[: places[0]], *ids[:-1]]
        tensors = [torch.tensor([row], device=seen.model.device) for row in (seen.source.ids, inputs)]
        with torch.no_grad():
            logits = seen.model.scores(seen.model.outputs(*tensors))[0]  # T×V
        chances = logits[-len(ids) :].float().log_softmax(-1).cpu()
        found[word] = float(chances.gather(1, torch.tensor(ids)[:, None]).sum())
    return found
