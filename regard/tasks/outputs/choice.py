"""Base class of outputs that are one label or one number for a whole input.

Axes: B batch, C outputs of the model.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import torch
from torch import Tensor

from regard.config.task import VisualQuestions
from regard.models.classifier import build_classifier
from regard.models.encoder_model import ChoiceModel
from regard.models.visual_question_model import VisualQuestionModel
from regard.tasks.outputs.output import Output, read_all
from regard.tasks.trace import Side, Trace, check_cost, trace
from regard.tasks.training_batch import TrainingBatch

R = TypeVar("R", bound=ChoiceModel)

LEAST_TO_FIT = 200
"""Validation examples that a temperature is fitted on. Of 150 fits to 200 answers with honest probabilities for two
classes, nine in ten lay between 0.80 and 1.21; with 30 answers between 0.41 and 1.76, some below 0.1."""


class ChoiceOutput(Output[R]):
    """An output computed from one vector of the whole input."""

    has_perplexity = False

    @property
    def unit(self) -> str:
        """One example, such as a text or a sound."""
        return self.config.task.examples.removesuffix("s")

    @property
    def outputs(self) -> int:
        """The number of scores of the model."""
        raise NotImplementedError

    def build(self) -> R:
        """Build the model with the configured encoder and pooling."""
        task, cell = self.config.task, self.config.model
        tokens = self.input.optional_tokenizer.size if self.input.optional_tokenizer else 0
        if isinstance(task, VisualQuestions):
            return cast(R, VisualQuestionModel(cell, task, tokens, self.outputs))
        texts = self.config.data.train.texts
        return cast(R, build_classifier(cell, task, tokens, self.outputs, texts=texts))

    def batch_scores(self, model: R, batch: TrainingBatch) -> Tensor:
        """Return the scores B×C of a batch."""
        scores: Tensor = model(*(batch[name] for name in ("source", "pixels") if name in batch.tensors))
        return scores

    def scores(self, model: R, sources: Sequence[str]) -> Tensor:
        """Return the scores N×C of sources, in their order, before temperature."""
        found = read_all(self.input, model, sources, model)
        return torch.stack(found) if found else torch.zeros(0, self.outputs)

    def choice_trace(self, model: R, source: str, labels: tuple[str, ...], answer: Callable[[Tensor], Side]) -> Trace:
        """Trace the model on a source; `answer` makes a side of its scores C."""
        view = self.input.view(model, source)
        check_cost(model, max(len(view.side), len(view.given.picture.side) if view.given.picture else 0))
        given = view.given.asking([0])
        tensors = given.tensors(model.device)
        with torch.inference_mode():
            scores = model.scores(model.outputs(*tensors))[0, 0].cpu()  # C
        nothing = Side.of_labels([], [])
        side = view.side
        if given.picture is None and given.content is None:
            side = Side.of(
                self.input.tokenizer, [token for text in model.texts(tensors[0]) for token in text[0].tolist()]
            )
        return trace(model, side, answer(scores), nothing, labels=labels, given=given)

    def check_enough(self, pairs: Sequence[object], what: str) -> str | None:
        """Return a warning that there are too few examples to fit `what` on; `None` if there are enough."""
        if len(pairs) >= LEAST_TO_FIT:
            return None
        return (
            f"{what} was not fitted: {len(pairs):,} validation texts are too few, {LEAST_TO_FIT} are needed. Give "
            "them as data.validation, or train on more texts, a tenth of which can be held out (data.held_out)."
        )
