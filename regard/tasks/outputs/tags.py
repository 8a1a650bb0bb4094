"""Tags: one for each word.

Axes: B batch, S source positions, C tags.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import Batch, Frame
from regard.data.corpus import Pair
from regard.data.labels import Labels
from regard.foundation.errors import UsageError
from regard.metrics.labels import score_labels
from regard.metrics.spans import marks_spans, score_spans
from regard.models.tagger import Tagger
from regard.objectives.objective import Loss
from regard.tasks.inputs.text import TextInput
from regard.tasks.judgement import Judgement, Sample, Table
from regard.tasks.outputs.label import check_labels, missing_labels, rare_labels
from regard.tasks.outputs.output import Output, Rows, read_all
from regard.tasks.results import Tags
from regard.tasks.trace import Side, Trace, check_cost, trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.specials import PAD, UNK
from regard.text.spelling import Spelling

NO_TAG = -1


class TagsOutput(Output[Tagger]):
    """Loss −log P(tag | sentence) of every word; words are separated by white space.

    The tag of a word is predicted at its first token. A store keeps its number plus one at this token, and 0 at the
    other tokens of the word.
    """

    has_labels = True
    result = Tags
    target_frame = Frame((PAD,), (PAD,))
    unit = "word"
    loss_name = "nats per word"
    has_perplexity = False

    @property
    def known(self) -> Labels:
        """The tags with their counts."""
        assert self.vocabularies.labels is not None
        return self.vocabularies.labels

    @property
    def text(self) -> TextInput:
        """The input, which is text."""
        assert isinstance(self.input, TextInput)
        return self.input

    # Preparing data

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """Return what is wrong with an example: it does not have one tag for each word."""
        words, tags = pair.source.split(), pair.target.split()
        if len(words) == len(tags):
            return None
        return f"has {len(words)} words and {len(tags)} tags. Fix it (it begins `{' '.join(words[:5])}`)."

    @classmethod
    def labels_of(cls, pair: Pair) -> list[str]:
        """Return the tags of a sentence."""
        return pair.target.split()

    def check(self, pair: Pair, place: str) -> None:
        """Raise an error for a tag that does not occur in the training data."""
        check_labels(self.known, self.labels_of(pair), place)

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """Return which tags of the training data these sentences lack, so that they are not evaluated."""
        return missing_labels(self.known, (tag for pair in pairs for tag in self.labels_of(pair)))

    def remarks(self) -> list[str]:
        """Return a note on tags that occur once."""
        return rare_labels(self.known)

    def word_tokens(self, words: Sequence[str]) -> Rows:
        """Return the tokens of each word, at least one."""
        return [ids or [UNK] for ids in self.input.tokenizer.encode_batch(words)]

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """Return the tokens of all words; the tag of each word at its first token."""
        sources, targets = [], []
        for pair in pairs:
            words = self.word_tokens(pair.source.split())
            tags = [self.known.number(tag) for tag in pair.target.split()]
            sources.append([token for word in words for token in word])
            targets.append(
                [number for word, tag in zip(words, tags, strict=True) for number in (tag + 1, *[0] * (len(word) - 1))]
            )
        return sources, targets

    @property
    def id_limit(self) -> int:
        """Tags are counted from 1."""
        return self.known.size + 1

    def describe(self) -> str:
        """Return the number of tags."""
        return f"{self.known.size} tags"

    # Training

    def build(self) -> Tagger:
        """Build the model with the configured encoder."""
        tokenizer = self.input.tokenizer
        spelling = None if self.config.model.letters is None else Spelling.of(tokenizer)
        return Tagger(self.config.model, tokenizer.size, self.known.size, spelling)

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return the training batch with tags B×S; -1 where there is none."""
        tags = batch.target - 1  # B×S
        return TrainingBatch({**inputs, "tags": tags}, int((tags != NO_TAG).sum()))

    def loss(
        self, model: Tagger, batch: TrainingBatch, *, scale: float = 1.0, point: TrainingPoint | None = None
    ) -> Loss:
        """Return the cross-entropy of the tags, label-smoothed in training."""
        scores, tags = model(batch["source"]).float().flatten(0, 1), batch["tags"].flatten()  # BS×C, BS
        nll = F.cross_entropy(scores, tags, ignore_index=NO_TAG, reduction="sum")
        smoothed = nll
        if point is not None and (smoothing := self.config.training.label_smoothing):
            smoothed = F.cross_entropy(scores, tags, ignore_index=NO_TAG, reduction="sum", label_smoothing=smoothing)
        return Loss(smoothed * scale, nll.detach(), batch.count)

    def row_losses(self, model: Tagger, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of words of each sentence."""
        scores, tags = model(batch["source"]).float(), batch["tags"]  # B×S×C, B×S
        found = F.cross_entropy(scores.transpose(1, 2), tags, ignore_index=NO_TAG, reduction="none")  # B×S
        return found.double().sum(1).cpu(), (tags != NO_TAG).sum(1).double().cpu()

    # Using a model

    def readable(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sentences unchanged: long ones are tagged in pieces."""
        return list(sources), 0

    def answer(self, model: Tagger, sources: Sequence[str]) -> list[Tags]:
        """Return a tag for each word; words are separated by white space."""
        sentences = [source.split() for source in sources]
        found = self.likeliest(model, sentences)
        return [
            Tags(words, [tag for tag, _ in row], [probability for _, probability in row])
            for words, row in zip(sentences, found, strict=True)
        ]

    def likeliest(self, model: Tagger, sentences: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        """Return the most likely tag of each word of sentences, with its probability."""
        pieces = [self._pieces(words) for words in sentences]
        found = iter(self._tags_of(model, [piece for row in pieces for piece in row]))
        return [[tag for _ in row for tag in next(found)] for row in pieces]

    def _pieces(self, words: Sequence[str]) -> list[Sequence[str]]:
        """Return a sentence whole, or in pieces of as many words as fit the positions that the model has learned."""
        positions = self.config.model.learned_positions
        if positions is None:
            return [words]
        found: list[list[str]] = [[]]
        room = positions - 2
        for word, tokens in zip(words, self.word_tokens(words), strict=True):
            if len(tokens) > room and found[-1]:
                found.append([])
                room = positions - 2
            found[-1].append(word)
            room -= len(tokens)
        return list(found)

    def _tags_of(self, model: Tagger, sentences: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        cut = [self._tokens(words) for words in sentences]
        positions = self.config.model.learned_positions
        most = None if positions is None else positions - 2
        rows = [ids[:most] for ids, _ in cut]  # only a single word can still be longer
        found = read_all(self.input, model, [""] * len(rows), lambda source: _likeliest(model(source)), rows=rows)
        names = self.known.names
        return [
            [(names[int(row[place, 0])], float(row[place, 1])) for place in places]
            for (_, places), row in zip(cut, found, strict=True)
        ]

    def _tokens(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the tokens of a sentence, and the position of each word's first token, the start symbol included."""
        cut = self.word_tokens(words)
        starts = accumulate((len(word) for word in cut), initial=1)
        return [token for word in cut for token in word], list(starts)[:-1]

    def trace(self, model: Tagger, source: str, target: str | None = None) -> Trace:
        """Trace the model on a sentence, with its own tags or the given ones."""
        names = self.known.names
        ids, places = self._tokens(source.split())
        view = self.text.view_of(ids)
        self.text.check_lengths([ids])
        asked = None if target is None else self._tags_in(target, Pair(source, ""), 1)
        check_cost(model, len(view.side))
        given = view.given.asking(places)
        with torch.inference_mode():
            scores = model.scores(model.outputs(*given.tensors(model.device)))[0].cpu()  # T×C
        numbers = scores.argmax(1).tolist() if asked is None else [names.index(tag) for tag in asked]
        answer = Side.of_labels([names[number] for number in numbers], numbers)
        return trace(model, view.side, answer, Side.of_labels([], []), labels=names, given=given)

    # Judging

    def grade(self, lines: Sequence[str], pairs: Sequence[Pair]) -> Judgement:
        """Compare the tags of all words."""
        rows = enumerate(zip(lines, pairs, strict=True), start=1)
        answers = [self._tags_in(line, pair, number) for number, (line, pair) in rows]
        true = [tag for pair in pairs for tag in pair.target.split()]
        scores = score_labels([tag for row in answers for tag in row], true, self.known.names)
        samples = [
            Sample(source=pair.source, reference=pair.target, output=" ".join(row))
            for pair, row in zip(pairs, answers, strict=True)
        ]
        f1 = scores.details["macro_f1"]
        scores = replace(scores, sentences=len(pairs))
        counts = Counter(true)
        table = [(tag, f"{counts[tag]:,}", f"{f1[tag]:.1f}") for tag in sorted(f1, key=lambda tag: -counts[tag])]
        tables = [Table(title="By tag", head=("tag", "words", "F1"), rows=table)]
        if marks_spans(self.known.names):
            spans = score_spans(answers, [pair.target.split() for pair in pairs])
            values, details = {**scores.values, **spans.values}, {**scores.details, **spans.details}
            scores = replace(scores, values=values, details=details)
            tables.insert(0, _span_table(spans.details))
        return Judgement(scores=scores, samples=samples, tables=tables)

    def _tags_in(self, line: str, pair: Pair, number: int) -> list[str]:
        """Parse a line of word/tag pairs, or of tags alone."""
        words, parts = pair.source.split(), line.split()
        if len(parts) != len(words):
            raise UsageError(f"Answer {number:,} has {len(parts)} tags, but its sentence has {len(words)} words.")
        tags = [part.removeprefix(f"{word}/") for word, part in zip(words, parts, strict=True)]
        for tag in tags:
            if tag not in self.known.names:
                raise UsageError(f"Answer {number:,} has `{tag[:40]}`, which is not a tag of this run.")
        return tags


def _span_table(spans: Mapping[str, Mapping[str, float]]) -> Table:
    """Return precision, recall and F1 of each type of span."""
    counts = spans["span_count"]
    measures = [spans[f"span_{name}"] for name in ("precision", "recall", "f1")]
    rows = [
        (kind, f"{counts[kind]:,.0f}", *(f"{measure[kind]:.1f}" for measure in measures))
        for kind in sorted(counts, key=lambda kind: -counts[kind])
    ]
    return Table(title="By type of span", head=("type", "spans", "precision", "recall", "F1"), rows=rows)


def _likeliest(scores: Tensor) -> Tensor:
    """Return the index of the largest score of each position, B×S×C, and its probability: B×S×2."""
    return torch.stack([scores.argmax(2).float(), scores.float().softmax(2).amax(2)], dim=2)
