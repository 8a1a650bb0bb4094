"""CIDEr-D, a metric for captions: consensus with several references."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.metrics.metric import Metric, References, Statistics

Grams = Counter[tuple[str, ...]]
ORDERS = 4
SIGMA = 6.0
"""Width of the penalty on a difference in length, in words."""


class Cider(Metric):
    """CIDEr-D: the mean over n ≤ 4 of clipped TF-IDF cosines of n-grams, · exp(−Δlength²/2σ²) (Vedantam et al., 2015).

    The document of an n-gram is the set of references of one image. The scale is that of papers: 100 times the value of
    the reference code, which is 10 times the mean cosine.
    """

    label = "CIDEr-D"
    signature = f"n:{ORDERS}|sigma:{SIGMA:g}|case:lc|tok:words|df:these references|scale:1000"

    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return the mean similarity of each sentence to its references, and one."""
        known = [[grams(reference) for reference in several] for several in references]
        seen = Counter(gram for several in known for gram in {gram for reference in several for gram in reference})
        pictures = math.log(max(1, len(references)))
        weight = {gram: pictures - math.log(count) for gram, count in seen.items()}
        rows = []
        for hypothesis, several in zip(hypotheses, known, strict=True):
            output = grams(hypothesis)
            rows.append(
                (sum(_similarity(output, reference, weight, pictures) for reference in several) / len(several), 1.0)
            )
        return np.asarray(rows, dtype=np.float64)

    def score(self, totals: Statistics) -> float:
        """Return 1000 times the mean similarity."""
        return float(1000.0 * totals[0] / totals[1])


def grams(text: str) -> Grams:
    """Return the counts of all n-grams of lower-cased words, for n from 1 to 4."""
    words = re.findall(r"\w+", text.lower())
    return Counter(tuple(words[at : at + n]) for n in range(1, ORDERS + 1) for at in range(len(words) - n + 1))


def _similarity(hypothesis: Grams, reference: Grams, weight: dict[tuple[str, ...], float], unseen: float) -> float:
    products, norms = [0.0] * ORDERS, [[0.0] * ORDERS, [0.0] * ORDERS]
    for side, bag in enumerate((hypothesis, reference)):
        for gram, count in bag.items():
            norms[side][len(gram) - 1] += (count * weight.get(gram, unseen)) ** 2
    for gram, count in hypothesis.items():
        idf = weight.get(gram, unseen)
        products[len(gram) - 1] += min(count, reference[gram]) * reference[gram] * idf * idf
    lengths = [sum(count for gram, count in bag.items() if len(gram) == 1) for bag in (hypothesis, reference)]
    cosines = [product / math.sqrt(a * b) if a and b else 0.0 for product, a, b in zip(products, *norms, strict=True)]
    return math.exp(-((lengths[0] - lengths[1]) ** 2) / (2 * SIGMA**2)) * sum(cosines) / ORDERS
