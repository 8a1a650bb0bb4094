"""The LibreTranslate protocol and `/v1`, on a running server, with unmodified clients."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from regard.serving.worker import Worker
from tests.run_request_fuzzer import fuzz
from tests.serving import RunningServer, running_server
from tests.stored_runs import run_command

CACHE = Path.home() / ".cache" / "regard-tests"
SENTENCE = "a b c"
STORED = Path(__file__).parent / "fixtures" / "format-1"
NPM = {"translate": "3.1.0", "libretranslate-ts": "0.5.12"}


@pytest.fixture(scope="module")
def server(transformer_run, tmp_path_factory):
    with running_server(
        tmp_path_factory.mktemp("server"), transformer_run, "--languages", "en-de", "--engine", "native"
    ) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def translate(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/translate", json={"q": SENTENCE, "source": "en", "target": "de"} | body)


class TestClients:
    """Clients from the package registries, as their users call them."""

    def test_libretranslatepy(self, server):
        from libretranslatepy import LibreTranslateAPI

        api = LibreTranslateAPI(server.url + "/")
        assert api.translate(SENTENCE, "en", "de") == SENTENCE
        assert api.languages()[0]["code"] == "en"
        assert api.detect("the dog is in the house and sleeps")[0]["language"] == "en"

    def test_deep_translator(self, server):
        from deep_translator import LibreTranslator

        translator = LibreTranslator(source="en", target="de", custom_url=server.url + "/", api_key="unused")
        assert translator.translate(SENTENCE) == SENTENCE

    @pytest.fixture
    def modules(self) -> Path:
        home = CACHE / "npm-clients"
        if not all((home / "node_modules" / name).exists() for name in NPM):
            if shutil.which("npm") is None:
                pytest.skip("needs npm to install the clients")
            names = [f"{name}@{version}" for name, version in NPM.items()]
            command = ["npm", "install", "--prefix", str(home), "--no-save", "--ignore-scripts", *names]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if not all((home / "node_modules" / name).exists() for name in NPM):
                pytest.skip("npm cannot install the clients here")
        return home

    @pytest.mark.parametrize(
        "script",
        [
            "import translate from 'translate';"
            "translate.engine = 'libre'; translate.url = URL + '/translate';"
            "console.log(await translate(TEXT, { from: 'en', to: 'de' }));",
            "import { libreTranslate } from 'libretranslate-ts';"
            "libreTranslate.setApiEndpoint(URL); libreTranslate.setApiKey('');"
            "console.log((await libreTranslate.translate(TEXT, 'en', 'de')).translatedText);",
        ],
        ids=NPM,
    )
    def test_npm(self, server, modules, script):
        file = modules / "client.mjs"
        imports, mark, rest = script.partition(";")
        file.write_text(f"{imports}{mark} const URL = '{server.url}', TEXT = '{SENTENCE}'; {rest}")
        done = subprocess.run(["node", str(file)], capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.strip() == SENTENCE, done.stderr


class TestTranslate:
    def test_json_form_and_query_string_are_the_same(self, client):
        parameters = {"q": SENTENCE, "source": "en", "target": "de"}
        answers = [
            client.post("/translate", json=parameters),
            client.post("/translate", data=parameters),
            client.post("/translate", params=parameters),
            client.post("/translate", files={name: (None, value) for name, value in parameters.items()}),
        ]
        assert [answer.json() for answer in answers] == [{"translatedText": SENTENCE}] * 4

    def test_a_list_gives_a_list(self, client):
        found = translate(client, q=["a b", "c d", ""], format="text", api_key=None).json()
        assert found == {"translatedText": ["a b", "c d", ""]}

    def test_lines_and_white_space_stay(self, client):
        text = "  a b\n\n\tc d \r\n e"
        assert translate(client, q=text).json()["translatedText"] == text

    def test_codes_ignore_case(self, client):
        assert translate(client, source="EN", target="De").json() == {"translatedText": SENTENCE}

    def test_the_same_language_is_returned_unchanged(self, client):
        assert translate(client, q="x y z", target="en").json() == {"translatedText": "x y z"}

    def test_detected_language_only_for_auto(self, client):
        assert "detectedLanguage" not in translate(client).json()
        one = translate(client, source="auto").json()
        assert one["detectedLanguage"]["language"] == "en" and 0 <= one["detectedLanguage"]["confidence"] <= 100
        several = translate(client, q=["a b", "c"], source="auto").json()
        assert len(several["detectedLanguage"]) == 2

    @pytest.mark.parametrize("value", [None, 0, "0", ""])
    def test_no_alternatives_unless_asked_for(self, client, value):
        assert translate(client, alternatives=value).json() == {"translatedText": SENTENCE}

    def test_alternatives_are_others(self, client):
        found = translate(client, alternatives=3).json()
        assert found["translatedText"] == SENTENCE
        assert 0 < len(found["alternatives"]) <= 3 and SENTENCE not in found["alternatives"]
        assert len(set(found["alternatives"])) == len(found["alternatives"])
        several = translate(client, q=["a b", "c d"], alternatives="2").json()["alternatives"]
        assert len(several) == 2 and all(isinstance(texts, list) for texts in several)

    def test_served_is_local(self, client, transformer_run):
        """What the server answers is what `regard translate` prints."""
        lines = [" ".join("abcdef"[(i * k) % 6] for k in range(1, 2 + i % 7)) for i in range(60)]
        local = run_command("translate", str(transformer_run), text="\n".join(lines))
        assert translate(client, q=lines).json()["translatedText"] == local.splitlines()


class TestMarkup:
    def test_html_comes_back_with_its_tags(self, client):
        fragments = ['<p>a <b class="x">b</b> c</p><p>d e</p>', "a &lt; b", "<br>", "no <code>x</code>"]
        found = translate(client, q=fragments, format="html", api_key=None).json()["translatedText"]
        assert found[0] == fragments[0] and found[2] == "<br>" and "<code>x</code>" in found[3]

    def test_html_without_tags_is_translated_as_text(self, client):
        assert translate(client, q="a b c d", format="html").json() == translate(client, q="a b c d").json()

    def test_alternatives_of_html_have_all_tags_and_those_of_plain_text_are_equal(self, client):
        fragments = ["<p>a <b>b c</b> d</p>", "c d e f"]
        found = translate(client, q=fragments, format="html", alternatives=3).json()
        tagged, plain = found["alternatives"]
        assert 0 < len(tagged) <= 3 and found["translatedText"][0] not in tagged
        for text in tagged:
            assert [text.count(tag) for tag in ("<p>", "<b>", "</b>", "</p>")] == [1, 1, 1, 1]
        assert plain == translate(client, q=fragments[1], alternatives=3).json()["alternatives"]

    def test_detection_ignores_tags(self, client):
        answer = translate(client, q="<section><article>a b</article></section>", source="auto", format="html").json()
        assert answer["detectedLanguage"]["language"] == "en"

    def test_a_file_is_translated_and_downloaded(self, client):
        content = b"1\n00:00:01,000 --> 00:00:02,000\na <i>b</i> c\n"
        form = {"source": "en", "target": "de"}
        answer = client.post("/translate_file", data=form, files={"file": ("../../etc/film.srt", content)})
        url = answer.json()["translatedFileUrl"]
        assert ".." not in url and url.startswith(str(client.base_url).rstrip("/"))
        file = client.get(url)
        assert file.content == content and file.headers["content-disposition"] == 'attachment; filename="film.srt"'

    @pytest.mark.parametrize(
        "name, content, message",
        [
            ("a.docx", b"PK", "cannot be translated. Use one of .txt, .html, .srt"),
            ("a.txt", b"\xff\xfe", "is not UTF-8 text"),
            ("", b"x", "missing file parameter"),
        ],
    )
    def test_other_files_are_refused(self, client, name, content, message):
        form = {"source": "en", "target": "de"}
        answer = client.post("/translate_file", data=form, files={"file": (name, content)})
        assert answer.status_code == 400 and message in answer.json()["error"]

    @pytest.mark.parametrize("name", ["nothing", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "a" * 5000])
    def test_files_cannot_be_reached_by_path_tricks(self, client, name):
        assert client.get(f"/download_file/{name}").status_code in (404, 400, 414, 431)


class TestErrors:
    @pytest.mark.parametrize(
        "change, status, message",
        [
            ({"q": None}, 400, "Invalid request: missing q parameter"),
            ({"q": ""}, 400, "Invalid request: missing q parameter"),
            ({"q": []}, 400, "Invalid request: missing q parameter"),
            ({"q": 5}, 400, "Invalid request: q must be a string or a list of strings"),
            ({"q": ["a", None]}, 400, "Invalid request: q must be a string or a list of strings"),
            ({"source": None}, 400, "Invalid request: missing source parameter"),
            ({"target": ""}, 400, "Invalid request: missing target parameter"),
            ({"target": {"a": 1}}, 400, "Invalid request: target must be a string"),
            ({"target": "zz"}, 400, "zz is not supported"),
            ({"source": "zz"}, 400, "zz is not supported"),
            ({"format": "xml"}, 400, "xml format is not supported"),
            ({"alternatives": 1000}, 400, "Invalid request: alternatives parameter must be <= 9"),
            ({"alternatives": "many"}, 400, "Invalid request: alternatives must be a number"),
            (
                {"source": "de", "target": "en"},
                400,
                "English (en) is not available as a target language from German (de)",
            ),
            ({"q": "a" * 100_001}, 400, "Invalid request: request (100001) exceeds text limit (100000)"),
            ({"q": ["a"] * 1001}, 400, "Invalid request: request (1001) exceeds text limit (1000)"),
        ],
    )
    def test_message_and_status(self, client, change, status, message):
        answer = translate(client, **change)
        assert (answer.status_code, answer.json()) == (status, {"error": message})

    @pytest.mark.parametrize(
        "body",
        [b"{", b"", b"[1]", b"nonsense", b'{"q": NaN}', b"\xff\xfe", b'{"q":' + b"[" * 5000, b'{"q":' + b"[" * 90_000],
        ids=["open", "empty", "array", "word", "nan", "encoding", "nested", "deeply nested"],
    )
    def test_malformed_json(self, client, body):
        answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON format"})

    def test_surrogates_and_control_characters(self, client):
        body = json.dumps({"q": "a \x00 \ud800 b\u2028", "source": "en", "target": "de"})
        answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200

    def test_invalid_utf8_in_a_form(self, client):
        answer = client.post(
            "/translate",
            content=b"q=%ff%fe&source=en&target=de",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert answer.status_code in (200, 400)

    def test_a_body_that_is_too_large(self, client):
        answer = translate(client, q="a " * 5_000_000)
        assert answer.status_code == 413 and "larger than" in answer.json()["error"]

    @pytest.mark.parametrize("path", ["/v1/translate", "/v1/caption", "/nothing"])
    def test_a_body_that_is_too_large_for_any_endpoint(self, client, path):
        def chunks():
            for _ in range(30):
                yield b"[" * 100_000

        for content in (b"[" * 3_000_000, chunks()):  # with its length stated, and without
            answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413 and "larger than" in answer.json()["error"]

    @pytest.mark.parametrize("headers", [{f"x-{number}": "1" for number in range(200)}, {"x": "1" * 70_000}])
    def test_too_many_headers(self, client, headers):
        answer = client.get("/health", headers=headers)
        assert answer.status_code == 431 and "headers" in answer.json()["error"]

    def test_what_is_not_http(self, server):
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            head, _, body = connection.recv(10_000).partition(b"\r\n\r\n")
        assert b" 400 " in head and json.loads(body) == {"error": "This is not a request in HTTP/1.1."}

    def test_other_methods_and_paths(self, client):
        assert client.get("/translate").status_code == 405
        assert client.post("/languages", json={}).status_code == 405
        assert client.get("/nothing").json() == {"error": "There is nothing at this address."}
        slashed = client.post("/translate/", json={})
        assert slashed.status_code == 404 and "location" not in slashed.headers  # never a redirect

    def test_a_request_that_is_cut_off_harms_nobody(self, server, client):
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nq=half")
        assert translate(client).json() == {"translatedText": SENTENCE}


class TestOtherEndpoints:
    def test_languages(self, client):
        german = {"code": "de", "name": "German", "targets": ["de"]}
        expected = [{"code": "en", "name": "English", "targets": ["en", "de"]}, german]
        assert client.get("/languages").json() == expected
        assert client.request("GET", "/languages", content=b"api_key=1").json() == expected  # a GET with a body

    def test_detect(self, client):
        found = client.post("/detect", data={"q": "the dog is in the house"}).json()
        assert found == [{"confidence": 100.0, "language": "en"}]
        assert client.post("/detect", data={"q": "12 34"}).json() == [{"confidence": 0.0, "language": "en"}]

    def test_suggest(self, client):
        body = {"q": "a", "s": "b", "source": "en", "target": "de"}
        assert client.post("/suggest", data=body).json() == {"success": True}
        assert client.post("/suggest", data=body | {"s": ""}).json() == {
            "error": "Invalid request: missing s parameter"
        }

    def test_settings_health_and_specification(self, client):
        settings = client.get("/frontend/settings").json()
        assert settings["language"]["source"] == {"code": "en", "name": "English"} and settings["keyRequired"] is False
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/health/ready").status_code == client.get("/health/live").status_code == 200
        assert client.get("/spec").json()["swagger"] == "2.0"

    def test_metrics(self, client):
        translate(client)
        client.get("/v1/models")
        client.post("/v1/inspect/attention", json={"input": "a b"})
        text = client.get("/metrics").text
        assert 'regard_requests_total{endpoint="/v1/models",status="200"}' in text
        assert 'endpoint="/v1/inspect/{analysis}"' in text
        assert 'regard_requests_total{endpoint="/translate",status="200"}' in text
        assert "regard_batch_size_bucket" in text and "regard_queue_depth" in text

    def test_pages_of_other_origins_may_translate_but_not_use_v1(self, client):
        foreign = {"Origin": "https://example.org"}
        answer = client.post("/translate", data={"q": "a", "source": "en", "target": "de"}, headers=foreign)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert client.options("/translate", headers=foreign).status_code == 204
        assert client.get("/v1/models", headers=foreign).status_code == 403
        assert client.get("/v1/models", headers={"Host": "attacker.example"}).status_code == 403
        assert client.get("/v1/models").status_code == 200


class TestOwnAPI:
    def test_translate_with_everything(self, client):
        body = {"texts": ["a b c"], "beam": 4, "count": 2, "extras": ["scores", "alignment"]}
        answer = client.post("/v1/translate", json=body).json()
        (output,) = answer["outputs"]
        assert output["text"] == "a b c" and output["alignment"] == [[0, 0], [1, 1], [2, 2]]
        assert len(output["others"]) == 1 and len(output["log_probs"]) == len(output["tokens"]) == 4

    def test_constraints(self, client):
        answer = client.post("/v1/translate", json={"texts": ["a b c"], "prefix": "c", "forbid": ["b"]}).json()
        text = answer["outputs"][0]["text"]
        assert text.startswith("c") and "b" not in text

    def test_same_as_the_command_line(self, client, transformer_run, tmp_path):
        source = tmp_path / "in.txt"
        source.write_text("a b c\nd e\n")
        options = ["--format", "jsonl", "--with", "scores,alignment,attention", "--beam", "3", "--n-best", "2"]
        printed = run_command("translate", str(transformer_run), str(source), *options)
        extras = ["scores", "alignment", "attention"]
        body = {"texts": ["a b c", "d e"], "beam": 3, "count": 2, "extras": extras}
        outputs = client.post("/v1/translate", json=body).json()["outputs"]
        for line, output in zip(printed.splitlines(), outputs, strict=True):
            local = json.loads(line)
            assert {name: local[name] for name in output} == output

    def test_score_and_inspect(self, client):
        outputs = client.post("/v1/score", json={"pairs": [["a b", "a b"], ["a b", "c d"]]}).json()["outputs"]
        assert outputs[0]["log_prob"] > outputs[1]["log_prob"]
        answer = client.post("/v1/inspect/attention", json={"input": "a b c"})
        assert answer.status_code == 200 and answer.json()["outputs"][0]

    @pytest.mark.parametrize(
        "path, body",
        [
            ("/v1/translate", {"texts": []}),
            ("/v1/translate", {"texts": ["a"], "beam": 0}),
            ("/v1/translate", {"texts": ["a"], "unknown": 1}),
            ("/v1/translate", {"texts": "a"}),
            ("/v1/translate", {"texts": ["a"], "count": 9, "beam": 2}),
            ("/v1/inspect/nothing", {"input": "a b"}),
            ("/v1/inspect/attention", {"input": "a b", "options": {"nonsense": 1}}),
            ("/v1/predict", {"inputs": ["a"]}),
        ],
    )
    def test_bad_requests_are_400_with_a_sentence(self, client, path, body):
        answer = client.post(path, json=body)
        assert answer.status_code == 400 and answer.json()["error"]

    @pytest.mark.parametrize("words", [3, [3], "3"])
    def test_words_that_are_not_two_numbers_are_refused_in_terms_of_json(self, client, words):
        answer = client.post("/v1/translate", json={"texts": ["a"], "words": words})
        assert answer.status_code == 400 and "words: Give a list of two numbers" in answer.json()["error"]
        answer = client.post("/v1/score", json={"pairs": [words]})
        assert answer.status_code == 400 and "tuple" not in answer.json()["error"]

    def test_an_error_of_an_analysis_names_the_model_instead_of_a_path_of_the_server(self, transformer_run, tmp_path):
        shutil.copytree(transformer_run, tmp_path / "run", ignore=shutil.ignore_patterns("index"))
        key = {"name": "copy", "version": 0, "run": str(tmp_path / "run"), "engine": "native"}
        request = {"model": key, "task": "inspect", "inputs": ["a b"], "options": {"analysis": "nearest"}}
        reply = Worker().answer(request, lambda part: None)
        assert reply["fault"] == "request"
        assert reply["error"].startswith("copy has no index of its training examples. Build it once")
        assert "/" not in reply["error"]

    def test_unknown_models(self, client):
        answer = client.post("/v1/translate", json={"texts": ["a"], "model": "x"})
        assert answer.status_code == 404 and "transformer" in answer.json()["error"]

    def test_the_openapi_document_has_every_endpoint(self, client):
        paths = set(client.get("/v1/openapi.json").json()["paths"])
        assert {"/v1/translate", "/v1/predict", "/v1/score", "/v1/inspect/{analysis}", "/v1/models"} <= paths
        assert not any(path.startswith("/translate") for path in paths)


def rounded(data: object) -> object:
    """The data as JSON gives it, with numbers to six digits: batches of other sizes differ in the last ones."""
    return json.loads(json.dumps(data), parse_float=lambda text: f"{float(text):.5f}")


class TestEveryTask:
    """One server with stored runs of all tasks; answers are those of `regard.load`."""

    RUNS = ("classes", "number", "tags", "pairs", "pairs-attended", "masked", "language", "captions", "questions")

    @pytest.fixture(scope="class")
    @classmethod
    def several(cls, tmp_path_factory):
        with running_server(tmp_path_factory.mktemp("several"), *(STORED / name for name in cls.RUNS)) as server:
            yield server

    @pytest.mark.parametrize("name", ["classes", "number", "tags", "pairs", "pairs-attended", "masked"])
    def test_predict(self, several, name):
        import regard

        inputs = json.loads((STORED / f"{name}.json").read_text())["input"].splitlines()[:3]
        asked = [text.split("\t") if "\t" in text else text for text in inputs]
        expected = regard.load(STORED / name)([tuple(text) if isinstance(text, list) else text for text in asked])
        with several.client() as client:
            outputs = client.post("/v1/predict", json={"inputs": asked, "model": name}).json()["outputs"]
        assert rounded(outputs) == rounded([{**result.facts, "line": result.line} for result in expected])

    def test_generate_and_stream(self, several):
        with several.client() as client:
            body = {"prompts": ["a b"], "beam": 1}
            whole = client.post("/v1/generate", json=body).json()["outputs"][0]["text"]
            events = client.post("/v1/generate", json={"prompts": ["a b"], "stream": True}).text.split("\n\n")
            parts = [json.loads(event.removeprefix("data: "))["text"] for event in events if event.startswith("data")]
            (done,) = [event for event in events if event.startswith("event: done")]
            text = json.loads(done.partition("data: ")[2])["text"]
            assert "".join(parts).startswith(text) and len(parts) > 1  # a loop is cut off only in the end
            assert whole.endswith(text)
            refused = client.post("/v1/generate", json={"prompts": ["a", "b"], "stream": True})
            assert refused.status_code == 400

    def test_caption_of_an_uploaded_image(self, several, tmp_path):
        from PIL import Image

        import regard

        path = tmp_path / "image.png"
        Image.new("RGB", (32, 32), "red").save(path)
        with several.client() as client:
            answer = client.post("/v1/caption", files={"file": ("../../x.png", path.read_bytes())})
            assert answer.json()["outputs"][0]["text"] == regard.load(STORED / "captions")(path).text
            broken = client.post("/v1/caption", files={"file": ("x.png", b"no image")})
            assert broken.status_code == 400 and broken.json()["error"].startswith("The file is not an image")
            for fields in ({"beam": "0"}, {"bim": "2"}):
                refused = client.post("/v1/caption", files={"file": ("x.png", path.read_bytes())}, data=fields)
                assert refused.status_code == 400 and next(iter(fields)) in refused.json()["error"]
            beam = client.post("/v1/caption", files={"file": ("x.png", path.read_bytes())}, data={"beam": "3"})
            assert beam.json()["outputs"][0]["text"] == regard.load(STORED / "captions")(path, beam=3).text

    def test_questions_about_an_uploaded_image(self, several, tmp_path):
        from PIL import Image

        import regard

        path = tmp_path / "image.png"
        Image.new("RGB", (32, 32), "red").save(path)
        file, asked = base64.b64encode(path.read_bytes()).decode(), ["what colour is the circle ?", "is there a star ?"]
        expected = regard.load(STORED / "questions")([(path, question) for question in asked])
        with several.client() as client:
            body = {"inputs": asked, "file": file, "model": "questions"}
            outputs = client.post("/v1/predict", json=body).json()["outputs"]
            assert rounded(outputs) == rounded([{**result.facts, "line": result.line} for result in expected])
            for wrong in (
                {**body, "file": "?"},
                {**body, "file": "aGk="},
                {**body, "model": "classes"},
                {**body, "inputs": []},
            ):
                answer = client.post("/v1/predict", json=wrong)
                assert answer.status_code == 400 and "upload" not in answer.json()["error"]
            assert client.post("/v1/predict", json={"model": "classes"}).status_code == 400
            form = client.post("/v1/predict", data={"model": "questions"}, files={"file": ("x.png", b"")})
            assert (form.status_code, form.json()) == (400, {"error": "Invalid request: Invalid JSON format"})

    def test_texts_must_be_texts_where_a_model_reads_no_records(self, server):
        with server.client() as client:
            answer = client.post("/v1/translate", json={"texts": [{"name": "Ann"}]})
        assert answer.status_code == 400 and "list of strings" in answer.json()["error"]

    def test_a_verb_of_another_task_is_refused(self, several):
        with several.client() as client:
            answer = client.post("/v1/translate", json={"texts": ["a"], "model": "classes"})
            assert answer.status_code == 400 and "/v1/predict" in answer.json()["error"]
            assert client.post("/translate", data={"q": "a", "source": "en", "target": "de"}).status_code == 400
            assert client.get("/languages").json() == []

    def test_the_docs_page_lists_every_endpoint_and_loads_nothing(self, several):
        with several.client() as client:
            page = client.get("/docs").text
        assert "/v1/translate" in page and "/detect" in page and "classes: classification" in page
        assert "http://" not in page and "<script" not in page


def test_no_traceback_reaches_the_log(server: RunningServer) -> None:
    """Runs last in this module: whatever was sent above, nothing failed inside the server."""
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_requests_get_no_500_and_no_traceback(server, seed):
    """`python -m tests.run_request_fuzzer URL` sends more."""
    counts, problems = fuzz(server.url, 200, seed)
    assert not problems
    assert sum(number for name, number in counts.items() if name.endswith(" 200")) > 10
    assert "Traceback" not in server.log.read_text()
