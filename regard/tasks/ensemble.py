"""Several runs that translate as one.

Axes: B batch, S source positions.
"""

from collections.abc import Sequence
from typing import Any

from regard.foundation.errors import UsageError
from regard.search import Hypothesis, ModelSteps, StepModel
from regard.search.ensemble import EnsembleSteps, join_sources
from regard.search.steps import Source
from regard.tasks.translator import Translator


class Ensemble(Translator):
    """Several translators with the same target vocabulary as one; each reads the source in its own way.

    Configuration and source lengths are those of the first.
    """

    def __init__(self, members: Sequence[Translator]) -> None:
        first = members[0]
        for number, member in enumerate(members[1:], start=2):
            if member.target_tokenizer.fingerprint != first.target_tokenizer.fingerprint:
                raise UsageError(
                    f"Run {number} of the ensemble has another target vocabulary than the first: only runs that were "
                    "trained with the same tokenizer can be averaged."
                )
        super().__init__(first.model, first.config, first.source_tokenizer, first.target_tokenizer)
        self.trained_length = min(member.trained_length for member in members)
        self.members = tuple(members)

    @property
    def _positions(self) -> int | None:
        """The fewest that any member has learned."""
        learned = [member._positions for member in self.members if member._positions is not None]
        return min(learned, default=None)

    @property
    def _has_attention(self) -> bool:
        """Members may read different tokens."""
        return False

    def explained(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Refused: members may read different tokens."""
        raise UsageError("Attention and alignment are of one model: translate with one run.")

    def _steps(self, texts: list[str], sources: list[list[int]], *, attentive: bool) -> tuple[StepModel[Any], Source]:
        if attentive:
            raise UsageError("A coverage penalty needs the attention of one model: translate with one run.")
        own = [member.source_tokenizer.encode_batch(texts) for member in self.members]
        for rows in own:
            self._check_lengths(rows)
        read = [Source.of(member._batch(rows)) for member, rows in zip(self.members, own, strict=True)]
        return EnsembleSteps([ModelSteps(member.model) for member in self.members]), join_sources(read)
