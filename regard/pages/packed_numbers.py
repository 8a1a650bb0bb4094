"""Numbers of pages and of JSON: four to five significant digits, whatever their size.

A page shows what JSON says, so both keep small numbers: 0.000039 is not zero.
"""

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def pack(values: "Tensor") -> dict[str, Any]:
    """Pack numbers as the upper three bytes of a 32-bit float each; `unpack` in `views/kit.js` reads them.

    The relative error is at most 2⁻¹⁶ (more than four digits), so that 0.000039 is not shown as zero.
    """
    import torch

    floats = values.detach().float().contiguous().flatten().cpu()
    bits = floats.view(torch.int32).to(torch.int64)
    rounded = torch.where(torch.isfinite(floats), bits + 128, bits)  # to the nearest: carries run into the exponent
    upper = (rounded >> 8) & 0xFFFFFF
    parts = torch.stack([upper & 255, (upper >> 8) & 255, upper >> 16], dim=1).to(torch.uint8)
    return {"shape": list(values.shape), "packed": base64.b64encode(parts.numpy().tobytes()).decode("ascii")}


def plain_numbers(values: "Tensor", digits: int = 5) -> list[Any]:
    """Return a tensor as nested lists for JSON, each number rounded to a number of significant digits."""
    import torch

    exact = values.detach().double().cpu()
    sizes = torch.where(exact == 0, torch.ones_like(exact), exact.abs()).log10().floor()
    scales = 10.0 ** (digits - 1 - sizes)
    rounded = torch.where(torch.isfinite(exact), (exact * scales).round() / scales, exact)
    nested: list[Any] = rounded.tolist()
    return nested
