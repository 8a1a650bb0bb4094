"""The studio of a server: its page, and copies of it that open without a server."""

from collections.abc import Mapping
from typing import Any

from regard.pages import studio_page as page
from regard.serving.service import Service

LEFT_OUT = ("reply",)
"""Verbs of models that the studio does not show; suggested replies have an inbox of their own."""


def studio_page(
    service: Service, *, state: Mapping[str, Any] | None = None, recording: Mapping[str, Any] | None = None
) -> str:
    """Return the page of the models of a server; with a recording, one that is read without the server."""
    from regard.inspection.page import find_view, view_names

    models = [
        {"name": model.name, "task": model.task, "verb": model.verb}
        for model in service.catalogue.models.values()
        if model.verb not in LEFT_OUT
    ]
    return page.render(models, view_names(), find_view, state=state, recording=recording)
