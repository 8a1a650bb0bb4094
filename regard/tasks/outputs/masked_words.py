"""Masked words: pre-training of an encoder on plain text.

Axes: B batch, S source positions, E output width.
"""

import shlex
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.config.task import MaskedWords
from regard.data.batches import Batch
from regard.data.corpus import Pair
from regard.foundation.errors import UsageError
from regard.metrics.scoring import Scores
from regard.models.masked_language_model import MaskedLanguageModel
from regard.objectives.objective import Loss, batch_loss, row_losses
from regard.tasks.inputs.text import TextInput
from regard.tasks.judgement import Judgement, Sample, Usage
from regard.tasks.outputs.output import Output, python_call, read_all
from regard.tasks.results import FilledText
from regard.tasks.trace import Side, Trace, check_cost, trace
from regard.tasks.training_batch import TrainingBatch, TrainingPoint
from regard.text.normalising import WORD_START
from regard.text.specials import MASK, PAD, SPECIALS

ANY_LENGTH = 1 << 40
HIDDEN, REPLACED = 0.8, 0.1
"""Shares of predicted tokens that are masked and replaced at random; the rest are unchanged."""
JUDGED = 200
"""Number of documents whose predictions are evaluated each time; the loss covers all."""
GUESSES = 5
"""Maximum number of predictions for each blank."""
BLANK = "___"
"""The notation for a masked word."""


class MaskedWordsOutput(Output[MaskedLanguageModel]):
    """Loss −log P(masked token | the other tokens), with other tokens masked in every epoch (Devlin et al., 2019)."""

    any_text = True
    result = FilledText
    splits_long_sources = True
    loss_name = "nats per hidden token"
    gives_answers = False

    @property
    def settings(self) -> MaskedWords:
        """The section of this task."""
        assert isinstance(self.config.task, MaskedWords)
        return self.config.task

    @property
    def text(self) -> TextInput:
        """The input, which is text."""
        assert isinstance(self.input, TextInput)
        return self.input

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Return the cleaning settings without a limit on characters."""
        return config.data.cleaning.model_copy(update={"max_characters": ANY_LENGTH})

    @property
    def id_limit(self) -> int:
        """The size of the vocabulary; a store has no targets, since they are made from the sources."""
        return self.input.tokenizer.size

    def build(self) -> MaskedLanguageModel:
        """Build the model with the configured encoder."""
        return MaskedLanguageModel(self.config.model, self.input.tokenizer.size)

    def training_batch(
        self, batch: Batch, inputs: dict[str, Tensor], random: torch.Generator, *, training: bool
    ) -> TrainingBatch:
        """Return source B×S with masked tokens, and outputs B×S: the tokens to predict, padding elsewhere."""
        return self.hide(batch.source, random, at_least_one=not training)

    def hide(self, tokens: Tensor, random: torch.Generator, *, at_least_one: bool = False) -> TrainingBatch:
        """Choose tokens of B×S to predict, and mask or replace them.

        A training batch may predict no token; a scored batch must predict one, or it would seem perfect.
        """
        words = tokens >= len(SPECIALS)  # B×S: unknown words are not predicted
        chance = self._chance(tokens, random).masked_fill(~words, 2.0)  # B×S
        asked = chance < self.settings.share
        if at_least_one and words.any() and not asked.any():
            asked = chance == chance.min()
        size = self.input.tokenizer.size
        strangers = torch.randint(min(len(SPECIALS), size - 1), size, tokens.shape, generator=random)
        luck = torch.rand(tokens.shape, generator=random)
        source = torch.where(asked & (luck < HIDDEN), MASK, tokens)
        source = torch.where(asked & (luck >= HIDDEN) & (luck < HIDDEN + REPLACED), strangers, source)
        return TrainingBatch({"source": source, "outputs": tokens.masked_fill(~asked, PAD)}, int(asked.sum()))

    def _chance(self, tokens: Tensor, random: torch.Generator) -> Tensor:
        """Draw a number between 0 and 1 for each token B×S: independently, or one per word."""
        luck = torch.rand(tokens.shape, generator=random)
        if not self.settings.whole_words:
            return luck
        starts = torch.tensor([token.startswith(WORD_START) for token in self.input.tokenizer.vocabulary])
        starts[: len(SPECIALS)] = True
        return luck.gather(1, (starts[tokens].cumsum(1) - 1).clamp(min=0))

    def loss(
        self,
        model: MaskedLanguageModel,
        batch: TrainingBatch,
        *,
        scale: float = 1.0,
        point: TrainingPoint | None = None,
    ) -> Loss:
        """Return the cross-entropy of the masked tokens."""
        smoothing = self.config.training.label_smoothing if point else 0.0
        states = model.output_states(batch["source"])  # B×S×E
        return batch_loss(model, states, batch["outputs"], smoothing=smoothing, scale=scale)

    def row_losses(self, model: MaskedLanguageModel, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Return the loss and the number of masked tokens of each text."""
        return row_losses(model, model.output_states(batch["source"]), batch["outputs"])

    def judge(self, model: MaskedLanguageModel, pairs: Sequence[Pair], *, thorough: bool) -> Judgement:
        """Evaluate the accuracy on masked tokens of the first documents; the same tokens are masked every time."""
        random, decode = torch.Generator().manual_seed(0), self.input.tokenizer.decode
        longest = self.config.data.cleaning.max_length
        encoded = self.input.tokenizer.encode_batch([pair.source for pair in pairs[:JUDGED]])
        rows = [ids[:longest] for ids in encoded if ids]  # an empty document has nothing to hide
        batches = [self.hide(torch.tensor([ids]), random) for ids in rows]
        if not any(batch.count for batch in batches):
            batches = [self.hide(torch.tensor([ids]), random, at_least_one=True) for ids in rows]
        hidden = [batch["source"][0].tolist() for batch in batches]
        found = self._read(model, hidden, lambda source: only_words(model(source)).argmax(2))
        right = count = 0
        samples = []
        for ids, batch, shown, guesses in zip(rows, batches, hidden, found, strict=True):
            guessed, wanted = guesses[1 : len(ids) + 1].long(), batch["outputs"][0]  # S, without BOS
            asked = wanted != PAD
            right += int((guessed == wanted)[asked].sum())
            count += batch.count
            output = decode(torch.where(asked, guessed, batch["source"][0]).tolist())
            samples.append(Sample(source=self._show(shown), reference=decode(ids), output=output))
        scores = Scores(values={"accuracy": 100 * right / count} if count else {}, sentences=len(rows))
        return Judgement(scores=scores, samples=samples)

    def _read(self, model: MaskedLanguageModel, rows: list[list[int]], of: Callable[[Tensor], Tensor]) -> list[Tensor]:
        self.text.check_lengths(rows)
        return read_all(self.input, model, [""] * len(rows), of, rows=rows)

    def _show(self, ids: list[int]) -> str:
        """Return a text with its masked words as blanks."""
        vocabulary = self.input.tokenizer.vocabulary
        pieces = [WORD_START + BLANK if one == MASK else vocabulary[one] for one in ids if one >= MASK]
        return "".join(pieces).replace(WORD_START, " ").strip()

    def answer(self, model: MaskedLanguageModel, sources: Sequence[str]) -> list[FilledText]:
        """Fill every blank `___` of texts with its most likely token, and list the five most likely ones."""
        rows = [self._with_blanks(text) for text in sources]
        most = min(GUESSES, self.input.tokenizer.size - len(SPECIALS))
        found = self._read(model, rows, lambda source: only_words(model(source)).topk(most, dim=2).indices)
        answers = []
        for ids, best in zip(rows, found, strict=True):
            guesses = best[1 : len(ids) + 1].long()  # S×5 (or fewer words, if there are no more), without BOS
            filled = [int(guesses[index, 0]) if one == MASK else one for index, one in enumerate(ids)]
            blanks = [
                [self.input.tokenizer.decode([one]) for one in guesses[index].tolist()]
                for index, one in enumerate(ids)
                if one == MASK
            ]
            answers.append(FilledText(self.input.tokenizer.decode(filled), blanks))
        return answers

    def trace(self, model: MaskedLanguageModel, source: str, target: str | None = None) -> Trace:
        """Trace the model on a text with blanks."""
        if target is not None:
            raise UsageError(
                "A masked model has no separate target. Write the words into the text; the model predicts its blanks."
            )
        ids = self._with_blanks(source)
        places = [index + 1 for index, one in enumerate(ids) if one == MASK]  # after BOS
        if not places:
            raise UsageError(f"The text has no blank. Write {BLANK} for a word.")
        self.text.check_lengths([ids])
        view = self.text.view_of(ids)
        check_cost(model, len(view.side))
        given, tokenizer = view.given.asking(places), self.input.tokenizer
        with torch.inference_mode():
            scores = model.scores(model.outputs(*given.tensors(model.device)))[0].cpu()  # T×V
        answer = Side.of(tokenizer, only_words(scores).argmax(1).tolist())
        return trace(model, view.side, answer, Side.of(tokenizer, []), tokenizer=tokenizer, given=given)

    def _with_blanks(self, text: str) -> list[int]:
        """Return the tokens of a text with its blanks masked."""
        ids: list[int] = []
        for number, part in enumerate(text.split(BLANK)):
            ids += [MASK] if number else []
            ids += self.input.tokenizer.encode_batch([part])[0]
        return ids

    def usage(self, run: str, example: Pair) -> Usage:
        """Return commands that start another run from this one."""
        text = " ".join([*example.source.split()[:5], BLANK])
        shell = f"regard train my.yaml model.start_from={shlex.quote(run)}"
        return Usage(shell=shell, python=python_call(run, text))

    def next_command(self, run: str) -> str:
        """Return commands that start another run from this one."""
        return f"regard train my.yaml model.start_from={run}"


def only_words(scores: Tensor) -> Tensor:
    """Set the scores …×V of special tokens to minus infinity."""
    places = torch.arange(scores.shape[-1], device=scores.device)
    return scores.masked_fill(places < len(SPECIALS), -torch.inf)
