"""What a user types, from nothing to a translation."""

import contextlib
import io
import subprocess
import sys
from unittest import mock

import pytest

from regard.cli import main
from regard.tasks.loaded import load_run


def typed(*arguments, text=b"", where="."):
    """Run the command in this process, and return what a process would."""
    command = ["regard", *map(str, arguments)]
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (text, b"", b"")]
    with (
        mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
        contextlib.chdir(where),
    ):
        try:
            code = main(command[1:])
        except SystemExit as ended:
            code = int(ended.code or 0)
        for stream in streams[1:]:
            stream.flush()
    return subprocess.CompletedProcess(command, code, *(stream.buffer.getvalue() for stream in streams[1:]))


def test_a_pipe_goes_in_and_a_pipe_comes_out(copy_run):
    command = [sys.executable, "-m", "regard", "translate", copy_run]
    done = subprocess.run(command, input=b"a b c\n\nc a\n", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == typed("translate", copy_run, text=b"a b c\n\nc a\n").stdout
    lines = done.stdout.decode().split("\n")
    assert len(lines) == 4 and lines[1] == "" and lines[3] == ""
    assert lines[0] == "a b c"


def test_the_command_and_the_library_say_the_same(copy_run):
    texts = ["a b c d", "f e", "b", "c c c a a"]
    done = typed("translate", copy_run, text="\n".join(texts).encode())
    assert done.stdout.decode().splitlines() == load_run(copy_run).translate(texts)


def test_one_text_gives_one_text_and_a_list_a_list_whatever_the_company(copy_run):
    model = load_run(copy_run)
    texts = ["a b c d", "", "f e", "b", "f e", "   "]
    together = model.translate(texts)
    assert together == [model.translate(text) for text in texts]
    assert together[1] == together[5] == "" and together[2] == together[4]
    assert model.translate(texts[::-1]) == together[::-1]
    assert model.translate([]) == []


def test_training_then_resuming_then_listing(tmp_path):
    settings = (
        "data: {train: {generate: copy, size: 300, symbols: 5, max_length: 4}}\n"
        "text: {tokenizer: {kind: words}}\n"
        "model: {width: 16, encoder: {kind: rnn}, decoder: {kind: rnn}}\n"
        "training: {steps: 6, batch_tokens: 256}\n"
    )
    (tmp_path / "mine.yaml").write_text(settings)
    done = typed("train", "mine.yaml", "training.steps=4", "--run", "runs/mine", where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Finished at step 4" in done.stdout and b"Traceback" not in done.stderr
    again = typed("train", "mine.yaml", "--run", "runs/mine", where=tmp_path)
    assert again.returncode == 2 and b"--resume" in again.stderr
    longer = typed("train", "--resume", "runs/mine", "training.steps=8", where=tmp_path)
    assert longer.returncode == 0 and b"Finished at step 8" in longer.stdout, longer.stderr
    listed = typed("runs", where=tmp_path)
    assert "rnn → rnn, attention (bilinear)" in listed.stdout.decode()
    for name in (
        "config.yaml",
        "model.safetensors",
        "metrics.jsonl",
        "README.md",
        "run.json",
        "tokenizers/shared.json",
    ):
        assert (tmp_path / "runs/mine" / name).is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["translate", "nowhere"], 2, "nowhere does not exist"),
        (["train"], 2, "Name a configuration"),
        (["train", "absent.yaml"], 2, "absent.yaml does not exist"),
        (["train", "--resume", "absent"], 2, "absent does not exist"),
        (["fly"], 2, "fly"),
    ],
)
def test_a_wrong_command_is_told_in_a_sentence(tmp_path, arguments, code, words):
    done = typed(*arguments, where=tmp_path)
    said = done.stderr.decode()
    assert done.returncode == code and words in said
    assert "Traceback" not in said and len(said.splitlines()) <= 3


def test_a_tokenizer_of_another_run_is_refused(copy_run, tmp_path):
    import shutil

    other = tmp_path / "other"
    shutil.copytree(copy_run, other)
    path = other / "tokenizers" / "shared.json"
    path.write_text(path.read_text().replace('"a"', '"z"').replace('"▁a"', '"▁z"'))
    done = typed("translate", other, text=b"a\n")
    assert done.returncode == 1 and b"was changed after the run was saved" in done.stderr
    assert typed("runs", other, "--accept-changes").returncode == 0
    done = typed("translate", other, text=b"a\n")
    assert done.returncode == 1 and b"does not belong" in done.stderr


def test_a_run_from_a_newer_regard_is_refused(copy_run, tmp_path):
    import json
    import shutil

    other = tmp_path / "other"
    shutil.copytree(copy_run, other)
    info = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(info | {"format": 99}))
    done = typed("translate", other, text=b"a\n")
    assert done.returncode == 1 and b"Upgrade" in done.stderr


def test_what_a_trained_run_cannot_change_is_refused(copy_run):
    done = typed("translate", copy_run, "model.width=3", text=b"a\n")
    assert done.returncode == 2 and b"cannot be changed" in done.stderr


def test_a_file_is_not_written_over_while_it_is_read(copy_run, tmp_path):
    (tmp_path / "in.txt").write_text("a b\n")
    done = typed("translate", copy_run, "in.txt", "-o", "in.txt", where=tmp_path)
    assert done.returncode == 2 and (tmp_path / "in.txt").read_text() == "a b\n"


def test_a_mark_at_the_start_of_a_stream_is_no_text(copy_run):
    done = typed("translate", copy_run, text=b"\xef\xbb\xbfa b c\n")
    assert done.stdout == b"a b c\n"


@pytest.mark.parametrize("options", [["--beam", "100000"], ["--length-penalty", "1e308"], ["decoding.max_ratio=1e308"]])
def test_numbers_out_of_reach_are_refused(copy_run, options):
    done = typed("translate", copy_run, *options, text=b"a\n")
    assert done.returncode == 2 and b"bug" not in done.stderr


def test_a_finished_run_does_not_pretend_to_change(copy_run):
    done = typed("train", "--resume", copy_run, "model.width=3")
    assert done.returncode == 2 and b"model.width cannot change" in done.stderr
    assert b"is finished" in typed("train", "--resume", copy_run).stdout
