"""The options of drawing at random, the same for every verb that writes text."""

from typing import Annotated

import typer

from regard.foundation.errors import UsageError

Temperature = Annotated[
    float | None, typer.Option("--temperature", min=0, help="Below 1 bolder on the likely, above 1 wilder.")
]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the K likeliest tokens.")]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Draw from the likeliest tokens that hold this probability.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed draws the same; 0 by default.")]


AMONG = 32
"""Samples to choose among, unless the command says how many."""


def count_drawn(n_best: int | None, samples: int | None) -> tuple[int, int]:
    """Return how many samples are drawn and how many outputs are given: all as drawn, or the `n_best` best, no text twice."""
    if n_best is None or n_best == 1:
        drawn = samples or 1
        return drawn, 1 if n_best else drawn
    drawn = samples or max(AMONG, n_best + 1)
    if drawn <= n_best:
        raise UsageError(
            f"--n-best {n_best} chooses among more samples than {drawn}: draw more with --samples, or leave out "
            "--n-best to get every sample."
        )
    return drawn, n_best


def check_drawn(
    drawn: bool, temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None
) -> None:
    """Refuse what only drawing needs where nothing is drawn."""
    for name, value in (("--temperature", temperature), ("--top-k", top_k), ("--top-p", top_p), ("--seed", seed)):
        if value is not None and not drawn:
            raise UsageError(f"{name} is for sampling. Add --sample.")
