"""What may change when a run is continued: how it learns on, but not what it is or what it has read."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from regard.config.run import RunConfig
from regard.foundation.errors import UsageError

FIXED_SECTIONS = ("data", "task", "text", "model")
FIXED = {
    "training.seed": "everything random so far follows from it",
    "training.batch_tokens": "the place in the data is counted in such batches",
    "training.optimizer.kind": "the optimizer's memory is of another kind",
    "training.ema": "the average has been kept since the first step",
    "training.early_stopping.metric": "the best score so far is measured by it",
}


def check_continuation(old: RunConfig, new: RunConfig) -> None:
    """Refuse in a sentence what a run cannot be continued with."""
    for path in changes(old, new):
        section = path.split(".")[0]
        reason = FIXED.get(path)
        if section in FIXED_SECTIONS:
            reason = f"the {section} of a run is settled when it begins"
        if reason:
            raise UsageError(f"{path} cannot change when a run is continued: {reason}. Start a new run with --run DIR.")


def changes(old: BaseModel, new: BaseModel, path: str = "") -> Iterator[str]:
    """The paths of all settings that differ."""
    for name in type(old).model_fields:
        before: Any = getattr(old, name)
        after: Any = getattr(new, name)
        place = f"{path}.{name}" if path else name
        if isinstance(before, BaseModel) and type(before) is type(after):
            yield from changes(before, after, place)
        elif before != after:
            yield place
