"""No input: text is written from nothing, or from its beginning, which is then the source.

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
    """Nothing is read; in use, a source is the beginning of a text, which may be empty."""

    is_text = True

    def encode(self, sources: Sequence[str]) -> Rows:
        """Nothing."""
        return [[] for _ in sources]

    @property
    def id_limit(self) -> int:
        """There are no ids."""
        return self.tokenizer.size

    def describe(self) -> str:
        """The output says it."""
        return ""

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token occurs in the documents of a store."""
        return store.counts("target", self.tokenizer.size)

    def rows(self, sources: Sequence[str]) -> Rows:
        """Prompts, the start symbol first."""
        rows = [[BOS, *ids] for ids in self.tokenizer.encode_batch(sources)]
        positions = self.config.model.learned_positions
        for number, ids in enumerate(rows, start=1):
            if positions is not None and len(ids) >= positions:
                name = "The prompt" if len(rows) == 1 else f"Prompt {number}"
                raise RegardError(
                    f"{name} has {len(ids) - 1} tokens, but this model has learned {positions} positions: shorten it."
                )
        return rows

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Places of prompts of equal length, which can be read in step."""
        by_length: dict[int, list[int]] = {}
        for place, ids in enumerate(rows):
            by_length.setdefault(len(ids), []).append(place)
        for length, places in sorted(by_length.items()):
            most = max(1, tokens // length)
            yield from (places[start : start + most] for start in range(0, len(places), most))

    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Prompts of equal length B×S."""
        return (torch.tensor(rows),)

    def view(self, model: nn.Module, source: str) -> SourceView:
        """No position."""
        return SourceView(Side.of(self.tokenizer, []), Given([], []))

    def output_limit(self, row: list[int]) -> int:
        """As many tokens as configured, or as there are positions left."""
        longest, positions = self.config.decoding.max_length, self.config.model.learned_positions
        return longest if positions is None else min(longest, positions - len(row))

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """The model, which reads the prompts first."""
        if with_attention:
            raise UsageError("A coverage penalty is about a source, and a language model has none.")
        return PromptedSteps(model), Source.of(self.collate(sources, rows)[0].to(model.device))

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Refused: there is no source to look at."""
        raise UsageError("A language model has no source: there is no attention to it, and no alignment.")
