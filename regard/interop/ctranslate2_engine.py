"""CTranslate2 as an engine: the same translator, whose search runs elsewhere.

CTranslate2 (Klein et al., 2020) divides a score by length to the power of the penalty, as we do; with the end symbol
counted (`return_end_token`) the lengths are ours too. Its beam differs in one thing: an ended hypothesis gives its
place to another, and the search stops when as many have ended as the beam is wide; ours narrows, and stops when nothing
alive can still win.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config.run import RunConfig
from regard.data.prepare import load_tokenizers
from regard.errors import RegardError
from regard.interop.ctranslate2_cache import cached_model
from regard.interop.ctranslate2_library import check_supported, library, unique_names
from regard.run import Run
from regard.search import Hypothesis, Search, SearchTree
from regard.search.guards import loop_start, patience_for
from regard.search.hypothesis import Ended, scored
from regard.text.specials import EOS
from regard.text.tokenizer import Tokenizer
from regard.translator import Translator, groups

if TYPE_CHECKING:
    from regard.models import Model

BATCH_TOKENS = 2048
"""Source tokens in a batch, beam included."""


class CTranslate2Translator(Translator):
    """A translator that searches in CTranslate2; what that cannot do, the native model does, with a word."""

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        quantize: str,
        overrides: Sequence[str] = (),
    ) -> None:
        self._native: Model | None = None
        self._run, self._overrides = run, overrides
        self._told: set[str] = set()
        super().__init__(None, config, source_tokenizer, target_tokenizer)  # type: ignore[arg-type]
        self._engine = _open(cached_model(run, quantize), quantize)
        self._source_names, self._target_names = (
            unique_names(source_tokenizer.vocabulary),
            unique_names(target_tokenizer.vocabulary),
        )
        self._numbers = {name: number for number, name in enumerate(self._target_names)}

    @property
    def model(self) -> "Model":
        """The native model, loaded when it is first needed."""
        if self._native is None:
            self._native = Translator.load(self._run.directory, self._overrides).model
        return self._native

    @model.setter
    def model(self, model: "Model | None") -> None:
        self._native = model

    def explained(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with its attention and word alignment, from the native model."""
        self._tell("attention and alignment")
        return super().explained(source, hypothesis)

    def _find(self, texts: Sequence[str], search: Search, trees: Sequence[SearchTree] | None) -> list[list[Hypothesis]]:
        lacking = lacks(search, trees)
        if lacking:
            self._tell(lacking)
            return super()._find(texts, search, trees)
        sources = self.source_tokenizer.encode_batch(texts)
        self._check_lengths(sources)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        width = search.beam or 1
        waiting = []
        for group in groups([len(ids) for ids in sources], BATCH_TOKENS // width):
            limits = [self._limit(len(sources[place])) for place in group]
            waiting.append((group, limits, self._start([sources[place] for place in group], search, max(limits))))
        for group, limits, results in waiting:
            for place, limit, result in zip(group, limits, results, strict=True):
                found[place] = self._hypotheses(result.result(), limit, sources[place], search)
        return found

    def _limit(self, length: int) -> int:
        return min(self._longest, int(self.config.decoding.max_ratio * length) + 10)

    def _start(self, sources: list[list[int]], search: Search, limit: int) -> list[Any]:
        """Hand a batch over; results come when a worker has had the time."""
        names = self._source_names
        results: list[Any] = self._engine.translate_batch(
            [[names[token] for token in ids] for ids in sources],
            asynchronous=True,
            beam_size=search.beam or 1,
            num_hypotheses=search.count,
            length_penalty=search.length_penalty or 0.0,
            min_decoding_length=0,
            max_decoding_length=limit + 1,  # one for the end symbol
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )
        return results

    def _hypotheses(self, result: Any, limit: int, source: list[int], search: Search) -> list[Hypothesis]:
        penalty = search.length_penalty or 0.0
        return [
            self._hypothesis(names, score, limit, source, penalty)
            for names, score in zip(result.hypotheses, result.scores, strict=True)
        ]

    def _hypothesis(self, names: list[str], score: float, limit: int, source: list[int], penalty: float) -> Hypothesis:
        """One output as ours; log-probabilities are the mean, repeated, as only their sum is known."""
        tokens = [self._numbers[name] for name in names]
        ended = tokens[-1:] == [EOS]
        each = score * max(len(tokens), 1) ** (penalty - 1)
        said = tokens[:-1] if ended else tokens
        cut = first_loop(said, patience_for(source))
        kept = said[: limit if cut is None else cut]
        whole = ended and len(kept) == len(said)
        why: Ended = "end" if whole else "length" if cut is None else "repetition"
        one = scored(tuple(kept), (each,) * (len(kept) + whole), penalty, why)
        return replace(one, text=self.target_tokenizer.decode(kept))

    def _tell(self, lacking: str) -> None:
        if lacking not in self._told:
            self._told.add(lacking)
            print(f"CTranslate2 has no {lacking}: the native engine does that.", file=sys.stderr)


def first_loop(tokens: Sequence[int], patience: int) -> int | None:
    """How many tokens are left when an endless repetition is cut where the native search would have noticed it."""
    ends = range(patience, len(tokens) + 1)
    return next((cut for end in ends if (cut := loop_start(tokens[:end], patience)) is not None), None)


def lacks(search: Search, trees: Sequence[SearchTree] | None = None) -> str:
    """What a search asks for that CTranslate2 does not do as we do; empty if there is nothing."""
    wants = {
        "seeded samples": search.samples > 0,
        "coverage penalty over all layers": search.coverage_penalty != 0,
        "diverse groups": search.groups > 1,
        "constraints": bool(search.constraints),
        "stretches kept from the source": bool(search.keep),
        "record of its search": trees is not None,
    }
    return next((name for name, wanted in wants.items() if wanted), "")


def open_ctranslate2(directory: Path, overrides: Sequence[str], quantize: str) -> CTranslate2Translator:
    """The translator of a run whose search runs in CTranslate2."""
    from regard.config.loading import load

    run = Run.open(directory)
    config = load(run.directory / "config.yaml", overrides)
    source, target = load_tokenizers(run.tokenizers)
    return CTranslate2Translator(run, config, source, target, quantize=quantize, overrides=overrides)


def workers() -> int:
    """How many batches are searched at once, on one core each: two threads for one batch are far slower than one."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _open(place: Path, quantize: str) -> Any:
    check_supported(quantize)
    try:
        return library().Translator(
            str(place), device="cpu", compute_type=quantize, inter_threads=workers(), intra_threads=1
        )
    except (RuntimeError, ValueError) as error:
        raise RegardError(
            f"CTranslate2 cannot open {place} ({str(error)[:200]}): delete it, and it is made anew."
        ) from error
