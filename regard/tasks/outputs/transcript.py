"""A transcript as an output: the words that are said in a sound."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from regard.data.corpus import Pair
from regard.metrics.intervals import bootstrap_interval
from regard.metrics.scoring import make
from regard.tasks.judgement import Judgement, Table, Usage
from regard.tasks.outputs.output import python_call
from regard.tasks.outputs.text import TextOutput

METRICS = ("wer", "cer", "exact")


class TranscriptOutput(TextOutput):
    """−log P(transcript | sound), token by token; judged by word and character error rate."""

    def metrics(self, references: Sequence[str]) -> tuple[str, ...]:
        """Error rates, and how many transcripts have no error."""
        return METRICS

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare transcripts with the references; the error rates come with 95 % intervals."""
        judgement = super().grade(lines, pairs)
        rows: list[tuple[str, ...]] = []
        details = dict(judgement.scores.details)
        for name, metric in make(METRICS[:2]).items():
            if not pairs:
                continue
            statistics = metric.statistics(lines, [(pair.target,) for pair in pairs])
            interval = bootstrap_interval(statistics, lambda totals: 100 * totals[..., 0] / totals[..., 1], low=0.0)
            if interval is not None:
                details[name] = {"low": interval[0], "high": interval[1]}
                rows.append((metric.label, f"{judgement.scores[name]:.2f}", *(f"{end:.2f}" for end in interval)))
        if not rows:
            return judgement
        table = Table(title="95 % intervals, by bootstrap over sounds", head=("", "score", "from", "to"), rows=rows)
        return replace(judgement, scores=replace(judgement.scores, details=details), tables=[table])

    def usage(self, run: str, example: Pair) -> Usage:
        """Transcribe the example."""
        return Usage(
            shell=f"regard transcribe {shlex.quote(run)} {shlex.quote(example.source)}",
            python=python_call(run, example.source),
        )

    def next_command(self, run: str) -> str:
        """Transcribe a sound."""
        return f"regard transcribe {run} speech.wav"
