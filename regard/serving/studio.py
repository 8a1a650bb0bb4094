"""The studio of a server: its page, and copies of it that open without a server."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.pages import studio_page as page
from regard.serving.catalogue import ServedModel
from regard.serving.worker_model import WorkerModel

LEFT_OUT = ("reply",)
"""Verbs of models that the studio does not show; suggested replies have an inbox of their own."""
RECORDED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("attribute", {"methods": ["gradient"]}),
    ("contributions", {}),
    ("lens", {}),
    ("identify", {}),
    ("direct", {}),
)
"""Analyses, with options, that an exported page has with it; as `views/studio.js` asks for them."""


def studio_page(
    models: Sequence[ServedModel],
    *,
    corpora: Sequence[Mapping[str, Any]] = (),
    state: Mapping[str, Any] | None = None,
    recording: Mapping[str, Any] | None = None,
) -> str:
    """Return the page of some models; with a recording, one that is read without a server."""
    from regard.inspection.page import find_view, view_names

    shown = [
        {"name": model.name, "task": model.task, "verb": model.verb} for model in models if model.verb not in LEFT_OUT
    ]
    tables = [{"name": corpus["name"], "size": corpus["size"]} for corpus in corpora]
    return page.render(shown, view_names(), find_view, corpora=tables, state=state, recording=recording)


def export_page(models: Sequence[ServedModel], inputs: Sequence[str], progress: Progress | None = None) -> str:
    """Return the studio of one input as a page that is read without a server: what it can show is computed now.

    Args:
        models: The models; the first is shown, the others can be compared with it.
        inputs: The text, or the texts, of the input; or the path of an image or a sound.
        progress: Called as the parts are computed.
    """
    recording: dict[str, Any] = {}
    is_file = False
    for number, model in enumerate(models):
        worker = WorkerModel(model.key)
        (about,) = worker.describe([""], {})
        recording[f"/v1/models/{model.name}"] = {"name": model.name, "run": str(model.run), **about}
        is_file = about["reads"] in ("image", "sound")
        requests = list(_requests(model.name, about, inputs))
        for done, (path, task, body) in enumerate(requests if number == 0 else requests[:1]):
            options = {key: value for key, value in body.items() if key not in ("model", "input")}
            if task != "watch":
                options["analysis"] = task
                options["panels"] = True
                if about["writes"] and about["reads"] != "prompt":
                    options["target"] = body["target"] = recording[request_key("/v1/watch", requests[0][2])]["outputs"][
                        0
                    ]["text"]
            given = list(inputs) if len(inputs) > 1 else inputs[0]
            try:
                outputs = getattr(worker, "watch" if task == "watch" else "inspect")([given], options)
            except RegardError:
                if task == "watch":
                    raise
                continue  # this analysis does not apply to the model
            sent = {**body, "panels": True} if task != "watch" else body
            recording[request_key(path, sent)] = {"model": model.name, "outputs": outputs}
            if progress:
                progress("computing", done + 1, len(requests))
    texts = [""] if is_file and len(inputs) == 1 else list(inputs[1:] if is_file else inputs)
    state = {"model": models[0].name, "texts": texts, "attached": Path(inputs[0]).name if is_file else None}
    return studio_page(models, state=state, recording=recording)


def _requests(name: str, about: Mapping[str, Any], inputs: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, task and body of the requests of a page."""
    is_file = about["reads"] in ("image", "sound")
    texts = list(inputs[1:] if is_file else inputs)
    body: dict[str, Any] = {"model": name}
    if texts:
        body["input"] = texts if len(texts) > 1 else texts[0]
    search = {"beam": about["beam"], "count": min(5, about["beam"])} if about["writes"] else {}
    yield "/v1/watch", "watch", {**body, "attention": True, **search}
    offered = {analysis["name"] for analysis in about["analyses"] if not analysis["reason"]}
    for analysis, options in RECORDED:
        if analysis in offered:
            yield f"/v1/inspect/{analysis}", analysis, {**body, "options": options}


def request_key(path: str, body: Mapping[str, Any]) -> str:
    """Return the key of a request in a recording, as `views/studio_api.js` makes it."""
    return f"{path} {json.dumps(body, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}"


def address_of(port: int, model: str, texts: Sequence[str] | None) -> str:
    """Return the address of the studio on this machine, with a text to show."""
    from urllib.parse import quote

    address = f"http://127.0.0.1:{port}/"
    if not texts:
        return address
    state = {"model": model, "texts": list(texts)}
    return f"{address}#{quote(json.dumps(state, ensure_ascii=False))}"
