"""The server under load and faults: every caller gets its own answer, and no accepted request is lost."""

import itertools
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from regard.cli import main
from tests.serving import running_server

LETTERS = "abcdef"


def sentences(count: int) -> list[str]:
    """Different sentences of one to eight letters."""
    found: dict[str, None] = {}
    number = 0
    while len(found) < count:
        number += 1
        digits, value = [], number
        while value:
            value, digit = divmod(value, 6)
            digits.append(LETTERS[digit])
        found[" ".join(digits[:8])] = None
    return list(found)


def ask(client: httpx.Client, text: str) -> httpx.Response:
    return client.post("/translate", json={"q": text, "source": "en", "target": "de"})


@pytest.fixture(scope="module")
def arguments(transformer_run):
    return [transformer_run, "--languages", "en-de", "--engine", "auto", "--workers", "2"]


@pytest.fixture(scope="module")
def one_worker(transformer_run):
    return [transformer_run, "--languages", "en-de", "--workers", "1"]


@pytest.fixture(scope="module")
def short_queue(arguments, tmp_path_factory):
    """A server that computes every answer anew and refuses requests when forty sentences wait."""
    place = tmp_path_factory.mktemp("short-queue")
    (place / "serving.yaml").write_text("limits: {queue: 40, cache: 0}\n")
    with running_server(place, *arguments, "--config", place / "serving.yaml") as server:
        yield server


def test_concurrent_requests_get_the_answers_of_sequential_ones(short_queue):
    texts = sentences(300)
    with short_queue.client() as client:
        with ThreadPoolExecutor(30) as pool:
            together = list(pool.map(lambda text: ask(client, text).json()["translatedText"], texts))
        metrics = client.get("/metrics").text
        alone = [ask(client, text).json()["translatedText"] for text in texts[::5]]
    assert together[::5] == alone
    assert len(set(together)) > 100
    sizes = {
        line.split('le="')[1].split('"')[0]: float(line.split()[-1])
        for line in metrics.splitlines()
        if "batch_size_bucket" in line
    }
    assert sizes["+Inf"] < 300  # they were batched


def test_killed_workers_lose_no_accepted_request(arguments, tmp_path):
    """Two workers are killed while they work: whatever was in them is tried again, in a batch of its own."""
    texts = sentences(300)
    with running_server(tmp_path, *arguments) as server, server.client(120) as client:
        expected = {text: ask(client, text).json()["translatedText"] for text in texts[:20]}
        answered = itertools.count(1)

        def ask_and_kill(text: str) -> httpx.Response:
            answer = ask(client, text)
            if next(answered) in (40, 120):
                os.kill(server.worker_pids()[0], signal.SIGKILL)
            return answer

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(ask_and_kill, texts[20:]))
        assert [answer.status_code for answer in answers] == [200] * len(answers)
        assert {text: ask(client, text).json()["translatedText"] for text in texts[:20]} == expected


def accepted_requests(url: str) -> float:
    """The translations that the server has finished or begun; each has one sentence."""
    lines = httpx.get(url + "/metrics", timeout=60).text.splitlines()
    counted = ("regard_queue_depth ", 'regard_requests_total{endpoint="/translate"')
    return sum(float(line.split()[-1]) for line in lines if line.startswith(counted))


def test_sigterm_finishes_what_was_accepted_and_exits_with_0(arguments, tmp_path):
    texts = [" ".join([text] * 3) for text in sentences(60)]
    with running_server(tmp_path, *arguments) as server, server.client() as client:
        with ThreadPoolExecutor(60) as pool:
            waiting = [pool.submit(ask, client, text) for text in texts]
            until = time.monotonic() + 60
            while accepted_requests(server.url) < len(texts) and time.monotonic() < until:
                time.sleep(0.002)
            code = server.stop()
            statuses = [future.result().status_code for future in waiting]
        assert (code, statuses) == (0, [200] * len(texts))
        with pytest.raises(httpx.ConnectError):  # refused at once, not cut off
            httpx.get(server.url + "/health")


def test_a_second_signal_stops_at_once(arguments, tmp_path):
    with running_server(tmp_path, *arguments) as server, server.client(120) as client:
        ask(client, "a")
        with ThreadPoolExecutor(1) as pool:
            long = pool.submit(ask, client, "\n".join(sentences(6000)))  # takes seconds
            while "regard_queue_depth 0.0" in httpx.get(server.url + "/metrics").text:
                assert not long.done()
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert server.process.poll() is None and not long.done()  # it finishes what was accepted
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(timeout=15)
            assert long.exception() is not None or long.result().status_code >= 500


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls(arguments, tmp_path):
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *files, *names]
    subprocess.run(command, check=True, capture_output=True)
    settings = tmp_path / "serving.yaml"
    settings.write_text("certificate: cert.pem\nprivate_key: key.pem\n")
    with running_server(tmp_path, *arguments, "--config", settings) as server:
        assert server.url.startswith("https://")
        with httpx.Client(
            base_url=server.url, verify=ssl.create_default_context(cafile=tmp_path / "cert.pem")
        ) as client:
            assert ask(client, "a b c").json() == {"translatedText": "a b c"}


def test_a_full_queue_refuses_with_a_time_to_try_again(short_queue):
    with short_queue.client() as client:

        def ask_for_thirty(number: int) -> httpx.Response:
            return client.post("/translate", json={"q": texts[number::20], "source": "en", "target": "de"})

        texts = sentences(600)
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(ask_for_thirty, range(20)))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert refused and {answer.status_code for answer in refused} == {503}
    assert all(int(answer.headers["retry-after"]) > 0 and "overloaded" in answer.json()["error"] for answer in refused)
    assert any(answer.status_code == 200 for answer in answers)


def test_a_deadline(one_worker, tmp_path):
    settings = tmp_path / "serving.yaml"
    settings.write_text("limits: {seconds: 0.001}\n")
    with running_server(tmp_path, *one_worker, "--config", settings) as server, server.client() as client:
        answer = ask(client, "a b c d")
        assert answer.status_code == 504 and "in time" in answer.json()["error"]


def test_an_overloaded_server_refuses_before_it_reads(arguments, tmp_path):
    settings = tmp_path / "serving.yaml"
    settings.write_text("limits: {queue: 50, cache: 0}\n")
    with running_server(tmp_path, *arguments, "--config", settings) as server, server.client() as client:
        ask(client, "a")
        with ThreadPoolExecutor(2) as pool:
            long = pool.submit(ask, client, "\n".join(sentences(2000)))
            until = time.monotonic() + 20
            while (refused := client.post("/translate", content=b"{")).status_code != 503:  # otherwise: malformed
                assert refused.status_code == 400 and time.monotonic() < until
            assert refused.json() == {"error": "The server is overloaded: too many requests wait. Try again later."}
            assert refused.headers["retry-after"] == "2" and refused.headers["access-control-allow-origin"] == "*"
            assert "access-control-allow-origin" not in client.post("/v1/translate", json={}).headers
            assert client.post("/detect", data={"q": "the dog is in the house"}).status_code == 200
            assert client.get("/health/ready").status_code == 200
            assert len(long.result().json()["translatedText"].splitlines()) == 2000
        assert ask(client, "a b").status_code == 200
        metrics = client.get("/metrics").text
        assert 'regard_requests_total{endpoint="refused",status="503"}' in metrics
        assert float(metrics.split("\nregard_tokens_total ")[1].split()[0]) > 2000


def test_clients_that_send_nothing_or_slowly_are_closed(arguments, tmp_path):
    settings = tmp_path / "serving.yaml"
    settings.write_text("limits: {read_seconds: 1}\n")
    with running_server(tmp_path, *arguments, "--config", settings) as server:
        address = server.url.removeprefix("http://").split(":")
        start = time.monotonic()
        silent, slow, half = (socket.create_connection((address[0], int(address[1])), timeout=30) for _ in range(3))
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):  # head and body may come one after the other
            answer += slow.recv(10_000)
        assert b"200 OK" in answer
        half.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nq=half")
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: ")  # the second request on a connection is never complete
        assert silent.recv(10_000) == b"" and slow.recv(10_000) == b""
        assert b" 408 " in half.recv(10_000)
        assert 0.9 < time.monotonic() - start < 10  # not the 20 s of the default


def test_long_lines_are_split_as_on_the_command_line(arguments, transformer_run, tmp_path):
    """And without torch, also where the run must be exported first: workers of a fast engine stay small."""
    shutil.rmtree(transformer_run / "engines", ignore_errors=True)
    line = ". ".join(" ".join("abcdef"[(i * k) % 6] for k in range(1, 3 + i % 9)) for i in range(80)) + "."
    command = [sys.executable, "-m", "regard", "translate", str(transformer_run), "--engine", "auto"]
    with running_server(tmp_path, *arguments) as server, server.client() as client:
        found = ask(client, f"{line}\na b").json()["translatedText"]
        for pid in server.worker_pids():
            assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()
    local = subprocess.run(command, input=f"{line}\na b\n", capture_output=True, text=True, check=True)
    assert found + "\n" == local.stdout


def test_keys_and_their_limits(one_worker, tmp_path):
    settings = tmp_path / "serving.yaml"
    (tmp_path / "keys.txt").write_text("# keys\nfirst-secret 2\nsecond-secret\n")
    settings.write_text("keys_file: keys.txt\nkeys_only: true\nmetrics_token: hidden-token\n")
    with running_server(tmp_path, *one_worker, "--config", settings) as server, server.client() as client:
        body = {"q": "a b", "source": "en", "target": "de"}
        assert client.post("/translate", json=body).json() == {
            "error": "Please contact the server operator to get an API key"
        }
        wrong = client.post("/translate", json=body | {"api_key": "third-secret"})
        assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
        statuses = [client.post("/translate", json=body | {"api_key": "first-secret"}).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert client.post("/translate", json=body | {"api_key": "second-secret"}).status_code == 200
        assert client.get("/v1/models").status_code == 400
        assert client.get("/v1/models", headers={"Authorization": "Bearer second-secret"}).status_code == 200
        assert client.get("/metrics").status_code == 403
        assert client.get("/metrics", headers={"Authorization": "Bearer hidden-token"}).status_code == 200
        log = server.log.read_text()
    assert "secret" not in log and "hidden-token" not in log


def test_reloading_is_atomic(transformer_run, copy_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(transformer_run, run)
    with running_server(tmp_path, run, "--languages", "en-de", "--workers", "1") as server, server.client() as client:
        before = ask(client, "a b c").json()
        while f"regard_models_loaded {len(server.worker_pids())}.0" not in client.get("/metrics").text:
            time.sleep(0.05)  # the other worker loads it, too
        shutil.copy(run / "config.yaml", tmp_path / "config.yaml")
        (run / "config.yaml").write_text("model: {nonsense: 1}\n")
        failed = client.post("/v1/models/run/reload")
        assert failed.status_code == 500 and "old model stays" in failed.json()["error"]
        assert ask(client, "a b c").json() == before and ask(client, "c b a").status_code == 200
        shutil.copy(tmp_path / "config.yaml", run / "config.yaml")
        assert client.post("/v1/models/run/reload").json() == {"name": "run", "version": 1}
        assert ask(client, "a b c").json() == before
        assert client.post("/v1/models/nobody/reload").status_code == 404


def test_a_pivot_language_connects_two_models(transformer_run, copy_run, tmp_path):
    arguments = [f"one={transformer_run}", f"two={copy_run}", "--languages", "en-de", "--languages", "de-fr"]
    arguments += ["--workers", "1"]
    with running_server(tmp_path, *arguments) as server, server.client() as client:
        targets = {row["code"]: row["targets"] for row in client.get("/languages").json()}
        assert targets == {"en": ["en", "de", "fr"], "de": ["de", "fr"], "fr": ["fr"]}
        answer = client.post("/translate", json={"q": "a b c", "source": "en", "target": "fr"})
        assert answer.json() == {"translatedText": "a b c"}


@pytest.mark.parametrize(
    "settings, message",
    [
        ("port: many", "port: Input should be a valid integer"),
        ("nonsense: 1", "nonsense: There is no such setting"),
        ("[1, 2]", "must be a mapping"),
        ("models: [", "is not valid YAML (line 1)"),
        ("keys_only: true", "keys_only needs API keys"),
        ("limits: {seconds: 0}", "limits.seconds"),
        ("certificate: a.pem", "both `certificate` and `private_key`"),
    ],
)
def test_bad_settings_are_one_sentence(transformer_run, tmp_path, capsys, settings, message):
    file = tmp_path / "serving.yaml"
    file.write_text(settings)
    assert main(["serve", str(transformer_run), "--languages", "en-de", "--port", "0", "--config", str(file)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


class TestClient:
    """`regard client` with a real server."""

    def test_lines_come_back_in_order_and_are_those_of_translate(self, short_queue, transformer_run, tmp_path):
        """Thirty-two lines at a time, four requests at once: some are refused, and sent again."""
        source, output, local = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "local.txt"
        source.write_text("\n".join([*sentences(150), "", "a b"]) + "\n")
        assert main(["client", short_queue.url, str(source), "-o", str(output)]) == 0
        assert main(["translate", str(transformer_run), str(source), "--engine", "auto", "-o", str(local)]) == 0
        assert output.read_text() == local.read_text()

    def test_failures_are_one_sentence(self, short_queue, capsys):
        assert main(["client", "localhost"]) == 2
        assert "is not the address of a server" in capsys.readouterr().err
        assert main(["client", short_queue.url, "a b", "--model", "nobody"]) == 1
        told = " ".join(capsys.readouterr().err.split())
        assert "status 404: There is no model `nobody`" in told and "Traceback" not in told
