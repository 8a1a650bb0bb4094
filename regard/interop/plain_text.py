"""The shortest way from text to text: CTranslate2, tokenizers, and no torch at all."""

from collections.abc import Sequence
from pathlib import Path

from regard.config.loading import load
from regard.data.prepare import load_tokenizers
from regard.data.store import TokenStore
from regard.errors import RegardError
from regard.interop.ctranslate2_cache import cached_model
from regard.interop.ctranslate2_search import CTranslate2Search
from regard.interop.loops import without_loops
from regard.run import Run


class PlainText:
    """One run's best outputs as plain text; texts that are longer than what it was trained on are not for here."""

    def __init__(self, directory: Path, overrides: Sequence[str], quantize: str) -> None:
        run = Run.open(directory)
        config = load(run.directory / "config.yaml", overrides)
        self.decoding = config.decoding
        self._source, self._target = load_tokenizers(run.tokenizers)
        place = cached_model(run, quantize)
        self._search = CTranslate2Search(place, quantize, config, self._source, self._target)
        positions = config.model.positions
        learned = positions.max_length if positions and positions.kind == "learned" else None
        most = config.data.cleaning.max_length
        self._longest = min(
            trained_length(run) or most, most, config.decoding.batch_tokens - 1, (learned or most + 1) - 1
        )

    def translate(self, texts: Sequence[str], beam: int | None, length_penalty: float | None) -> list[str] | None:
        """The best output for each text; nothing at all, if one of them has to be split."""
        sources = self._source.encode_batch(texts)
        if any(len(ids) > self._longest for ids in sources):
            return None
        penalty = self.decoding.length_penalty if length_penalty is None else length_penalty
        found = self._search.find(sources, beam=beam or self.decoding.beam, count=1, penalty=penalty)
        return [
            self._target.decode(without_loops(best[0].tokens, ids)) if best else ""
            for ids, best in zip(sources, found, strict=True)
        ]


def trained_length(run: Run) -> int | None:
    """Longest source in tokens among a run's training data, if it is still there."""
    try:
        return int(TokenStore(run.data / "train").lengths[0].max())
    except (OSError, ValueError, RegardError):
        return None
