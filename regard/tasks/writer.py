"""The front door of a language model: the beginning of a text in, the text out.

Axes: B batch, S prompt positions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.config.run import RunConfig
from regard.data.batches import Frame
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model
from regard.search import Hypothesis, Search, StepModel
from regard.search.steps import PromptedSteps, Source
from regard.tasks.trace import Side, Trace, trace
from regard.tasks.translator import Translator
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer


class Writer(Translator):
    """A translator from nothing: its sources are beginnings, and what it finds are their continuations."""

    def __init__(
        self, model: Model, config: RunConfig, tokenizer: Tokenizer, target_tokenizer: Tokenizer | None = None
    ) -> None:
        super().__init__(model, config, tokenizer, target_tokenizer or tokenizer)

    @classmethod
    def refuse(cls, config: RunConfig, directory: Path) -> None:
        """Refuse a run of another shape, with what it is used by."""
        if config.shape.kind == "language-model":
            return
        use = f"regard {config.shape.verb} {directory}"
        raise UsageError(f"{directory} is no language model ({config.shape.arrow}: {config.cell}): use {use}.")

    @property
    def frame(self) -> Frame:
        """The special token before what is read."""
        return Frame((BOS,), ())

    def write(self, prompt: str, search: Search | None = None) -> list[str]:
        """Whole texts that begin with a prompt, which may be empty: as many as the search gives."""
        return [self.whole(prompt, one) for one in self.hypotheses([prompt], search)[0]]

    def whole(self, prompt: str, hypothesis: Hypothesis) -> str:
        """A prompt and its continuation as one text."""
        given = self.source_tokenizer.encode_batch([prompt])[0]
        return self.target_tokenizer.decode([*given, *hypothesis.tokens])

    @property
    def _has_attention(self) -> bool:
        """There is no source to look at."""
        return False

    def explained(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Refused: there is no source to look at."""
        raise UsageError("A language model has no source: there is no attention to it, and no alignment.")

    def trace(self, source: str, target: str | None = None) -> Trace:
        """Watch the model read a text, each word of which it might have written: every tap by its name."""
        if target is not None:
            raise UsageError("A language model has no source apart from its text: give one text, and no target.")
        if not source.strip():
            raise UsageError("There is nothing to look into: give a text that is not empty.")
        ids = self.target_tokenizer.encode_batch([source])[0]
        if self._positions is not None and len(ids) >= self._positions:
            raise UsageError(
                f"The text has {len(ids):,} tokens, but this model has learned {self._positions} positions: shorten it."
            )
        tokenizer = self.target_tokenizer
        nothing, said, read = (Side.of(tokenizer, side) for side in ([], [*ids, EOS], [BOS, *ids]))
        return trace(self.model, nothing, said, read, tokenizer=tokenizer)

    def _sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Beginnings, BOS first."""
        rows = [[BOS, *ids] for ids in self.source_tokenizer.encode_batch(texts)]
        for number, ids in enumerate(rows, start=1):
            if self._positions is not None and len(ids) >= self._positions:
                name = "The prompt" if len(rows) == 1 else f"Prompt {number}"
                raise RegardError(
                    f"{name} has {len(ids) - 1} tokens, but this model has learned {self._positions} "
                    "positions: shorten it."
                )
        return rows

    def _grouped(self, sources: list[list[int]], tokens: int) -> Iterator[list[int]]:
        """Places of beginnings of equal length, which can be read in step."""
        by_length: dict[int, list[int]] = {}
        for place, ids in enumerate(sources):
            by_length.setdefault(len(ids), []).append(place)
        for length, places in sorted(by_length.items()):
            most = max(1, tokens // length)
            yield from (places[start : start + most] for start in range(0, len(places), most))

    def _limits(self, sources: list[list[int]]) -> list[int]:
        """As many tokens as configured, or as there are positions left."""
        longest = self.config.decoding.max_length
        room = [longest if self._positions is None else self._positions - len(ids) for ids in sources]
        return [min(longest, one) for one in room]

    def _steps(self, texts: list[str], sources: list[list[int]], *, attentive: bool) -> tuple[StepModel[Any], Source]:
        if attentive:
            raise UsageError("A coverage penalty is about a source, and a language model has none.")
        return PromptedSteps(self.model), Source.of(self._tensor(sources))
