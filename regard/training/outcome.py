"""The end of a run: its weights are chosen, judged and written, and its card says what it is worth."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.config.run import RunConfig
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.foundation.weights import put_weights, weights_of
from regard.runs.checkpoints import Checkpoint, Checkpoints, Damaged
from regard.runs.run import Run
from regard.tasks.judgement import Judgement
from regard.tasks.preparation import Prepared, training_pairs
from regard.training.baseline import can_fit, fit_baseline, is_wanted
from regard.training.card import Card, write_card
from regard.training.curves import can_draw, draw_curves
from regard.training.journal import Journal
from regard.training.trainer import Trainer
from regard.training.validation import Validation
from regard.training.view import View, scores_line


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    run: Run
    step: int
    choice: str
    """Which weights were taken, in a few words."""
    validation: dict[str, Any]
    """Loss, perplexity and scores of the final weights."""
    test: dict[str, Any] | None
    next_command: str
    """What to type next."""
    already: bool = False
    """Whether the run had been finished before."""


def known_outcome(run: Run, *, already: bool = False) -> Outcome:
    """What a finished run says of itself."""
    result = run.info.get("result", {})
    return Outcome(
        run=run,
        step=int(run.info.get("step", 0)),
        choice=str(result.get("choice", "")),
        validation=dict(result.get("validation", {})),
        test=result.get("test"),
        next_command=str(result.get("next", f"regard translate {run.directory} < in.txt > out.txt")),
        already=already,
    )


def choose_weights(trainer: Trainer, checkpoints: Checkpoints, average: int) -> tuple[dict[str, Tensor], str]:
    """The weights of the run, and in words which they are: the best checkpoint's, or the average of the last few."""
    progress = trainer.progress
    kept = ", moving average" if trainer.average else ""
    if average:
        steps = checkpoints.last_regular(average, up_to=progress.step)
        parts = (trainer.speaking_weights(_whole(checkpoints, step)) for step in steps)
        return mean_weights(parts), f"average of the last {len(steps)} checkpoints{kept}"
    for step in (progress.best_step, progress.step):
        if step is None:
            continue
        try:
            weights = trainer.speaking_weights(checkpoints.load(step))
        except Damaged as damage:
            checkpoints.warn(f"The best checkpoint (step {step}) is damaged ({damage}): the last one is taken instead.")
            continue
        return weights, f"{'best' if step == progress.best_step else 'last'} checkpoint, step {step:,}{kept}"
    raise RegardError(f"No checkpoint in {checkpoints.directory} is whole: there are no weights to end the run with.")


def mean_weights(parts: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor, taken in double precision, one part in memory at a time."""
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for part in parts:
        count += 1
        for name, tensor in part.items():
            kinds[name] = tensor.dtype
            sums[name] = sums[name].add_(tensor) if name in sums else tensor.double()
    if not count:
        raise RegardError("There is no checkpoint to average: set training.average=0.")
    return {name: (total / count).to(kinds[name]) for name, total in sums.items()}


def finish(
    run: Run,
    config: RunConfig,
    trainer: Trainer,
    prepared: Prepared,
    *,
    judge: Callable[[], Validation],
    checkpoints: Checkpoints,
    journal: Journal,
    view: View,
) -> Outcome:
    """Choose the weights, write them, judge them, and write the card; done again, it gives the same."""
    progress = trainer.progress
    weights, choice = choose_weights(trainer, checkpoints, config.training.average)
    put_weights(trainer.model, weights)
    trainer.model.eval()
    if calibration := trainer.task.output.calibrate(trainer.model, prepared.validation_pairs):
        choice = f"{choice}; {calibration.note}"
        if calibration.warning:
            view.warn(calibration.warning)
    run.save_weights(weights_of(trainer.model))
    view.say(f"Final weights: {choice}.")

    validation = judge()
    journal.add("result", progress.step, **validation.facts())
    test: Judgement | None = None
    if prepared.test_pairs:
        view.say(f"Judging by {len(prepared.test_pairs):,} test {prepared.task.noun} …")
        test = trainer.task.output.judge(trainer.model, prepared.test_pairs, thorough=True)
        journal.add("test", progress.step, **test.scores.values)

    baseline = _baseline(config, prepared, view)
    lines = journal.lines()
    if can_draw():
        draw_curves(
            lines,
            run.directory / "curves.png",
            f"{run.name}: {config.cell}",
            loss_name=trainer.task.output.loss_name,
            best=progress.best_step,
        )
    else:
        view.say(f"For a picture of the curves, type `{install_command('plots')}`.")
    write_card(
        Card(
            run=run,
            config=config,
            model=trainer.model,
            task=trainer.task,
            prepared=prepared,
            progress=progress,
            device=trainer.device,
            choice=choice,
            validation=validation,
            test=test,
            baseline=baseline,
        )
    )
    facts = validation.facts()
    facts.pop("seconds")
    tested = dict(test.scores.values) if test else None
    following = trainer.task.output.next_command(str(run.directory))
    run.note(baseline=None if isinstance(baseline, str) else baseline)
    run.note(status="finished", result={"choice": choice, "validation": facts, "test": tested, "next": following})
    return known_outcome(run)


def _baseline(config: RunConfig, prepared: Prepared, view: View) -> dict[str, Any] | str | None:
    """The scores of a linear model on the same data, or a sentence that says why there are none."""
    if not is_wanted(config):
        return None
    if not can_fit():
        note = f"For the score of a linear model on the same data, type `{install_command('baselines')}`."
        view.say(note)
        return note
    try:
        train = list(training_pairs(config))
    except RegardError as error:
        return f"No linear model was fitted, as the training corpus could not be read again: {error}"
    found = fit_baseline(config, train, prepared.validation_pairs, prepared.test_pairs)
    view.say(f"Linear model of the same data: {scores_line(found.get('test') or found['validation'])}.")
    return found


def _whole(checkpoints: Checkpoints, step: int) -> Checkpoint:
    try:
        return checkpoints.load(step)
    except Damaged as damage:
        raise RegardError(
            f"The checkpoint of step {step} is damaged ({damage}) and cannot be averaged: "
            "continue with training.average=0."
        ) from None
