"""Cures for exposure bias: in training a decoder reads true words, in use its own; here it learns to bear that.

All randomness comes from a generator on the CPU that the caller owns, so a run can be continued exactly. The cures
compose: inputs are corrupted, then words are hidden, then the model's own words are mixed in.
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
"""k of the inverse sigmoid: the larger, the longer the share of true words stays near one before it falls."""


def share_of_truth(config: ScheduledSampling, step: int, total: int) -> float:
    """The share of true words among decoder inputs at a step: from 1 down towards `floor` (Bengio et al., 2015)."""
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


def mixing(share: float, generator: torch.Generator) -> Mix | None:
    """How the model's own words take the place of true ones, or `None` when all words are to be true.

    Each word is kept with probability `share`; otherwise it is drawn from the model's own distribution, without the
    special tokens that never stand inside a sentence. Padding, BOS and EOS stay what they are.
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
    """Decoder inputs and outputs B×T after corruption and word dropout."""
    inputs, outputs = corrupt(inputs, outputs, config.corruption, vocabulary=vocabulary, generator=generator)
    return drop_words(inputs, config.word_dropout, generator=generator), outputs


def drop_words(inputs: Tensor, probability: float, *, generator: torch.Generator) -> Tensor:
    """Hide words B×T behind `<unk>` (Bowman et al., 2016)."""
    if not probability:
        return inputs
    return inputs.masked_fill(_chance(inputs, probability, generator) & _words(inputs), UNK)


def corrupt(
    inputs: Tensor, outputs: Tensor, config: Corruption, *, vocabulary: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace, swap and delete decoder input words B×T; outputs B×T lose only what the damage would give away.

    Input t is the word before output t. Two swapped words would show the first place its own answer, so that place is
    not asked. Deleting an input deletes the question put to it: what follows moves up, still answered by its next word.
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
    first = _chance(inputs, probability, generator) & words & _shifted(words, -1)  # B×T: changes places with the next
    first &= ~_shifted(first, 1)
    second = _shifted(first, 1)
    swapped = torch.where(first, inputs.roll(-1, 1), torch.where(second, inputs.roll(1, 1), inputs))
    return swapped, outputs.masked_fill(first, PAD)


def _delete(inputs: Tensor, outputs: Tensor, probability: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    gone = _chance(inputs, probability, generator) & _words(inputs)  # B×T
    order = gone.to(torch.uint8).argsort(dim=1, stable=True)  # B×T: what stays, then what goes
    gone = gone.gather(1, order)
    return inputs.gather(1, order).masked_fill(gone, PAD), outputs.gather(1, order).masked_fill(gone, PAD)


def _words(tokens: Tensor) -> Tensor:
    """Where tokens are words, and not padding, BOS or EOS."""
    return (tokens != PAD) & (tokens != BOS) & (tokens != EOS)


def _chance(like: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """True with a probability at each place, on the device of `like`."""
    return (torch.rand(like.shape, generator=generator) < probability).to(like.device)


def _shifted(mask: Tensor, by: int) -> Tensor:
    """A mask B×T moved right (or, negative, left) by one, with false moving in."""
    moved = mask.roll(by, 1)
    moved[:, 0 if by > 0 else -1] = False
    return moved
