"""n → n: every word is answered with a tag.

Axes: B batch, S source positions, C tags.
"""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.data.reading import Tagged
from regard.foundation.errors import UsageError
from regard.metrics.labels import score_labels
from regard.models.transducer import Transducer
from regard.objectives.objective import Loss
from regard.tasks.reading import predicting, read_all, read_one
from regard.tasks.results import Tags
from regard.tasks.task import Course, Judgement, Lesson, Sample, Shape, Table, Usage
from regard.tasks.trace import Side, Trace

NO_TAG = -1


class Tagging(Shape[Transducer]):
    """−log P(tag | sentence) of every word, read off at its first token; judged by accuracy and F1."""

    title = "A tagger of words"
    result = Tags
    unit = "word"
    loss_name = "nats per word"
    perplexity = False

    @property
    def tagged(self) -> Tagged:
        """The form of the examples."""
        assert isinstance(self.form, Tagged)
        return self.form

    def build(self) -> Transducer:
        """A model of the configured encoder."""
        return Transducer(self.config.model, self.form.source.size, self.tagged.labels.size)

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Source B×S and the tags B×S, where there is one."""
        tags = batch.target - 1  # B×S
        return Lesson({"source": batch.source, "tags": tags}, int((tags != NO_TAG).sum()))

    def loss(self, model: Transducer, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """Cross-entropy of the tags, label-smoothed in learning."""
        scores, tags = model(lesson["source"]).float().flatten(0, 1), lesson["tags"].flatten()  # BS×C, BS
        nll = F.cross_entropy(scores, tags, ignore_index=NO_TAG, reduction="sum")
        learnt = nll
        if course is not None and (smoothing := self.config.training.label_smoothing):
            learnt = F.cross_entropy(scores, tags, ignore_index=NO_TAG, reduction="sum", label_smoothing=smoothing)
        return Loss(learnt * scale, nll.detach(), lesson.count)

    def row_losses(self, model: Transducer, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of words of each sentence."""
        scores, tags = model(lesson["source"]).float(), lesson["tags"]  # B×S×C, B×S
        found = F.cross_entropy(scores.transpose(1, 2), tags, ignore_index=NO_TAG, reduction="none")  # B×S
        return found.double().sum(1).cpu(), (tags != NO_TAG).sum(1).double().cpu()

    def tags(self, model: Transducer, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The likeliest tag of each word of sentences."""
        pieces = [self._pieces(words) for words in sentences]
        found = iter(self._tags_of(model, [piece for row in pieces for piece in row]))
        return [[tag for _ in row for tag in next(found)] for row in pieces]

    def _pieces(self, words: Sequence[str]) -> list[Sequence[str]]:
        """Return a sentence whole, or in pieces of as many words as fit the positions that the model has learned."""
        positions = self.config.model.positions
        if positions is None or positions.kind != "learned":
            return [words]
        found: list[list[str]] = [[]]
        room = positions.max_length - 2
        for word, tokens in zip(words, self.tagged.tokens(words), strict=True):
            if len(tokens) > room and found[-1]:
                found.append([])
                room = positions.max_length - 2
            found[-1].append(word)
            room -= len(tokens)
        return list(found)

    def _tags_of(self, model: Transducer, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        cut = [self._tokens(words) for words in sentences]
        positions = self.config.model.positions
        most = positions.max_length - 2 if positions is not None and positions.kind == "learned" else None
        rows = [ids[:most] for ids, _ in cut]  # only a single word can still be longer
        found = read_all(self.config, self.form, model, rows, lambda source: model(source).argmax(2))
        names = self.tagged.labels.names
        return [[names[int(row[one])] for one in places] for (_, places), row in zip(cut, found, strict=True)]

    def _tokens(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """The tokens of a sentence, and the place of each word's first, behind BOS."""
        cut = self.tagged.tokens(words)
        starts = accumulate((len(word) for word in cut), initial=1)
        return [token for word in cut for token in word], list(starts)[:-1]

    def trace(self, model: Transducer, text: str, answer: str | None = None) -> Trace:
        """Watch the model tag a sentence, or ask it for other tags."""
        words, names = text.split(), self.tagged.labels.names
        ids, places = self._tokens(words)
        asked = None if answer is None else self._tags_in(answer, Pair(text, ""), 1)

        def said(scores: Tensor) -> Side:
            numbers = scores.argmax(1).tolist() if asked is None else [names.index(tag) for tag in asked]
            return Side.of_labels([names[number] for number in numbers], numbers)

        return read_one(self.config, self.form, model, ids, places, said, labels=names)

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare the tags of all words."""
        rows = enumerate(zip(lines, pairs, strict=True), start=1)
        said = [self._tags_in(line, pair, number) for number, (line, pair) in rows]
        true = [tag for pair in pairs for tag in pair.target.split()]
        scores = score_labels([tag for row in said for tag in row], true, self.tagged.labels.names)
        samples = [
            Sample(source=pair.source, reference=pair.target, output=" ".join(row))
            for pair, row in zip(pairs, said, strict=True)
        ]
        f1 = scores.details["macro_f1"]
        scores = replace(scores, sentences=len(pairs))
        counts = Counter(true)
        table = [(tag, f"{counts[tag]:,}", f"{f1[tag]:.1f}") for tag in sorted(f1, key=lambda tag: -counts[tag])]
        return Judgement(
            scores=scores, samples=samples, tables=[Table(title="By tag", head=("tag", "words", "F1"), rows=table)]
        )

    def _tags_in(self, line: str, pair: Pair, number: int) -> list[str]:
        """The tags of a line of word/tag, or of tags alone."""
        words, parts = pair.source.split(), line.split()
        if len(parts) != len(words):
            raise UsageError(f"Answer {number:,} has {len(parts)} tags, but its sentence has {len(words)} words.")
        tags = [part.removeprefix(f"{word}/") for word, part in zip(words, parts, strict=True)]
        for tag in tags:
            if tag not in self.tagged.labels.names:
                raise UsageError(f"Answer {number:,} has `{tag[:40]}`, which is no tag of this run.")
        return tags

    def answer(self, model: Transducer, texts: Sequence[str]) -> list[Tags]:
        """A tag for each word between white space."""
        sentences = [text.split() for text in texts]
        return [Tags(words, tags) for words, tags in zip(sentences, self.tags(model, sentences), strict=True)]

    def usage(self, place: str, example: Pair) -> Usage:
        """Tag the example."""
        shell = f"printf '%s\\n' {shlex.quote(example.source)} | regard predict {shlex.quote(place)}"
        return Usage(shell=shell, python=predicting(place, example.source))

    def next_command(self, place: str) -> str:
        """Tag a file."""
        return f"regard predict {place} < in.txt"
