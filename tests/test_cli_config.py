"""What a user types at `regard` and `regard config`, and how each command ends."""

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import regard
import regard.cli.verbs
from regard.cli import main
from regard.config.loading import load
from regard.config.presets import PRESETS
from regard.foundation.errors import RegardError, UsageError

GOOD = "preset: bahdanau\ndata:\n  train: {generate: copy}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(GOOD)
    return path


def typed(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regard", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


# Showing


def test_show_prints_what_loads_as_the_same(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", str(file), "model.width=64"]) == 0
    shown = tmp_path / "shown.yaml"
    shown.write_text(capsys.readouterr().out)
    assert load(shown) == load(file, ["model.width=64"])


def test_show_speaks_json_when_asked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--json", str(file), "training.steps=7"]) == 0
    assert json.loads(capsys.readouterr().out) == load(file, ["training.steps=7"]).model_dump(mode="json")


def test_show_is_plain_in_a_pipe(file: Path) -> None:
    result = typed("config", "show", str(file))
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert result.stdout.startswith("data:\n")


def test_what_is_printed_is_utf8_in_any_locale(file: Path) -> None:
    result = typed("config", "show", str(file), "data.train={tsv: é}", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "- é\n" in result.stdout


def test_schema_is_a_json_schema_with_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "preset" in schema["properties"]
    assert schema["properties"]["data"]["description"] == "Corpora and cleaning."


def test_presets_are_listed_in_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PRESETS)
    assert len({line.index(PRESETS[line.split()[0]].description) for line in lines}) == 1


@pytest.mark.parametrize("name", PRESETS)
def test_a_printed_preset_is_a_file_to_start_from(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "presets", name]) == 0
    written = tmp_path / "mine.yaml"
    written.write_text(capsys.readouterr().out + "\ndata: {train: {generate: copy}}\n")
    file = tmp_path / "preset.yaml"
    file.write_text(f"preset: {name}\ndata: {{train: {{generate: copy}}}}\n")
    assert load(written) == load(file)


# Ending


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config", "show", "nowhere.yaml"], "error: nowhere.yaml does not exist.\n"),
        (["config", "presets", "lung"], "error: There is no preset lung; did you mean luong?\n"),
        (["config", "show"], "error: Missing argument"),
        (["config", "show", "--jsn", "x"], "error: No such option"),
        (["cofig"], "error: No such command 'cofig'"),
        (["--foo"], "Try `regard --help`."),
        ([], "Usage: regard"),
        (["config"], "Usage: regard config"),
    ],
)
def test_wrong_usage_is_told_and_exits_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_wrong_file_is_told_in_its_own_words(file: Path) -> None:
    file.write_text(GOOD + "model: {encoder: {laiers: 2, '[bold]x': 1}}\n")
    result = typed("config", "show", str(file))
    assert (result.returncode, result.stdout) == (2, "")
    first, second = result.stderr.splitlines()
    assert first == f"error: {file}:4: model.encoder.laiers is not a setting; did you mean layers?"
    assert second.startswith(f"{file}:4: model.encoder.[bold]x is not a setting")


def test_version_and_help_say_what_there_is() -> None:
    assert typed("--version").stdout == f"regard {regard.__version__}\n"
    help = typed("--help")
    assert help.returncode == 0
    assert "regard train my.yaml model.encoder.kind=rnn" in help.stdout
    assert "config" in help.stdout


def test_help_is_quick_and_needs_no_torch() -> None:
    code = "import sys; from regard.cli import main; main(['--help']); assert 'torch' not in sys.modules"
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(times) < 0.5  # seconds of a core, however busy the machine is


def test_a_reader_that_has_left_ends_it_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "regard", "config", "schema"]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (141, "")


def failing(error: BaseException) -> Callable[[], None]:
    def verb() -> None:
        raise error

    return verb


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RegardError("it [red]failed."), 1, "error: it [red]failed.\n"),
        (UsageError("not so."), 2, "error: not so.\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Exit(3), 3, ""),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), 1, "error: runs/x: No space left on device.\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), 1, "error: /root/x: Permission denied.\n"),
        (OSError("odd"), 1, "error: odd.\n"),
        (MemoryError(), 1, "error: There is not enough memory"),
        (RecursionError("deep"), 1, "error: This is a bug in Regard (RecursionError: deep).\nSet REGARD_DEBUG=1"),
        (
            ZeroDivisionError("division by zero"),
            1,
            "error: This is a bug in Regard (ZeroDivisionError: division by zero).",
        ),
    ],
)
def test_every_failure_ends_in_a_sentence_and_a_code(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = typer.Typer()
    app.command()(failing(error))
    monkeypatch.setattr(regard.cli.verbs, "app", app)
    monkeypatch.delenv("REGARD_DEBUG", raising=False)
    assert main([]) == code
    err = capsys.readouterr().err
    assert err.startswith(message) and bool(err) == bool(message)
    assert "Traceback" not in err


def test_a_traceback_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    app.command()(failing(ZeroDivisionError("x")))
    monkeypatch.setattr(regard.cli.verbs, "app", app)
    monkeypatch.setenv("REGARD_DEBUG", "1")
    assert main([]) == 1
    assert "Traceback" in capsys.readouterr().err
