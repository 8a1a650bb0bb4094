"""The weights of a model as a safetensors file, each shared tensor once."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.foundation.errors import RegardError

M = TypeVar("M", bound=nn.Module)

FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
"""The functions with which models allocate tensors."""
SPARE = 10_000_000
"""Elements that a model may have in addition to its weights, such as position tables."""


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name; shared tensors appear once, under their first name."""
    first: dict[tuple[object, ...], str] = {}
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        where = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.numel() else (name,)
        if first.setdefault(where, name) == name:
            weights[name] = tensor.detach()
    return weights


def put_weights(model: nn.Module, weights: Mapping[str, Tensor], *, origin: str = "The weights") -> None:
    """Copy weights into a model; raises if they do not fit it or are not finite."""
    own = weights_of(model)
    check_weights(own, weights, origin=origin)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def check_weights(own: Mapping[str, Tensor], weights: Mapping[str, Tensor], *, origin: str) -> None:
    """Raise if weights do not fit a model's own or are not finite."""
    _check_shapes(own, {name: tuple(tensor.shape) for name, tensor in weights.items()}, origin)
    for name, tensor in own.items():
        given = weights[name]
        if given.is_floating_point() != tensor.is_floating_point():
            there, here = (str(one.dtype).removeprefix("torch.") for one in (given, tensor))
            raise RegardError(
                f"{origin} cannot be used: {name} has {there} numbers, but the model uses {here}. Quantised "
                "weights must be converted back to float32 first."
            )
        if not torch.isfinite(given).all():
            raise RegardError(f"{origin} cannot be used: {name} contains values that are not finite (NaN or infinity).")


def build_to_fit(build: Callable[[], M], elements: int, origin: str) -> M:
    """Build a model for weights with `elements` elements; raises before allocation if it would be far larger."""
    try:
        with _Budget(2 * elements + SPARE):
            return build()
    except _OverBudget:
        raise RegardError(
            f"{origin} do not belong to this model: they have at most {elements:,} elements, but the model would have "
            "many more. Was the model section of config.yaml edited?"
        ) from None


class _OverBudget(Exception):
    """The model being built is too large."""


class _Budget(TorchFunctionMode):
    """Counts the elements of new tensors and stops when there are too many.

    Building on the meta device would give the same answer, but imports so much of torch that start-up time doubles.
    """

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.left = elements

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in FACTORIES and args:
            size = args[0] if isinstance(args[0], tuple | list) else args
            self.left -= math.prod(one for one in size if isinstance(one, int))
            if self.left < 0:
                raise _OverBudget
        return func(*args, **(kwargs or {}))


def _check_shapes(own: Mapping[str, Tensor], given: Mapping[str, tuple[int, ...]], origin: str) -> None:
    missing, surplus = sorted(own.keys() - given.keys()), sorted(given.keys() - own.keys())
    if missing or surplus:
        name = (missing or surplus)[0]
        raise RegardError(
            f"{origin} do not belong to this model: {len(missing)} tensors are missing and {len(surplus)} are unknown "
            f"(first: {name}). Was the model section of config.yaml edited?"
        )
    for name, tensor in own.items():
        if tuple(tensor.shape) != given[name]:
            there, here = format_shape(given[name]), format_shape(tensor.shape)
            raise RegardError(
                f"{origin} do not belong to this model: {name} is {there} there and {here} here. "
                "Was the model section of config.yaml edited?"
            )


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> None:
    """Write tensors to a safetensors file; equal content gives equal bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One entry only: the library writes several in a random order.
    save_file(plain, path, metadata={"regard": json.dumps(facts or {}, sort_keys=True)})
    path.chmod(0o644)


def read_weights(path: Path, fingerprints: Mapping[str, str] | None = None) -> dict[str, Tensor]:
    """Read weights; given fingerprints of tokenizers, raises if the weights were trained with others."""
    with _open(path) as file:
        known = _facts(file.metadata()).get("tokenizers", {})
        if not isinstance(known, dict):
            raise ValueError("its metadata does not describe tokenizers")
        for side, fingerprint in (fingerprints or {}).items():
            if known.get(side, fingerprint) != fingerprint:
                raise RegardError(
                    f"The {side} tokenizer does not belong to the model in {path}, which was trained with another. "
                    "Restore the tokenizers/ directory of these weights."
                )
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a safetensors file; raises `RegardError` if it cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise RegardError(f"There are no weights at {path}.") from None
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise RegardError(f"The weights in {path} cannot be read ({error}). The file is damaged.") from error


def _facts(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    facts = json.loads((metadata or {}).get("regard", "{}"))
    if not isinstance(facts, dict):
        raise ValueError("its metadata is not a JSON object")
    return facts


def format_shape(shape: Iterable[int]) -> str:
    """Return the shape of a tensor, such as `2×3`."""
    return "×".join(map(str, shape)) or "a single number"
