"""`regard data`: finding corpora on this machine, and downloading them from a server that may fail in every way."""

import gzip
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from regard.cli import main
from regard.config import corpora
from regard.config.corpora import CorpusFile, KnownCorpus, known_corpora, locate_file
from regard.data import download
from regard.foundation.errors import RegardError

CONTENT = b"".join(b"line %d of a corpus\n" % number for number in range(40_000))


class Server(http.server.ThreadingHTTPServer):
    """Serves `files`; knows ranges, and can be told to misbehave."""

    files: dict[str, bytes]
    ranges = True
    cut_after: int | None = None
    """Close the connection after so many bytes of the body, once."""
    errors = 0
    """How many requests are answered with 503."""
    log: list[tuple[str, str | None, int]]

    def handle_error(self, request, client_address) -> None:
        """A client that goes away is no event."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args) -> None: ...

    def do_GET(self) -> None:
        server = self.server
        content = server.files.get(self.path)
        asked = self.headers.get("Range")
        if server.errors:
            server.errors -= 1
            return self.answer(503, b"", asked)
        if content is None:
            return self.answer(404, b"", asked)
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        start = int(re.fullmatch(r"bytes=(\d+)-", asked).group(1)) if asked and server.ranges else 0
        if start and self.headers.get("If-Range", tag) != tag:
            start = 0
        if start and start >= len(content):
            return self.answer(416, b"", asked)
        headers = {"ETag": tag}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return self.answer(206 if start else 200, content[start:], asked, headers)

    def answer(self, status: int, body: bytes, asked: str | None, headers: dict[str, str] | None = None) -> None:
        self.server.log.append((self.path, asked, status))
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cut_after is not None and len(body) > self.server.cut_after:
            body, self.server.cut_after = body[: self.server.cut_after], None
            self.close_connection = True
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.files, found.log = {"/train.txt.gz": gzip.compress(CONTENT), "/test.txt": CONTENT[:5000]}, []
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "PAUSE", 0.01)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def toy(server: Server, monkeypatch: pytest.MonkeyPatch) -> KnownCorpus:
    """A corpus on the local server, alone in the registry."""
    base = f"http://127.0.0.1:{server.server_port}"
    files = {
        "train.txt": CorpusFile("train.txt", len(CONTENT), f"{base}/train.txt.gz", "gzip", sha(CONTENT)),
        "test.txt": CorpusFile("test.txt", 5000, f"{base}/test.txt", None, sha(CONTENT[:5000])),
    }
    sections = {"all": {"train": {"text": "train.txt"}}, "small": {"train": {"text": "test.txt"}}}
    corpus = KnownCorpus("toy", "A toy", "http://toy.example", "TOY LICENCE 1.0", "Toy (2026)", files, sections)
    monkeypatch.setattr(corpora, "known_corpora", lambda: {"toy": corpus})
    return corpus


def changed(corpus: KnownCorpus, monkeypatch: pytest.MonkeyPatch, **facts: object) -> KnownCorpus:
    """The corpus with other facts about its file `train.txt`, in the registry too."""
    file = replace(corpus.files["train.txt"], **facts)
    other = replace(corpus, files={**corpus.files, "train.txt": file})
    monkeypatch.setattr(corpora, "known_corpora", lambda: {"toy": other})
    return other


def cached(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "regard" / "data" / "toy"


# Getting


def test_get_shows_the_licence_first_and_needs_yes_where_nobody_can_answer(toy, server, tmp_path, capsys) -> None:
    assert main(["data", "get", "toy"]) == 2
    said = capsys.readouterr().err
    assert "TOY LICENCE 1.0" in said and "Toy (2026)" in said and "--yes" in said
    assert server.log == []  # not a byte was asked for
    assert not cached(tmp_path).exists()


def test_get_downloads_unpacks_and_checks(toy, server, tmp_path, capsys) -> None:
    assert main(["data", "get", "toy", "--yes"]) == 0
    said = capsys.readouterr()
    assert "TOY LICENCE 1.0" in said.err
    assert str(cached(tmp_path)) in said.out
    assert (cached(tmp_path) / "train.txt").read_bytes() == CONTENT
    assert (cached(tmp_path) / "test.txt").read_bytes() == CONTENT[:5000]
    assert sorted(file.name for file in cached(tmp_path).iterdir()) == ["SOURCE.md", "test.txt", "train.txt"]
    requests = len(server.log)
    assert main(["data", "get", "toy"]) == 0  # there already: no question, no request
    assert len(server.log) == requests


def test_get_of_a_part_downloads_only_its_files(toy, server, tmp_path) -> None:
    assert main(["data", "get", "toy/small", "-y"]) == 0
    assert [path for path, _, _ in server.log] == ["/test.txt"]
    assert not (cached(tmp_path) / "train.txt").exists()


def test_a_connection_that_breaks_is_resumed(toy, server, tmp_path) -> None:
    server.cut_after = 30_000
    assert main(["data", "get", "toy", "--yes"]) == 0
    assert (cached(tmp_path) / "train.txt").read_bytes() == CONTENT
    assert [status for path, _, status in server.log if path == "/train.txt.gz"] == [200, 206]
    assert server.log[1][1] == "bytes=30000-"


def test_a_part_of_an_earlier_command_is_resumed(toy, server, tmp_path) -> None:
    packed = server.files["/train.txt.gz"]
    cached(tmp_path).mkdir(parents=True)
    (cached(tmp_path) / "train.txt.part").write_bytes(packed[:1000])
    assert main(["data", "get", "toy", "--yes"]) == 0
    assert server.log[0] == ("/train.txt.gz", "bytes=1000-", 206)
    assert (cached(tmp_path) / "train.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"x" * 1000, b"x" * 10_000_000, b""])
def test_a_wrong_part_is_given_up_and_the_file_downloaded_whole(toy, server, tmp_path, part: bytes) -> None:
    cached(tmp_path).mkdir(parents=True)
    (cached(tmp_path) / "train.txt.part").write_bytes(part)
    assert main(["data", "get", "toy", "--yes"]) == 0
    assert (cached(tmp_path) / "train.txt").read_bytes() == CONTENT


def test_a_server_without_ranges_sends_the_whole_file(toy, server, tmp_path) -> None:
    server.ranges, server.cut_after = False, 30_000
    assert main(["data", "get", "toy", "--yes"]) == 0
    assert [status for path, _, status in server.log if path == "/train.txt.gz"] == [200, 200]
    assert (cached(tmp_path) / "train.txt").read_bytes() == CONTENT


def test_without_a_checksum_a_file_that_changed_meanwhile_is_not_pieced_together(
    toy, server, tmp_path, monkeypatch
) -> None:
    other = CONTENT.replace(b"corpus", b"CORPUS")
    changed(toy, monkeypatch, sha256=None)
    packed = server.files["/train.txt.gz"]
    cached(tmp_path).mkdir(parents=True)
    (cached(tmp_path) / "train.txt.part").write_bytes(packed[:1000])
    (cached(tmp_path) / "train.txt.part.tag").write_text(f'"{hashlib.md5(packed).hexdigest()}"')
    server.files["/train.txt.gz"] = gzip.compress(other)
    assert main(["data", "get", "toy/all", "--yes"]) == 0
    assert server.log[0] == ("/train.txt.gz", "bytes=1000-", 200)
    assert (cached(tmp_path) / "train.txt").read_bytes() == other


def test_a_server_that_is_busy_is_asked_again(toy, server, tmp_path) -> None:
    server.errors = 2
    assert main(["data", "get", "toy", "--yes"]) == 0
    assert [status for _, _, status in server.log[:3]] == [503, 503, 200]


@pytest.mark.parametrize(
    ("served", "complaint"),
    [
        (gzip.compress(CONTENT[:-1] + b"!"), "checksum"),
        (gzip.compress(CONTENT[:-10]), "bytes, not"),
        (gzip.compress(CONTENT * 2), "more than"),
        (gzip.compress(CONTENT)[:-100], "unpacked"),
        (b"<html>Sign in to the hotel network</html>", "unpacked"),
    ],
)
def test_other_content_is_refused_and_not_kept(toy, server, tmp_path, capsys, served: bytes, complaint: str) -> None:
    server.files["/train.txt.gz"] = served
    assert main(["data", "get", "toy", "--yes"]) == 1
    said = capsys.readouterr().err
    assert complaint in said and "REGARD_DATA" in said and "Traceback" not in said
    assert list(cached(tmp_path).iterdir()) == []


def test_an_address_that_is_gone_is_told_at_once(toy, server, tmp_path, capsys) -> None:
    del server.files["/train.txt.gz"]
    assert main(["data", "get", "toy", "--yes"]) == 1
    assert "404" in capsys.readouterr().err
    assert len(server.log) == 1


def test_no_network_is_told_with_what_to_do(toy, server, tmp_path, capsys, monkeypatch) -> None:
    changed(toy, monkeypatch, url="http://127.0.0.1:1/train.txt.gz")  # nobody listens there
    assert main(["data", "get", "toy", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:1" in said and "network" in said and "REGARD_DATA" in said


def test_what_arrived_before_the_network_went_is_kept(toy, server, tmp_path, capsys, monkeypatch) -> None:
    cached(tmp_path).mkdir(parents=True)
    (cached(tmp_path) / "train.txt.part").write_bytes(server.files["/train.txt.gz"][:1234])
    changed(toy, monkeypatch, url="http://127.0.0.1:1/train.txt.gz")
    assert main(["data", "get", "toy", "--yes"]) == 1
    assert "1,234 bytes" in capsys.readouterr().err
    assert (cached(tmp_path) / "train.txt.part").stat().st_size == 1234


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which only Linux has")
def test_a_full_disk_is_told(toy, tmp_path, capsys) -> None:
    cached(tmp_path).mkdir(parents=True)
    (cached(tmp_path) / "train.txt.part").symlink_to("/dev/full")
    assert main(["data", "get", "toy", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "is full" in said and "XDG_CACHE_HOME" in said
    assert not (cached(tmp_path) / "train.txt").exists()


def test_what_cannot_fit_is_not_begun(toy, server, tmp_path, capsys, monkeypatch) -> None:
    changed(toy, monkeypatch, size=1 << 60)
    assert main(["data", "get", "toy", "--yes"]) == 1
    assert "is full" in capsys.readouterr().err
    assert server.log == []


def test_a_cache_that_cannot_be_made_is_told(toy, tmp_path, capsys, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert main(["data", "get", "toy", "--yes"]) == 1
    assert "cannot be written" in capsys.readouterr().err


# Finding


def test_regard_data_comes_before_the_cache_and_gz_will_do(toy, tmp_path, capsys, monkeypatch) -> None:
    own = tmp_path / "own"
    (own / "toy").mkdir(parents=True)
    (own / "toy" / "train.txt.gz").write_bytes(gzip.compress(CONTENT))
    cached(tmp_path).mkdir(parents=True)
    for name in ("train.txt", "test.txt"):
        (cached(tmp_path) / name).write_bytes(b"")
    monkeypatch.setenv("REGARD_DATA", str(own))
    assert locate_file(toy, toy.files["train.txt"]) == own / "toy" / "train.txt.gz"
    assert locate_file(toy, toy.files["test.txt"]) == cached(tmp_path) / "test.txt"
    assert main(["data", "path", "toy"]) == 0
    assert capsys.readouterr().out == f"{own / 'toy'}\n"


def test_path_of_what_is_not_here_names_the_command_that_gets_it(toy, capsys) -> None:
    assert main(["data", "path", "toy/small"]) == 1
    assert "regard data get toy/small" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["multi31k", "multi30k/en-xx", "", "../etc", "multi30k/../sick"])
@pytest.mark.parametrize("verb", ["get", "path", "list"])
def test_unknown_names_are_refused(name: str, verb: str, capsys) -> None:
    assert main(["data", verb, name]) == 2
    assert "not a known corpus" in capsys.readouterr().err


def test_a_wrong_regard_data_is_refused(monkeypatch, capsys) -> None:
    monkeypatch.setenv("REGARD_DATA", "/no/such/place")
    assert main(["data", "list"]) == 2
    assert "/no/such/place" in capsys.readouterr().err


def test_what_has_no_address_names_its_page(capsys) -> None:
    assert main(["data", "get", "tatoeba", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "manythings.org" in said and "REGARD_DATA" in said


# The registry


def test_list_names_every_corpus(capsys) -> None:
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(known_corpora())
    assert main(["data", "list", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert all(one["licence"] and one["citation"] and one["page"].startswith("https://") for one in facts)


def test_every_file_has_a_checksum_where_it_has_an_address() -> None:
    for corpus in known_corpora().values():
        for file in corpus.files.values():
            assert file.size > 0
            assert (file.sha256 is not None) == (file.url is not None)
            assert file.url is None or re.fullmatch(r"https://raw\.githubusercontent\.com/\S+", file.url)
        for part in corpus.sections:
            assert corpus.files_of(part)


SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize("name", list(known_corpora()))
def test_the_registry_agrees_with_the_files_at_hand(name: str, monkeypatch) -> None:
    monkeypatch.setenv("REGARD_DATA", str(SHARED))
    corpus = known_corpora()[name]
    for file in corpus.files.values():
        place = locate_file(corpus, file)
        assert place is not None, file.path
        content = gzip.decompress(place.read_bytes()) if place.suffix == ".gz" else place.read_bytes()
        assert len(content) == file.size
        assert file.sha256 in (None, sha(content))


def test_downloading_without_an_address_is_refused(tmp_path) -> None:
    with pytest.raises(RegardError, match="no public address"):
        download.fetch_file(CorpusFile("x", 1), tmp_path / "x")
