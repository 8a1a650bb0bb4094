"""n → n, masked: some words are hidden and guessed, so that an encoder learns a language from plain text.

Axes: B batch, S source positions, E output width.
"""

import shlex
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.config.shape import Masked as Settings
from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.metrics.scoring import Scores
from regard.models.masked import MaskedModel
from regard.objectives.objective import Loss, batch_loss, row_losses
from regard.tasks.reading import predicting, read_all, read_one
from regard.tasks.results import FilledText
from regard.tasks.task import Course, Judgement, Lesson, Sample, Shape, Usage
from regard.tasks.trace import Side, Trace
from regard.text.normalising import WORD_START
from regard.text.specials import MASK, PAD, SPECIALS

HIDDEN, EXCHANGED = 0.8, 0.1
"""Of the tokens asked for, how many are hidden and how many exchanged; the rest are left as they are."""
JUDGED = 200
"""Documents whose guesses are judged each time; the loss covers all."""
GUESSES = 5
"""Guesses given for each blank, where a vocabulary has so many words."""
BLANK = "___"
"""How a hidden word is written, by people and for them."""


class Masking(Shape[MaskedModel]):
    """−log P(hidden token | the tokens left), anew in every lesson (Devlin et al., 2019; Liu et al., 2019)."""

    title = "A masked language model"
    result = FilledText
    unit = "token"
    loss_name = "nats per hidden token"
    answers = False

    @property
    def settings(self) -> Settings:
        """The section of this shape."""
        assert isinstance(self.config.shape, Settings)
        return self.config.shape

    def build(self) -> MaskedModel:
        """A model of the configured encoder."""
        return MaskedModel(self.config.model, self.form.source.size)

    def lesson(self, batch: Batch, random: torch.Generator, *, learning: bool) -> Lesson:
        """Source B×S with tokens hidden, and outputs B×S: the tokens asked for, padding elsewhere."""
        return self.hide(batch.source, random, least=0 if learning else 1)

    def hide(self, tokens: Tensor, random: torch.Generator, *, least: int = 0) -> Lesson:
        """Choose tokens of B×S, hide or exchange them, and ask for them: at least one, if `least` is one.

        Who learns may find nothing to learn in a small batch; who judges by nothing would call it perfect.
        """
        words = tokens >= len(SPECIALS)  # B×S: unknown words teach nothing
        chance = self._chance(tokens, random).masked_fill(~words, 2.0)  # B×S
        asked = chance < self.settings.share
        if least and words.any() and not asked.any():
            asked = chance == chance.min()
        size = self.form.source.size
        strangers = torch.randint(min(len(SPECIALS), size - 1), size, tokens.shape, generator=random)
        luck = torch.rand(tokens.shape, generator=random)
        source = torch.where(asked & (luck < HIDDEN), MASK, tokens)
        source = torch.where(asked & (luck >= HIDDEN) & (luck < HIDDEN + EXCHANGED), strangers, source)
        return Lesson({"source": source, "outputs": tokens.masked_fill(~asked, PAD)}, int(asked.sum()))

    def _chance(self, tokens: Tensor, random: torch.Generator) -> Tensor:
        """A number between 0 and 1 for each token B×S: one for each, or one for each word."""
        luck = torch.rand(tokens.shape, generator=random)
        if not self.settings.whole_words:
            return luck
        starts = torch.tensor([token.startswith(WORD_START) for token in self.form.source.vocabulary])
        starts[: len(SPECIALS)] = True
        return luck.gather(1, (starts[tokens].cumsum(1) - 1).clamp(min=0))

    def loss(self, model: MaskedModel, lesson: Lesson, *, scale: float = 1.0, course: Course | None = None) -> Loss:
        """Cross-entropy of the hidden tokens."""
        smoothing = self.config.training.label_smoothing if course else 0.0
        states = model.guesses(lesson["source"])  # B×S×E
        return batch_loss(model, states, lesson["outputs"], smoothing=smoothing, scale=scale)

    def row_losses(self, model: MaskedModel, lesson: Lesson) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of hidden tokens of each text."""
        return row_losses(model, model.guesses(lesson["source"]), lesson["outputs"])

    def judge(self, model: MaskedModel, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """How many hidden tokens are guessed right, in the first documents, the same words hidden every time."""
        random, decode = torch.Generator().manual_seed(0), self.form.source.decode
        longest = self.config.data.cleaning.max_length
        encoded = self.form.source.encode_batch([pair.source for pair in pairs[:JUDGED]])
        rows = [ids[:longest] for ids in encoded if ids]  # an empty document has nothing to hide
        lessons = [self.hide(torch.tensor([ids]), random) for ids in rows]
        if not any(lesson.count for lesson in lessons):
            lessons = [self.hide(torch.tensor([ids]), random, least=1) for ids in rows]
        hidden = [lesson["source"][0].tolist() for lesson in lessons]
        found = read_all(self.config, self.form, model, hidden, lambda source: only_words(model(source)).argmax(2))
        right = count = 0
        samples = []
        for ids, lesson, shown, guesses in zip(rows, lessons, hidden, found, strict=True):
            said, wanted = guesses[1 : len(ids) + 1].long(), lesson["outputs"][0]  # S, without BOS
            asked = wanted != PAD
            right += int((said == wanted)[asked].sum())
            count += lesson.count
            output = decode(torch.where(asked, said, lesson["source"][0]).tolist())
            samples.append(Sample(source=self._shown(shown), reference=decode(ids), output=output))
        scores = Scores(values={"accuracy": 100 * right / count} if count else {}, sentences=len(rows))
        return Judgement(scores=scores, samples=samples)

    def _shown(self, ids: list[int]) -> str:
        """A text with its hidden words as blanks."""
        vocabulary = self.form.source.vocabulary
        pieces = [WORD_START + BLANK if one == MASK else vocabulary[one] for one in ids if one >= MASK]
        return "".join(pieces).replace(WORD_START, " ").strip()

    def answer(self, model: MaskedModel, texts: Sequence[str]) -> list[FilledText]:
        """Texts with every blank `___` filled by its likeliest token, and the five likeliest of each."""
        rows = [self._with_blanks(text) for text in texts]
        most = min(GUESSES, self.form.source.size - len(SPECIALS))
        found = read_all(
            self.config, self.form, model, rows, lambda source: only_words(model(source)).topk(most, dim=2).indices
        )
        answers = []
        for ids, best in zip(rows, found, strict=True):
            guesses = best[1 : len(ids) + 1].long()  # S×5 (or fewer words, if there are no more), without BOS
            filled = [int(guesses[place, 0]) if one == MASK else one for place, one in enumerate(ids)]
            blanks = [
                [self.form.source.decode([one]) for one in guesses[place].tolist()]
                for place, one in enumerate(ids)
                if one == MASK
            ]
            answers.append(FilledText(self.form.source.decode(filled), blanks))
        return answers

    def trace(self, model: MaskedModel, text: str, answer: str | None = None) -> Trace:
        """Watch the model fill the blanks of a text."""
        if answer is not None:
            raise UsageError("Write the words into the text: what is asked for is what stands at its blanks.")
        ids = self._with_blanks(text)
        places = [place + 1 for place, one in enumerate(ids) if one == MASK]  # behind BOS
        if not places:
            raise UsageError(f"The text has no blank to be filled: write {BLANK} for a word.")
        tokenizer = self.form.source
        return read_one(
            self.config,
            self.form,
            model,
            ids,
            places,
            lambda scores: Side.of(tokenizer, only_words(scores).argmax(1).tolist()),
        )

    def _with_blanks(self, text: str) -> list[int]:
        """The tokens of a text, its blanks hidden."""
        ids: list[int] = []
        for number, part in enumerate(text.split(BLANK)):
            ids += [MASK] if number else []
            ids += self.form.source.encode_batch([part])[0]
        return ids

    def usage(self, place: str, example: Pair) -> Usage:
        """Start another run from it."""
        text = " ".join([*example.source.split()[:5], BLANK])
        shell = f"regard train my.yaml model.start_from={shlex.quote(place)}"
        return Usage(shell=shell, python=predicting(place, text))

    def next_command(self, place: str) -> str:
        """Start another run from it."""
        return f"regard train my.yaml model.start_from={place}"


def only_words(scores: Tensor) -> Tensor:
    """Scores …×V with none left for special tokens: a blank stands for a word, and an unknown one says nothing."""
    places = torch.arange(scores.shape[-1], device=scores.device)
    return scores.masked_fill(places < len(SPECIALS), -torch.inf)
