"""How much of a run's score is lost without each head."""

from collections.abc import Sequence

import numpy as np

from regard.data.corpus import Pair
from regard.foundation.progress import Progress
from regard.inspection.analyses.heads.importance import every_head
from regard.inspection.interventions import scale_head
from regard.metrics.intervals import Interval, Totals, bootstrap_interval
from regard.metrics.scoring import METRICS, make
from regard.nn import taps
from regard.tasks.judgement import Judgement
from regard.tasks.loaded import LoadedRun

Lost = dict[tuple[str, int], tuple[float, Interval | None]]
"""How much of a score is lost without each head, and the 95 % interval of that."""


def lost_scores(subject: LoadedRun, examples: Sequence[Pair], progress: Progress | None) -> tuple[str, Lost]:
    """The first score of the run's task, and how much of it is lost without each head; texts are greedy."""
    model, output = subject.model, subject.output
    whole = output.judge(model, examples, thorough=False)
    metric = next(name for name in whole.scores.values if name in subject.config.task.scores)
    every = list(every_head(model))
    found: Lost = {}
    for done, head in enumerate(every, start=1):
        with taps.watch(model, write=scale_head(*head, 0.0)):
            without = output.judge(model, examples, thorough=False)
        lost = whole.scores[metric] - without.scores[metric]
        found[head] = lost, _lost_interval(metric, whole, without)
        if progress:
            progress("answering without each head", done, len(every))
    return metric, found


def _lost_interval(metric: str, whole: Judgement, without: Judgement) -> Interval | None:
    """Return the 95 % interval of a lost score by a paired bootstrap over examples.

    `None` where a score is not made of what is counted in each example, such as a correlation.
    """
    references = [(sample.reference, *sample.others) for sample in whole.samples]
    outputs = [[sample.output for sample in some.samples] for some in (whole, without)]
    if metric == "accuracy" and not any(" " in sample.reference for sample in whole.samples):
        maker = make(["exact"])["exact"]
    elif metric in METRICS and len(whole.samples) == len(without.samples):
        maker = make([metric])[metric]
    else:
        return None
    first, second = (maker.statistics(some, references) for some in outputs)
    size = first.shape[1]

    def lost(totals: Totals) -> Totals:
        rows = np.atleast_2d(totals)
        values = np.asarray([maker.score(row[:size]) - maker.score(row[size:]) for row in rows])
        return values if totals.ndim > 1 else values[0]

    return bootstrap_interval(np.concatenate([first, second], axis=1), lost, samples=300)
