"""Interactive pages: data and small views in plain JavaScript, all in one file that fetches nothing.

A view is a file `views/NAME.js` that calls `view("NAME", (root, data) => …)`; `views/kit.js` has what they share:
elements, controls, tables, heat maps, charts. Large tensors travel packed: `pack` here, `unpack` there.
"""

import base64
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Part:
    """Some panels of a long page under a heading of their own."""

    name: str
    """What a link to it is called: one word."""
    title: str
    panels: Sequence[Panel]


def render(title: str, panels: Sequence[Panel]) -> str:
    """The page of some panels, one below the other."""
    return _page(title, "\n".join(_section(panel, "h2") for panel in panels), panels)


def render_parts(title: str, lead: Sequence[str], parts: Sequence[Part], left_out: Mapping[str, str]) -> str:
    """A long page: some paragraphs, a table of contents, the parts, and what is left out with its reason."""
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in lead)
    links = "".join(
        f'<li><a href="#{escape(part.name)}">{escape(part.title)}</a> '
        f'<span class="quiet">{escape(part.name)}</span></li>'
        for part in parts
    )
    absent = "".join(f"<dt>{escape(name)}</dt><dd>{escape(reason)}</dd>" for name, reason in left_out.items())
    missing = f'<h2 id="left-out">Left out</h2><dl class="quiet left-out">{absent}</dl>' if absent else ""
    end = '<li><a href="#left-out">Left out</a></li>' if absent else ""
    body = "\n".join(
        f'<article id="{escape(part.name)}"><h2>{escape(part.title)}</h2>'
        + "\n".join(_section(panel, "h3") for panel in part.panels)
        + "</article>"
        for part in parts
    )
    contents = f'<nav class="contents" aria-label="Contents"><ol>{links}{end}</ol></nav>'
    return _page(title, f"{paragraphs}{contents}\n{body}\n{missing}", [one for part in parts for one in part.panels])


def _section(panel: Panel, heading: str) -> str:
    return (
        f'<section class="panel" data-view="{escape(panel.view)}">'
        + (f"<{heading}>{escape(panel.title)}</{heading}>" if panel.title else "")
        + (f'<p class="quiet">{escape(panel.note)}</p>' if panel.note else "")
        + '<div class="view"></div></section>'
    )


def _page(title: str, body: str, panels: Sequence[Panel]) -> str:
    names = dict.fromkeys(panel.view for panel in panels)
    views = (f"(() => {{\n{_part(f'{name}.js')}}})();" for name in names)  # each has its names to itself
    scripts = [_part("kit.js"), *views, "showAll(DATA);\n"]
    data = [{"view": panel.view, "data": panel.data} for panel in panels]
    style = _part("kit.css")
    return page(title, f"<h1>{escape(title)}</h1>\n{body}", style=style, script="\n".join(scripts), data=data)


def pack(values: Tensor) -> dict[str, Any]:
    """Numbers between −3 and 3 to four digits, in less than three bytes each; `unpack` in `views/kit.js` reads them."""
    whole = (values.detach().double() * 1e4).round().clamp(-(2**15), 2**15 - 1).to(torch.int16).contiguous()
    data = base64.b64encode(whole.numpy().astype("<i2").tobytes()).decode("ascii")
    return {"shape": list(values.shape), "packed": data}


def _part(name: str) -> str:
    return (files("regard.inspection") / "views" / name).read_text(encoding="utf-8")
