"""Transcripts: the words spoken in a sound.

Axes: B batch, S positions of the encoder, T target positions, V vocabulary.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.cell import width_of
from regard.config.task import SpeechRecognition
from regard.data.corpus import Pair
from regard.metrics.intervals import bootstrap_interval
from regard.metrics.scoring import make
from regard.models import Model
from regard.models.memory import Memory
from regard.objectives.objective import Loss
from regard.tasks.judgement import Judgement, Table, Usage
from regard.tasks.outputs.output import python_call
from regard.tasks.outputs.text import TextOutput
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.specials import EOS, PAD

METRICS = ("wer", "cer", "exact")


class TranscriptOutput(TextOutput):
    """Loss −log P(transcript | sound), token by token; evaluated by word and character error rate.

    In training, −log P_CTC(transcript | encoder states) is mixed in: (1 − λ) · attention + λ · CTC. So it is in search
    (`regard.search.ctc`), with the weight `decoding.ctc`.
    """

    @property
    def ctc_weight(self) -> float:
        """The weight λ of CTC in the training loss."""
        return self.config.task.ctc if isinstance(self.config.task, SpeechRecognition) else 0.0

    def build(self) -> Model:
        """Build the configured model, with a layer from encoder states to tokens if CTC is used."""
        model = super().build()
        if self.ctc_weight:
            model.ctc = nn.Linear(width_of(self.config.model.encoder), self.tokenizer.size)
        return model

    def loss(
        self, model: Model, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the cross-entropy of the transcript; in training label-smoothed, and mixed with CTC."""
        memory = model.encode(batch["source"])
        loss = self.loss_given(model, memory, batch, scale=scale, point=point)
        if point is None or not self.ctc_weight:
            return loss
        assert isinstance(model.ctc, nn.Linear)
        ctc = ctc_loss(model.ctc, memory, batch["outputs"]).sum() * scale
        return loss._replace(smoothed=(1 - self.ctc_weight) * loss.smoothed + self.ctc_weight * ctc)

    def metrics(self, references: Sequence[str]) -> tuple[str, ...]:
        """Return error rates, and the share of transcripts without errors."""
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


def ctc_loss(layer: nn.Linear, memory: Memory, outputs: Tensor) -> Tensor:
    """Return −log of the sum over all CTC alignments of the tokens of outputs B×T with the positions of a memory: B.

    Padding is the blank; a sound with fewer positions than its transcript needs has a loss of 0.
    """
    log_probs = torch.log_softmax(layer(memory.states).float(), dim=2).transpose(0, 1)  # S×B×V
    targets = outputs.masked_fill(outputs == EOS, PAD)  # B×T
    lengths, sizes = memory.mask.sum(1), (targets != PAD).sum(1)  # B, B
    return F.ctc_loss(log_probs, targets, lengths, sizes, blank=PAD, reduction="none", zero_infinity=True)
