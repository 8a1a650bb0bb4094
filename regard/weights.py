"""The weights of a model as a safetensors file, each shared tensor once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.durable import build
from regard.errors import RegardError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers of a model by name; what has several names comes under its first."""
    first: dict[tuple[object, ...], str] = {}
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        where = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.numel() else (name,)
        if first.setdefault(where, name) == name:
            weights[name] = tensor.detach()
    return weights


def put_weights(model: nn.Module, weights: Mapping[str, Tensor], *, origin: str = "The weights") -> None:
    """Copy weights into a model, and refuse in a sentence what does not fit it."""
    own = weights_of(model)
    missing, surplus = sorted(own.keys() - weights.keys()), sorted(weights.keys() - own.keys())
    if missing or surplus:
        name = (missing or surplus)[0]
        raise RegardError(
            f"{origin} do not belong to this model: {len(missing)} tensors are missing and {len(surplus)} are unknown "
            f"(first: {name}). Was the model section of config.yaml edited?"
        )
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            there, here = shape_in_words(weights[name]), shape_in_words(tensor)
            raise RegardError(
                f"{origin} do not belong to this model: {name} is {there} there and {here} here. "
                "Was the model section of config.yaml edited?"
            )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def save_weights(path: Path, weights: Mapping[str, Tensor], fingerprints: Mapping[str, str]) -> None:
    """Write weights in one act, with the fingerprints of the tokenizers they were trained with."""
    build(path, lambda aside: write_tensors(aside, weights, {"tokenizers": dict(fingerprints)}))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> None:
    """Write tensors into a safetensors file that others may read; equal content gives equal bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One entry only: the library writes several in an order that changes from run to run.
    save_file(plain, path, metadata={"regard": json.dumps(facts or {}, sort_keys=True)})
    path.chmod(0o644)


def read_weights(path: Path, fingerprints: Mapping[str, str] | None = None) -> dict[str, Tensor]:
    """Read weights; given the fingerprints of tokenizers, refuse those that the weights were not trained with."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("regard", "{}"))
            known = facts.get("tokenizers", {})
            for side, fingerprint in (fingerprints or {}).items():
                if known.get(side, fingerprint) != fingerprint:
                    raise RegardError(
                        f"The {side} tokenizer does not belong to the model in {path}: it was trained with another. "
                        "Put back the tokenizers/ directory that came with these weights."
                    )
            return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise RegardError(f"There are no weights at {path}.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise RegardError(f"The weights in {path} cannot be read ({error}): the file is damaged.") from error


def shape_in_words(tensor: Tensor) -> str:
    """The size of a tensor, as people write it."""
    return "×".join(map(str, tensor.shape)) or "a single number"
