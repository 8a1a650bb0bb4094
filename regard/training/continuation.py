"""Which settings may change when a run is resumed: those of training, but not those of model and data."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from regard.config.run import RunConfig
from regard.foundation.errors import UsageError

FIXED_SECTIONS = ("data", "task", "text", "model")
FIXED = {
    "training.seed": "all random choices so far depend on it",
    "training.batch_tokens": "the position in the data is counted in such batches",
    "training.optimizer.kind": "the saved optimizer state is of the old kind",
    "training.ema": "the average includes all steps since the first",
    "training.early_stopping.metric": "the best score so far is measured by it",
}


def check_continuation(old: RunConfig, new: RunConfig) -> None:
    """Raise `UsageError` for settings that cannot change when a run is resumed."""
    for path in changes(old, new):
        section = path.split(".")[0]
        reason = FIXED.get(path)
        if section in FIXED_SECTIONS:
            reason = f"the {section} section of a run is fixed when it starts"
        if reason:
            raise UsageError(f"{path} cannot change when a run is continued: {reason}. Start a new run with --run DIR.")


def changes(old: BaseModel, new: BaseModel, path: str = "") -> Iterator[str]:
    """Yield the paths of all settings that differ."""
    for name in type(old).model_fields:
        before: Any = getattr(old, name)
        after: Any = getattr(new, name)
        place = f"{path}.{name}" if path else name
        if isinstance(before, BaseModel) and type(before) is type(after):
            yield from changes(before, after, place)
        elif before != after:
            yield place
