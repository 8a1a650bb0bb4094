"""Interactive pages: data and small views in plain JavaScript, all in one file that fetches nothing.

A view is a file `views/NAME.js` that calls `view("NAME", (root, data) => …)`; `views/kit.js` has what they share:
elements, controls, tables, heat maps, charts. Large tensors travel packed: `pack` here, `unpack` there.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from regard.evaluation.page import escape, page


@dataclass(frozen=True)
class Panel:
    """One part of a page: a view, what it shows, and a sentence or two about how to read it."""

    view: str
    """Name of the file in `views/`."""
    data: Any
    """Plain data for the view."""
    title: str = ""
    note: str = ""


def render(title: str, panels: Sequence[Panel]) -> str:
    """The page of some panels, one below the other."""
    sections = "\n".join(
        f'<section class="panel" data-view="{escape(panel.view)}">'
        + (f"<h2>{escape(panel.title)}</h2>" if panel.title else "")
        + (f'<p class="quiet">{escape(panel.note)}</p>' if panel.note else "")
        + '<div class="view"></div></section>'
        for panel in panels
    )
    names = dict.fromkeys(panel.view for panel in panels)
    views = (f"(() => {{\n{_part(f'{name}.js')}}})();" for name in names)  # each has its names to itself
    scripts = [_part("kit.js"), *views, "showAll(DATA);\n"]
    data = [{"view": panel.view, "data": panel.data} for panel in panels]
    body = f"<h1>{escape(title)}</h1>\n{sections}"
    return page(title, body, style=_part("kit.css"), script="\n".join(scripts), data=data)


def pack(values: Tensor) -> dict[str, Any]:
    """Numbers between −3 and 3 to four digits, in less than three bytes each; `unpack` in `views/kit.js` reads them."""
    whole = (values.detach().double() * 1e4).round().clamp(-(2**15), 2**15 - 1).to(torch.int16).contiguous()
    data = base64.b64encode(whole.numpy().astype("<i2").tobytes()).decode("ascii")
    return {"shape": list(values.shape), "packed": data}


def _part(name: str) -> str:
    return (files("regard.inspection") / "views" / name).read_text(encoding="utf-8")
