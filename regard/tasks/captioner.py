"""The front door of a run that looks at pictures: names of pictures in, captions out.

Axes: B batch, S places of a picture, T target positions, H rows and W columns of pixels.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config.run import RunConfig
from regard.data.pictured import pixels_a_side
from regard.data.pictures import Pixels, as_floats, read_picture
from regard.foundation.errors import UsageError
from regard.models import Model
from regard.models.image_encoder import ImageEncoder
from regard.search import Hypothesis, Search, StepModel
from regard.search.steps import AttentiveSteps, ModelSteps, Source
from regard.tasks.trace import Given, Picture, Side, Trace, trace
from regard.tasks.translator import Translator
from regard.text.sentences import Piece
from regard.text.specials import BOS, EOS, UNK
from regard.text.tokenizer import Tokenizer

Look = Callable[[str], Pixels]
"""From a picture's name to its pixels 3×H×W, in the size that the model reads."""


class Captioner(Translator):
    """A translator from pictures: its sources are names of pictures (see `regard.data.pictures`)."""

    def __init__(
        self,
        model: Model,
        config: RunConfig,
        tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        *,
        look: Look | None = None,
    ) -> None:
        super().__init__(model, config, tokenizer, target_tokenizer or tokenizer)
        encoder, size = model.encoder, pixels_a_side(config)
        assert isinstance(encoder, ImageEncoder)
        self.grid = encoder.grid
        """Rows and columns of places."""
        self._look = look or (lambda name: read_picture(name, size))

    @classmethod
    def refuse(cls, config: RunConfig, directory: Path) -> None:
        """Refuse a run that looks at no pictures, with what it is used by."""
        if config.shape.kind == "captions":
            return
        use = f"regard {config.shape.verb} {directory}"
        raise UsageError(f"{directory} captions no pictures ({config.shape.arrow}: {config.cell}): use {use}.")

    def pixels(self, names: Sequence[str]) -> Tensor:
        """The pictures of some names, as the model reads them: B×3×H×W."""
        return as_floats(torch.stack([torch.from_numpy(self._look(name)) for name in names]))

    @property
    def _has_attention(self) -> bool:
        """Nothing is copied from a picture."""
        return False

    def explained(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with where in the picture each of its tokens looked (mean of layers and heads): T×S."""
        seen = self.watched(source, hypothesis)
        maps = [weights for name, weights in seen.activations.items() if name.endswith("source_attention.weights")]
        if not maps:
            return hypothesis
        return replace(hypothesis, attention=tuple(map(tuple, torch.cat(maps).mean(0).tolist())))

    def watched(self, source: str, hypothesis: Hypothesis) -> Trace:
        """Watch the model say a caption that search has found."""
        return self._traced(source, list(hypothesis.tokens))

    def trace(self, source: str, target: str | None = None) -> Trace:
        """Watch the model caption a picture, or read a caption that it is given: every tap by its name."""
        if target is None:
            return self._traced(source, list(self.hypotheses([source])[0][0].tokens))
        said = self.target_tokenizer.encode_batch([target])[0]
        if UNK in said:
            word = Side.of(self.target_tokenizer, said).words[said.index(UNK)] + 1
            raise UsageError(
                f'The caption "{target[:80]}" has a word that this model cannot say (word {word}): use words of its '
                "vocabulary."
            )
        self._check_lengths([said])
        return self._traced(source, said)

    def _traced(self, name: str, said: list[int]) -> Trace:
        picture = Picture(name, self.pixels([name])[0], self.grid)
        tokenizer = self.target_tokenizer
        sides = Side.of(tokenizer, [*said, EOS]), Side.of(tokenizer, [BOS, *said])
        given = Given(picture.side.ids, sides[1].ids, picture)
        return trace(self.model, picture.side, *sides, tokenizer=tokenizer, given=given)

    def forced(self, source: str, target: str | None = None) -> tuple[Tensor, Tensor]:
        """Refused: a picture has no tokens."""
        raise UsageError("A picture has no tokens: this analysis is of models that read text.")

    def _pieces(self, text: str, search: Search) -> list[Piece]:
        """A picture is never cut."""
        return [Piece(text, "")]

    def _sources(self, texts: Sequence[str]) -> list[list[int]]:
        """A number for each picture: what is in them is asked for when they are looked at."""
        return [[number] for number in range(1, len(texts) + 1)]

    def _grouped(self, sources: list[list[int]], tokens: int) -> Iterator[list[int]]:
        """Places of pictures that are searched together."""
        most = max(1, tokens // (self.grid[0] * self.grid[1]))
        for start in range(0, len(sources), most):
            yield list(range(start, min(start + most, len(sources))))

    def _limits(self, sources: list[list[int]]) -> list[int]:
        """As many tokens as configured."""
        return [self._longest] * len(sources)

    def _steps(self, texts: list[str], sources: list[list[int]], *, attentive: bool) -> tuple[StepModel[Any], Source]:
        """What is searched, and the pixels of the pictures, all places of which are real."""
        pixels = self.pixels(texts)
        seeds = tuple(hashlib.sha256(one.numpy().tobytes()).hexdigest() for one in pixels)
        pixels = pixels.to(self._device)
        mask = torch.ones(len(texts), self.grid[0] * self.grid[1], dtype=torch.bool, device=self._device)  # B×S
        steps = AttentiveSteps(self.model) if attentive else ModelSteps(self.model)
        return steps, Source(pixels, mask, seeds)
