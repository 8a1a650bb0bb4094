"""How results show themselves in a notebook."""

from collections.abc import Mapping

from regard.pages.shell import render_template

MOST_LABELS = 10
"""Labels of a classifier that are shown, the most likely first."""


def show_line(text: str) -> str:
    """Return one line of text as HTML."""
    return render_template("notebook_line.html", text=text)


def show_probabilities(probabilities: Mapping[str, float]) -> str:
    """Return the most likely labels as a table with bars."""
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])[:MOST_LABELS]
    return render_template("notebook_labels.html", ranked=ranked)


def show_page(page: str) -> str:
    """Return a whole page in a frame of its own."""
    return render_template("notebook_frame.html", page=page)
