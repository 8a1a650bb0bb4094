"""Summaries of a run's data and model for display."""

import torch
from torch import nn

from regard.config.run import RunConfig
from regard.config.text_corpora import TableFiles
from regard.foundation.device import describe
from regard.tasks.preparation import Prepared


def data_facts(prepared: Prepared) -> dict[str, str]:
    """Return the numbers of training, validation and test examples."""
    report, noun = prepared.report, prepared.task.noun
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
    facts = {
        "training": f"{report.train:,} {noun} of {report.pairs:,}"
        + (f" (dropped: {dropped})" if dropped else "")
        + (f" and {report.joined:,} joined ones" if report.joined else ""),
        "validation": f"{len(prepared.validation_pairs):,} {noun}" + (", held out" if report.held_out else ""),
    }
    if prepared.test_pairs:
        facts["test"] = f"{len(prepared.test_pairs):,} {noun}" + (", held out" if report.tested else "")
    train = prepared.task.config.data.train
    if isinstance(train, TableFiles):
        sources = " and ".join(name for name in (train.source, train.second) if name)
        header = "no header" if train.header is False else "the first row is a header, and no example"
        facts["columns"] = f"{sources} → {train.target} ({header})"
    return facts


def model_facts(config: RunConfig, model: nn.Module, prepared: Prepared, device: torch.device) -> dict[str, str]:
    """Return the model, its size, vocabulary and device."""
    parts = ", ".join(f"{name} {short(count)}" for name, count in parameters_by_part(model).items())
    return {
        "cell": config.cell,
        "parameters": f"{short(sum(parameters_by_part(model).values()))} ({parts})",
        "vocabulary": prepared.task.describe(),
        "device": describe(device),
    }


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """Return the number of parameters of each part of a model, each counted once."""
    counts: dict[str, int] = {}
    embeddings = {
        id(parameter)
        for name, parameter in model.named_parameters()
        if "embedding" in name or name.startswith(("_output", "output"))
    }
    for name, parameter in model.named_parameters():
        part = "embeddings" if id(parameter) in embeddings else name.split(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def short(number: int) -> str:
    """Format a count: 950, 1.2k, 3.4M."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def duration(seconds: float) -> str:
    """Format a duration: 48 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
