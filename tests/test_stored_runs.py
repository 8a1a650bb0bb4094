"""Runs that earlier formats wrote open, answer as they did, and can be trained further."""

import json
import shutil

import pytest

from regard.runs.run import Run
from tests.stored_runs import FIXTURES, answer, run_command

RECORDS = sorted(FIXTURES.glob("format-*/*.json"))


def close(one, other):
    """Whether two JSON values are the same, numbers within rounding of another machine's arithmetic."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() <= other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-3, abs=1e-4)
    return one == other


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_run_answers_as_it_did(record):
    known = json.loads(record.read_text(encoding="utf-8"))
    found = answer(record.with_suffix(""), known["arguments"], known["input"])
    assert close(known["answers"], found), (known["answers"], found)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_run_is_trained_further(record, tmp_path):
    directory = tmp_path / record.stem
    shutil.copytree(record.with_suffix(""), directory)
    run_command("train", "--resume", str(directory), "training.steps=14")
    assert Run.open(directory).info["step"] == 14


def test_every_task_is_stored():
    assert len(RECORDS) >= 18
