"""Text as input: one text, or several with tabs between them.

Axes: B batch, S source positions, T target positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import pad_rows
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model
from regard.search.alignment import attention_to_source, word_alignment
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.steps import AttentiveSteps, ModelSteps, Source, StepModel
from regard.tasks.inputs.input import Input, Rows, SourceView
from regard.tasks.trace import Given, Side
from regard.text.joined import TAB, check_parts
from regard.text.normalising import WORD_START
from regard.text.packed_rows import PackedRows
from regard.text.sentences import Piece, keep_whole, pieces
from regard.text.specials import BOS, EOS, SEP, UNK
from regard.text.tokenizer import Tokenizer


class TextInput(Input):
    """A text; several texts are joined by a separator into one row of tokens."""

    is_text = True

    def encode(self, sources: Sequence[str]) -> Rows:
        """Return the tokens of texts."""
        return self._cut_rows(sources, self.config.data.cleaning.max_length)

    def encode_packed(self, sources: Sequence[str]) -> PackedRows:
        """Return the tokens of texts, packed."""
        if self.config.task.cuts_long_sources:
            return super().encode_packed(sources)
        return self.tokenizer.encode_packed(sources)

    def _cut_rows(self, sources: Sequence[str], most: int) -> Rows:
        """Return the tokens of texts, the first `most` of each if the task leaves out the end of long sources."""
        if not self.config.task.cuts_long_sources:
            return self.tokenizer.encode_batch(sources)
        rows = self.tokenizer.encode_batch([source[: self.config.data.cleaning.max_characters] for source in sources])
        self.cut_counts["read"] += len(sources)
        self.cut_counts["cut"] += self._count_long(sources, rows, most)
        return [row[:most] for row in rows]

    def _count_long(self, sources: Sequence[str], rows: Rows, most: int) -> int:
        limit = self.config.data.cleaning.max_characters
        return sum(len(row) > most or len(source) > limit for row, source in zip(rows, sources, strict=True))

    def count_cut(self, sources: Sequence[str]) -> int:
        """Return how many texts are not read to their end."""
        if not self.config.task.cuts_long_sources:
            return 0
        return self._count_long(sources, self.tokenizer.encode_batch(sources), self.longest_source)

    def remarks(self) -> list[str]:
        """Return how many texts were too long to be read whole."""
        read, cut = self.cut_counts["read"], self.cut_counts["cut"]
        if not cut:
            return []
        most = min(self.config.data.cleaning.max_length, self.longest_source)
        return [
            f"{cut:,} of {read:,} texts have more than {most:,} tokens. Only the first {most:,} of each "
            "are read, and the rest is left out (data.cleaning.max_length)."
        ]

    @property
    def id_limit(self) -> int:
        """The size of the vocabulary."""
        return self.tokenizer.size

    @property
    def texts(self) -> int:
        """The number of texts of a source."""
        return self.config.data.train.texts

    @property
    def _framing(self) -> int:
        return len(self.frame.before) + len(self.frame.after)

    @property
    def longest_source(self) -> int:
        """The length in tokens of the longest source that fits a batch and the learned positions.

        If the task leaves out the end of long sources, it is also at most the longest in training.
        """
        most = max(self.config.decoding.batch_tokens, self._framing + 1)
        positions = self.positions
        longest = (most if positions is None else min(most, positions)) - self._framing
        return min(longest, self.config.data.cleaning.max_length) if self.config.task.cuts_long_sources else longest

    def shorten(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return texts truncated to what the model can read at once, and how many were truncated.

        Of several texts with tabs between them the longest are truncated, so that a part of each remains.
        """
        most = self.longest_source
        lengths = [len(ids) for ids in self.tokenizer.encode_batch(sources)]
        found = [
            text if length <= most else _cut(self.tokenizer, text, most)
            for text, length in zip(sources, lengths, strict=True)
        ]
        return found, sum(length > most for length in lengths)

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the tokens of texts; raises an error for texts with more tokens than learned positions."""
        rows = self._cut_rows(sources, self.longest_source)
        self.check_lengths(rows)
        return rows

    def check_lengths(self, rows: Rows) -> None:
        """Raise an error for texts that need more positions than the model has learned."""
        positions = self.positions
        if positions is None:
            return
        for number, ids in enumerate(rows, start=1):
            if len(ids) + self._framing > positions:
                ends = "one is for the end symbol" if self._framing == 1 else "two are for the ends"
                name = "The text" if len(rows) == 1 else f"Text {number:,}"
                raise RegardError(
                    f"{name} has {len(ids):,} tokens, but this model has learned {positions} positions "
                    f"({ends}). Split it, or leave it out."
                )

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of texts in groups of similar length, longest first.

        Empty texts are left out if there is no start symbol, since the model would have nothing to read.
        """
        lengths = [len(ids) for ids in rows]
        return length_groups(lengths, tokens, framing=self._framing, empty=bool(self.frame.before))

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Return tokens B×S with their frame."""
        return (pad_rows([np.asarray(ids, dtype=np.int64) for ids in rows], *self.frame),)

    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return the tokens of a text with their frame, for a trace."""
        if not isinstance(source, str) or not source.strip():
            raise UsageError("The source text is empty. Give a text to analyse.")
        check_parts(source, self.texts)
        row = self.rows([source])[0]
        return self.view_of(row)

    def view_of(self, row: list[int]) -> SourceView:
        """Return the same for tokens."""
        if not row:
            raise UsageError("The text is empty. Give a text to analyse.")
        ids = [*self.frame.before, *row, *self.frame.after]
        return SourceView(Side.of(self.tokenizer, ids), Given(ids, []))

    @property
    def aligns(self) -> bool:
        """Attention to words can be read as a word alignment."""
        return True

    def split(self, sources: Sequence[str], search: Search) -> tuple[list[list[Piece]], Rows]:
        """Split texts into sentences or shorter pieces that fit the model; by default only texts that do not fit."""
        if self.texts > 1 or self.config.task.cuts_long_sources:
            return super().split(sources, search)
        rows = self.tokenizer.encode_batch(sources)
        most = min(self.config.data.cleaning.max_length, self.longest_source)
        fits = min(self.trained_length, most)
        if search.splits is None and all(len(row) <= fits for row in rows):
            return [[Piece(source, "")] for source in sources], rows
        cut = [
            [Piece(source, "")] if search.splits is None and len(row) <= fits else self._pieces(source, search, most)
            for source, row in zip(sources, rows, strict=True)
        ]
        return cut, self.tokenizer.encode_batch([piece.text for row in cut for piece in row])

    def _pieces(self, source: str, search: Search, most: int) -> list[Piece]:
        cut = pieces(source, lambda piece: len(self.tokenizer.encode_batch([piece])[0]) <= most)
        return keep_whole(cut, [(kept.start, kept.end) for kept in search.kept(source)]) if search.keep else cut

    def output_limit(self, row: list[int]) -> int:
        """Return a limit in proportion to the length of the source."""
        return min(self.longest_output, int(self.config.decoding.max_ratio * len(row)) + 10)

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model and the tokens of the sources."""
        steps = AttentiveSteps(model) if with_attention else ModelSteps(model)
        return steps, Source.of(self.collate(sources, rows)[0].to(model.device))

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its attention (mean of layers and heads) and its word alignment."""
        encoded = self.tokenizer.encode(source)
        given = torch.tensor([[*encoded.ids, EOS]], device=model.device)
        target = torch.tensor([[BOS, *hypothesis.tokens, EOS]], device=model.device)
        weights = attention_to_source(model, given, target)  # T×S
        words, word = [], -1
        for token in hypothesis.tokens:
            word += token == UNK or tokenizer.vocabulary[token].startswith(WORD_START) or word < 0
            words.append(word)
        return replace(
            hypothesis,
            attention=tuple(map(tuple, weights.tolist())),
            alignment=word_alignment(weights, encoded.words, words),
        )


def length_groups(lengths: Sequence[int], tokens: int, *, framing: int = 1, empty: bool = False) -> Iterator[list[int]]:
    """Yield the indices of texts in groups of similar length, longest first, of at most `tokens` padded tokens each.

    Args:
        lengths: The length of each text in tokens.
        tokens: The budget of a group.
        framing: Special tokens around each text.
        empty: Whether empty texts are included.
    """
    readable = (place for place, length in enumerate(lengths) if length or empty)
    group: list[int] = []
    for place in sorted(readable, key=lambda place: (-lengths[place], place)):
        if group and (len(group) + 1) * (lengths[group[0]] + framing) > tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def cut_rows(row: Sequence[int], longest: int, *, several: bool) -> list[int]:
    """Return the first `longest` tokens; of several texts with separators, the longest are truncated until all fit."""
    if not several:
        return list(row[:longest])
    parts: Rows = [[]]
    for token in row:
        if token == SEP:
            parts.append([])
        else:
            parts[-1].append(token)
    lengths = share_room([len(part) for part in parts], longest - len(parts) + 1)
    found = parts[0][: lengths[0]]
    for part, length in zip(parts[1:], lengths[1:], strict=True):
        found += [SEP, *part[:length]]
    return found


def share_room(lengths: Sequence[int], room: int) -> list[int]:
    """Return lengths that sum to at most `room`: only the longest are reduced, and to the same length."""
    low, high = 0, max(lengths, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(length, middle) for length in lengths) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(length, low) for length in lengths]


def _cut(tokenizer: Tokenizer, text: str, most: int) -> str:
    room = most
    while True:  # the tokens of a truncated text need not be a prefix of those of the whole
        parts = text.split(TAB)
        spans = [tokenizer.encode(part).offsets for part in parts]
        kept = share_room([len(span) for span in spans], room - len(parts) + 1)
        cut = [part[: span[n - 1][1]] if n else "" for part, span, n in zip(parts, spans, kept, strict=True)]
        found = TAB.join(cut)
        if len(tokenizer.encode_batch([found])[0]) <= most or room <= 0:
            return found
        room -= 1
