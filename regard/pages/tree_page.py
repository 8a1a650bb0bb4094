"""The page of `--show-search`: each beam search as a tree."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.pages.panels import Panel
from regard.pages.panels import render as render_panels

LEAD = (
    "Each box is a token. The number below it is the score of the path up to there, the one that decides: the path's "
    "log-probability divided by its length to the power of the length penalty. In every column the beam keeps the best "
    "paths; at the end the path with the highest score wins."
)


def render(searches: Sequence[Mapping[str, Any]], run: str = "") -> str:
    """Return the page of some searches.

    Args:
        searches: Plain data, as `regard.search.tree.tree_data` returns it and `--show-search FILE.json` writes it.
        run: The run that searched.
    """
    panels = [
        Panel("tree", search, title=f"{number}. {search['source']}") for number, search in enumerate(searches, start=1)
    ]
    return render_panels("What the beam looked at", panels, run=run, lead=[LEAD])
