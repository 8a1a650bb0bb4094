"""Pruning: gates learn which heads a converged model can do without; those are removed, and the rest settles.

Voita et al. (2019), "Analyzing multi-head self-attention: specialized heads do the heavy lifting, the rest can be
pruned".
"""

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch

from regard.config import model as cells
from regard.config.run import RunConfig
from regard.config.training import Schedule
from regard.data.corpus import even_sample
from regard.foundation.device import choose_device
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import put_weights, weights_of
from regard.inspection.analyses.prune.gates import GatedTrainer
from regard.inspection.analyses.prune.removal import NO_PROJECTIONS, cell_without_heads, without_heads
from regard.inspection.analyses.prune.result import Gate, Kept, Pruning, Row
from regard.inspection.attention_kinds import kind_of
from regard.inspection.interventions import attentions
from regard.inspection.states import end_of_text
from regard.metrics.intervals import Interval, Totals, ratio_intervals
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.runs.checkpoints import Checkpoints
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.tasks.preparation import Prepared, is_prepared, prepare
from regard.tasks.task import Task
from regard.training.interruption import Interrupted, Interruption
from regard.training.loop import train
from regard.training.trainer import Trainer
from regard.training.validation import JUDGING_SEED, Validation, validate
from regard.training.view import Moment, View, default_view, scores_line

Estimate = tuple[float, Interval | None]
"""A value and its 95 % interval."""

Which = Literal["encoder", "decoder", "source", "picture", "places", "all"]
"""Whose heads: inside the source, inside the target, to the source, to the picture, inside the picture, or all."""

FIRST_PRICE, LAST_PRICE = 0.01, 10.0
"""λ if a number of heads is given: it rises between these by the same factor every step."""

SETTLING = 0.3
"""Share of the steps after the gates, in which the remaining model is trained further."""

CALMER = 0.25
"""The peak learning rate of a converged model's second training, as a share of that of its first."""

ROWS = 40
"""Measurements on the way, at most."""


def prune(
    run: Path | str,
    *,
    keep: int | None = None,
    price: float | None = None,
    which: Which | None = None,
    steps: int = 1500,
    directory: Path | None = None,
    seed: int | None = None,
    view: View | None = None,
) -> Pruning:
    """Prune the heads of a trained run of any task into a new run (next to it, its name ending in `-pruned`).

    By default the heads are the encoder's, or the decoder's where there are none; gates learn by the task's own loss.
    With `keep`, λ rises until so few heads are open; with `price`, λ is constant, as in the paper, and what stays open
    stays; with both, λ is constant and the most open ones are kept. The run itself is never changed.
    """
    old = Run.open(run)
    directory = directory or old.directory.with_name(f"{old.name}-pruned")
    Run.refuse_occupied(directory)
    model = load_run(old).model
    which, names = choose_attentions(model, which)
    heads = sum(attentions(model)[name].heads for name in names)
    _check(old, heads, keep, price, steps, which)
    view = view or default_view()
    work = _PruningWork(old, model, names, which, steps, seed, view)
    try:
        with Interruption() as interruption:
            kept = work.gate(keep, price, interruption)
        found = work.found(kept, directory)
        _make(found, work)
        found.save(directory / "pruning.json")
        outcome = train(Run.open(directory).config, directory, resume=True, view=view)
    finally:
        view.close()
    settled = work.compare(load_run(directory).model)[1]
    found = replace(found, test_after=outcome.test, validation_after=outcome.validation, settled=settled)
    for ending in ("json", "html"):
        found.named(directory).save(directory / f"pruning.{ending}")
    return found


def choose_attentions(model: Model | EncoderModel, which: Which | None = None) -> tuple[Which, list[str]]:
    """Whose heads are meant, and the names of their attentions; refused in a sentence where there are none."""
    if which is not None and which not in get_args(Which):
        raise UsageError(f"There are no heads of the kind `{which}`: use one of {', '.join(get_args(Which))}.")
    found = attentions(model)
    if not found:
        remedy = ": regard inspect attribute and probe apply to every model" if end_of_text(model) else ""
        raise UsageError(f"This model ({model.cell.cell}) has no attention, so it has no heads to prune{remedy}.")
    apart = [name for name, attention in found.items() if attention.out is not None]
    there = [kind for kind in get_args(Which)[:-1] if any(kind_of(name) == kind for name in apart)]
    if which is None and there:
        which = there[0]
    names = [name for name in apart if which in ("all", kind_of(name))]
    if which is None or (not names and any(which in ("all", kind_of(name)) for name in found)):
        raise UsageError(NO_PROJECTIONS)
    if not names:
        hint = f": use --which {' or '.join(there)}." if there else ", and none that can be taken apart."
        raise UsageError(f"This model ({model.cell.cell}) has no heads of the kind `{which}`{hint}")
    return which, names


class _PruningWork:
    """What pruning has at hand: the run, its data, and the course of its gates."""

    def __init__(
        self,
        run: Run,
        model: Model | EncoderModel,
        names: list[str],
        which: Which,
        steps: int,
        seed: int | None,
        view: View,
    ) -> None:
        self.run, self.model, self.names, self.which, self.view = run, model, names, which, view
        self.steps = steps - round(SETTLING * steps)
        self.settling = steps - self.steps
        config = run.config
        if seed is not None:
            config = config.model_copy(update={"training": config.training.model_copy(update={"seed": seed})})
        self.config = config
        self.prepared: Prepared = prepare(config, run.directory)
        self.device = choose_device(config.training.device)
        self.metric: str | None = None
        """What each number of heads is worth by: the first score of the run's task, or its perplexity or loss."""
        self.rows: list[Row] = []
        self._before: Totals | None = None
        """The validation loss of every example under the run's own weights."""
        self.gates: list[Gate] = []

    def gate(self, keep: int | None, price: float | None, interruption: Interruption) -> Kept:
        """Train the gates, and return the heads that are kept."""
        training = second_course(self.config, self.model, self.names, self.steps)
        task = self.prepared.task.configured(training)
        batches = task.batches(self.prepared.train, training=True)
        trainer = GatedTrainer(training, task, batches, self.model, self.names, device=self.device)
        self._measure(trainer, trainer.gates.open(), price=0.0)
        closed: dict[tuple[str, int], int] = {}
        self.view.start(0, self.steps)
        interruption.patient = True
        try:
            while trainer.progress.step < self.steps:
                rise = trainer.progress.step / max(1, self.steps - 1)
                trainer.price = FIRST_PRICE * (LAST_PRICE / FIRST_PRICE) ** rise if price is None else price
                trainer.update()
                step, kept = trainer.progress.step, trainer.gates.open()
                self._show(trainer)
                if interruption.requested is not None:
                    raise Interrupted(
                        f"Stopped before anything was written; {self.run.directory} is as it was.",
                        interruption.requested or signal.SIGTERM,
                    )
                if trainer.progress.bad_in_row >= training.training.max_bad_steps:
                    raise RegardError("The loss is no longer finite while the gates learn: use a smaller --lambda.")
                for name, head, value in trainer.gates.values():
                    if value > 0:
                        closed.pop((name, head), None)
                    else:
                        closed.setdefault((name, head), step)
                if keep is not None and size(kept) <= keep:
                    break
                since = step - self.rows[-1].step
                if size(kept) != self.rows[-1].heads and since >= self.steps / ROWS:
                    self._measure(trainer, kept, price=trainer.price)
        finally:
            trainer.close()
        interruption.patient = False
        kept = trainer.gates.open() if keep is None else trainer.gates.most_open(keep)
        self._measure(trainer, kept, price=trainer.price)
        self.gates = [
            Gate(name, head, value, head in kept[name], None if head in kept[name] else closed.get((name, head)))
            for name, head, value in trainer.gates.values()
        ]
        self.model = model_of(trainer)
        return kept

    def found(self, kept: Kept, directory: Path) -> Pruning:
        """The result so far, before what is left has settled."""
        result = self.run.info.get("result", {})
        return Pruning(
            run=str(self.run.directory),
            directory=str(directory),
            which=self.which,
            metric=self.metric,
            gates=self.gates,
            rows=self.rows,
            kept=kept,
            steps=self.rows[-1].step,
            settling=self.settling,
            validation_before=result.get("validation"),
            test_before=result.get("test"),
        )

    def task_of(self, cell: cells.Model) -> Task:
        """The run's task with another cell."""
        return self.prepared.task.configured(self.config.model_copy(update={"model": cell}))

    def remove_heads(self, model: Model | EncoderModel, kept: Kept) -> Model | EncoderModel:
        """A model with only these heads left."""
        return without_heads(model, kept, lambda cell: self.task_of(cell).build())

    def judge(self, model: Model | EncoderModel) -> Validation:
        """A model on the run's validation data; where it writes, greedily."""
        task = self.task_of(model.cell)
        return validate(
            task,
            model,
            task.batches(self.prepared.validation),
            even_sample(self.prepared.validation_pairs, self.config.training.validation_sample),
            thorough=False,
            device=self.device,
        )

    def compare(self, model: Model | EncoderModel) -> tuple[Estimate, Estimate]:
        """Return the validation loss of a model and how far it is above the run's own, both with their intervals."""
        losses, counts = self._losses(model)
        if self._before is None:
            self._before = self._losses(self.model)[0]
        rows = np.stack([losses, losses - self._before], axis=1)
        means = (rows.sum(0) / max(1.0, counts.sum())).tolist()
        ends = ratio_intervals(rows, counts[:, None])
        pairs = [None, None] if ends is None else [(float(low), float(high)) for low, high in ends]
        return (means[0], pairs[0]), (means[1], pairs[1])

    @torch.no_grad()
    def _losses(self, model: Model | EncoderModel) -> tuple[Totals, Totals]:
        """Return the loss of every validation example, and how many answers it asks for."""
        task, random = self.task_of(model.cell), torch.Generator().manual_seed(JUDGING_SEED)
        parts = []
        training = model.training
        model.eval()
        for batch in task.batches(self.prepared.validation).once():
            parts.append(
                task.output.row_losses(model, task.training_batch(batch, random, training=False).to(model.device))
            )
        model.train(training)
        losses, counts = (torch.cat(some).numpy() for some in zip(*parts, strict=True))
        return losses, counts

    def _measure(self, trainer: GatedTrainer, kept: Kept, *, price: float) -> None:
        """What the model would be worth if the gates were fixed now."""
        facts = (judged := self.judge(self.remove_heads(model_of(trainer), kept).eval())).facts()
        self.metric = self.metric or next(
            name
            for name in (*judged.scores.values, "perplexity", "loss")
            if name in (*self.config.task.scores, "perplexity", "loss") and facts.get(name) is not None
        )
        step, score = trainer.progress.step, float(facts[self.metric])
        loss, rise = self.compare(self.remove_heads(model_of(trainer), kept).eval())
        self.rows.append(
            Row(
                step,
                price,
                size(kept),
                judged.loss,
                score,
                {name: list(kept[name]) for name in kept},
                loss_95=loss[1],
                rise=rise[0],
                rise_95=rise[1],
            )
        )
        self.view.say(
            f"step {step:,}: λ {price:.3g}, {size(kept)} heads open; with the others gone {scores_line(facts)}"
        )

    def _show(self, trainer: Trainer) -> None:
        progress, window = trainer.progress, trainer.progress.window
        self.view.moment(
            Moment(
                step=progress.step,
                total=self.steps,
                loss=window.loss / max(1, window.tokens),
                rate=trainer.rate,
                tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                unit=trainer.task.output.unit,
                skipped=progress.skipped,
            )
        )


def size(kept: Kept) -> int:
    """How many heads."""
    return sum(map(len, kept.values()))


def second_course(config: RunConfig, model: Model | EncoderModel, names: Sequence[str], steps: int) -> RunConfig:
    """How a converged model goes on: calmer, and with all else frozen where only what reads is pruned."""
    training = config.training
    peak = CALMER * (training.optimizer.learning_rate or 0.0)
    frozen = list(training.frozen or [])
    pruned = {name.split(".")[0] for name in names}
    if "decoder" not in pruned:
        known = dict(model.named_parameters())
        rest = {name.split(".")[0] for name in known} - pruned - {"source_embedding", "_source_embedding"}
        frozen += [part if part in known else f"{part}.*" for part in sorted(rest)]
    every = max(1, steps // 4)
    return config.model_copy(
        update={
            "training": training.model_copy(
                update={
                    "steps": steps,
                    "optimizer": training.optimizer.model_copy(update={"learning_rate": peak}),
                    "schedule": Schedule(kind="cosine", warmup=max(1, steps // 20)),
                    "frozen": frozen or None,
                    "ema": 0.0,
                    "average": 0,
                    "validate_every": every,
                    "checkpoint_every": every,
                }
            )
        }
    )


def _make(found: Pruning, work: _PruningWork) -> None:
    """The pruned run as a directory of its own, with a first checkpoint from which it is trained on like any other."""
    directory = Path(found.directory)
    model = work.remove_heads(work.model, found.kept)
    config = second_course(work.config, model, work.names, work.settling)
    config = config.model_copy(update={"model": cell_without_heads(work.run.config.model, found.kept)})
    run = Run.create(directory, config)
    try:
        for part in (work.run.tokenizers, work.run.data):
            shutil.copytree(part, directory / part.name, copy_function=_link)
        run.note(
            tokenizers=work.run.info.get("tokenizers"),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            pruned={
                "from": found.run,
                "which": found.which,
                "heads": len(found.gates),
                "kept": size(found.kept),
                "steps": found.steps,
                "price": found.rows[-1].price,
                "before": found.test_before or found.validation_before,
            },
        )
        task = work.prepared.task.configured(config)
        batches = task.batches(work.prepared.train, training=True)
        trainer = Trainer(config, task, batches, device=work.device)
        put_weights(trainer.model, weights_of(model))
        score = work.judge(model_of(trainer).eval()).score(config.training.early_stopping.metric)
        trainer.progress.best, trainer.progress.best_step = score, 0 if score is not None else None
        keeping = Checkpoints(run.checkpoints, keep_last=config.training.keep_last, keep_best=config.training.keep_best)
        keeping.save(trainer.snapshot(score=score, regular=True))
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)  # a run without its first weights is none
        raise


def _link(source: str, target: str) -> str:
    """Token stores never change, so that two runs can share them; where they cannot, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _check(run: Run, heads: int, keep: int | None, price: float | None, steps: int, which: Which) -> None:
    if keep is None and price is None:
        raise UsageError(f"How many of the {heads} heads should be kept? Give --keep N, or a price with --lambda L.")
    if keep is not None and not 0 <= keep < heads:
        raise UsageError(f"--keep {keep}: the run has {heads} heads of the kind `{which}`; keep from 0 to {heads - 1}.")
    if price is not None and not price > 0:
        raise UsageError(f"--lambda {price:g}: the price of an open gate must be above 0; the paper used about 0.1.")
    if steps < 20:
        raise UsageError(f"--steps {steps}: gates need at least 20 steps, better a thousand.")
    if not is_prepared(run.directory):
        raise UsageError(
            f"{run.directory} no longer holds its training data (data/), which gates learn from: "
            "put it back, or train the run again."
        )


def model_of(trainer: Trainer) -> Model | EncoderModel:
    """The model of a trainer."""
    assert isinstance(trainer.model, Model | EncoderModel)
    return trainer.model
