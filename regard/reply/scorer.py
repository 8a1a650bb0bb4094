"""How probable each response is for a message: a sequence-to-sequence run over the trie of responses."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from regard.evaluation.likelihood import log_probs
from regard.foundation.errors import RegardError
from regard.search.trie import Found, Trie, best_outputs
from regard.tasks.loaded import LoadedRun
from regard.text.specials import UNK

WIDTH = 20
"""Nodes of the trie that are kept at each depth."""
TOLERANCE = 1e-3
"""Largest difference of a log-probability between batches of different sizes."""
LONGEST_MESSAGE = 80
"""Tokens; of a longer message the last ones are read, which usually ask for the reply."""


class Scorer:
    """Ranks a fixed set of responses by log P(response | message)."""

    def __init__(self, run: LoadedRun, responses: Sequence[str]) -> None:
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

    def rank(self, message: str, count: int, width: int = WIDTH, least: float = -math.inf) -> list[Found]:
        """Return the most probable responses for a message, best first; none whose log-probability is below `least`."""
        rows = self._rows(message)
        steps, source = self.run.input.step_model(self.run.model, [message], rows, with_attention=False)
        return best_outputs(steps, source, self.trie, width=max(width, count), count=count, least=least)

    def rank_of(self, message: str, response: int) -> float:
        """Return the rank of a response among all, from 1; ties count half.

        The search leaves out what is less probable than the response, so this is much faster than scoring all.
        """
        own = sum(log_probs(self.run.model, self._rows(message), [self.ids[response]])[0])
        found = self.rank(message, count=len(self.ids), width=len(self.trie), least=own - TOLERANCE)
        scores = {one.output: one.log_prob for one in found}
        exact = scores.get(response, own)
        others = np.array([score for output, score in scores.items() if output != response])
        return 1 + float(np.sum(others > exact)) + float(np.sum(others == exact)) / 2

    def score_all(self, message: str) -> NDArray[np.float64]:
        """Return log P of every response: exhaustive, and much slower than `rank`."""
        sources = self._rows(message) * len(self.ids)
        return np.array([sum(row) for row in log_probs(self.run.model, sources, self.ids)])

    def score_by_trie(self, message: str) -> NDArray[np.float64]:
        """Return log P of every response, as `score_all` does, but each common beginning is computed once."""
        scores = np.full(len(self.ids), -np.inf)
        for found in self.rank(message, count=len(self.ids), width=len(self.trie)):
            scores[found.output] = found.log_prob
        return scores

    def _rows(self, message: str) -> list[list[int]]:
        return [ids[-LONGEST_MESSAGE:] for ids in self.run.input.rows([message])]


@torch.inference_mode()
def response_priors(language_model: LoadedRun, responses: Sequence[str]) -> NDArray[np.float64]:
    """Return log P of each response under a language model: how generic it is."""
    ids = language_model.target_tokenizer.encode_batch(list(responses))
    return np.array([sum(row) for row in log_probs(language_model.model, [[] for _ in ids], ids)])
