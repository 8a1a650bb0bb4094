"""The studio: one page that asks the server it comes from, or an exported copy that has its answers with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.pages.modules import FindView, View, bundle, read_style, shared_view
from regard.pages.shell import render_page

TITLE = "Regard studio"
START = 'modules["studio"].show(modules, JSON.parse(document.getElementById("data").textContent));'


def render(
    models: Sequence[Mapping[str, Any]],
    views: Sequence[str],
    find: FindView,
    *,
    corpora: Sequence[Mapping[str, Any]] = (),
    state: Mapping[str, Any] | None = None,
    recording: Mapping[str, Any] | None = None,
) -> str:
    """Return the page.

    Args:
        models: The models that can be chosen, as `/v1/models` lists them.
        views: Names of the views that panels of analyses use.
        find: Returns the view of a name; shared modules come from this package.
        corpora: The test sets that are offered.
        state: What is shown first.
        recording: Answers of the server by request, for a page that is read without one.
    """

    def either(name: str) -> View:
        try:
            return shared_view(name)
        except KeyError:
            return find(name)

    script, style = bundle([*views, "studio"], either, START)
    data = {"models": list(models), "corpora": list(corpora), "state": state, "recording": recording}
    return render_page(
        "studio.html",
        title=TITLE,
        run=", ".join(str(model["name"]) for model in models),
        script=script,
        style=f"{read_style('kit')}\n{style}",
        data=data,
        connects=recording is None,
    )
