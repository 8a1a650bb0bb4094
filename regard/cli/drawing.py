"""Sampling options, the same for every verb that generates text."""

from typing import Annotated

import typer

from regard.foundation.errors import UsageError

Temperature = Annotated[
    float | None,
    typer.Option("--temperature", min=0, help="Below 1 favours likely tokens, above 1 increases diversity."),
]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Sample from the K most likely tokens.")]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Sample from the most likely tokens with this total probability.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the samples; 0 by default.")]


AMONG = 32
"""Default number of samples to choose among."""


def count_samples(n_best: int | None, samples: int | None) -> tuple[int, int]:
    """Return the number of samples and of outputs: all samples, or the `n_best` best different ones."""
    if n_best is None or n_best == 1:
        drawn = samples or 1
        return drawn, 1 if n_best else drawn
    drawn = samples or max(AMONG, n_best + 1)
    if drawn <= n_best:
        raise UsageError(
            f"--n-best {n_best} needs more samples than {drawn}. Draw more with --samples, or leave out --n-best to "
            "get every sample."
        )
    return drawn, n_best


def check_sampling_options(
    drawn: bool, temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None
) -> None:
    """Raise if sampling options are given without --sample."""
    for name, value in (("--temperature", temperature), ("--top-k", top_k), ("--top-p", top_p), ("--seed", seed)):
        if value is not None and not drawn:
            raise UsageError(f"{name} is for sampling. Add --sample.")
