"""The weights of a Hugging Face directory: one safetensors file, several, or a torch file; never unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.foundation.errors import RegardError

BIAS = "final_logits_bias"
RULED_OUT = -1e9
"""Bias of a token that is never generated."""

WHOLE, PARTS, TORCH = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"


class Checkpoint:
    """Tensors by name as float32; raises for one that is missing or has another shape."""

    def __init__(self, directory: Path) -> None:
        self.path, self._tensors = _read(directory)
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def get(self, *names: str, shape: tuple[int, ...]) -> Tensor:
        """Return the tensor under the first of these names that exists."""
        name = next((name for name in names if name in self._tensors), None)
        if name is None:
            raise RegardError(
                f"{self.path} has no tensor {names[0]}. The weights are incomplete, or belong to another model."
            )
        tensor = self._tensors[name]
        if tuple(tensor.shape) != shape:
            there, wanted = ("×".join(map(str, size)) for size in (tensor.shape, shape))
            raise RegardError(f"{self.path}: {name} is {there}, but config.json requires {wanted}.")
        return self._check(name)

    def any_height(self, name: str, width: int) -> Tensor:
        """Return a tensor with `width` columns and at least one row."""
        rows = len(self._tensors[name]) if name in self._tensors and self._tensors[name].dim() else 1
        return self.get(name, shape=(max(1, rows), width))

    def any_shape(self, name: str) -> Tensor:
        """Return a tensor that is known to exist, of any shape."""
        return self._check(name)

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        return list(self._tensors)

    def _check(self, name: str) -> Tensor:
        """Return a tensor as float32; raises if it is quantized or not finite. A bias of −∞ becomes −10⁹."""
        self._used.add(name)
        tensor = self._tensors[name]
        if not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise RegardError(
                f"{self.path}: {name} has the type {kind}, as quantized weights have. Download the weights "
                "as float32, float16 or bfloat16."
            )
        tensor = tensor.float()
        if name == BIAS:
            tensor = tensor.masked_fill(tensor == -torch.inf, RULED_OUT)
        if not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise RegardError(
                f"{self.path}: {name} has {count:,} numbers that are not finite (NaN or infinite). The weights are "
                "damaged, or training diverged. Download them again."
            )
        return tensor

    @property
    def unused(self) -> list[str]:
        """The names of the tensors that were not used."""
        return sorted(set(self._tensors) - self._used)

    def refuse_layers(self, prefix: str, declared: int, setting: str) -> None:
        """Raise if the number of layers differs from config.json; their names begin with `prefix` and a number."""
        depths = {name.removeprefix(prefix).split(".")[0] for name in self._tensors if name.startswith(prefix)}
        there = 1 + max((int(depth) for depth in depths if depth.isdecimal()), default=-1)
        if there != declared:
            raise RegardError(
                f"{self.path} has {there} layers {prefix}…, but config.json declares {setting} = {declared}. They "
                "belong to different models. Download both again, or correct config.json."
            )


def _read(directory: Path) -> tuple[Path, dict[str, Tensor]]:
    if (directory / WHOLE).is_file():
        return directory / WHOLE, _safetensors(directory / WHOLE)
    if (directory / PARTS).is_file():
        index = read_json(directory / PARTS)
        files = sorted(_weight_files(index, directory / PARTS))
        parts = [_safetensors(directory / Path(str(name)).name) for name in files]
        return directory / PARTS, {name: tensor for part in parts for name, tensor in part.items()}
    if (directory / TORCH).is_file():
        return directory / TORCH, _torch(directory / TORCH)
    raise RegardError(f"There are no weights in {directory}: neither {WHOLE} nor {TORCH}. Download one of them.")


def _weight_files(index: dict[str, Any], path: Path) -> set[str]:
    """Return the files that an index of weights names."""
    named = index.get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise RegardError(f"{path} names no files of weights under `weight_map`. Download it again.")
    return set(named.values())


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise RegardError(f"The weights are incomplete: {path} is missing. Download it.") from None
    except (SafetensorError, OSError, ValueError) as error:
        first = _first_cut_off(path)
        cut = f": it is cut off, and {first} is the first incomplete tensor" if first else f" ({error})"
        raise RegardError(f"{path} cannot be read{cut}. Download it again.") from error


def _first_cut_off(path: Path) -> str | None:
    """Return the first incomplete tensor of a truncated safetensors file, or `None` if its header cannot be read."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = json.loads(file.read(min(length, 100_000_000)))
        ends = {name: facts["data_offsets"][1] for name, facts in header.items() if name != "__metadata__"}
        held = path.stat().st_size - 8 - length
        beyond = {name: end for name, end in ends.items() if end > held}
        return min(beyond, key=beyond.__getitem__) if beyond else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _torch(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can raise any exception
        raise RegardError(
            f"{path} cannot be read as weights only: it is cut off or damaged, or contains code, which is "
            "never run. Download it again, or download model.safetensors."
        ) from error
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise RegardError(f"{path} does not contain tensors by name.")
    return dict(content)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; raises `RegardError` if that is impossible."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RegardError(f"There is no {path.name} in {path.parent}, but a Hugging Face model has one.") from None
    except RecursionError:
        raise RegardError(f"{path} is nested too deeply to be the settings of a model.") from None
    except (OSError, ValueError) as error:
        raise RegardError(f"{path} cannot be read ({error}).") from error
    if not isinstance(content, dict):
        raise RegardError(f"{path} is not a JSON object.")
    return content
