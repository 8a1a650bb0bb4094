"""Does every cell of the grid learn? Each is trained on `copy` and `reverse`, to say 95 % of held-out rows exactly.

    python benchmarks/grid.py                 all cells, two at a time (about half an hour on two cores)
    python benchmarks/grid.py rnn-conv        only cells whose name contains this

Results go to benchmarks/results/grid.md and grid.json; cells that are there already are kept, unless named.
"""

import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
TASKS = ("copy", "reverse")
PASS, ENOUGH = 95.0, 99.0
"""What a cell must reach, and where its training is ended: there is nothing more to see."""

SIDES = {
    "rnn": {"kind": "rnn"},
    "conv": {"kind": "conv", "layers": 3},
    "transformer": {"kind": "transformer", "layers": 2},
}
ATTENTION = {"join": {"kind": "attention"}}
RNN = {"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}
TRANSFORMER = {"encoder": SIDES["transformer"], "decoder": SIDES["transformer"]}


def cells() -> dict[str, dict[str, Any]]:
    """Every encoder with every decoder and both joins; then each score, form, order and position kind at least once."""
    grid: dict[str, dict[str, Any]] = {
        f"{encoder}-{decoder}-{join}": {
            "encoder": SIDES[encoder],
            "decoder": SIDES[decoder],
            "join": {"kind": join},
        }
        for encoder in SIDES
        for decoder in SIDES
        for join in ("attention", "fixed")
    }
    for score in ("additive", "dot", "scaled-dot", "bilinear"):
        grid[f"score-{score}"] = {**RNN, "attention": {"score": score}}
    grid["score-additive-everywhere"] = {**TRANSFORMER, "attention": {"score": "additive"}}
    for kind in ("learned", "relative", "bias", "rotary", "alibi"):
        grid[f"positions-{kind}"] = {**TRANSFORMER, "positions": {"kind": kind}}
    grid["positions-rotary-ntk"] = {**TRANSFORMER, "positions": {"kind": "rotary", "ntk": 2.0}}
    grid["positions-none"] = {**TRANSFORMER, "positions": {"kind": "none"}}
    for form in ("initial", "every-step"):
        grid[f"form-{form}"] = {**RNN, "join": {"kind": "fixed", "form": form}}
    grid["order-before"] = {**RNN, "join": {"kind": "attention", "order": "before"}}
    grid["order-after-feeding"] = {**RNN, "join": {"kind": "attention", "order": "after", "input_feeding": True}}
    for cell in ("elman", "lstm"):
        grid[f"cell-{cell}"] = {side: {"kind": "rnn", "cell": cell} for side in ("encoder", "decoder")}
    grid["source-reversed"] = {**RNN, "encoder": {"kind": "rnn", "direction": "backward"}}
    grid["heads-shared-keys-values"] = {**RNN, "attention": {"heads": 4, "keys_values": "shared"}}
    post = {"kind": "transformer", "layers": 2, "norm_place": "post", "norm": "rms", "activation": "swiglu"}
    grid["transformer-post-rms-swiglu"] = {"encoder": post, "decoder": post}
    return grid


def settings(task: str, model: dict[str, Any]) -> dict[str, Any]:
    """One small configuration for all cells: nothing is tuned to any of them but the time to learn."""
    return {
        "data": {"train": {"generate": task, "size": 20_000, "symbols": 8, "max_length": 5}, "held_out": 500},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 128, "dropout": 0.0, **model},
        "training": {
            "steps": 3000,
            "batch_tokens": 512,
            "label_smoothing": 0.0,
            "optimizer": {"learning_rate": 0.003},
            "schedule": {"kind": "cosine", "warmup": 100},
            "validate_every": 100,
            "checkpoint_every": 1000,
            "validation_sample": 500,
            "early_stopping": {"metric": "exact", "patience": 30},
        },
        "decoding": {"beam": 1},
    }


def learn(name: str, task: str) -> dict[str, Any]:
    """Train one cell on one task and say how it went."""
    import torch

    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    class Learnt(Exception):
        """Enough has been seen."""

    class Watcher(View):
        """Keeps the best validation, and ends the run when it is good enough."""

        best: tuple[float, int] = (0.0, 0)

        def validated(self, facts: Any, samples: Any) -> None:
            self.best = max(self.best, (facts["exact"], facts["step"]))
            if self.best[0] >= ENOUGH:
                raise Learnt

    torch.set_num_threads(1)
    started, watcher = time.perf_counter(), Watcher()
    with tempfile.TemporaryDirectory() as directory, suppress(Learnt):
        train(from_mapping(settings(task, cells()[name])), Path(directory) / "run", view=watcher)
    seconds = round(time.perf_counter() - started)
    return {"cell": name, "task": task, "exact": watcher.best[0], "step": watcher.best[1], "seconds": seconds}


def write(found: list[dict[str, Any]]) -> None:
    """The table, for people and for programs."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "grid.json").write_text(json.dumps(found, indent=1) + "\n")
    scores = {(one["cell"], one["task"]): one for one in found}
    lines = [
        "# Every cell learns",
        "",
        "Exact match on 500 held-out rows of 1 to 5 of 8 symbols; width 128, one configuration for all cells "
        "(`benchmarks/grid.py`), seed 1, one thread; a training ends at 99 %, or after 3,000 steps.",
        "",
        "| cell | copy | at step | reverse | at step | seconds |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in cells():
        both = [scores.get((name, task)) for task in TASKS]
        if any(both):
            shown = " | ".join(f"{one['exact']:.1f} | {one['step']:,}" if one else "– | –" for one in both)
            lines.append(f"| {name} | {shown} | {sum(one['seconds'] for one in both if one)} |")
    failed = [f"{one['cell']} on {one['task']} ({one['exact']:.1f})" for one in found if one["exact"] < PASS]
    lines += ["", f"Below {PASS:.0f} %: {', '.join(failed) or 'none'}."]
    (RESULTS / "grid.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    known = RESULTS / "grid.json"
    found = json.loads(known.read_text()) if known.exists() else []
    if wanted:
        found = [one for one in found if wanted not in one["cell"]]
    done = {(one["cell"], one["task"]) for one in found}
    jobs = [(name, task) for name in cells() for task in TASKS if (name, task) not in done]
    jobs = [job for job in jobs if not wanted or wanted in job[0]]
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        futures = [pool.submit(learn, *job) for job in jobs]
        for count, future in enumerate(as_completed(futures), start=1):
            found.append(future.result())
            write(sorted(found, key=lambda one: (one["cell"], one["task"])))
            print(f"{count}/{len(jobs)}", found[-1], flush=True)


if __name__ == "__main__":
    main()
