"""Training by several processes: N processes = one process, whatever is killed, resumed or missing."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from regard.cli import main
from regard.foundation.weights import read_weights
from regard.runs.run import Run
from tests.distributed import curve, environment, run, torchrun, write_corpus

TOLERANCE = 2e-4
"""Relative difference of losses and gradient norms: sums are in another order, in 32 bits."""


def train_alone(directory: Path, name: str, *settings: str) -> Path:
    """Train with one process and one thread."""
    command = [sys.executable, "-m", "tests.distributed", "train", "tiny.yaml", "--run", name, *settings]
    done = run(command, directory)
    assert done.returncode == 0, done.stderr
    return directory / name


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a corpus and the run `alone` of one process."""
    directory = tmp_path_factory.mktemp("distributed")
    write_corpus(directory)
    train_alone(directory, "alone")
    return directory


def assert_same_training(first: Path, second: Path) -> None:
    """Assert that two runs have the same curve and the same final weights, up to rounding."""
    for mine, other in zip(curve(first), curve(second), strict=True):
        assert mine == pytest.approx(other, rel=TOLERANCE)
    weights, others = (read_weights(path / "model.safetensors") for path in (first, second))
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        if name.endswith("key.bias"):
            continue  # its gradient is zero, since softmax ignores it; Adam makes steps of what rounding leaves
        assert torch.allclose(tensor, others[name], rtol=1e-2, atol=2e-4), name
    results = [Run.open(path).info["result"] for path in (first, second)]
    assert results[0]["validation"] == pytest.approx(results[1]["validation"], rel=1e-2)


@pytest.mark.parametrize(
    ("processes", "parallel"),
    [(2, "ddp"), (2, "fsdp"), *(pytest.param(4, kind, marks=pytest.mark.long) for kind in ("ddp", "fsdp"))],
)
def test_several_processes_train_as_one(alone: Path, processes: int, parallel: str) -> None:
    name = f"{parallel}{processes}"
    done = run(torchrun(processes, ["train", "tiny.yaml", "-r", name, f"training.parallel={parallel}"]), alone)
    assert done.returncode == 0, done.stderr
    assert_same_training(alone / "alone", alone / name)
    assert Run.open(alone / name).status == "finished"
    assert len(list((alone / name).glob("*.safetensors"))) == 1  # the same plain directory as ever
    assert main(["translate", str(alone / name), "a b c", "--quiet"]) == 0


SETTINGS = [
    "training.optimizer.kind=muon",
    "training.ema=0.9",
    "training.accumulate=2",
    "training.average=2",
    "training.early_stopping.patience=1",
]


@pytest.mark.parametrize("parallel", [pytest.param("ddp", marks=pytest.mark.long), "fsdp"])
def test_muon_averages_and_accumulation_are_the_same(alone: Path, parallel: str) -> None:
    if not (alone / "alone-muon").exists():
        train_alone(alone, "alone-muon", *SETTINGS)
    name = f"muon-{parallel}"
    settings = [*SETTINGS, f"training.parallel={parallel}"]
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", name, *settings]), alone)
    assert done.returncode == 0, done.stderr
    assert_same_training(alone / "alone-muon", alone / name)


def test_gradients_of_threads_are_summed_as_ddp_sums_them(alone: Path) -> None:
    """With several threads a rank computes gradients itself; their sum after the backward pass gives the same."""
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", "threads"]), alone, OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert_same_training(alone / "alone", alone / "threads")


def test_a_run_is_resumed_by_other_numbers_of_processes(alone: Path) -> None:
    """The data continues exactly, whatever shares it: 4 processes, then one, then two with sharded weights."""
    first = run(torchrun(4, ["train", "tiny.yaml", "-r", "changing", "training.steps=3"]), alone)
    assert first.returncode == 0, first.stderr
    one = [sys.executable, "-m", "tests.distributed", "train", "--resume", "changing", "training.steps=5"]
    second = run(one, alone)
    assert second.returncode == 0, second.stderr
    assert "4 processes so far, and now by 1" in " ".join(second.stderr.split())
    last = ["train", "--resume", "changing", "training.steps=8", "training.parallel=fsdp"]
    third = run(torchrun(2, last), alone)
    assert third.returncode == 0, third.stderr
    assert_same_training(alone / "alone", alone / "changing")


def test_a_killed_rank_ends_the_job_with_a_message_that_names_it(alone: Path) -> None:
    start = time.monotonic()
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", "killed"]), alone, FAULT=f"1:5:kill:{alone / 'once-killed'}")
    assert done.returncode != 0 and time.monotonic() - start < 60
    text = " ".join(done.stderr.split())
    assert "The process of rank 1" in text and "probably killed" in text and "--resume" in text
    assert "bug in Regard" not in text
    resumed = run(torchrun(2, ["train", "--resume", "killed"]), alone)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_training(alone / "alone", alone / "killed")


def test_a_rank_that_hangs_is_named_within_the_time_limit(alone: Path) -> None:
    fault = f"1:3:hang:{alone / 'once-hung'}"
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", "hung"]), alone, FAULT=fault, REGARD_TIMEOUT="8")
    assert done.returncode != 0
    assert "Rank 1" in done.stderr and "kept the others waiting too long" in " ".join(done.stderr.split())


def test_the_error_of_one_rank_is_reported_by_the_others(alone: Path) -> None:
    fault = f"1:3:full:{alone / 'once-full'}"
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", "full"]), alone, FAULT=fault)
    assert done.returncode != 0
    assert "No space left" in done.stderr and "bug in Regard" not in done.stderr


def test_a_job_that_torchrun_restarts_ends_as_an_undisturbed_one(alone: Path) -> None:
    options = ["--standalone", "--max-restarts", "1"]
    command = torchrun(2, ["train", "tiny.yaml", "-r", "restarted"], options=options)
    done = run(command, alone, FAULT=f"0:6:kill:{alone / 'once-restarted'}")
    assert done.returncode == 0, done.stderr
    assert (alone / "once-restarted").exists()
    assert_same_training(alone / "alone", alone / "restarted")


def test_ranks_with_other_settings_are_refused_at_the_start(alone: Path) -> None:
    done = run(torchrun(2, ["train", "tiny.yaml", "-r", "other"]), alone, SETTING_1="training.clip=2.0")
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert "training.clip is 1.0 at rank 0" in text and "2.0 at rank 1" in text
    assert not (alone / "other").exists()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_rank_that_does_not_join_is_named(alone: Path) -> None:
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-m", "tests.distributed", "train", "tiny.yaml", "--run", "lonely"]
    done = subprocess.run(
        command,
        cwd=alone,
        env=environment(RANK="0", WORLD_SIZE="3", LOCAL_RANK="0", REGARD_TIMEOUT="3", **meeting),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "Ranks 1 and 2 of 3 did not join within 3 s" in " ".join(done.stderr.split())


def test_nodes_that_do_not_share_a_disk_are_refused(alone: Path, tmp_path: Path) -> None:
    """Each process has its own directory of the same name, as on two nodes without a shared disk."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mount namespaces are not allowed here")
    port = str(free_port())
    processes = []
    (alone / "apart").mkdir(exist_ok=True)
    for rank in (0, 1):
        command = f"mount -t tmpfs none {alone / 'apart'} && exec {sys.executable} -m tests.distributed train tiny.yaml"
        more = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        processes.append(
            subprocess.Popen(
                ["unshare", "-m", "sh", "-c", f"{command} --run apart/run"],
                cwd=alone,
                env=environment(MASTER_PORT=port, **more),
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    errors = [" ".join(process.communicate(timeout=120)[1].split()) for process in processes]
    assert all(process.returncode == 1 for process in processes)
    assert "does not see the run of rank 0" in errors[1] and "All nodes must share the disk" in errors[1]
    assert "rank 1" in errors[0] and "does not see the run" in errors[0]


@pytest.fixture
def nodes() -> Iterator[list[tuple[list[str], str]]]:
    """Two nodes, as network namespaces with a cable between them: for each the prefix of a command, and its address."""
    names = [f"regard-{os.getpid()}-{end}" for end in "ab"]
    wires = [f"rg{os.getpid() % 100000}{end}" for end in "ab"]
    addresses = ["192.0.2.1", "192.0.2.2"]  # a range for documentation, which exists in these namespaces alone

    def ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"network namespaces are not allowed here: {done.stderr.strip()}")

    if shutil.which("ip") is None:
        pytest.skip("network namespaces need the program ip (package iproute2)")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", wires[0], "type", "veth", "peer", "name", wires[1])
        for name, wire, address in zip(names, wires, addresses, strict=True):
            ip("link", "set", wire, "netns", name)
            ip("-n", name, "address", "add", f"{address}/30", "dev", wire)
            ip("-n", name, "link", "set", wire, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield [
            (["ip", "netns", "exec", name, "env", f"GLOO_SOCKET_IFNAME={wire}"], address)
            for name, wire, address in zip(names, wires, addresses, strict=True)
        ]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_a_job_on_two_nodes_survives_the_loss_of_one(alone: Path, nodes: list[tuple[list[str], str]]) -> None:
    """The second node is killed, launcher and all; the first continues alone, as an undisturbed training."""
    once = alone / "once-node"
    processes = []
    for number, (prefix, address) in enumerate(nodes):
        options = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-id", "job", "--max-restarts", "3"]
        options += ["--rdzv-endpoint", f"{nodes[0][1]}:29400", "--local-addr", address]
        times = "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=3"
        options += ["--rdzv-conf", f"is_host={int(number == 0)},{times}"]
        more = {"FAULT": f"*:5:node:{once}"} if number else {}
        processes.append(
            subprocess.Popen(
                [*prefix, *torchrun(1, ["train", "tiny.yaml", "-r", "nodes"], options=options)],
                cwd=alone,
                env=environment(**more),
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert once.exists(), errors
    assert processes[0].returncode == 0, errors[0]
    assert "Continuing after step 4" in errors[0] or "Continuing after step 2" in errors[0]
    assert_same_training(alone / "alone", alone / "nodes")
