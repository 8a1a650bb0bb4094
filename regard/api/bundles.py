"""Bundles by kind: what `regard.load` returns for each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regard.foundation.errors import RegardError, UsageError
from regard.reply.suggester import KIND as REPLY
from regard.reply.suggester import Suggester
from regard.runs.bundle import Bundle

KINDS: dict[str, Callable[[Bundle], Any]] = {REPLY: Suggester}
"""Kinds of bundles, and what opens each."""


def open_bundle(directory: Path | str, overrides: Sequence[str] = ()) -> Any:
    """Open a bundle of any kind."""
    bundle = Bundle.open(directory)
    if overrides:
        raise UsageError(f"{bundle.directory} is a bundle, which takes no settings. Leave out {overrides[0]}.")
    if bundle.record.kind not in KINDS:
        raise RegardError(
            f"{bundle.directory} is a bundle of the unknown kind {bundle.record.kind[:40]}. Update Regard."
        )
    return KINDS[bundle.record.kind](bundle)
