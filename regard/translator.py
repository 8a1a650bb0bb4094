"""The front door of a trained run: raw text in, raw text out.

Axes: B batch, S source positions, T target positions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self, overload

import torch
from torch import Tensor

from regard.config.run import RunConfig
from regard.errors import RegardError, UsageError
from regard.models import Model, build
from regard.search import Hypothesis, ModelSteps, beam, greedy
from regard.text.specials import BOS, EOS, PAD
from regard.text.tokenizer import Tokenizer

Texts = list[str] | tuple[str, ...]


class Translator:
    """A model with its tokenizers and its configuration: all that text needs on its way through."""

    def __init__(
        self, model: Model, config: RunConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        self.model = model
        self.config = config
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    @classmethod
    def load(cls, directory: Path | str, overrides: Sequence[str] = ()) -> Self:
        """The translator of a run directory, on the best device at hand; overrides as on the command line."""
        from regard.config.loading import load
        from regard.data.prepare import load_tokenizers
        from regard.device import choose_device
        from regard.run import Run

        run = Run.open(directory)
        config = load(run.directory / "config.yaml", overrides)
        source, target = load_tokenizers(run.tokenizers)
        model = build(config.model, source.size, target.size)
        run.load_weights(model, {"source": source.fingerprint, "target": target.fingerprint})
        return cls(model.to(choose_device(config.training.device)).eval(), config, source, target)

    @overload
    def translate(self, text: str, *, beam: int | None = None) -> str: ...

    @overload
    def translate(self, text: Texts, *, beam: int | None = None) -> list[str]: ...

    def translate(self, text: str | Texts, *, beam: int | None = None) -> str | list[str]:
        """The best output for a text, or for each of a list of texts; `beam` 1 is greedy, by default the run's own.

        An empty text stays empty. The order and the company of texts do not matter.
        """
        if isinstance(text, str):
            return self.translate([text], beam=beam)[0]
        found = self.hypotheses(text, beam=beam)
        return [self.target_tokenizer.decode(best[0].tokens) if best else "" for best in found]

    def hypotheses(self, texts: Texts, *, beam: int | None = None, count: int = 1) -> list[list[Hypothesis]]:
        """The best hypotheses for each text, best first; none for an empty text."""
        width = self.config.decoding.beam if beam is None else beam
        if width < 1 or not 1 <= count <= width:
            raise UsageError(
                f"A beam of {width} cannot give {count} hypotheses: ask for at least 1 and at most the beam."
            )
        sources = self.source_tokenizer.encode_batch(texts)
        self._check_lengths(sources)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for group in groups([len(ids) for ids in sources], self.config.decoding.batch_tokens // width):
            for place, best in zip(group, self._search([sources[one] for one in group], width, count), strict=True):
                found[place] = best
        return found

    def forced(self, source: str, target: str | None = None) -> tuple[Tensor, Tensor]:
        """Source tokens 1×S and target tokens 1×T (with their specials) of a forced target, or of the model's own."""
        ids = self.source_tokenizer.encode_batch([source])[0]
        if target is None:
            best = self.hypotheses([source])[0]
            said = list(best[0].tokens) if best else []
        else:
            said = self.target_tokenizer.encode_batch([target])[0]
        return self._tensor([[*ids, EOS]]), self._tensor([[BOS, *said, EOS]])

    def _search(self, sources: list[list[int]], width: int, count: int) -> list[list[Hypothesis]]:
        decoding = self.config.decoding
        longest = max(map(len, sources)) + 1
        batch = self._tensor([[*ids, EOS] + [PAD] * (longest - len(ids) - 1) for ids in sources])  # B×S
        limits = [min(self._longest, int(decoding.max_ratio * len(ids)) + 10) for ids in sources]
        steps = ModelSteps(self.model)
        if width == 1:
            return [[one] for one in greedy(steps, batch, limits, length_penalty=decoding.length_penalty)]
        return beam(steps, batch, limits, width=width, length_penalty=decoding.length_penalty, count=count)

    @property
    def _longest(self) -> int:
        """Longest output in tokens: the configured limit, or where learned positions end."""
        positions = self.config.model.positions
        longest = self.config.decoding.max_length
        return min(longest, positions.max_length) if positions and positions.kind == "learned" else longest

    def _check_lengths(self, sources: list[list[int]]) -> None:
        positions = self.config.model.positions
        if positions is None or positions.kind != "learned":
            return
        for place, ids in enumerate(sources, start=1):
            if len(ids) >= positions.max_length:
                raise RegardError(
                    f"Text {place} has {len(ids)} tokens, but this model has learned {positions.max_length} positions "
                    "(one is for the end symbol): split it."
                )

    def _tensor(self, rows: list[list[int]]) -> Tensor:
        return torch.tensor(rows, device=self.model.output_bias.device)


def groups(lengths: list[int], tokens: int) -> Iterator[list[int]]:
    """Places of non-empty texts in groups of similar length, longest first, of at most `tokens` padded tokens each."""
    order = sorted(
        (place for place, length in enumerate(lengths) if length), key=lambda place: (-lengths[place], place)
    )
    group: list[int] = []
    for place in order:
        if group and (len(group) + 1) * (lengths[group[0]] + 1) > tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
