"""Prepared data that runs share: reused where it fits, refused where it does not, and never half complete."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard.tasks.preparation as preparing
from regard.cli import main
from regard.config.loading import from_mapping, load
from regard.data.store import StoreWriter
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.tasks.preparation import prepare, prepare_shared
from regard.tasks.prepared_data import PreparationLock, is_complete, settings_of
from tests.test_parallel_preparation import files_of

SMALL: dict[str, Any] = {"model": {"width": 16}, "training": {"steps": 2}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tsv").write_text("".join(f"row {n} of many\tZeile {n} von vielen\n" for n in range(300)))
    (tmp_path / "my.yaml").write_text(json.dumps({**SMALL, "data": {"train": {"tsv": "x.tsv"}}}))
    return tmp_path


def configuration(*overrides: str) -> Any:
    return load(Path("my.yaml"), overrides)


def test_a_run_with_prepared_data_has_the_same_files_as_one_without(place: Path) -> None:
    prepare_shared(configuration(), Path("prepared"))
    prepare(configuration(), Path("own"))
    adopted = prepare(configuration("data.prepared=prepared", "model.width=32"), Path("adopted"))
    assert files_of(Path("adopted")) == files_of(Path("own"))
    assert len(adopted.train) == 270


def test_a_run_needs_neither_the_prepared_data_nor_the_corpus_afterwards(place: Path) -> None:
    assert main(["prepare", "my.yaml", "--to", "prepared"]) == 0
    assert main(["train", "my.yaml", "data.prepared=prepared", "--run", "run"]) == 0
    assert (Path("run/data/train/source.tokens").stat().st_ino) == Path(
        "prepared/data/train/source.tokens"
    ).stat().st_ino
    shutil.rmtree("prepared")
    Path("x.tsv").unlink()
    assert main(["predict", "run", "row 1 of many"]) == 0 or main(["translate", "run", "row 1 of many"]) == 0
    assert main(["train", "--resume", "run", "training.steps=3"]) == 0
    Run.open(Path("run"))


def test_prepared_twice_is_prepared_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for before in (False, True):
        assert main(["prepare", "my.yaml", "--to", "prepared", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["prepared_before"] is before
        assert (found["pairs"], found["report"]["held_out"]) == (270, 30)
        assert found["tokens"]["source"] > 0 and found["vocabularies"]["source"] > 0


def append(text: str) -> Callable[[], object]:
    return lambda: Path("x.tsv").write_text(Path("x.tsv").read_text() + text)


def same_size() -> None:
    Path("x.tsv").write_text(Path("x.tsv").read_text().replace("row 7 of", "row 8 of"))


MISMATCHES: list[tuple[str, Callable[[], object], str]] = [
    ("text.tokenizer.vocabulary=300", lambda: None, "text.tokenizer.vocabulary is null there and 300 here"),
    ("data.every=2", lambda: None, "data.every is 1 there and 2 here"),
    ("data.cleaning.max_length=99", lambda: None, "data.cleaning.max_length is 256 there and 99 here"),
    ("training.seed=5", lambda: None, "training.seed is 1 there and 5 here"),
    ("data.train.target_column=1", lambda: None, "data.train.target_column is 2 there and 1 here"),
    ("data.validation={tsv: x.tsv}", lambda: None, "data.validation"),
    ("task.kind=summarising", lambda: None, "task.kind is .*there"),
    ("training.steps=2", append("new\tneu\n"), r"x\.tsv \(data\.train\.tsv\[0\]\) has other content"),
    ("training.steps=2", same_size, r"x\.tsv \(data\.train\.tsv\[0\]\) has other content"),
]


@pytest.mark.parametrize(("override", "change", "message"), MISMATCHES)
def test_a_mismatch_is_refused_and_named(
    override: str, change: Callable[[], object], message: str, place: Path
) -> None:
    prepare_shared(configuration(), Path("prepared"))
    change()
    with pytest.raises(UsageError, match=message):
        prepare(configuration("data.prepared=prepared", override), Path("run"))
    assert not preparing.is_prepared(Path("run"))
    with pytest.raises(UsageError, match=message):
        prepare_shared(configuration(override), Path("prepared"))


@pytest.mark.parametrize(
    "override", ["training.steps=9", "model.width=64", "text.bpe_dropout=0.1", "training.batch_tokens=99"]
)
def test_other_settings_may_differ(override: str, place: Path) -> None:
    assert settings_of(configuration(override)) == settings_of(configuration())


def test_the_seed_may_differ_where_nothing_is_drawn(place: Path) -> None:
    shutil.copy("x.tsv", "valid.tsv")
    given = "data.validation={tsv: valid.tsv}"
    assert settings_of(configuration(given, "training.seed=5")) == settings_of(configuration(given))
    assert settings_of(configuration(given, "training.seed=5", "data.joined=0.1")) != settings_of(
        configuration(given, "data.joined=0.1")
    )


def test_a_corpus_may_be_touched_or_moved_but_not_changed(place: Path) -> None:
    """The hash decides if the time of the last change differs; files are compared by content, not by name."""
    prepare_shared(configuration(), Path("prepared"))
    os.utime("x.tsv", (1, 1))
    prepare(configuration("data.prepared=prepared"), Path("touched"))
    Path("x.tsv").rename("moved.tsv")
    prepare(configuration("data.prepared=prepared", "data.train.tsv=moved.tsv"), Path("moved"))
    Path("moved.tsv").unlink()
    prepare(configuration("data.prepared=prepared"), Path("without"))
    with pytest.raises(UsageError, match=r"moved\.tsv, which does not exist"):
        prepare(configuration("data.prepared=prepared", "data.train.tsv=moved.tsv"), Path("refused"))


@pytest.mark.parametrize("name", ["_write_pairs", "write_record"])
def test_an_interrupted_preparation_is_not_taken_for_complete_and_starts_over(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(preparing, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare_shared(configuration(), Path("prepared"))
    assert not is_complete(Path("prepared"))
    with pytest.raises(RegardError, match=r"is not complete\. Prepare it with: regard prepare"):
        prepare(configuration("data.prepared=prepared"), Path("run"))
    changed = configuration("text.tokenizer.vocabulary=300")  # what was left must not be reused
    prepared, known = prepare_shared(changed, Path("prepared"))
    assert not known and prepared.task.vocabularies.by_name["source"].size == 300


def test_a_full_disk_is_a_clear_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(StoreWriter, "_write", lambda *_: (_ for _ in ()).throw(full))
    assert main(["prepare", "my.yaml", "--to", "prepared"]) == 1
    assert "Cannot write to prepared: No space left on device." in capsys.readouterr().err
    assert not is_complete(Path("prepared"))


def test_damaged_prepared_data_is_refused(place: Path) -> None:
    prepare_shared(configuration(), Path("prepared"))
    tokens = Path("prepared/data/train/source.tokens")
    tokens.write_bytes(tokens.read_bytes()[:-2] + b"\7\7")
    with pytest.raises(RegardError, match="checksum"):
        prepare(configuration("data.prepared=prepared"), Path("run"))
    record = json.loads(Path("prepared/prepared.json").read_text())
    record["settings"]["data.every"] = "2"
    Path("prepared/prepared.json").write_text(json.dumps(record))
    with pytest.raises(RegardError, match="was changed after it was written"):
        prepare(configuration("data.prepared=prepared"), Path("run"))


def test_directories_of_others_are_not_touched(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine/data").mkdir(parents=True)
    Path("mine/data/notes.txt").write_text("mine")
    assert main(["prepare", "my.yaml", "--to", "mine"]) == 1
    assert "does not belong to a Regard run" in capsys.readouterr().err
    assert Path("mine/data/notes.txt").read_text() == "mine"
    with pytest.raises(RegardError, match="is not a directory of prepared data"):
        prepare(configuration("data.prepared=nowhere"), Path("run"))
    assert main(["prepare", "my.yaml", "data.prepared=mine"]) == 2
    assert main(["prepare", "my.yaml", "--to", "my.yaml"]) == 1


def test_one_process_at_a_time_prepares_a_directory(place: Path) -> None:
    with PreparationLock(Path("prepared")), pytest.raises(RegardError, match="Another process is preparing"):
        prepare_shared(configuration(), Path("prepared"))


def test_a_killed_preparation_starts_over(place: Path) -> None:
    """Two workers, killed with SIGKILL once the store is being written."""
    Path("x.tsv").write_text("".join(f"row {n} of many\tZeile {n} von vielen\n" for n in range(30_000)))
    command = [sys.executable, "-m", "regard", "prepare", "my.yaml", "--to", "prepared", "--workers", "2"]
    process = subprocess.Popen(command)
    until = time.monotonic() + 100
    while not Path("prepared/tokenizers/shared.json").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not is_complete(Path("prepared"))
    prepare_shared(configuration(), Path("prepared"))
    prepare(configuration(), Path("own"))
    left = {name: found for name, found in files_of(Path("prepared")).items() if name not in ("prepared.json", ".lock")}
    assert left == files_of(Path("own"))


def test_files_of_media_corpora_are_part_of_the_record(place: Path) -> None:
    """A picture more, or another size of pictures, is another corpus."""
    config = from_mapping(
        {
            "task": {"kind": "captioning"},
            "data": {"train": {"images": "pictures", "captions": "captions.tsv"}},
            "model": {"encoder": {"kind": "image", "size": 32}},
        }
    )
    names = settings_of(config)
    assert names["model.encoder.size"] == "32" and "data.train.images" not in names
