"""How probable each response is for a message: a sequence-to-sequence run over the trie of responses.

A classifier whose labels are the responses may be a second expert. Then the score of a response is
(log P(response | message) + w log Q(response | message)) / (1 + w), with P of the sequence-to-sequence run and Q of the
classifier: a product of experts (Hinton, 2002), up to a constant.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.evaluation.likelihood import log_probs
from regard.foundation.errors import RegardError
from regard.reply.response_classifier import ResponseClassifier
from regard.search.recurrent_steps import RecurrentSteps, can_prepare
from regard.search.steps import Source, StepModel
from regard.search.trie import Found, Trie, best_outputs
from regard.tasks.loaded import LoadedRun
from regard.text.specials import UNK

WIDTH = 20
"""Nodes of the trie that are kept at each depth."""
TOLERANCE = 1e-3
"""Largest difference of a log-probability between batches of different sizes."""
LONGEST_MESSAGE = 80
"""Tokens; of a longer message the last ones are read, which usually ask for the reply."""


@dataclass(frozen=True)
class Reading:
    """A message as both experts have read it, for several searches."""

    steps: StepModel[Any]
    source: Source
    state: Any
    """The state of the sequence-to-sequence run before the first token."""
    labels: NDArray[np.float64]
    """log Q of every label of the classifier; empty without one."""


class Scorer:
    """Ranks a fixed set of responses by the mean of both experts' log-probabilities, weighted 1 to `weight`."""

    def __init__(
        self,
        run: LoadedRun,
        responses: Sequence[str],
        classifier: LoadedRun | None = None,
        *,
        weight: float = 1.0,
    ) -> None:
        if not run.translates_text:
            raise RegardError("The scorer must be a run that reads text and generates text, such as a translation run.")
        self.run, self.responses = run, list(responses)
        self.ids = run.target_tokenizer.encode_batch(self.responses)
        for response, ids in zip(self.responses, self.ids, strict=True):
            if UNK in ids:
                raise RegardError(
                    f"The scorer's vocabulary has no tokens for {response[:60]!r}. Remove or rewrite this response."
                )
        self.trie = Trie(self.ids)
        self.weight = weight if classifier else 0.0
        self.classifier = ResponseClassifier(classifier, self.responses) if classifier and weight else None
        self.prepared = RecurrentSteps(run.model) if can_prepare(run.model) else None
        """The steps of the sequence-to-sequence run, if they can be prepared: by a third faster."""

    def among(self, indices: Sequence[int]) -> "Scorer":
        """Return a scorer of some of the responses, with the same experts."""
        scorer = copy.copy(self)
        scorer.responses, scorer.ids = (
            [self.responses[index] for index in indices],
            [self.ids[index] for index in indices],
        )
        scorer.trie = Trie(scorer.ids)
        if self.classifier:
            scorer.classifier = ResponseClassifier(self.classifier.run, scorer.responses)
        return scorer

    @torch.inference_mode()
    def read(self, message: str) -> Reading:
        """Return a message as both experts read it, for this scorer and those `among` its responses."""
        steps, source = self._steps(message)
        labels = self.classifier.of_labels(message) if self.classifier else np.zeros(0)
        return Reading(steps, source, steps.start(source), labels)

    def rank(self, message: str, count: int, width: int = WIDTH, least: float = -math.inf) -> list[Found]:
        """Return the best responses for a message, best first; none whose score is below `least`."""
        return self.rank_read(self.read(message), count, width, least)

    def rank_read(self, reading: Reading, count: int, width: int = WIDTH, least: float = -math.inf) -> list[Found]:
        """Return the best responses for a message that has been read; see `rank`."""
        total = 1 + self.weight
        extra = self.weight * self.classifier.among_responses(reading.labels) if self.classifier else None
        found = best_outputs(
            reading.steps,
            reading.source,
            self.trie,
            width=max(width, count),
            count=count,
            least=total * least,
            extra=extra,
            state=reading.state,
        )
        return [Found(one.output, one.score / total) for one in found]

    def rank_of(self, message: str, response: int) -> float:
        """Return the rank of a response among all, from 1; ties count half.

        The search leaves out what is worse than the response, so this is much faster than scoring all.
        """
        own = sum(log_probs(self.run.model, self._rows(message), [self.ids[response]])[0])
        extra = self._extra(message)
        own = (own + (0.0 if extra is None else float(extra[response]))) / (1 + self.weight)
        found = self.rank(message, count=len(self.ids), width=len(self.trie), least=own - TOLERANCE)
        scores = {one.output: one.score for one in found}
        exact = scores.get(response, own)
        others = np.array([score for output, score in scores.items() if output != response])
        return 1 + float(np.sum(others > exact)) + float(np.sum(others == exact)) / 2

    def score_all(self, message: str) -> NDArray[np.float64]:
        """Return the score of every response: exhaustive, and much slower than `rank`."""
        sources = self._rows(message) * len(self.ids)
        scores = np.array([sum(row) for row in log_probs(self.run.model, sources, self.ids)])
        extra = self._extra(message)
        return scores if extra is None else (scores + extra) / (1 + self.weight)

    def score_by_trie(self, message: str) -> NDArray[np.float64]:
        """Return the score of every response, as `score_all` does, but each common beginning is computed once."""
        scores = np.full(len(self.ids), -np.inf)
        for found in self.rank(message, count=len(self.ids), width=len(self.trie)):
            scores[found.output] = found.score
        return scores

    def _extra(self, message: str) -> NDArray[np.float64] | None:
        """Return what the classifier adds to the log-probability of each response."""
        return self.weight * self.classifier.log_probs(message) if self.classifier else None

    def _steps(self, message: str) -> tuple[StepModel[Any], Source]:
        """Return the step model, prepared if it can be, and the message as its source."""
        rows = self._rows(message)
        steps, source = self.run.input.step_model(self.run.model, [message], rows, with_attention=False)
        return self.prepared or steps, source

    def _rows(self, message: str) -> list[list[int]]:
        return [ids[-LONGEST_MESSAGE:] for ids in self.run.input.rows([message])]


@torch.inference_mode()
def response_priors(language_model: LoadedRun, responses: Sequence[str]) -> NDArray[np.float64]:
    """Return log P of each response under a language model: how generic it is."""
    ids = language_model.target_tokenizer.encode_batch(list(responses))
    return np.array([sum(row) for row in log_probs(language_model.model, [[] for _ in ids], ids)])
