"""Laws of checkpoints: whole or not there, and never the last good one lost."""

import errno
import json
import os
import shutil

import pytest
import torch
from safetensors import SafetensorError

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.runs import checkpoints as module
from regard.runs.checkpoints import Checkpoint, Checkpoints


def some(step, *, score=None, regular=True):
    random = torch.Generator().manual_seed(step)
    return Checkpoint(
        step=step,
        model={"weight": torch.randn(4, 3, generator=random)},
        training={
            "random/cpu/0": torch.arange(9, dtype=torch.uint8),
            "optimizer/weight/step": torch.tensor(float(step)),
        },
        state={"cursor": {"epoch": 1, "position": step}, "window": {"loss": 0.1 + 0.2}},
        score=score,
        regular=regular,
    )


@pytest.fixture
def spoken():
    return []


@pytest.fixture
def checkpoints(tmp_path, spoken):
    return Checkpoints(tmp_path / "run" / "checkpoints", keep_last=2, keep_best=1, warn=spoken.append)


def assert_same(one, other):
    assert (one.step, one.state, one.score, one.regular) == (other.step, other.state, other.score, other.regular)
    for mine, theirs in ((one.model, other.model), (one.training, other.training)):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) and mine[name].dtype == theirs[name].dtype for name in mine)


def test_saved_is_loaded(checkpoints):
    checkpoints.save(some(500, score=-1.25))
    assert_same(checkpoints.latest(), some(500, score=-1.25))
    assert (checkpoints.directory / "latest").read_text() == "step-00000500\n"
    assert sorted(path.name for path in checkpoints.path(500).iterdir()) == [
        "model.safetensors",
        "state.json",
        "training.safetensors",
    ]


def test_there_is_nothing_before_the_first(checkpoints):
    assert checkpoints.latest() is None


@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "removed", "emptied"])
def test_a_damaged_newest_falls_back_to_the_one_before_and_says_so(checkpoints, spoken, name, damage):
    checkpoints.save(some(1))
    path = checkpoints.save(some(2)) / name
    content = path.read_bytes()
    match damage:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "changed":
            middle = len(content) // 2
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        case "removed":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
    assert_same(checkpoints.latest(), some(1))
    assert len(spoken) == 1 and "step 2" in spoken[0] and "damaged" in spoken[0]


def test_when_none_is_whole_the_remedy_is_told(checkpoints):
    for step in (1, 2):
        (checkpoints.save(some(step)) / "model.safetensors").unlink()
    with pytest.raises(RegardError, match="No checkpoint"):
        checkpoints.latest()


def test_a_lost_or_broken_pointer_is_no_loss(checkpoints):
    checkpoints.save(some(1))
    checkpoints.save(some(2))
    for content in (None, b"", b"\xff\xfe", b"step-00000007\n"):
        (checkpoints.directory / "latest").unlink(missing_ok=True)
        if content is not None:
            (checkpoints.directory / "latest").write_bytes(content)
        assert checkpoints.latest().step == 2


def test_killed_before_the_pointer_moved_the_older_one_counts(checkpoints):
    checkpoints.save(some(1))
    checkpoints.save(some(2))
    durable.write(checkpoints.directory / "latest", "step-00000001\n")
    assert checkpoints.latest().step == 1
    checkpoints.forget_after(1)
    assert checkpoints.steps() == [1]
    checkpoints.save(some(2))
    assert checkpoints.latest().step == 2


def test_leftovers_of_a_kill_are_cleaned(checkpoints):
    checkpoints.save(some(1))
    for name in (".aside-00000002", ".doomed-step-00000000"):
        shutil.copytree(checkpoints.path(1), checkpoints.directory / name)
    checkpoints.clean()
    assert sorted(path.name for path in checkpoints.directory.iterdir()) == ["latest", "step-00000001"]


def test_a_leftover_aside_of_the_same_step_is_overwritten(checkpoints):
    checkpoints.directory.mkdir(parents=True)
    (checkpoints.directory / ".aside-00000001").mkdir()
    (checkpoints.directory / ".aside-00000001" / "model.safetensors").write_bytes(b"half")
    checkpoints.save(some(1))
    assert_same(checkpoints.latest(), some(1))


def full(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_in_rust(*_args, **_kwargs):
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize(
    ("where", "failure"), [("os.fsync", full), ("write_tensors", full_in_rust), ("write_tensors", full)]
)
def test_a_full_disk_loses_nothing_and_says_where_the_last_good_one_is(checkpoints, monkeypatch, where, failure):
    checkpoints.save(some(1))
    with monkeypatch.context() as patch:
        if where == "os.fsync":
            patch.setattr(os, "fsync", failure)
        else:
            patch.setattr(module, where, failure)
        with pytest.raises(
            RegardError, match=r"(?s)disk is full.*Nothing earlier was lost.*step 1 .*--resume"
        ) as error:
            checkpoints.save(some(2))
    assert str(checkpoints.path(1)) in str(error.value)
    assert sorted(path.name for path in checkpoints.directory.iterdir()) == ["latest", "step-00000001"]
    assert_same(checkpoints.latest(), some(1))


def test_a_failure_at_the_pointer_leaves_the_older_one_whole(checkpoints, monkeypatch):
    checkpoints.save(some(1))
    with monkeypatch.context() as patch:
        patch.setattr(durable, "write", full)
        with pytest.raises(RegardError, match="disk is full"):
            checkpoints.save(some(2))
    assert_same(checkpoints.latest(), some(1))


def test_a_read_only_place_is_told(checkpoints, monkeypatch):
    def read_only(*_args, **_kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("pathlib.Path.mkdir", read_only)
    with pytest.raises(RegardError, match=r"Read-only file system.*Nothing earlier was lost"):
        checkpoints.save(some(1))


def test_the_newest_and_the_best_are_kept(checkpoints):
    for step, score in ((1, -3.0), (2, -1.0), (3, -2.0), (4, None), (5, -2.5)):
        checkpoints.save(some(step, score=score))
    assert checkpoints.steps() == [2, 4, 5]


def test_of_equally_good_ones_the_first_is_kept_which_training_calls_the_best(checkpoints):
    for step in range(1, 6):
        checkpoints.save(some(step, score=5.0))
    assert checkpoints.steps() == [1, 4, 5]


def test_a_checkpoint_between_times_never_takes_the_place_of_a_regular_one(checkpoints):
    for step, regular in ((10, True), (17, False), (20, True), (23, False), (24, False)):
        checkpoints.save(some(step, regular=regular))
    assert checkpoints.steps() == [10, 20, 24]
    assert checkpoints.last_regular(2, up_to=24) == [10, 20]


def test_a_newer_format_is_refused_with_a_remedy(checkpoints):
    path = checkpoints.save(some(1)) / "state.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(RegardError, match=r"newer Regard.*Upgrade"):
        checkpoints.latest()


def test_nothing_is_ever_pickled(checkpoints):
    directory = checkpoints.save(some(1))
    assert not any(
        b"\x80\x04" in path.read_bytes()[:4] or path.suffix in (".pt", ".pkl") for path in directory.iterdir()
    )
