"""Pages of analyses: panels whose views are the modules in `views/`.

A view is a file `views/NAME.js`, an ES module that exports `show(root, data)`, with a style sheet `views/NAME.css` if
it needs one. What views share is in `regard/pages/views`: elements and controls (`kit.js`), maps (`heatmap.js`) and
curves (`charts.js`).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from regard.pages import panels as pages
from regard.pages.modules import View
from regard.pages.packed_numbers import pack
from regard.pages.panels import Panel, Part

__all__ = ["Panel", "Part", "find_view", "pack", "render", "render_parts", "view_names"]


@cache
def find_view(name: str) -> View:
    """Return the module and the style sheet of a view."""
    folder = files("regard.inspection") / "views"
    script, style = folder / f"{name}.js", folder / f"{name}.css"
    if not script.is_file():
        raise KeyError(name)
    return View(script.read_text(encoding="utf-8"), style.read_text(encoding="utf-8") if style.is_file() else "")


def view_names() -> list[str]:
    """Return the names of all views of analyses."""
    return sorted(
        path.name.removesuffix(".js")
        for path in (files("regard.inspection") / "views").iterdir()
        if path.name.endswith(".js")
    )


def render(title: str, panels: Sequence[Panel], *, run: str = "") -> str:
    """Return the page of some panels, one below the other; it names the run."""
    return pages.render(title, panels, find=find_view, run=run)


def render_parts(
    title: str, lead: Sequence[str], parts: Sequence[Part], left_out: Mapping[str, str], *, run: str = ""
) -> str:
    """Return a long page: some paragraphs, a table of contents, the parts, and what is left out with its reason."""
    return pages.render_parts(title, lead, parts, left_out, find=find_view, run=run)
