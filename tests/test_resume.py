"""The law of continuation: killed anywhere, any number of times, a run ends bit for bit as if it had been left alone.

`REGARD_KILLS=20 pytest tests/test_resume.py` kills each run twenty times.
"""

import functools
import hashlib
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.config.loading import dump
from regard.runs.run import Run
from regard.training.journal import Journal
from tests.test_training import tiny

ROOT = Path(__file__).parent.parent
KILLS = int(os.environ.get("REGARD_KILLS", "3"))
CLOCK = {"seconds", "tokens_per_second"}

EXPOSED = [
    "model.encoder.kind=transformer", "model.encoder.layers=1", "model.decoder.kind=transformer",
    "model.decoder.layers=1",
    "training.exposure.scheduled_sampling.kind=linear", "training.exposure.word_dropout=0.1",
    "training.exposure.corruption.replace=0.1", "training.exposure.corruption.delete=0.1", "training.ema=0.9",
    "training.average=2", "training.schedule.warmup=5", "training.optimizer.kind=muon",
]  # fmt: skip
PLAIN = [
    "text.tokenizer.kind=bpe", "text.bpe_dropout=0.2",
    "training.optimizer.kind=sgd", "training.optimizer.momentum=0.9", "training.schedule.kind=plateau",
    "training.schedule.patience=1", "training.accumulate=2", "training.early_stopping.metric=chrf",
]  # fmt: skip
COURSE = {"steps": 40 * max(1, KILLS // 4), "validate_every": 9, "checkpoint_every": 7, "log_every": 4}

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(
    ["tests.test_resume", "regard.training.loop", "regard.training.outcome", "torch._dynamo"]
)


def work(overrides, directory, awake=None):
    """One life of a run, in a process of its own."""
    import torch

    from regard.training import gradient_threads, outcome, trainer
    from regard.training.loop import train
    from regard.training.view import View

    torch.set_num_threads(1)
    outcome.draw_curves = lambda lines, path, *_, **__: path.write_bytes(b"")  # to draw takes as long as to train
    if overrides == EXPOSED:
        trainer.GradientThreads = lambda size: gradient_threads.GradientThreads(2)  # two threads side by side
    if awake:
        awake.set()
    resume = (directory / "run.json").is_file()
    train(tiny(*overrides, **COURSE), directory, resume=resume, view=View())


def live(overrides, directory, until=None):
    """Let a run live for so many seconds, or to its end; returns the exit code and how long it lived."""
    awake = context.Event()
    process = context.Process(target=work, args=(overrides, directory, awake))
    process.start()
    awake.wait(300)
    start = time.monotonic()
    process.join(until)
    if process.is_alive():
        process.kill()
    process.join()
    return process.exitcode, time.monotonic() - start


def remains(directory: Path):
    """What a run leaves that must not depend on its fate."""
    lines = [
        {key: line[key] for key in line if key not in CLOCK} for line in Journal(directory / "metrics.jsonl").lines()
    ]
    return hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest(), lines


def newest(directory):
    pointer = directory / "checkpoints" / "latest"
    return pointer.read_text().strip() if pointer.exists() else "none"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What is left of runs that nobody disturbed, and how long they took."""
    left = {}
    for name, overrides in (("exposed", EXPOSED), ("plain", PLAIN)):
        directory = tmp_path_factory.mktemp("alone") / name
        code, seconds = live(overrides, directory)
        assert code == 0
        left[name] = remains(directory), seconds
    return left


@pytest.mark.parametrize("name", ["exposed", "plain"])
def test_killed_and_resumed_is_uninterrupted_bit_for_bit(tmp_path, alone, name):
    overrides = EXPOSED if name == "exposed" else PLAIN
    expected, whole = alone[name]
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    kills, here = [0], tmp_path / "killed-0"
    while sum(kills) < KILLS:
        # Each life is a part of the whole, so that kills fall everywhere, the beginning and the end included.
        code, _ = live(overrides, here, until=whole * chance.uniform(0, 0.1 + 1.5 / KILLS))
        assert code in (0, -signal.SIGKILL), f"seed {seed}"
        if code == 0:  # it escaped to its end: another one takes its place
            assert remains(here) == expected, f"after {kills[-1]} kills, seed {seed}"
            here = tmp_path / f"killed-{len(kills)}"
            kills.append(0)
        else:
            kills[-1] += 1
    print(f"{name}: kills by run {kills}, behind {newest(here)} at the last")
    assert live(overrides, here)[0] == 0
    assert remains(here) == expected, f"after {kills[-1]} kills, seed {seed}"


@pytest.mark.parametrize(
    "moment",
    [
        *("checkpoint", "prune", "pointer", "weights", "card"),
        *("before manifest 2", "after manifest 2", "before manifest 3", "after manifest 3", "before manifest 4"),
    ],
)
def test_killed_in_the_middle_of_writing_is_uninterrupted(tmp_path, alone, moment):
    process = context.Process(target=work_and_die, args=(PLAIN, tmp_path / "killed", moment))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert live(PLAIN, tmp_path / "killed")[0] == 0
    assert remains(tmp_path / "killed") == alone["plain"][0]


def work_and_die(overrides, directory, moment):
    """A life that ends in the middle of a certain act, on the second time."""
    from regard.foundation import durable
    from regard.runs import checkpoints
    from regard.training import outcome, trainer

    module, name, times_until = {
        "checkpoint": (checkpoints, "write_tensors", 4),
        "prune": (checkpoints.shutil, "rmtree", 4),
        "pointer": (durable, "write", 4),
        "weights": (trainer.Trainer, "plain_model", 1),
        "card": (outcome, "write_card", 1),
    }.get(moment, (durable, "write", int(moment[-1]) if "manifest" in moment else 0))
    ending = {"pointer": "latest", "prune": ""}.get(moment, "manifest.json" if "manifest" in moment else "")
    act, times = getattr(module, name), []

    def deadly(*arguments, **named):
        place = str(arguments[0])
        times.append(place.endswith(ending) and (".doomed" in place or moment != "prune"))
        if sum(times) == times_until and moment.startswith("after") and times[-1]:
            act(*arguments, **named)
        if sum(times) == times_until:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*arguments, **named)

    setattr(module, name, deadly)
    work(overrides, directory)


def test_a_damaged_newest_checkpoint_costs_time_but_nothing_else(tmp_path, alone):
    process = context.Process(target=work_and_die, args=(PLAIN, tmp_path / "run", "pointer"))
    process.start()
    process.join()
    damaged = tmp_path / "run" / "checkpoints" / newest(tmp_path / "run") / "training.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert live(PLAIN, tmp_path / "run")[0] == 0
    assert remains(tmp_path / "run") == alone["plain"][0]


def start(tmp_path, *overrides, **course):
    """A real `regard train` that has done some steps."""
    (tmp_path / "tiny.yaml").write_text(dump(tiny(**(COURSE | course))))
    command = [sys.executable, "-m", "regard", "train", "tiny.yaml", "--run", "run", *overrides]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which a shell's background mutes
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heard,  # noqa: PLW1509
    )
    deadline = time.monotonic() + 300
    while not (tmp_path / "run" / "checkpoints" / "latest").exists():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_a_run_saves_and_says_how_to_go_on(tmp_path, number, code):
    process = start(tmp_path, steps=100_000, validate_every=50_000, checkpoint_every=10)
    time.sleep(0.2)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "regard train --resume run" in error and "Traceback" not in error
    run = Run.open(tmp_path / "run")
    pointed = (run.checkpoints / "latest").read_text().strip()
    assert run.status == "stopped" and pointed == f"step-{run.info['step']:08d}"


def meeting_point():
    """Where two processes meet, as variables of the environment: a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}


def test_a_process_that_waits_for_others_can_be_ended(tmp_path):
    """Signals are caught only after the processes have met: torch waits for up to half an hour, without Python."""
    (tmp_path / "tiny.yaml").write_text(dump(tiny(**COURSE)))
    others = {**meeting_point(), "RANK": "0", "LOCAL_RANK": "0"}
    port = int(others["MASTER_PORT"])
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "train", "tiny.yaml", "--run", "run"],
        cwd=tmp_path,
        env={**os.environ, **others},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 300
        while True:  # the first process listens where the others shall meet it
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            with socket.socket() as other:
                if other.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM) and "Traceback" not in error
    assert not (tmp_path / "run").exists()


def train_and_record(directory, how, overrides, given=None):
    """One of two processes: train, and write down what the model is after each update."""
    from regard.config.loading import load
    from regard.foundation.weights import weights_of
    from regard.training.loop import train
    from regard.training.trainer import Trainer

    os.environ |= given or {}
    os.chdir(directory)
    seen, update = [], Trainer.update

    def spy(self, **named):
        update(self, **named)
        digest = hashlib.sha256(b"".join(weight.numpy().tobytes() for weight in weights_of(self.model).values()))
        seen.append([self.progress.step, self.progress.tokens, digest.hexdigest()])

    Trainer.update = spy
    train(load("tiny.yaml", overrides), Path("run"), resume=how == "on")
    Path(f"rank{os.environ['RANK']}-{how}.json").write_text(json.dumps(seen))


def test_two_processes_share_the_work_and_agree(tmp_path):
    """Started by torchrun; continued by processes that are told their ranks."""
    overrides = ["training.steps=8", "training.accumulate=2"]
    (tmp_path / "tiny.yaml").write_text(dump(tiny(**COURSE)))

    def recorded(how):
        ranks = [json.loads((tmp_path / f"rank{rank}-{how}.json").read_text()) for rank in (0, 1)]
        assert ranks[0] == ranks[1]
        return [step for step, _, _ in ranks[0]]

    script = tmp_path / "both.py"
    script.write_text(f"from tests.test_resume import train_and_record\ntrain_and_record('.', 'new', {overrides})\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert recorded("new") == list(range(1, 9))
    assert Run.open(tmp_path / "run").status == "finished"

    ranks = [{**meeting_point(), "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in (0, 1)]
    ranks[1] |= {name: ranks[0][name] for name in ("MASTER_ADDR", "MASTER_PORT")}
    processes = [
        context.Process(target=train_and_record, args=(tmp_path, "on", [*overrides, "training.steps=10"], rank))
        for rank in ranks
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0]
    assert recorded("on") == [9, 10]
