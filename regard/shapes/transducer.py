"""n → n: every word is answered with a tag.

Axes: B batch, S source positions, C tags.
"""

import shlex
from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.data.reading import Tagged
from regard.evaluation.labels import score_labels
from regard.models.transducer import Transducer
from regard.shapes.reading import predicting, read_all
from regard.shapes.shape import Answer, Course, Judgement, Lesson, Sample, Shape, Table, Usage
from regard.training.objective import Loss

NO_TAG = -1


class Tagging(Shape[Transducer]):
    """−log P(tag | sentence) of every word, read off at its first token; judged by accuracy and F1."""

    title = "A tagger of words"
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

    def tags(self, model: Transducer, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The likeliest tag of each word of sentences."""
        cut = [self.tagged.tokens(words) for words in sentences]
        rows = [[token for word in words for token in word] for words in cut]
        found = read_all(self.config, self.form, model, rows, lambda source: model(source).argmax(2))
        names = self.tagged.labels.names
        said = []
        for words, row in zip(cut, found, strict=True):
            places, place = [], 1  # behind BOS
            for word in words:
                places.append(place)
                place += len(word)
            said.append([names[int(row[one])] for one in places])
        return said

    def judge(self, model: Transducer, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Compare the tags of all words."""
        said = self.tags(model, [pair.source.split() for pair in pairs])
        true = [tag for pair in pairs for tag in pair.target.split()]
        scores = score_labels([tag for row in said for tag in row], true, self.tagged.labels.names)
        samples = [
            Sample(source=pair.source, reference=pair.target, output=" ".join(row))
            for pair, row in zip(pairs, said, strict=True)
        ]
        f1 = scores.details["macro_f1"]
        counts = Counter(true)
        rows = [(tag, f"{counts[tag]:,}", f"{f1[tag]:.1f}") for tag in sorted(f1, key=lambda tag: -counts[tag])]
        return Judgement(
            scores=scores, samples=samples, tables=[Table(title="By tag", head=("tag", "words", "F1"), rows=rows)]
        )

    def answer(self, model: Transducer, texts: Sequence[str]) -> list[Answer]:
        """A tag for each word between white space."""
        sentences = [text.split() for text in texts]
        return [
            Answer(
                line=" ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)),
                facts={"words": words, "tags": tags},
            )
            for words, tags in zip(sentences, self.tags(model, sentences), strict=True)
        ]

    def usage(self, place: str, example: Pair) -> Usage:
        """Tag the example."""
        shell = f"printf '%s\\n' {shlex.quote(example.source)} | regard predict {shlex.quote(place)}"
        return Usage(shell=shell, python=predicting(place, example.source))

    def next_command(self, place: str) -> str:
        """Tag a file."""
        return f"regard predict {place} < in.txt"
