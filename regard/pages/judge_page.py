"""The form of `regard judge` as a page: it needs no network, keeps answers in the browser and saves them as JSON."""

from collections.abc import Mapping
from typing import Any

from regard.pages.modules import bundle, shared_view
from regard.pages.shell import render_page

TITLE = "Which translation is better?"
START = 'modules["judge"].show(JSON.parse(document.getElementById("data").textContent));'


def render(form: Mapping[str, Any], letters: str) -> str:
    """Return the page of a form.

    Args:
        form: `form` (its id) and `items`, each with `id`, `source`, `reference` (or `None`) and `candidates`.
        letters: What candidates are called, in their order.
    """
    script, style = bundle(["judge"], shared_view, START)
    return render_page("judge.html", title=TITLE, run="", script=script, style=style, data={**form, "letters": letters})
