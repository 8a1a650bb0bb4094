"""CTranslate2 as an engine: a text generator whose search runs in CTranslate2."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config.run import RunConfig
from regard.engines.ctranslate2_cache import cached_model
from regard.engines.ctranslate2_search import CTranslate2Search, Found
from regard.engines.facts import facts_of, trained_length
from regard.engines.loops import first_loop
from regard.foundation.display import note
from regard.runs.run import Run
from regard.search import Hypothesis, Search, SearchTree
from regard.search.forbidden import Reading
from regard.search.hypothesis import Ended, distinct, scored
from regard.tasks.generation import Rows, TextGenerator
from regard.tasks.inputs.text import TextInput
from regard.tasks.loaded import load_run
from regard.tasks.outputs.text import TextOutput
from regard.tasks.vocabularies import load_tokenizers, with_texts
from regard.text.loops import patience_for
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.models import Model


class CTranslate2Generator(TextGenerator):
    """Generates text with CTranslate2; unsupported requests use the native model, with a note."""

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        source: TextInput,
        tokenizer: Tokenizer,
        *,
        quantize: str,
        overrides: Sequence[str] = (),
    ) -> None:
        self._native: Model | None = None
        self._run, self._overrides = run, overrides
        self._told: set[str] = set()
        super().__init__(None, config, source, tokenizer)  # type: ignore[arg-type]
        source.trained_length = trained_length(run) or source.trained_length
        place = cached_model(run, quantize)
        self._fast = CTranslate2Search(place, quantize, facts_of(run, config), source.tokenizer, tokenizer)

    @property
    def model(self) -> "Model":
        """The native model, loaded when it is first needed."""
        if self._native is None:
            self._native = load_run(self._run, self._overrides).model
        return self._native

    @model.setter
    def model(self, model: "Model | None") -> None:
        self._native = model

    def explain(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its attention and word alignment, from the native model."""
        self._note_fallback("attention and alignment")
        return super().explain(source, hypothesis)

    def find(
        self,
        texts: Sequence[str],
        search: Search,
        trees: Sequence[SearchTree] | None,
        before: Sequence[frozenset[Reading]] | None = None,
        rows: Rows | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source."""
        lacking = lacks(search, trees)
        if lacking:
            self._note_fallback(lacking)
            return super().find(texts, search, trees, before, rows)
        sources = self.source.rows(texts) if rows is None else rows
        penalty = search.length_penalty or 0.0
        width = search.beam or 1
        asked = width if search.count > 1 else 1  # some may be equal as text
        found = self._fast.find(sources, beam=width, count=asked, penalty=penalty)
        lists = [
            distinct(self._hypothesis(one, ids, penalty) for one in best)[: search.count]
            for ids, best in zip(sources, found, strict=True)
        ]
        # Outputs that are cut at a limit or at a loop may become equal.
        short = [place for place, ids in enumerate(sources) if ids and len(lists[place]) < search.count]
        if short:
            self._note_fallback("complete n-best lists for some of the texts")
            for place, best in zip(short, super().find([texts[place] for place in short], search, None), strict=True):
                lists[place] = best
        return lists

    def _hypothesis(self, found: Found, source: list[int], penalty: float) -> Hypothesis:
        """Return an output as a hypothesis; token log-probabilities are their mean, as only the sum is known."""
        cut = first_loop(found.tokens, patience_for(source))
        kept = found.tokens[:cut]
        whole = found.ended and cut is None
        each = found.total / max(len(found.tokens) + found.ended, 1)
        why: Ended = "end" if whole else "length" if cut is None else "repetition"
        one = scored(tuple(kept), (each,) * (len(kept) + whole), penalty, why)
        return replace(one, text=self.tokenizer.decode(kept))

    def _note_fallback(self, lacking: str) -> None:
        if lacking not in self._told:
            self._told.add(lacking)
            note(f"CTranslate2 does not support {lacking}; the native engine is used for it.")


def lacks(search: Search, trees: Sequence[SearchTree] | None = None) -> str:
    """Return the part of a search that CTranslate2 does not support; empty if it supports everything."""
    wants = {
        "seeded samples": search.samples > 0,
        "minimum Bayes risk": search.utility is not None,
        "the coverage penalty": search.coverage_penalty != 0,
        "diverse groups": search.groups > 1,
        "the full beam": search.full_beam,
        "constraints": bool(search.constraints),
        "copying parts of the source": bool(search.keep),
        "search trees": trees is not None,
    }
    return next((name for name, wanted in wants.items() if wanted), "")


def open_ctranslate2(directory: Path, overrides: Sequence[str], quantize: str) -> CTranslate2Generator:
    """Return the generator of a run whose search runs in CTranslate2."""
    run = Run.open(directory)
    config = run.load_config(overrides)
    source, target = load_tokenizers(run.tokenizers)
    text = TextInput(config, with_texts(config, source), TextOutput.source_frame)
    return CTranslate2Generator(run, config, text, target, quantize=quantize, overrides=overrides)
