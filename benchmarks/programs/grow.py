"""Regard alone, at one size: seconds for a token that is learnt or a sentence that is said, and the peak of memory."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from pace import answer

from regard.config.loading import from_mapping
from regard.data.batches import Batches
from regard.data.store import StoreWriter, TokenStore
from regard.models import build
from regard.search import ModelSteps, beam, greedy
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import Vocabularies
from regard.text.specials import EOS, SPECIALS
from regard.training.trainer import Trainer

settings: dict[str, Any] = json.loads(sys.argv[1])
size = settings["vocabulary"]
config = from_mapping(
    {
        "model": settings["model"],
        "data": {"train": {"generate": "copy", "size": 10}},
        "training": {"batch_tokens": settings["tokens"], "steps": 1_000_000},
    }
)
draw = np.random.default_rng(1)


def resident() -> int:
    """Bytes in RAM at the peak so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def store(directory: Path) -> TokenStore:
    """A corpus of random tokens, all sentences near the wanted length."""
    with StoreWriter(directory, size) as writer:
        for start in range(0, settings["pairs"], 10_000):
            count = min(10_000, settings["pairs"] - start)
            near = draw.integers(max(1, settings["length"] * 3 // 4), settings["length"] * 5 // 4 + 1, (2, count))
            source, target = ([draw.integers(len(SPECIALS), size, length).tolist() for length in side] for side in near)
            writer.write(source, target)
    return TokenStore(directory)


def learn() -> None:
    """Updates of the real trainer on a corpus of this size."""
    with tempfile.TemporaryDirectory() as directory:
        known: Any = {"source": SimpleNamespace(size=size), "target": SimpleNamespace(size=size)}
        task = Task(TaskKind.of(config), Vocabularies(**known))
        batches = Batches(store(Path(directory) / "store"), settings["tokens"], seed=1)
        trainer = Trainer(config, task, batches, device=torch.device("cpu"))
        for _ in range(2):
            trainer.update()
        tokens, start, times = trainer.progress.tokens, time.perf_counter(), []
        while time.perf_counter() - start < settings["seconds"] or len(times) < 3:
            begin, had = time.perf_counter(), trainer.progress.tokens
            trainer.update()
            times.append((time.perf_counter() - begin) / (trainer.progress.tokens - had))
        assert trainer.progress.tokens > tokens
        answer(seconds=float(np.median(times)), peak=resident())
        os._exit(0)


def say() -> None:
    """Sentences of exactly this length, from a model that never ends one by itself."""
    torch.manual_seed(1)
    model = build(config.model, size, size).eval()
    model.get_parameter("output_bias").data[EOS] = -1e9
    rows, length = settings["rows"], settings["length"]
    source = torch.randint(len(SPECIALS), size, (rows, length))
    source[:, -1] = EOS
    limits, steps, times = [length] * rows, ModelSteps(model), []
    start = time.perf_counter()
    while time.perf_counter() - start < settings["seconds"] or len(times) < 3:
        begin = time.perf_counter()
        if settings["beam"] == 1:
            greedy(steps, source, limits)
        else:
            beam(steps, source, limits, width=settings["beam"])
        times.append((time.perf_counter() - begin) / rows)
    answer(seconds=float(np.median(times[1:])), peak=resident())


learn() if settings["do"] == "learn" else say()
