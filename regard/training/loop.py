"""The training loop: prepares, trains, validates, saves and finishes a run, which can be interrupted and resumed."""

import math
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config.run import RunConfig
from regard.data.corpus import Pair, even_sample
from regard.foundation.device import choose_device, choose_precision, keep_freed
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import build_to_fit, weights_of
from regard.metrics.scoring import SMALLER_IS_BETTER
from regard.runs.checkpoints import Checkpoints
from regard.runs.run import Run
from regard.tasks.preparation import Prepared, is_prepared, prepare
from regard.training.early_samples import EarlySamples
from regard.training.interruption import Interrupted, Interruption
from regard.training.journal import Journal
from regard.training.opening import (
    advice,
    begin_run,
    facts_of_training,
    is_restarted,
    note_on_processes,
    open_run,
    process_facts,
    refuse_unsupported,
    stop_run,
)
from regard.training.outcome import Outcome, finish, known_outcome
from regard.training.progress import Progress, perplexity
from regard.training.ranks import Ranks
from regard.training.start import Start, Tuning, facts_of
from regard.training.summary import data_facts, model_facts
from regard.training.trackers import TRACKERS, Trackers, require_trackers, wanted_trackers
from regard.training.trainer import Trainer
from regard.training.validation import Validation, take_sample, validate
from regard.training.view import Moment, View, default_view

VIEW_EVERY = 0.2
"""Seconds between two updates of the view."""


def train(config: RunConfig, directory: Path, *, resume: bool = False, view: View | None = None) -> Outcome:
    """Train a run in a new directory, or resume the run in it, and return its outcome.

    A resumed run ends with the same weights, bit for bit, as an uninterrupted one.
    """
    ranks = Ranks.from_environment()
    view = (view or default_view()) if ranks.first else View()
    if not resume:
        Start.of(config)  # raises an error before anything is created
    refuse_unsupported(config, ranks)
    device = choose_device(config.training.device, ranks.local_rank)
    keep_freed()
    choose_precision(config.training.precision, device)
    require_trackers(config)
    with ExitStack() as stack:
        stack.callback(view.close)
        stack.enter_context(ranks.together(device))  # before signals are handled, so that waiting can be interrupted
        interruption = stack.enter_context(Interruption())
        torch.set_flush_denormal(True)  # denormal numbers are negligible, but a hundred times slower
        stack.callback(torch.set_flush_denormal, False)
        resume = resume or ranks.decide(lambda: is_restarted(directory))
        ranks.refuse_differences(facts_of_training(config, directory, resume=resume))
        run = open_run(config, directory, ranks, resume=resume)
        if ranks.first:
            stack.enter_context(run.lock())
        if run.info.get("status") == "finished" and config.training.steps <= int(run.info.get("steps", 0)):
            return known_outcome(run, already=True)
        ranks.wait()
        if ranks.first:
            begin_run(run, config)
        training_run: _TrainingRun | None = None
        try:
            training_run = _TrainingRun(config, run, ranks, device, view, interruption)
            return training_run.execute()
        except (Interrupted, KeyboardInterrupt) as stop:
            stop_run(run, ranks)
            number = stop.exit_code - 128 if isinstance(stop, Interrupted) else signal.SIGINT
            raise Interrupted(f"Stopped. Continue with: regard train --resume {directory}", number) from None
        except RegardError:
            stop_run(run, ranks)
            if ranks.first and not resume and not (training_run and training_run.trainer.progress.step):
                shutil.rmtree(directory, ignore_errors=True)  # no step has been trained: delete the new directory
            raise
        except OSError as error:
            stop_run(run, ranks)
            reason = error.strerror or str(error)
            raise RegardError(
                f"The run stopped: {error.filename or directory}: {reason}. Fix this, then resume with: "
                f"regard train --resume {directory}"
            ) from error


class _TrainingRun:
    """The training of a run in one process."""

    def __init__(
        self,
        config: RunConfig,
        run: Run,
        ranks: Ranks,
        device: torch.device,
        view: View,
        interruption: Interruption,
    ) -> None:
        self.config, self.training = config, config.training
        self.run, self.ranks, self.device = run, ranks, device
        self.view, self.interruption = view, interruption
        names = wanted_trackers(config) if ranks.first else []
        self.trackers = Trackers([TRACKERS[name](run, config) for name in names], view.warn)
        self.journal = Journal(run.metrics, self.trackers.add)
        self.checkpoints = Checkpoints(
            run.checkpoints,
            keep_last=max(config.training.keep_last, config.training.average),
            keep_best=config.training.keep_best,
            warn=view.warn,
            check_state=Progress.from_json,
        )
        self.prepared = self._prepare()
        self.task = self.prepared.task
        self.trainer = self._trainer()
        self.shards = None
        if self.trainer.parallel.is_sharded:
            from regard.training.sharded_checkpoints import ShardedCheckpoints

            self.shards = ShardedCheckpoints(self.checkpoints, ranks)
        self.scored = self.task.batches(self.prepared.validation)
        self._shown = 0.0
        alone = ranks.first and not self.trainer.parallel.is_sharded  # a sample must not need other ranks
        self._samples = EarlySamples(view.early_samples if alone else 0)

    def execute(self) -> Outcome:
        """Train from the current step to the end, and finish the run."""
        try:
            try:
                self._restore()
                self._train()
            finally:
                self.trainer.close()
            self.ranks.wait()  # until the last checkpoint is written
            finish(
                self.run,
                self.config,
                self.trainer,
                self.prepared,
                validate=partial(self._judge, thorough=True),
                checkpoints=self.checkpoints,
                journal=self.journal,
                view=self.view,
            )
        finally:
            self.trackers.close()
        self.ranks.wait()
        return known_outcome(self.run)

    def _prepare(self) -> Prepared:
        """Build tokenizers and stores on rank 0; the other ranks open them afterwards."""
        known = is_prepared(self.run.directory)
        self.ranks.wait()

        def build() -> None:
            self.run.remove_leftovers()
            prepare(self.config, self.run.directory, self.view.preparing)

        self.ranks.first_alone("prepared", build)
        prepared = self.ranks.agree(lambda: prepare(self.config, self.run.directory))
        if self.ranks.first:
            if known:
                self.run.check("data")
                prepared.verify()
            self.run.record("tokenizers", "data")
        self.ranks.wait()
        self.view.facts("Data", data_facts(prepared))
        if prepared.report.overlap:
            noun = prepared.task.noun
            self.view.warn(f"{prepared.report.overlap:,} validation {noun} also occur in the training data.")
        for note in prepared.report.notes:
            self.view.warn(note)
        return prepared

    def _trainer(self) -> Trainer:
        ranks, prepared = self.ranks, self.prepared
        batches = self.task.batches(prepared.train, rank=ranks.rank, world_size=ranks.world_size, training=True)
        trainer = Trainer(
            self.config, self.task, batches, device=self.device, ranks=ranks, build=self._build_to_resume()
        )
        if note := advice(self.config, ranks):
            self.view.warn(note)
        if ranks.world_size > 1:
            self.view.facts("Processes", process_facts(self.config, ranks, trainer.parallel.name))
        self.view.facts("Model", model_facts(self.config, trainer.model, prepared, self.device))
        if self.ranks.first:
            self.run.note(
                parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
                tokenizers={
                    name: {"fingerprint": vocabulary.fingerprint, "vocabulary": vocabulary.size}
                    for name, vocabulary in prepared.task.vocabularies.by_name.items()
                },
            )
        return trainer

    def _build_to_resume(self) -> Callable[[], nn.Module] | None:
        """Return a function that builds the model and checks its size, if there are weights to resume from."""
        newest = self.checkpoints.latest_weights()
        if newest is None:
            return None
        path, size = newest
        return partial(build_to_fit, self.task.build, size // 2, f"The weights in {path}")  # of at least two bytes each

    def _restore(self) -> None:
        """Restore the newest complete checkpoint, if there is one, and discard what was recorded after it."""
        if self.ranks.first:
            self.checkpoints.clean()
        self.ranks.wait()
        checkpoint = self.ranks.agree(self.checkpoints.latest)
        if checkpoint:
            self.ranks.agree(lambda: self.trainer.restore(checkpoint))
            if note := note_on_processes(checkpoint, self.ranks):
                self.view.warn(note)
        elif start := Start.of(self.config):
            self._load_start(start)
        self.trainer.tuning = Tuning(self.training.tune, self.run.info.get("taken", ()))
        progress = self.trainer.progress
        if progress.total < self.training.steps:  # more steps than before: reset early stopping
            progress.stopped_early, progress.waited = False, 0
        progress.total = self.training.steps
        if self.ranks.first:
            self.checkpoints.forget_after(progress.step)
            self.journal.rewind(progress.step)
            if checkpoint:
                self.view.say(f"Continuing after step {progress.step:,}.")
            if progress.machine != self.trainer.machine:
                self.view.warn(
                    f"This run was trained on {progress.machine} so far, and now on {self.trainer.machine}. It "
                    "continues, but not bit for bit."
                )
        progress.machine = self.trainer.machine
        self.trackers.begin(progress.step)

    def _load_start(self, start: Start) -> None:
        """Load weights from the run that this run starts from."""
        weights = start.weights_for(self.trainer.model)
        if self.training.tune == "fresh" and weights.keys() == weights_of(self.trainer.model).keys():
            raise UsageError(
                f"training.tune `fresh` leaves no weights to train: all are taken from {start.run.directory}. Set it "
                "to `all` or `gradual`."
            )
        self.trainer.start_with(weights)
        self.view.facts(f"From {start.run.directory}", facts_of(self.trainer.model, weights))
        if self.ranks.first:
            self.run.note(taken=list(weights))
        self.ranks.wait()

    def _train(self) -> None:
        trainer, training = self.trainer, self.training
        progress = trainer.progress
        if progress.step >= training.steps or progress.stopped_early:
            return
        self.view.start(progress.step, training.steps)
        self.interruption.patient = True
        self._samples.start()
        while progress.step < training.steps and not progress.stopped_early:
            trainer.update(stop=self.interruption.requested is not None)
            last = progress.step == training.steps
            self._show()
            if self._samples.is_due():
                self._show_sample()
            if progress.step % training.log_every == 0 or last:
                self._log()
            score, improved = None, False
            if progress.step % training.validate_every == 0 or last:
                score, improved = self._validate()
            regular = progress.step % training.checkpoint_every == 0 or last or progress.stopped_early
            stop = self._asked_to_stop()
            failed = progress.bad_in_row >= training.max_bad_steps
            if regular or improved or stop or failed:
                self._save(score, regular=regular, at_once=stop or failed or last or progress.stopped_early)
            if failed:
                raise RegardError(self._advice())
            if stop:
                raise Interrupted("Stopped.", self.interruption.requested or signal.SIGTERM)
        self.interruption.patient = False

    def _log(self) -> None:
        window, progress = self.trainer.take_window(), self.trainer.progress
        mean = 1 / window.tokens if window.tokens else math.nan
        self._write(
            "train",
            loss=window.loss * mean,
            nll=window.nll * mean,
            perplexity=perplexity(window.nll * mean) if self.task.output.has_perplexity else None,
            learning_rate=self.trainer.rate,
            gradient_norm=window.norm,
            tokens=progress.tokens,
            skipped=progress.skipped,
            seconds=progress.seconds,
            tokens_per_second=window.tokens / max(window.seconds, 1e-9),
        )

    def _validate(self) -> tuple[float | None, bool]:
        """Validate the model; return the score (larger is better) and whether it is the best, on all ranks the same."""
        progress = self.trainer.progress
        self._samples.stop()
        with self.trainer.inference_model() as model:
            validation = self._judge(model, thorough=False)
        progress.seconds += validation.seconds
        score = validation.score(self.training.early_stopping.metric)
        value = 0.0 if score is None else score
        improved = score is not None and (progress.best is None or value > progress.best)
        if improved:
            progress.best, progress.best_step, progress.waited = value, progress.step, 0
        else:
            progress.waited += 1
            progress.stopped_early = progress.waited >= self.training.early_stopping.patience
        progress.plateau = progress.plateau.after(validation.loss, self.training.schedule)
        facts = validation.facts() | {"best": improved}
        self._write("validation", **facts)
        self.view.validated({"step": progress.step, **facts}, validation.samples)
        if progress.stopped_early:
            self.view.say(
                f"No improvement in {progress.waited} validations: stopping at step {progress.step:,} "
                f"(best: step {progress.best_step:,})."
                if progress.best_step is not None
                else f"No usable validation in {progress.waited}: stopping at step {progress.step:,}."
            )
        return score, improved

    def _show_sample(self) -> None:
        """Show an output of the model before the first validation."""
        with self._samples.timed(), self.trainer.inference_model() as model:
            sample = take_sample(self.task, model, self.prepared.validation_pairs)
        if sample is not None:
            self.view.sampled(self.trainer.progress.step, sample)

    def _judge(self, model: nn.Module, *, thorough: bool) -> Validation:
        pairs: Sequence[Pair] = self.prepared.validation_pairs
        if self.task.output.judged_on_sample:
            pairs = even_sample(pairs, self.training.validation_sample)
        return validate(self.task, model, self.scored, pairs, thorough=thorough, device=self.device, ranks=self.ranks)

    def _save(self, score: float | None, *, regular: bool, at_once: bool) -> None:
        """Write a checkpoint; that of a divided model is written while training goes on, unless `at_once`."""
        checkpoint = self.trainer.snapshot(score=score, regular=regular)
        if self.ranks.first:
            self.journal.flush()
        if self.shards:
            self.shards.save(checkpoint)
            if at_once:
                self.shards.finish()
        elif self.ranks.first:
            self.checkpoints.save(checkpoint)
        if self.ranks.first:
            progress = self.trainer.progress
            best = None
            if progress.best is not None:
                metric = self.training.early_stopping.metric
                value = -progress.best if metric in ("loss", *SMALLER_IS_BETTER) else progress.best
                best = {"metric": metric, "value": value, "step": progress.best_step}
            self.run.note(step=progress.step, best=best)

    def _asked_to_stop(self) -> bool:
        """Return whether to stop now; ranks agree on it in the next update, so that they stop at the same step."""
        if self.ranks.world_size == 1:
            return self.interruption.requested is not None
        return self.trainer.others_stop

    def _show(self) -> None:
        now, progress = time.monotonic(), self.trainer.progress
        if now - self._shown < VIEW_EVERY and progress.step < self.training.steps:
            return
        self._shown = now
        window = progress.window
        self.view.moment(
            Moment(
                step=progress.step,
                total=self.training.steps,
                loss=window.loss / window.tokens if window.tokens else math.nan,
                smoothing=self.training.label_smoothing,
                plain_loss=window.nll / window.tokens if window.tokens else math.nan,
                rate=self.trainer.rate,
                tokens_per_second=window.tokens / max(window.seconds, 1e-9),
                skipped=progress.skipped,
                unit=self.task.output.unit,
            )
        )

    def _write(self, kind: str, **facts: Any) -> None:
        if self.ranks.first:
            self.journal.add(kind, self.trainer.progress.step, **facts)

    def _advice(self) -> str:
        rate = self.training.optimizer.learning_rate
        return (
            f"{self.trainer.progress.bad_in_row} steps in a row had a loss or gradient that is not finite. The run has "
            f"stopped at step {self.trainer.progress.step:,} and is saved. Lower training.optimizer.learning_rate (now "
            f"{rate:g}), raise training.schedule.warmup, or check the data. Then start a new run, or continue with: "
            f"regard train --resume {self.run.directory} training.optimizer.learning_rate=…"
        )
