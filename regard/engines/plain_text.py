"""Translation of plain text with CTranslate2 and tokenizers, without importing torch."""

from collections.abc import Sequence
from pathlib import Path

from regard.engines.ctranslate2_cache import cached_facts, cached_model
from regard.engines.ctranslate2_search import CTranslate2Search
from regard.engines.facts import facts_of
from regard.engines.loops import first_loop
from regard.runs.run import Run
from regard.text.joined import Joined
from regard.text.loops import PATIENCE, patience_for
from regard.text.sentences import Piece, pieces
from regard.text.tokenizer import Tokenizer


class PlainText:
    """Translates texts with one run; texts longer than the training data are not supported."""

    def __init__(self, directory: Path, overrides: Sequence[str], quantize: str) -> None:
        run = Run.open(directory)
        place = cached_model(run, quantize)
        self.facts = cached_facts(place)
        if overrides:
            self.facts = facts_of(run, run.load_config(overrides))
        shared = run.tokenizers / "shared.json"
        sides = (
            (shared, shared) if shared.exists() else (run.tokenizers / "source.json", run.tokenizers / "target.json")
        )
        source = Tokenizer.load(sides[0])
        self._source = Joined(source) if self.facts.texts > 1 else source
        self._target = source if shared.exists() else Tokenizer.load(sides[1])
        self.tokens = 0
        """Source tokens translated so far."""
        self._search = CTranslate2Search(place, quantize, self.facts, self._source, self._target)

    def translate(
        self, texts: Sequence[str], beam: int | None, length_penalty: float | None, *, whole: bool = False
    ) -> list[str] | None:
        """Return the best output for each text; `None` if one of them must be split, unless all are taken `whole`."""
        sources = self._source.encode_batch(texts)
        if not whole and any(len(ids) > self.facts.longest_source for ids in sources):
            return None
        self.tokens += sum(map(len, sources))
        penalty = self.facts.length_penalty if length_penalty is None else length_penalty
        found = self._search.find(sources, beam=beam or self.facts.beam, count=1, penalty=penalty, scores=False)
        return [
            self._target.decode(_cut(best[0].tokens, ids)) if best else ""
            for ids, best in zip(sources, found, strict=True)
        ]

    def split(self, texts: Sequence[str]) -> list[list[Piece]]:
        """Return the pieces of each text that are translated on their own: the text itself if it fits the model."""
        lengths = [len(ids) for ids in self._source.encode_batch(texts)]
        return [
            [Piece(text, "")] if length <= self.facts.longest_source or self.facts.texts > 1 else self._pieces(text)
            for text, length in zip(texts, lengths, strict=True)
        ]

    def _pieces(self, text: str) -> list[Piece]:
        return pieces(text, lambda piece: len(self._source.encode_batch([piece])[0]) <= self.facts.longest_piece)


def _cut(tokens: list[int], source: list[int]) -> list[int]:
    """Return an output, cut at a loop if it has one."""
    return tokens[: first_loop(tokens, patience_for(source))] if len(tokens) >= PATIENCE else tokens
