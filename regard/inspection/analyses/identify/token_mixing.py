"""Hidden token attribution: how much of each input token is in each hidden state (Brunner et al., 2020).

    c_ij = ‖∂e_j/∂x_i‖ / Σ_k ‖∂e_j/∂x_k‖

with the Frobenius norm of the Jacobian of state e_j with respect to input vector x_i. A pass with dual numbers
(forward-mode differentiation) carries a direction u at one input token through all layers at once; for random signs u
the expectation of ‖J u‖² is ‖J‖², and for all unit vectors u their sum is exactly that.

Axes: L layers (the embedding first), S tokens, E width of the input, P projections.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from regard.inspection.states import end_of_text, layer_taps, read_text
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn import taps
from regard.nn.recurrence import RecurrentLayer

TOKENS = 8192
"""Tokens that are read at a time."""
BUDGET = 40_000
"""Tokens that may be read for one text if the number of projections is not given."""
PROJECTIONS = 32


@dataclass(frozen=True)
class Mixing:
    """The contributions of the input tokens of one text."""

    contributions: Tensor
    """L×S×S: of input token (last axis) to the state of each token; rows sum to one."""
    error: Tensor
    """L×S×S: the standard error of each contribution, by leaving out one projection at a time; 0 where exact."""

    @property
    def own(self) -> Tensor:
        """What each token contributes to its own state: L×S."""
        return self.contributions.diagonal(dim1=1, dim2=2)

    @property
    def still_main(self) -> Tensor:
        """Whether each token is the greatest contributor to its own state: L×S."""
        return self.own >= self.contributions.amax(-1)


def affordable(length: int) -> int:
    """Return the number of projections for a text of this length: 32, fewer (at least 4) for long ones."""
    return max(4, min(PROJECTIONS, BUDGET // length**2))


def measure_mixing(model: Model | EncoderModel, ids: list[int], *, projections: int | None, seed: int = 0) -> Mixing:
    """Measure what the tokens of a text (special ones included) contribute; exactly, or by random `projections`.

    The text is read by itself: by an encoder, or by the decoder of a language model.
    """
    length = len(ids)
    width = _width(model)
    parts: list[Tensor] = []  # of L×n×S
    for places, directions in _directions(length, width, projections, seed):
        parts.append(_push_directions(model, ids, places, directions))
    squares = torch.cat(parts, dim=1)  # L×(S·P)×S
    layers = len(squares)
    squares = squares.view(layers, length, -1, length).permute(0, 2, 3, 1)  # L×P×S×S: state, then input
    if projections is None:
        contributions = _shares(squares.sum(1))
        return Mixing(contributions.float(), torch.zeros_like(contributions, dtype=torch.float32))
    count = squares.shape[1]
    total = squares.sum(1, keepdim=True)  # L×1×S×S
    without = _shares(total - squares) if count > 1 else _shares(total)  # L×P×S×S
    error = ((without - without.mean(1, keepdim=True)) ** 2).sum(1).mul((count - 1) / count).sqrt()
    return Mixing(_shares(total[:, 0]).float(), error.float())


def _shares(squares: Tensor) -> Tensor:
    """Squared norms …×S×S as norms whose rows sum to one."""
    norms = squares.clamp(min=0.0).sqrt()
    return norms / norms.sum(-1, keepdim=True).clamp(min=1e-30)


def _width(model: Model | EncoderModel) -> int:
    return int(model.source_embedding.weight.shape[1])


def _directions(length: int, width: int, projections: int | None, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Input places n and directions n×E at them, all those of the first token first, in portions."""
    generator = torch.Generator().manual_seed(seed)
    per_token = width if projections is None else projections
    places = torch.arange(length).repeat_interleave(per_token)  # S·P
    portion = max(1, TOKENS // length)
    for start in range(0, len(places), portion):
        some = places[start : start + portion]
        if projections is None:
            units = torch.arange(start, start + len(some)) % width
            yield some, torch.eye(width)[units]
        else:
            signs = torch.randint(2, (len(some), width), generator=generator)
            yield some, signs.float() * 2 - 1


@contextmanager
def _differentiable(model: nn.Module) -> Iterator[None]:
    """LSTMs without oneDNN, whose kernel has no dual form either."""
    if not any(isinstance(module, RecurrentLayer) and module.cell == "lstm" for module in model.modules()):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch tells at this switch what Intel's GPUs could do
        with torch.backends.mkldnn.flags(enabled=False):
            yield


@torch.no_grad()
def _push_directions(model: Model | EncoderModel, ids: list[int], places: Tensor, directions: Tensor) -> Tensor:
    """The squared size of what each direction at its place does to every state of every layer: L×n×S."""
    device = model.device
    source = torch.tensor([ids], device=device).expand(len(places), -1)  # n×S
    tangents = torch.zeros(len(places), len(ids), directions.shape[1])
    tangents[torch.arange(len(places)), places] = directions
    end = end_of_text(model) or "encoder"
    names = layer_taps(model, end)

    def push(embedded: Tensor) -> Tensor:
        dual: Tensor = forward_ad.make_dual(embedded, tangents.to(embedded))  # type: ignore[no-untyped-call]
        return dual

    open_attention = f"{end}.*.weights"  # the fused kernel has no dual form
    watched = taps.watch(model, *names, open_attention, write={names[0]: push})
    with forward_ad.dual_level(), _differentiable(model), watched as recording:
        if end == "encoder":
            model.encode(source)
        else:
            read_text(model, source)
        found = [forward_ad.unpack_dual(recording[name]).tangent for name in names]  # type: ignore[no-untyped-call]
        return torch.stack([gradient.double().square().sum(-1).cpu() for gradient in found])
