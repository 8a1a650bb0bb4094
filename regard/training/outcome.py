"""The end of a run: its final weights are chosen, evaluated and written, and its card is written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.foundation.weights import weights_of
from regard.runs.checkpoints import Checkpoint, Checkpoints, Damaged
from regard.runs.run import Run
from regard.tasks.judgement import Judgement
from regard.tasks.preparation import Prepared, training_pairs
from regard.training.baseline import MOST_LABELS, can_fit, fit_baseline, has_too_many_labels, is_wanted
from regard.training.card import Card, write_card
from regard.training.curves import can_draw, draw_curves
from regard.training.journal import Journal
from regard.training.trainer import Trainer
from regard.training.validation import Validation, judge
from regard.training.view import View, scores_line


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run."""

    run: Run
    step: int
    choice: str
    """A short description of the final weights."""
    validation: dict[str, Any]
    """Loss, perplexity and scores of the final weights."""
    test: dict[str, Any] | None
    next_command: str
    """The command to run next."""
    note: str = ""
    """Why the scores differ from those of the last validation during training; empty if they do not."""
    already: bool = False
    """Whether the run was already finished."""


def known_outcome(run: Run, *, already: bool = False) -> Outcome:
    """Return the outcome of a finished run from its `run.json`."""
    result = run.info.get("result", {})
    return Outcome(
        run=run,
        step=int(run.info.get("step", 0)),
        choice=str(result.get("choice", "")),
        validation=dict(result.get("validation", {})),
        test=result.get("test"),
        next_command=str(result.get("next", f"regard translate {run.directory} < in.txt > out.txt")),
        note=str(result.get("note", "")),
        already=already,
    )


def explain_difference(last: Mapping[str, Any] | None, final: Mapping[str, Any], reasons: Sequence[str]) -> str:
    """Return why final scores differ from the last validation during training, or an empty string if they do not."""
    if last is None or scores_line(last) == scores_line(final) or not reasons:
        return ""
    return f"Differs from the last validation ({scores_line(last)}): {', '.join(reasons)}."


def choose_weights(trainer: Trainer, checkpoints: Checkpoints, average: int) -> tuple[dict[str, Tensor], str]:
    """Return the final weights and their description: those of the best checkpoint, or the average of the last few."""
    progress = trainer.progress
    kept = ", moving average" if trainer.average else ""
    if average:
        steps = checkpoints.last_regular(average, up_to=progress.step)
        parts = (trainer.inference_weights(_whole(checkpoints, step)) for step in steps)
        return mean_weights(parts), f"average of the last {len(steps)} checkpoints{kept}"
    for step in (progress.best_step, progress.step):
        if step is None:
            continue
        try:
            weights = trainer.inference_weights(checkpoints.load(step))
        except Damaged as damage:
            checkpoints.warn(f"The best checkpoint (step {step}) is damaged ({damage}). The last one is used instead.")
            continue
        return weights, f"{'best' if step == progress.best_step else 'last'} checkpoint, step {step:,}{kept}"
    raise RegardError(f"No checkpoint in {checkpoints.directory} is complete, so that the run cannot be finished.")


def mean_weights(parts: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each tensor, computed in double precision, with one part in memory at a time."""
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for part in parts:
        count += 1
        for name, tensor in part.items():
            kinds[name] = tensor.dtype
            sums[name] = sums[name].add_(tensor) if name in sums else tensor.double()
    if not count:
        raise RegardError("There is no checkpoint to average. Set training.average=0.")
    return {name: (total / count).to(kinds[name]) for name, total in sums.items()}


def finish(
    run: Run,
    config: RunConfig,
    trainer: Trainer,
    prepared: Prepared,
    *,
    validate: Callable[[nn.Module], Validation],
    checkpoints: Checkpoints,
    journal: Journal,
    view: View,
) -> None:
    """Choose the final weights, write and evaluate them, and write the card; repeating it gives the same result.

    All ranks share the evaluation; the first one writes.
    """
    progress, ranks = trainer.progress, trainer.ranks
    weights, choice = ranks.agree(lambda: choose_weights(trainer, checkpoints, config.training.average))
    reasons = [] if f"step {progress.step:,}" in choice else [f"the weights are the {choice}"]
    model = trainer.plain_model(weights)
    model.eval()
    if calibration := trainer.task.output.calibrate(model, prepared.validation_pairs):
        choice = f"{choice}; {calibration.note}"
        reasons.append(calibration.note)
        if calibration.warning:
            view.warn(calibration.warning)
    if search := trainer.task.output.thorough_search:
        reasons.append(search)
    if ranks.first:
        run.save_weights(weights_of(model))
    view.say(f"Final weights: {choice}.")
    validation = validate(model)
    test: Judgement | None = None
    if prepared.test_pairs:
        view.say(f"Evaluating {len(prepared.test_pairs):,} test {prepared.task.noun} …")
        test = judge(trainer.task, model, prepared.test_pairs, thorough=True, ranks=ranks)
    if not ranks.first:
        return

    last = next((line for line in reversed(journal.lines()) if line["kind"] == "validation"), None)
    journal.add("result", progress.step, **validation.facts())
    note = explain_difference(last, validation.facts(), reasons)
    if test:
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
        view.say(f"To plot the curves, install matplotlib with `{install_command('plots')}`.")
    write_card(
        Card(
            run=run,
            config=config,
            model=model,
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
    run.note(
        status="finished",
        result={"choice": choice, "validation": facts, "test": tested, "note": note, "next": following},
    )


def _baseline(config: RunConfig, prepared: Prepared, view: View) -> dict[str, Any] | str | None:
    """Return the scores of a linear model on the same data, or a sentence that explains why there are none."""
    if not is_wanted(config):
        return None
    if not can_fit():
        note = f"To compare with a linear model, install scikit-learn with `{install_command('baselines')}`."
        view.say(note)
        return note
    try:
        train = list(training_pairs(config))
    except RegardError as error:
        return f"No linear model was fitted, as the training corpus could not be read again: {error}"
    if has_too_many_labels(config, train):
        return f"No linear model was fitted, as there are more than {MOST_LABELS} labels."
    found = fit_baseline(config, train, prepared.validation_pairs, prepared.test_pairs)
    view.say(f"Linear model of the same data: {scores_line(found.get('test') or found['validation'])}.")
    return found


def _whole(checkpoints: Checkpoints, step: int) -> Checkpoint:
    try:
        return checkpoints.load(step)
    except Damaged as damage:
        raise RegardError(
            f"The checkpoint of step {step} is damaged ({damage}) and cannot be averaged. "
            "Continue with training.average=0."
        ) from None
