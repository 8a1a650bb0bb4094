"""Arrays that users give in Python: of NumPy, torch and other libraries."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_array(value: Any) -> NDArray[Any] | None:
    """Return a value as an array, a tensor detached from its graph and device; `None` if it cannot be one."""
    try:
        return np.asarray(value.detach().cpu() if hasattr(value, "requires_grad") else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def describe_array(values: NDArray[Any] | None) -> str:
    """Return the type and the shape of an array for errors, empty for what is no array of numbers."""
    if values is None or not values.ndim or values.dtype.kind not in "biufc":
        return ""
    return f" of {values.dtype} {'×'.join(map(str, values.shape))}"
