"""Pages made of views: each panel has a view, its data, and a sentence or two about how to read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.pages.modules import FindView, View, bundle, read_style, shared_view
from regard.pages.shell import render_page

START = 'modules["kit"].showAll(modules, JSON.parse(document.getElementById("data").textContent));'


@dataclass(frozen=True)
class Panel:
    """One part of a page: a view, what it shows, and a sentence or two about how to read it."""

    view: str
    """Name of the view: its module is NAME.js."""
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


def render(
    title: str, panels: Sequence[Panel], *, find: FindView = shared_view, run: str = "", lead: Sequence[str] = ()
) -> str:
    """Return the page of some panels, one below the other.

    Args:
        title: The heading.
        panels: What the page shows.
        find: Returns the view of a name; shared modules come from this package.
        run: The run that the page is about.
        lead: Paragraphs below the heading.
    """
    return _page("panels.html", title, panels, find, run=run, lead=lead, panels=panels)


def render_parts(
    title: str,
    lead: Sequence[str],
    parts: Sequence[Part],
    left_out: Mapping[str, str],
    *,
    find: FindView = shared_view,
    run: str = "",
) -> str:
    """Return a long page: some paragraphs, a table of contents, the parts, and what is left out with its reason."""
    panels = [panel for part in parts for panel in part.panels]
    return _page("parts.html", title, panels, find, run=run, lead=lead, parts=parts, left_out=left_out)


def _page(template: str, title: str, shown: Sequence[Panel], find: FindView, **values: Any) -> str:
    def either(name: str) -> View:
        try:
            return shared_view(name)
        except KeyError:
            return find(name)

    names = list(dict.fromkeys(panel.view for panel in shown))
    script, style = bundle(["kit", *names], either, START)
    data = [{"view": panel.view, "data": panel.data} for panel in shown]
    return render_page(template, title=title, script=script, style=f"{read_style('kit')}\n{style}", data=data, **values)
