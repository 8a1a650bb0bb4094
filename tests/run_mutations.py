"""Break the code on purpose, one place at a time, and see whether the tests notice.

`python -m tests.run_mutations [FIRST [LAST]]` applies each mutation to a copy of the package, runs the tests named for
it until the first failure, and prints which mutations survive. The tests named are those near the code, so that all
mutations take minutes; the whole suite notices at least as much.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

GRID = ("tests/test_independent.py", "tests/test_parity.py", "tests/test_prepared.py", "tests/test_grid.py")
SEARCH = ("tests/test_search.py", "tests/test_beams.py")

# file, what stands there, what is put in its place, the tests that should notice
MUTATIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    # The twelve that survived when the issue was written.
    ("nn/normalisation.py", "nn.LayerNorm(width, eps=epsilon)", "nn.LayerNorm(width)", GRID),
    ("nn/attention.py", "weights = self.dropout(weights)", "weights = weights", GRID),
    ("nn/convolution.py", "dim=-1)) * math.sqrt(0.5)", "dim=-1)) * 0.5", GRID),
    ("models/recurrent_decoder.py", 'past["fed"] = output', 'past["fed"] = state.past["fed"] + 0 * output', GRID),
    ("models/recurrent_decoder.py", 'state.past[f"{len(self.layers) - 1}"]', 'state.past["0"]', GRID),
    (
        "search/alignment.py",
        "weights = weights[: len(target_words), :",
        "weights = weights[1:][: len(target_words), :",
        GRID,
    ),
    ("training/ema.py", "min(self.decay, (1 + step) / (10 + step))", "self.decay", ("tests/test_independent.py",)),
    (
        "data/batches.py",
        "np.random.default_rng([self.seed, epoch, *more])",
        "np.random.default_rng([self.seed, 0, *more])",
        ("tests/test_independent.py", "tests/test_batches.py"),
    ),
    (
        "data/cleaning.py",
        "(min(lengths) + GRACE) > cleaning",
        "(min(lengths) + GRACE) >= cleaning",
        ("tests/test_independent.py", "tests/test_data.py"),
    ),
    (
        "metrics/cider.py",
        "min(count, wanted[gram]) * wanted[gram]",
        "count * wanted[gram]",
        ("tests/test_independent.py", "tests/test_evaluation.py"),
    ),
    (
        "inspection/analyses/identify/effective.py",
        "max(len(self.rows), self.width) * EPSILON",
        "1e-30",
        ("tests/test_independent.py", "tests/test_inspect_identify.py"),
    ),
    (
        "inspection/analyses/probe/codelength.py",
        "train_probes(train.first(start), stop",
        "train_probes(train.first(end), stop",
        ("tests/test_independent.py", "tests/test_inspect_probe.py"),
    ),
    # Others.
    (
        "nn/attention.py",
        "shift = self.distances.shift(q, found.query_position, found.keys.shape[2])",
        "shift = self.distances.shift(q, 0, found.keys.shape[2])",
        GRID,
    ),
    ("nn/attention.py", "q = self.distances.rotate(q, found.query_position)", "q = self.distances.rotate(q, 0)", GRID),
    (
        "nn/attention.py",
        "joined = joined if rows is None else rows.ungroup(joined)",
        "joined = joined if rows is None else rows.ungroup(joined.flip(1))",
        (*SEARCH, *GRID),
    ),
    ("nn/scores.py", "self.scale = 1 / math.sqrt(width)", "self.scale = 1 / width", GRID),
    ("nn/scores.py", "return by_head(queries, self.query) + self.bias", "return by_head(queries, self.query)", GRID),
    (
        "nn/source_rows.py",
        "ordered * most + torch.arange(len(order), device=order.device) - before[ordered]",
        "ordered * most + torch.arange(len(order), device=order.device).flip(0) - before[ordered]",
        SEARCH,
    ),
    (
        "nn/key_value_cache.py",
        "room = max(self.room, self.length // ROOM * ROOM + ROOM)",
        "room = self.room + 1",
        ("tests/test_prepared.py", *GRID),
    ),
    ("models/memory.py", "shared = shared.restricted_to(used)", "pass", SEARCH),
    ("models/encoders.py", 'read = states if name == "forward" else backwards(states, lengths)', "read = states", GRID),
    ("models/encoders.py", "states = tap(layer(states * real))", "states = tap(layer(states))", GRID),
    (
        "models/decoder.py",
        "if start > 0:\n            return states\n        return torch.cat([states[:, :1] + added",
        "return torch.cat([states[:, :1] + added",
        GRID,
    ),
    (
        "models/pooling.py",
        "states.masked_fill(~mask[:, :, None], -torch.inf).amax(1)",
        "states.amax(1)",
        ("tests/test_shape_laws.py", "tests/test_shapes.py"),
    ),
    (
        "models/acceptor.py",
        "torch.cat([one, other, (one - other).abs(), one * other], dim=1)",
        "torch.cat([one, other, (one - other), one * other], dim=1)",
        ("tests/test_shape_laws.py", "tests/test_shapes.py"),
    ),
    ("models/looker.py", "for look in self.looks:", "for look in self.looks[:1]:", ("tests/test_questions.py",)),
    (
        "objectives/objective.py",
        "smoothing - 1))",
        "-1))",
        ("tests/test_training.py", "tests/test_parity.py", "tests/test_learning.py"),
    ),
    ("search/beam.py", "-math.inf", "-1e4", SEARCH),
    ("search/sampling.py", "temperature", "temperature_", ("tests/test_sampling.py",)),
    ("search/hypothesis.py", "** penalty", "** (penalty + 0.1)", SEARCH),
    ("search/ensemble.py", "- math.log(len(steps))", "", ("tests/test_search.py", "tests/test_translate.py")),
    ("metrics/meteor.py", "0.5", "0.4", ("tests/test_meteor.py",)),
    ("metrics/significance.py", "+ 1) / (", "+ 0) / (", ("tests/test_comparison.py",)),
    (
        "data/packing.py",
        "asked, start = end, start + stride",
        "asked, start = end, start + length",
        ("tests/test_shapes.py", "tests/test_data.py"),
    ),
    ("tasks/outputs/masked_words.py", "luck < HIDDEN + REPLACED", "luck < HIDDEN", ("tests/test_masking.py",)),
    (
        "tasks/outputs/label.py",
        "counts.sum() / (len(counts) * counts)",
        "counts / counts.sum()",
        ("tests/test_shapes.py", "tests/test_small_tasks.py"),
    ),
    (
        "tasks/outputs/number.py",
        "slope = slope if 0 < slope < math.inf else 1.0",
        "slope = slope",
        ("tests/test_small_tasks.py",),
    ),
    (
        "tasks/inputs/text.py",
        "lengths[group[0]] + framing) > tokens",
        "lengths[group[0]] + framing) >= 2 * tokens",
        ("tests/test_translate.py", "tests/test_shapes.py"),
    ),
    (
        "tasks/inputs/image.py",
        "one[:, y : y + high, x : x + wide]",
        "one[:, y : y + high, y : y + wide]",
        ("tests/test_captions.py",),
    ),
    (
        "tasks/task.py",
        "fits = [max(len(source), len(target)) <= longest",
        "fits = [max(len(source), len(target)) < longest",
        ("tests/test_data.py",),
    ),
    ("training/schedule.py", "0.5", "0.4", ("tests/test_training.py",)),
    ("text/loops.py", ">=", ">", ("tests/test_search.py", "tests/test_translate.py", "tests/test_beams.py")),
    ("inspection/flow.py", "/ 2", "/ 3", ("tests/test_inspect_contributions.py", "tests/test_inspect_attention.py")),
)


def run(number: int) -> bool | None:
    """Whether the tests notice a mutation; `None` if its place is not in the code any more."""
    path, old, new, tests = MUTATIONS[number]
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        shutil.copytree(ROOT / "regard", copy / "regard")
        shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        for folder in ("benchmarks", "docs", "recipes"):
            (copy / folder).symlink_to(ROOT / folder)
        shutil.copy(ROOT / "pyproject.toml", copy)
        target = copy / "regard" / path
        text = target.read_text(encoding="utf-8")
        if old not in text:
            return None
        target.write_text(text.replace(old, new, 1), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": place, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        return done.returncode != 0


if __name__ == "__main__":
    first, last = (int(sys.argv[place]) if len(sys.argv) > place else None for place in (1, 2))
    chosen = range(len(MUTATIONS))[first:last]
    noticed, start = 0, time.monotonic()
    for number in chosen:
        found = run(number)
        noticed += bool(found)
        word = "not in the code" if found is None else "noticed" if found else "SURVIVES"
        path, old, new, _ = MUTATIONS[number]
        print(f"{number:3} {word:15} {path}: {old[:50]!r} → {new[:40]!r}", flush=True)
    print(f"{noticed} of {len(chosen)} mutations noticed, {time.monotonic() - start:.0f} s")
