"""BLEU, chrF and TER, computed by sacrebleu (Post, 2018), with its signatures.

sacrebleu is imported when a metric is created, since opening a run does not need it.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.foundation.errors import RegardError, UsageError
from regard.metrics.metric import Metric, References, Statistics

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEUScore

TOKENIZERS = ("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "none")
"""Tokenizers of BLEU: sacrebleu's for most languages, for Chinese, Japanese and Korean, its subwords, or none."""


class _Sacre(Metric):
    """A metric of sacrebleu, through the two halves of its `corpus_score` (a test checks that the result is equal)."""

    _inner: Any

    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return its counts of each sentence."""
        streams = list(zip_longest(*references))  # sacrebleu's layout: all first references, all second ones, …
        rows = self._inner._extract_corpus_statistics(list(hypotheses), streams)
        self.signature = str(self._inner.get_signature())
        return np.asarray(rows, dtype=np.float64)

    def score(self, totals: Statistics) -> float:
        """Return its score of summed counts."""
        return float(self._whole(totals).score)

    def _whole(self, totals: Statistics) -> Any:
        return self._inner._compute_score_from_stats(_counts(totals))


class Bleu(_Sacre):
    """BLEU = brevity penalty · exp(mean over n ≤ 4 of log pₙ), pₙ clipped n-gram precision (Papineni et al., 2002)."""

    label = "BLEU"

    def __init__(self, tokenizer: str = TOKENIZERS[0]) -> None:
        if tokenizer not in TOKENIZERS:
            raise UsageError(f"BLEU has no tokenizer `{tokenizer}`. Choose from {', '.join(TOKENIZERS)}.")
        from sacrebleu.metrics.bleu import BLEU

        try:
            self._inner = BLEU(tokenize=tokenizer, force=True)  # no warning about tokenised text
        except RuntimeError:  # raised by sacrebleu for a missing extra
            extra = tokenizer.partition("-")[0]
            raise RegardError(
                f'The tokenizer {tokenizer} needs an extra. Install it with: pip install "sacrebleu[{extra}]"'
            ) from None
        except OSError as error:
            raise RegardError(
                f"sacrebleu could not fetch the tokenizer {tokenizer} ({error}). Try again with a network, or choose "
                "bleu:char."
            ) from None

    def details(self, totals: Statistics) -> dict[str, float]:
        """Return the four precisions, BLEU with fewer orders, brevity, and lengths in words."""
        whole: BLEUScore = self._whole(totals)
        orders = range(1, 5)
        precisions = {f"precision-{n}": whole.precisions[n - 1] for n in orders}
        shorter = {f"bleu-{n}": _up_to(whole, n) for n in orders}
        lengths = {"hypothesis-words": whole.sys_len, "reference-words": whole.ref_len}
        return {**precisions, **shorter, "brevity-penalty": whole.bp, **lengths}


class Chrf(_Sacre):
    """chrF: F₂ of character n-grams up to six, averaged over orders (Popović, 2015)."""

    label = "chrF"

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF

        self._inner = CHRF()


class Ter(_Sacre):
    """TER = edits (insertions, deletions, replacements, shifts) / words of the reference (Snover et al., 2006)."""

    label = "TER"
    larger_is_better = False

    def __init__(self) -> None:
        from sacrebleu.metrics.ter import TER

        self._inner = TER()


def _counts(totals: Statistics) -> list[float]:
    """Return whole numbers as integers, as sacrebleu's own counts are."""
    return [int(value) if value.is_integer() else value for value in totals.tolist()]


def _up_to(whole: "BLEUScore", order: int) -> float:
    """Return BLEU with n-grams up to an order."""
    from sacrebleu.metrics.bleu import BLEU

    counts, totals = whole.counts[:order], whole.totals[:order]
    return float(BLEU.compute_bleu(counts, totals, whole.sys_len, whole.ref_len, "exp", max_ngram_order=order).score)
