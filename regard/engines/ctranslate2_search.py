"""Search with CTranslate2 on token ids: batches of similar length, one worker per core. Does not need torch.

CTranslate2 (Klein et al., 2020) divides a score by length to the power of the penalty, as we do; with the end symbol
counted (`return_end_token`) the lengths are equal too. Its beam differs in one respect: a finished hypothesis is
replaced by another, and the search stops when `PATIENCE` × the beam have finished; ours becomes narrower, and stops
when no unfinished hypothesis can still win.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby, repeat
from pathlib import Path
from typing import Any, NamedTuple

from regard.engines.facts import Facts
from regard.formats.ctranslate2_library import check_supported, library, unique_names
from regard.foundation.errors import RegardError
from regard.text.specials import EOS
from regard.text.tokenizer import Tokenizer

BATCH_TOKENS = 2048
"""Source tokens in a batch, times the beam."""
LENGTH_STEP = 16
"""Tokens in which the lengths of the sources of a batch are equal, rounded up. CTranslate2 has one limit for the length
of all outputs of a batch: it follows from this length alone, so that no output depends on the other sources."""
PATIENCE = 1.2
"""Beam search patience (Kasai et al., 2022); slightly above 1 brings outputs closer to the native engine's."""


class Found(NamedTuple):
    """One output."""

    tokens: list[int]
    """One output, without the end symbol."""
    total: float
    """Sum of all log-probabilities, including the end symbol."""
    ended: bool
    """Whether the end symbol was generated; otherwise the length limit was reached."""


class CTranslate2Search:
    """An exported model with its vocabularies."""

    def __init__(self, place: Path, quantize: str, facts: Facts, source: Tokenizer, target: Tokenizer) -> None:
        check_supported(quantize)
        try:
            self._engine = library().Translator(
                str(place), device="cpu", compute_type=quantize, inter_threads=workers(), intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise RegardError(
                f"CTranslate2 cannot open {place} ({str(error)[:200]}). Delete it, and it will be created again."
            ) from error
        self._facts = facts
        self._source_names = unique_names(source.vocabulary)
        self._numbers = {name: number for number, name in enumerate(unique_names(target.vocabulary))}

    def find(
        self, sources: Sequence[list[int]], *, beam: int, count: int, penalty: float, scores: bool = True
    ) -> list[list[Found]]:
        """Return the best outputs of each source, best first; none for an empty one. Without `scores`, totals are 0."""
        found: list[list[Found]] = [[] for _ in sources]
        waiting = [
            (places, self._start([sources[place] for place in places], beam, count, penalty, scores))
            for places in batches([len(ids) for ids in sources], max(BATCH_TOKENS // beam, 1))
        ]
        for places, results in waiting:
            for place, result in zip(places, results, strict=True):
                limit = self._facts.limit(len(sources[place]))
                given = result.result()
                found[place] = [
                    self._found(names, score, limit, penalty)
                    for names, score in zip(given.hypotheses, given.scores or repeat(0.0), strict=False)
                ]
        return found

    def _start(self, sources: list[list[int]], beam: int, count: int, penalty: float, scores: bool) -> list[Any]:
        """Submit a batch; return its asynchronous results."""
        results: list[Any] = self._engine.translate_batch(
            [[self._source_names[token] for token in ids] for ids in sources],
            asynchronous=True,
            beam_size=beam,
            patience=PATIENCE if beam > 1 else 1,
            num_hypotheses=count,
            length_penalty=penalty,
            min_decoding_length=0,
            max_decoding_length=self._facts.limit(rounded_up(len(sources[0]))) + 1,  # one for the end symbol
            max_input_length=0,
            return_scores=scores,
            return_end_token=True,
        )
        return results

    def _found(self, names: list[str], score: float, limit: int, penalty: float) -> Found:
        tokens = [self._numbers[name] for name in names]
        total = score * max(len(tokens), 1) ** penalty
        ended = tokens[-1:] == [EOS]
        output = tokens[:-1] if ended else tokens
        return Found(output[:limit], total, ended and len(output) <= limit)


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield the indices of non-empty sources, longest first, in batches of at most `tokens` padded tokens."""
    order = sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index])
    for _, similar in groupby(order, key=lambda index: rounded_up(lengths[index])):
        places = list(similar)
        while places:
            count = max(tokens // (lengths[places[0]] + 1), 1)
            yield places[:count]
            del places[:count]


def rounded_up(length: int) -> int:
    """Return a length as a multiple of `LENGTH_STEP`."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def workers() -> int:
    """Return the number of batches that are searched in parallel, one core each; more threads per batch are slower."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
