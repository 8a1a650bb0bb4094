"""What the service answers to the studio = what Python says; wrong requests; progress and cancelling."""

import base64
import html
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from regard.inspection.changes import change_from
from regard.inspection.interventions import attentions
from regard.serving.worker_model import panels_of
from tests.serving import RunningServer
from tests.studio_server import STORED, TEXT, studio_server

pytest.importorskip("fastapi", reason="needs the extra serve")


@pytest.fixture(scope="module")
def server(copy_run: Path, transformer_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with studio_server(tmp_path_factory.mktemp("server"), transformer_run, copy_run) as running:
        yield running


@pytest.fixture(scope="module")
def models(copy_run: Path, transformer_run: Path) -> dict:
    return {"transformer": regard.load(transformer_run), "rnn": regard.load(copy_run)}


def watch(server: RunningServer, **body: object) -> dict:
    with server.client() as client:
        answer = client.post("/v1/watch", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"][0]


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_a_change_in_the_studio_is_the_same_change_in_python(server: RunningServer, models: dict, name: str) -> None:
    model = models[name]
    path = next(path for path in attentions(model.model) if path.endswith("source_attention"))
    for changes in (
        [],
        [{"kind": "scale-head", "attention": path, "head": 0, "by": 0}],
        [{"kind": "attend", "position": 1, "to": 0}],
    ):
        served = watch(server, model=name, input=TEXT, changes=changes, beam=3, count=2)
        local = model.watch(TEXT, changes=[change_from(change) for change in changes], beam=3, count=2)
        assert served == json.loads(json.dumps(local.to_json()))
    assert watch(server, model=name, input=TEXT, beam=3, count=2) == json.loads(
        json.dumps(model.watch(TEXT, beam=3, count=2).to_json())
    )


def test_panels_are_those_of_the_page_and_numbers_those_of_json(server: RunningServer, models: dict) -> None:
    result = models["transformer"].explain(TEXT, "attention")
    with server.client() as client:
        body = {"model": "transformer", "input": TEXT}
        panels = client.post("/v1/inspect/attention", json={**body, "panels": True}).json()["outputs"][0]
        numbers = client.post("/v1/inspect/attention", json=body).json()["outputs"][0]
    assert panels == json.loads(json.dumps(panels_of(result)))
    assert numbers == json.loads(json.dumps(result.to_json()))


def test_an_image_is_uploaded_and_a_label_has_its_probabilities(server: RunningServer, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (48, 48), "red").save(tmp_path / "red.png")
    content = base64.b64encode((tmp_path / "red.png").read_bytes()).decode()
    caption = watch(server, model="captions", file=content, attention=True)
    assert caption["text"] == regard.load(STORED / "captions")(tmp_path / "red.png").line
    assert any(panel["view"] == "picture" for panel in caption["attention"])
    label = watch(server, model="classes", input="w0 w1")
    shares = [one["probability"] for one in label["predictions"][0]["candidates"]]
    assert sum(shares) == pytest.approx(1, abs=1e-3) and label["text"] in ("yes", "no")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "transformer", "input": " "}, 400),
        ({"model": "none", "input": "a"}, 404),
        ({"model": "transformer", "input": "a", "changes": [{"kind": "none"}]}, 400),
        (
            {
                "model": "transformer",
                "input": "a",
                "changes": [{"kind": "attend", "position": 0, "to": 0}, {"kind": "attend", "position": 0, "to": 1}],
            },
            400,
        ),
        ({"model": "transformer", "input": "a", "prefix": [10**9]}, 400),
        ({"model": "transformer", "input": "a", "step": 7}, 400),
        ({"model": "classes", "input": "a", "prefix": [3]}, 400),
        ({"model": "captions", "file": "%%%"}, 400),
        ({"model": "captions", "file": "QUJD"}, 400),
        ({"model": "transformer", "input": "a", "more": 1}, 400),
        ({"model": "captions", "input": "/etc/passwd"}, 400),
        ({"model": "captions", "input": ["/etc/hostname", "a"]}, 400),
        ({"model": "transformer", "input": "a" * 6000}, 400),
        (
            {
                "model": "transformer",
                "input": "a",
                "changes": [{"kind": "overwrite", "tap": "\\ud800", "position": 0, "source": "\ud800 x"}],
            },
            400,
        ),
        ({"model": "transformer", "input": "a b", "changes": [{"kind": "attend", "position": 99, "to": 0}]}, 400),
        ({"model": "transformer", "input": "a b", "changes": [{"kind": "attend", "position": -1, "to": 0}]}, 400),
        (
            {
                "model": "transformer",
                "input": "a b",
                "changes": [{"kind": "attend", "position": 0, "to": 1, "attention": "decoder.layers.0.attention"}],
            },
            400,
        ),
        (
            {
                "model": "transformer",
                "input": "a b",
                "changes": [{"kind": "scale-head", "attention": "decoder.layers.0.attention", "head": 0, "by": 1e200}],
            },
            400,
        ),
    ],
)
def test_wrong_requests_get_a_sentence(server: RunningServer, body: dict, status: int) -> None:
    with server.client() as client:
        answer = client.post("/v1/watch", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert len(answer.json()["error"]) > 15 and "Traceback" not in answer.text


@pytest.mark.parametrize(
    "options",
    [{"corpus": "/etc/passwd"}, {"progress": 1}, {"how": 1}, {"methods": 5}, {"methods": [["a"]]}, {"instead": 5}],
)
def test_wrong_options_of_analyses_are_refused(server: RunningServer, options: dict) -> None:
    with server.client() as client:
        answer = client.post("/v1/inspect/attribute", json={"model": "rnn", "input": "a b", "options": options})
        path = client.post("/v1/inspect/attention", json={"model": "captions", "input": "/etc/passwd"})
        predicted = client.post("/v1/predict", json={"model": "captions", "inputs": ["/etc/passwd"]})
    assert answer.status_code == 400 and "Traceback" not in answer.text, answer.text
    assert path.status_code == 400 and "passwd" not in path.text
    assert predicted.status_code == 400 and "passwd" not in predicted.text


def test_progress_is_streamed_and_work_without_a_waiting_client_is_given_up(
    server: RunningServer, models: dict
) -> None:
    text = " ".join(["a b c d e"] * 12)
    body = {
        "model": "transformer",
        "input": text,
        "target": text,
        "options": {"methods": ["occlusion"]},
        "stream": True,
    }
    with server.client() as client:
        with client.stream("POST", "/v1/inspect/attribute", json=body) as answer:
            events = [line for line in answer.iter_lines() if line]
        assert events[0] == "event: progress" and json.loads(events[1][6:])[1] > 0 and events[-2] == "event: done"
        whole = client.post("/v1/inspect/attribute", json={**body, "stream": False}).json()
        assert json.loads(events[-1][6:]) == whole
        started = time.monotonic()
        client.post("/v1/inspect/attribute", json={**body, "stream": False})
        usual = time.monotonic() - started
        started = time.monotonic()
        for _ in range(6):  # each is left after its first event
            with client.stream("POST", "/v1/inspect/attribute", json=body) as answer:
                next(answer.iter_lines())
        assert watch(server, model="rnn", input="a b")["text"] == models["rnn"].watch("a b").text
        assert time.monotonic() - started < 5 * usual


def test_checkpoints_are_described_and_watched(server: RunningServer, models: dict) -> None:
    with server.client() as client:
        about = client.get("/v1/models/transformer").json()
    assert about["steps"] == models["transformer"].run.checkpoint_steps and about["steps"]
    step = about["steps"][0]
    served = watch(server, model="transformer", input=TEXT, step=step)
    assert served == json.loads(
        json.dumps(regard.load(models["transformer"].run.directory, step=step).watch(TEXT).to_json())
    )


def test_the_page_is_small_and_fetches_nothing_else(server: RunningServer) -> None:
    with server.client() as client:
        page = client.get("/").text
    assert len(page.encode()) < 500_000
    policy = html.unescape(page)
    assert "script-src 'sha256-" in policy and "connect-src 'self'" in policy
    assert 'src="http' not in page and 'href="http' not in page
