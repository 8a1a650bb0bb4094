"""Methods against exposure bias: in training a decoder reads reference words, in inference its own predictions.

All randomness comes from the caller's generator on the CPU, so that a run can be resumed exactly. The methods are
applied in order: inputs are corrupted, then words are dropped, then the model's predictions are mixed in.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from regard.config.training import Corruption, Exposure, ScheduledSampling
from regard.text.specials import BOS, EOS, PAD, SPECIALS, UNK

Mix = Callable[[Tensor, Tensor], Tensor]
"""(scores …×V, true next inputs …) → next inputs …"""

INVERSE_SIGMOID_DELAY = 20.0
"""k of the inverse sigmoid: the larger, the longer the share of reference words stays near one before it falls."""


def share_of_truth(config: ScheduledSampling, step: int, total: int) -> float:
    """Return the share of reference words among decoder inputs, from 1 down to `floor` (Bengio et al., 2015)."""
    time = config.speed * step / total
    match config.kind:
        case "none":
            return 1.0
        case "linear":
            left = max(0.0, 1.0 - time)
        case "exponential":
            left = 0.5**time
        case "inverse-sigmoid":
            delay = INVERSE_SIGMOID_DELAY
            left = (1 + delay) / (delay + math.exp(min(500.0, time * math.log(delay + 2))))
    return config.floor + (1 - config.floor) * left


def make_mix(share: float, generator: torch.Generator) -> Mix | None:
    """Return a function that replaces reference words by samples of the model; `None` if `share` is 1.

    Each word is kept with probability `share`; otherwise it is drawn from the model's distribution without special
    tokens other than `<unk>`. Padding, BOS and EOS are never replaced.
    """
    if share >= 1.0:
        return None

    def mix(scores: Tensor, true: Tensor) -> Tensor:
        own = _chance(true, 1 - share, generator) & _words(true)  # …
        places = torch.nonzero(own.reshape(-1)).squeeze(1)  # N
        luck = torch.rand(len(places), 1, generator=generator).to(true.device)  # N×1
        scores = scores.detach().reshape(-1, scores.shape[-1])[places].float()  # N×V
        scores[:, [special for special in range(len(SPECIALS)) if special != UNK]] = -torch.inf
        reached = scores.softmax(-1, dtype=torch.float32).cumsum(-1)  # N×V
        drawn = torch.searchsorted(reached, luck * reached[:, -1:], right=True).squeeze(1)  # N
        mixed = true.reshape(-1).clone()
        mixed[places] = drawn.clamp(max=scores.shape[-1] - 1)
        return mixed.view_as(true)

    return mix


def expose(
    inputs: Tensor, outputs: Tensor, config: Exposure, *, vocabulary: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Apply corruption and word dropout to decoder inputs and outputs B×T."""
    inputs, outputs = corrupt(inputs, outputs, config.corruption, vocabulary=vocabulary, generator=generator)
    return drop_words(inputs, config.word_dropout, generator=generator), outputs


def drop_words(inputs: Tensor, probability: float, *, generator: torch.Generator) -> Tensor:
    """Replace random words of B×T by `<unk>` (Bowman et al., 2016)."""
    if not probability:
        return inputs
    return inputs.masked_fill(_chance(inputs, probability, generator) & _words(inputs), UNK)


def corrupt(
    inputs: Tensor, outputs: Tensor, config: Corruption, *, vocabulary: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace, swap and delete decoder input words B×T; adapt the outputs B×T.

    Input t is the word before output t. After a swap the first position would see its own output, so that it is not
    predicted. Deleting an input deletes its output too; later positions move up and keep their outputs.
    """
    if config.replace and vocabulary > len(SPECIALS):
        strangers = torch.randint(len(SPECIALS), vocabulary, inputs.shape, generator=generator).to(inputs.device)
        inputs = torch.where(_chance(inputs, config.replace, generator) & _words(inputs), strangers, inputs)
    if config.swap:
        inputs, outputs = _swap(inputs, outputs, config.swap, generator)
    if config.delete:
        inputs, outputs = _delete(inputs, outputs, config.delete, generator)
    return inputs, outputs


def _swap(inputs: Tensor, outputs: Tensor, probability: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    words = _words(inputs)
    first = _chance(inputs, probability, generator) & words & _shifted(words, -1)  # B×T: swapped with the next word
    first &= ~_shifted(first, 1)
    second = _shifted(first, 1)
    swapped = torch.where(first, inputs.roll(-1, 1), torch.where(second, inputs.roll(1, 1), inputs))
    return swapped, outputs.masked_fill(first, PAD)


def _delete(inputs: Tensor, outputs: Tensor, probability: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    gone = _chance(inputs, probability, generator) & _words(inputs)  # B×T
    order = gone.to(torch.uint8).argsort(dim=1, stable=True)  # B×T: kept positions, then deleted ones
    gone = gone.gather(1, order)
    return inputs.gather(1, order).masked_fill(gone, PAD), outputs.gather(1, order).masked_fill(gone, PAD)


def _words(tokens: Tensor) -> Tensor:
    """Return a mask that is true where tokens are neither padding, BOS nor EOS."""
    return (tokens != PAD) & (tokens != BOS) & (tokens != EOS)


def _chance(like: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """Draw a mask of the shape of `like` that is true with this probability, on its device."""
    return (torch.rand(like.shape, generator=generator) < probability).to(like.device)


def _shifted(mask: Tensor, by: int) -> Tensor:
    """Shift a mask B×T right (or, if negative, left) by one, filling with false."""
    moved = mask.roll(by, 1)
    moved[:, 0 if by > 0 else -1] = False
    return moved
