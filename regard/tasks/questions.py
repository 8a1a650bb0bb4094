"""image + n → 1: a question about a picture is answered.

Axes: B batch, S question positions, H rows and W columns of pixels, C answers.
"""

import shlex
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.config.shape import Questions as Settings
from regard.data.asked import Asked
from regard.data.batches import Batch, padded
from regard.data.corpus import Pair
from regard.data.pictures import as_floats
from regard.foundation.errors import RegardError, UsageError
from regard.models.looker import Looker
from regard.tasks.acceptor import Classification
from regard.tasks.reading import check_lengths, fit_texts
from regard.tasks.task import Judgement, Lesson, Table, Usage
from regard.tasks.trace import Given, Picture, Side, Trace, check_cost, trace
from regard.tasks.translator import groups
from regard.text.joined import TAB
from regard.text.specials import BOS, EOS

KINDS = 12
"""Kinds of question, by their first two words, that a card tells apart."""


class Answering(Classification[Looker]):
    """−log P(answer | question, picture); judged by accuracy, of all questions and of each kind."""

    title = "A model that answers questions about pictures"
    unit = "question"
    loss_name = "nats per question, before calibration"

    @property
    def asked(self) -> Asked:
        """The form of the examples."""
        assert isinstance(self.form, Asked)
        return self.form

    @property
    def _balanced(self) -> bool:
        assert isinstance(self.config.shape, Settings)
        return self.config.shape.class_weights == "balanced"

    def build(self) -> Looker:
        """A model of the configured encoders of text and of pictures."""
        assert isinstance(self.config.shape, Settings)
        return Looker(self.config.model, self.config.shape, self.form.source.size, self.outputs)

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Questions B×S, pixels B×3×H×W, and the numbers of the answers B."""
        assert batch.pictures is not None
        tensors = {"source": batch.source, "pixels": as_floats(batch.pictures), "label": batch.target[:, 0]}
        return Lesson(tensors, len(batch))

    def say(self, model: Looker, lesson: Lesson) -> Tensor:
        """Scores B×C of a lesson."""
        scores: Tensor = model(lesson["source"], lesson["pixels"])
        return scores

    def readable(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Return pictures with questions cut to the positions that the model has learned, and how many were cut."""
        names, questions = zip(*(_parts(text) for text in texts), strict=True) if texts else ((), ())
        found, cut = fit_texts(self.config, self.form.source, questions)
        return [f"{name}{TAB}{question}" for name, question in zip(names, found, strict=True)], cut

    @torch.inference_mode()
    def scores(self, model: Looker, texts: Sequence[str]) -> Tensor:
        """What the model says of pictures with questions, in their order, before any temperature: N×C."""
        names, questions = zip(*(_parts(text) for text in texts), strict=True) if texts else ((), ())
        rows = self.form.source.encode_batch(questions)
        check_lengths(self.config, rows)
        found = torch.zeros(len(texts), self.outputs)
        grid = self.config.model.picture.grid  # type: ignore[union-attr]
        cost = max(map(len, rows), default=0) + 2 + grid[0] * grid[1]  # one for all: questions stay beside their like
        for group in groups([cost] * len(rows), self.config.decoding.batch_tokens):
            source = padded([np.asarray(rows[place], dtype=np.int64) for place in group], (BOS,), (EOS,))  # B×S
            pixels = as_floats(self.asked.pixels([names[place] for place in group]))  # B×3×H×W
            found[group] = model(source.to(model.device), pixels.to(model.device)).float().cpu()
        return found

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare answers, of all questions and of each kind."""
        whole = super().grade(lines, pairs)
        kinds = [" ".join(_parts(pair.source)[1].split()[:2]) for pair in pairs]
        right = Counter(kind for kind, one in zip(kinds, whole.samples, strict=True) if one.output == one.reference)
        counts = Counter(kinds).most_common(KINDS)
        rows = [(kind, f"{count:,}", f"{100 * right[kind] / count:.1f}") for kind, count in counts]
        table = Table(title="By the first words of the question", head=("question", "number", "right %"), rows=rows)
        return Judgement(scores=whole.scores, samples=whole.samples, tables=[*whole.tables, table])

    def trace(self, model: Looker, text: str, answer: str | None = None) -> Trace:
        """Watch the model answer a question about a picture, or ask it for another answer."""
        name, question = _parts(text)
        ids = self.form.source.encode_batch([question])[0]
        if not ids:
            raise UsageError("There is nothing to look into: ask a question that is not empty.")
        check_lengths(self.config, [ids])
        picture = Picture(name, as_floats(self.asked.pixels([name]))[0], model.picture.grid)
        given = Given([BOS, *ids, EOS], [0], picture, beside=True)
        check_cost(model, max(len(given.source), len(picture.side)))
        with torch.inference_mode():
            scores = model(*given.tensors(model.device))[0].cpu()  # C
        source_side, nothing = Side.of(self.form.source, given.source), Side.of(self.form.source, [])
        return trace(model, source_side, self.chosen(scores, answer), nothing, labels=self.labels, given=given)

    def usage(self, place: str, example: Pair) -> Usage:
        """Answer the example."""
        name, _, question = example.source.partition(TAB)
        name, question = shlex.quote(name), shlex.quote(question)
        shell = f"printf '%s\\t%s\\n' {name} {question} | regard predict {shlex.quote(place)}"
        python = f"import regard\n\nmodel = regard.load({place!r})\nmodel({tuple(example.source.split(TAB))!r})"
        return Usage(shell=shell, python=python)

    def next_command(self, place: str) -> str:
        """Ask about pictures."""
        return f"regard predict {place} < questions.tsv"


def _parts(text: str) -> tuple[str, str]:
    """The picture's name and the question."""
    name, tab, question = text.partition(TAB)
    if not tab:
        raise RegardError("A picture and a question are wanted, with a tab between them: only one of them is there.")
    if not question.strip():
        raise RegardError("There is no question behind the picture: ask one that is not empty.")
    return name, question
