"""Inputs and surroundings that went wrong once: pipes, devices, two texts, process groups."""

import gzip
import json
import os
import threading

import pytest
import torch

import regard.data.lines
from regard.cli import main
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.text.joined import Joined
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.specials import SEP, SPECIALS
from regard.text.wordpiece import Folding, WordPieceTokenizer
from regard.training.ranks import Ranks
from tests.marian import spm


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_two_texts_are_read_by_the_tokenizer_that_they_have(tmp_path):
    model = tmp_path / "source.spm"
    model.write_bytes(spm("source"))
    pieces = [*SPECIALS, "▁play", "ing", "▁a", "▁(", "▁)", "▁b"]
    for one in (SentencePieceTokenizer.of_model(model), WordPieceTokenizer.of_vocabulary(pieces, Folding())):
        two = Joined(one)
        left, right = "playing (a)", "b a"
        encoded, first, second = two.encode(f"{left}\t{right}"), one.encode(left), one.encode(right)
        assert encoded.ids == [*first.ids, SEP, *second.ids] == two.encode_batch([f"{left}\t{right}"])[0]
        words = max(first.words) + 1
        assert encoded.words == [*first.words, words, *(words + 1 + word for word in second.words)]
        assert two.decode(first.ids) == one.decode(first.ids) and two.normalise(left) == one.normalise(left)
        assert (two.size, two.kind, two.vocabulary, two.fingerprint) == (
            one.size, one.kind, one.vocabulary, one.fingerprint,
        )  # fmt: skip
        two.save(tmp_path / "two.json")
        assert type(two).load(tmp_path / "two.json").encode_batch([left]) == one.encode_batch([left])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_is_read_once_packed_or_not(pipe, pack):
    content = pack(b"first\nsecond\n" * 20_000)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert list(read_lines(pipe)) == ["first", "second"] * 20_000
    writer.join()


def test_an_empty_pipe_is_empty(pipe):
    writer = threading.Thread(target=pipe.write_bytes, args=(b"",))
    writer.start()
    assert list(read_lines(pipe)) == []
    writer.join()


def test_a_pipe_that_nobody_writes_to_is_told(pipe, monkeypatch):
    monkeypatch.setattr(regard.data.lines, "PATIENCE", 0.2)
    told = []

    def read():
        try:
            list(read_lines(pipe))
        except RegardError as error:
            told.append(str(error))

    reader = threading.Thread(target=read, daemon=True)  # a reader that waits for ever fails the test, and ends with it
    reader.start()
    reader.join(10)
    assert told and "no program writes" in told[0]


def test_a_device_without_end_is_told_and_the_empty_one_is_empty():
    with pytest.raises(RegardError, match="may never end"):
        next(read_lines("/dev/zero"))
    assert list(read_lines("/dev/null")) == []


def test_a_line_without_end_is_told(pipe, monkeypatch):
    monkeypatch.setattr(regard.data.lines, "MOST_PASSED_OVER", 1 << 23)

    def endless():
        with pipe.open("wb") as file:
            try:
                while True:
                    file.write(b"x" * (1 << 16))
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=endless)
    writer.start()
    with pytest.raises(RegardError, match="not a line of text"):
        list(read_lines(pipe))
    writer.join(10)
    assert not writer.is_alive()


@pytest.mark.parametrize("part", ["train", "validation", "test"])
@pytest.mark.parametrize("kind", ["pipe", "zero", "substituted"])
def test_a_corpus_that_can_be_read_once_is_refused(tmp_path, pipe, part, kind, capsys):
    """`<(cat a.tsv)` of a shell is the name of an open pipe, such as /dev/fd/63."""
    (tmp_path / "a.tsv").write_text("a\tb\n" * 50)
    read, write = os.pipe()
    os.write(write, (tmp_path / "a.tsv").read_bytes())
    os.close(write)
    corpora = {name: {"tsv": str(tmp_path / "a.tsv")} for name in ("train", "validation", "test")}
    corpora[part]["tsv"] = {"pipe": str(pipe), "zero": "/dev/zero", "substituted": f"/dev/fd/{read}"}[kind]
    (tmp_path / "my.yaml").write_text(json.dumps({"data": corpora}))
    try:
        assert main(["train", f"{tmp_path}/my.yaml", "--run", f"{tmp_path}/run"]) == 1
    finally:
        os.close(read)
    assert "read more than once" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("text.tokenizer.size=4000", "vocabulary"),
        ("model.encoder.steps=3", "here are"),
        ("steps=3", "training.steps"),
        ("training.beam=3", "decoding.beam"),
        ("training.learning_rate=3", "training.optimizer.learning_rate"),
    ],
)
def test_a_setting_is_looked_for_in_its_own_section_first(setting, told, capsys):
    assert main(["train", "recipes/copy.yaml", setting]) == 2
    error = capsys.readouterr().err
    assert told in error and "data.train.size" not in error


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "cannot connect"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "1"}, "cannot connect"),
    ],
)
def test_processes_that_cannot_meet_are_told_with_a_remedy(monkeypatch, environment, told):
    for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("REGARD_TIMEOUT", "2")
    with pytest.raises(RegardError, match=told) as error, Ranks.from_environment().together(torch.device("cpu")):
        pass
    assert "torchrun" in str(error.value)


@pytest.mark.parametrize("values", [("2", "2"), ("-1", "2"), ("5", "2"), ("0", "0")])
def test_ranks_that_make_no_sense_are_refused(monkeypatch, values):
    monkeypatch.setenv("RANK", values[0])
    monkeypatch.setenv("WORLD_SIZE", values[1])
    with pytest.raises(UsageError, match="torchrun"):
        Ranks.from_environment()


@pytest.mark.parametrize("call", ["wait", "total", "add_up", "gather"])
def test_a_process_that_is_gone_is_no_bug(monkeypatch, call):
    def gone(*_, **__):
        raise torch.distributed.DistBackendError("Connection closed by peer [127.0.0.1]:1234")

    for name in ("barrier", "all_reduce", "all_gather"):
        monkeypatch.setattr(torch.distributed, name, gone)
    ranks = Ranks(rank=0, world_size=2)
    arguments = {"wait": (), "total": ([1.0],), "add_up": ([torch.ones(2)],), "gather": ({"a": 1},)}
    with pytest.raises(RegardError, match="--resume"):
        getattr(ranks, call)(*arguments[call])


def test_evaluate_reads_the_weights_of_a_language_model_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.txt").write_text("a b c\nb c a\nc a b\n" * 40)
    settings = {
        "data": {"train": {"text": str(tmp_path / "text.txt")}, "held_out": 5},
        "task": {"kind": "language-model"},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 16, "decoder": {"kind": "rnn"}},
        "training": {"steps": 3, "batch_tokens": 64},
    }
    (tmp_path / "my.yaml").write_text(json.dumps(settings))
    assert main(["train", str(tmp_path / "my.yaml"), "--run", str(tmp_path / "run")]) == 0
    loads = []
    load = Run.load_model
    monkeypatch.setattr(Run, "load_model", lambda self, *given: loads.append(1) or load(self, *given))
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert len(loads) == 1 and "perplexity" in capsys.readouterr().out
