"""Optimizers, built from the configuration, with their state as named tensors."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from regard.config.training import Optimizer as OptimizerConfig
from regard.nn.embeddings import TokenEmbedding
from regard.nn.recurrence import RecurrentLayer
from regard.training.muon import Muon, Part, Whole, Works, as_given, itself

COMPLETE = ({"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"}, {"mean"})
"""Quantities in the state of a parameter: of Adam and AdamW, SGD, and Muon."""


def in_turn(works: Works) -> None:
    """Run functions one after the other."""
    for work in works:
        work()


def build(
    config: OptimizerConfig,
    model: nn.Module,
    do: Callable[[Works], object] = in_turn,
    *,
    whole: Whole = itself,
    part: Part = as_given,
) -> torch.optim.Optimizer:
    """Build Muon, Adam, AdamW or SGD; weight decay applies to matrices, not to biases, norms and embeddings.

    Independent parts of a step are passed to `do`, which may run them in parallel. If parameters are divided among
    processes, `whole` returns all of a tensor, and `part` the part of a whole tensor that belongs to a parameter.
    """
    rate = config.learning_rate or 0.0
    spared = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | TokenEmbedding)
        for parameter in module.parameters()
    }
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decaying = [parameter for parameter in parameters if parameter.dim() > 1 and id(parameter) not in spared]
    steady = [parameter for parameter in parameters if parameter.dim() <= 1 or id(parameter) in spared]
    inner = matrices(model) if config.kind == "muon" else []
    taken = {id(parameter) for parameter in inner}
    decaying = [parameter for parameter in decaying if id(parameter) not in taken]
    groups = [
        {"params": group, "weight_decay": decay}
        for group, decay in ((decaying, config.weight_decay), (steady, 0.0))
        if group
    ]
    fused = all(parameter.device.type in ("cpu", "cuda") for parameter in parameters)
    if config.kind == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=config.momentum, fused=fused)
    betas = config.beta1, config.beta2
    if inner:
        return Muon(
            inner,
            groups,
            rate=rate,
            betas=betas,
            weight_decay=config.weight_decay,
            fused=fused,
            do=do,
            whole=whole,
            part=part,
        )
    kind = torch.optim.Adam if config.kind == "adam" else torch.optim.AdamW
    return kind(groups, lr=rate, betas=betas, fused=fused)


def matrices(model: nn.Module) -> list[Tensor]:
    """Return the trainable weight matrices of linear and recurrent layers, without embeddings and biases."""
    maps = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    recurrences = [module for module in model.modules() if isinstance(module, RecurrentLayer)]
    found = [
        *maps,
        *(weight for recurrence in recurrences for weight in (recurrence.input_weight, recurrence.state_weight)),
    ]
    return [parameter for parameter in dict.fromkeys(found) if parameter.requires_grad]


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def state_of(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state as tensors named `parameter/quantity`."""
    return {
        f"{name}/{quantity}": value
        for name, parameter in model.named_parameters()
        for quantity, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def put_state(
    optimizer: torch.optim.Optimizer, model: nn.Module, state: Mapping[str, Tensor], *, part: Part = as_given
) -> None:
    """Load an optimizer's state; raises `ValueError` for a state that does not fit the optimizer and model."""
    parameters = dict(model.named_parameters())
    quantities: dict[str, set[str]] = {}
    for key, value in state.items():
        name, _, quantity = key.rpartition("/")
        if name not in parameters or value.shape not in (parameters[name].shape, torch.Size([])):
            raise ValueError(f"{key} does not fit the model")
        quantities.setdefault(name, set()).add(quantity)
        parameter = parameters[name]
        place = "cpu" if quantity == "step" and parameter.device.type != "cuda" else parameter.device
        optimizer.state[parameter][quantity] = part(value.to(place, copy=True), parameter)
    for name, found in quantities.items():
        if not any(found == complete for complete in COMPLETE):
            raise ValueError(f"the optimizer state of {name} is incomplete")
