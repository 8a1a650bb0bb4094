"""Ensembles of runs that generate text.

Axes: B batch, S source positions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.foundation.errors import UsageError
from regard.models import Model
from regard.search import Hypothesis, ModelSteps, Search, StepModel
from regard.search.ensemble import EnsembleSteps, join_sources
from regard.search.steps import Source
from regard.tasks.generation import Rows, TextGenerator
from regard.tasks.inputs.text import TextInput
from regard.tasks.loaded import LoadedRun
from regard.text.sentences import Piece
from regard.text.tokenizer import Tokenizer


class EnsembleInput:
    """The inputs of all members: each tokenizes the source itself; lengths are those of the first."""

    is_text = True
    aligns = False  # members may read different tokens

    def __init__(self, members: Sequence[LoadedRun]) -> None:
        self.members = tuple(members)
        self.inputs: list[TextInput] = []
        for member in members:
            assert isinstance(member.input, TextInput)
            self.inputs.append(member.input)
        first = self.inputs[0]
        first.trained_length = min(member_input.trained_length for member_input in self.inputs)

    @property
    def tokenizer(self) -> Tokenizer:
        """The source tokenizer of the first member."""
        return self.inputs[0].tokenizer

    @property
    def positions(self) -> int | None:
        """The smallest number of learned positions of any member."""
        return min(
            (member_input.positions for member_input in self.inputs if member_input.positions is not None), default=None
        )

    def split(self, sources: Sequence[str], search: Search) -> tuple[list[list[Piece]], Rows]:
        """Delegate to the first member."""
        return self.inputs[0].split(sources, search)

    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the ids of the first member."""
        return self.inputs[0].rows(sources)

    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Delegate to the first member."""
        return self.inputs[0].groups(rows, tokens)

    def output_limit(self, row: list[int]) -> int:
        """Return the limit of the first member, or the smallest number of learned positions of any member."""
        limit = self.inputs[0].output_limit(row)
        return limit if self.positions is None else min(limit, self.positions)

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the ensemble of step models, and the sources as each member tokenizes them."""
        if with_attention:
            raise UsageError(
                "A coverage penalty needs the attention of one model. Translate with one run instead of an ensemble."
            )
        every = [rows, *(member_input.rows(sources) for member_input in self.inputs[1:])]
        own = [
            Source.of(member.input.collate(sources, own_rows)[0].to(member.model.device))
            for member, own_rows in zip(self.members, every, strict=True)
        ]
        return EnsembleSteps([ModelSteps(member.model) for member in self.members]), join_sources(own)

    def finish(self, source: str, text: str) -> str:
        """Delegate to the first member."""
        return self.inputs[0].finish(source, text)

    def reorder(self, source: str, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Delegate to the first member."""
        return self.inputs[0].reorder(source, hypotheses)

    @property
    def reorders(self) -> bool:
        """Delegate to the first member."""
        return self.inputs[0].reorders

    def remarks(self) -> list[str]:
        """Delegate to the first member."""
        return self.inputs[0].remarks()

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Raise `UsageError`: members may have different source tokens."""
        raise UsageError("An ensemble has no common attention or alignment. Translate with one run.")


def ensemble(members: Sequence[LoadedRun]) -> TextGenerator:
    """Combine several runs with the same target vocabulary."""
    first = members[0]
    for number, member in enumerate(members[1:], start=2):
        if member.target_tokenizer.fingerprint != first.target_tokenizer.fingerprint:
            raise UsageError(
                f"Run {number} of the ensemble has another target vocabulary than the first. Use runs that were "
                "trained with the same tokenizer."
            )
    return TextGenerator(first.model, first.config, EnsembleInput(members), first.target_tokenizer)
