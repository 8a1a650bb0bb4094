"""No input: text is generated without a source, or from a prompt, which is then the source.

Axes: B batch, S prompt positions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.store import TokenStore
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model
from regard.search.hypothesis import Hypothesis
from regard.search.steps import PromptedSteps, Source, StepModel
from regard.tasks.inputs.input import Input, Rows, SourceView
from regard.tasks.trace import Given, Side
from regard.text.specials import BOS
from regard.text.tokenizer import Tokenizer


class NoInput(Input):
    """No input; in generation, a source is a prompt, which may be empty."""

    is_text = True

    def encode(self, sources: Sequence[str]) -> Rows:
        """Return empty rows."""
        return [[] for _ in sources]

    @property
    def id_limit(self) -> int:
        """The size of the vocabulary."""
        return self.tokenizer.size

    def describe(self) -> str:
        """Return nothing, since the output describes the vocabulary."""
        return ""

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """Count each token of the documents in a store."""
        return store.counts("target", self.tokenizer.size)

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the tokens of prompts, the start symbol first."""
        rows = [[BOS, *ids] for ids in self.tokenizer.encode_batch(sources)]
        positions = self.config.model.learned_positions
        for number, ids in enumerate(rows, start=1):
            if positions is not None and len(ids) >= positions:
                name = "The prompt" if len(rows) == 1 else f"Prompt {number}"
                raise RegardError(
                    f"{name} has {len(ids) - 1} tokens, but this model has learned {positions} positions. Shorten it."
                )
        return rows

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of prompts in groups of equal length."""
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(rows):
            by_length.setdefault(len(ids), []).append(index)
        for length, places in sorted(by_length.items()):
            most = max(1, tokens // length)
            yield from (places[start : start + most] for start in range(0, len(places), most))

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Return prompts of equal length B×S."""
        return (torch.tensor(rows),)

    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return an empty source."""
        return SourceView(Side.of(self.tokenizer, []), Given([], []))

    def output_limit(self, row: list[int]) -> int:
        """Return the configured maximum length, or the number of remaining positions."""
        longest, positions = self.config.decoding.max_length, self.config.model.learned_positions
        return longest if positions is None else min(longest, positions - len(row))

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model, which reads the prompts first, and the prompts."""
        if with_attention:
            raise UsageError("A coverage penalty needs a source, but a language model has none. Leave it out.")
        return PromptedSteps(model), Source.of(self.collate(sources, rows)[0].to(model.device))

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Raise `UsageError`: there is no source to attend to."""
        raise UsageError("A language model has no source, so that there is no attention to it and no alignment.")
