"""Does a language model beat a Kneser-Ney 5-gram? Both read the same tokens of the same documents, with the same ends.

    python benchmarks/kneser_ney.py                     runs/language-model
    python benchmarks/kneser_ney.py runs/mine --order 3

The n-gram model is counted on the documents that the run was trained on, tokenised as there, and both are asked for
every token and every end of the run's test documents (or of its validation documents, where it has none). Results go
to benchmarks/results/kneser_ney.md.
"""

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results"
NONE = -1
"""The number of an n-gram that was never seen, or that would reach back before its document."""

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The n-grams of one length, and what is known of each (n-1)-gram that stands before the last word of one."""

    keys: Numbers
    """Context · vocabulary + word of each n-gram, in rising order; its place here is its number."""
    counts: Numbers
    """How often each was seen; but of n-grams shorter than the longest, how many different words stand before it."""
    totals: Floats
    """Of each context, the sum of the counts of the n-grams that continue it."""
    left: Floats
    """Of each context, what discounting leaves for shorter n-grams."""
    discounts: Floats
    """What is taken from a count of 0, 1, 2, and 3 or more."""


class KneserNey:
    """Interpolated modified Kneser-Ney smoothing (Chen and Goodman, 1999).

    P_k(w | h) = max(c(h w) − D(c(h w)), 0) / Σ c(h ·) + left(h) P_{k−1}(w | h without its first word), where c counts
    occurrences for the longest n-grams (and for those that begin a document), and different words before it for the
    others; P_0 is uniform over all tokens that could be asked for.
    """

    def __init__(
        self,
        documents: Iterable[Sequence[int]],
        order: int,
        vocabulary: int,
        *,
        begin: int,
        end: int,
        never: Sequence[int] = (),
    ) -> None:
        self.vocabulary, self.begin, self.end = vocabulary, begin, end
        self.possible = vocabulary - len({begin, *never})
        tokens, places = self._row(documents)
        keys, numbers = [], [np.zeros(len(tokens), dtype=np.int64)]
        firsts: list[Numbers] = []
        for length in range(1, order + 1):
            asked = self._asked(numbers[-1], tokens, places, length)
            inside = asked != NONE
            found, first, back = np.unique(asked[inside], return_index=True, return_inverse=True)
            number = np.full(len(tokens), NONE)
            number[inside] = back
            keys.append(found)
            numbers.append(number)
            firsts.append(np.flatnonzero(inside)[first])
        self.tables = []
        for length in range(1, order + 1):
            seen = np.bincount(numbers[length][numbers[length] != NONE], minlength=len(keys[length - 1]))
            if length < order:
                before = np.bincount(numbers[length][firsts[length]], minlength=len(seen))
                seen = np.where(places[firsts[length - 1]] == length - 1, seen, before)
            if length == 1:
                seen = np.where(keys[0] == begin, 0, seen)  # a document begins by itself, and nobody asks for it
            contexts = len(keys[length - 2]) if length > 1 else 1
            self.tables.append(self._table(keys[length - 1], seen, contexts))

    def _row(self, documents: Iterable[Sequence[int]]) -> tuple[Numbers, Numbers]:
        """All documents with their ends, one behind the other, and the place of each token in its document."""
        rows = [np.concatenate([[self.begin], np.asarray(one, dtype=np.int64), [self.end]]) for one in documents]
        return np.concatenate(rows), np.concatenate([np.arange(len(row)) for row in rows])

    def _asked(self, shorter: Numbers, tokens: Numbers, places: Numbers, length: int) -> Numbers:
        """The key of the n-gram of a length that ends at each token, given the numbers of those one shorter."""
        if length == 1:
            return tokens
        before = np.concatenate([[NONE], shorter[:-1]])
        inside = (places >= length - 1) & (before != NONE)
        return np.where(inside, before * self.vocabulary + tokens, NONE)

    def _table(self, keys: Numbers, counts: Numbers, contexts: int) -> Table:
        discounts = discounts_of(counts)
        where = keys // self.vocabulary
        taken = np.minimum(discounts[np.minimum(counts, 3)], counts)
        return Table(
            keys,
            counts,
            np.bincount(where, weights=counts, minlength=contexts),
            np.bincount(where, weights=taken, minlength=contexts),
            discounts,
        )

    def log_probs(self, documents: Iterable[Sequence[int]]) -> Floats:
        """The log-probability of every token and every end of documents, one behind the other."""
        tokens, places = self._row(documents)
        found = np.full(len(tokens), 1.0 / self.possible)
        context = np.zeros(len(tokens), dtype=np.int64)
        for length, table in enumerate(self.tables, start=1):
            asked = context * self.vocabulary + tokens
            place = np.minimum(np.searchsorted(table.keys, asked), len(table.keys) - 1)
            number = np.where((context != NONE) & (table.keys[place] == asked), place, NONE)
            total = np.where(context != NONE, table.totals[context], 0.0)
            count = np.where(number != NONE, table.counts[number], 0)
            rest = np.maximum(count - table.discounts[np.minimum(count, 3)], 0.0) + table.left[context] * found
            found = np.where(total > 0, rest / np.maximum(total, 1.0), found)
            before = np.concatenate([[NONE], number[:-1]])
            context = np.where(places >= length, before, NONE)
        said: Floats = np.log(found[places > 0])
        return said


def discounts_of(counts: Numbers) -> Floats:
    """What is taken from counts of 0, 1, 2, and 3 or more, by how many n-grams have counts of 1 to 4.

    Where that leads nowhere, as in a corpus that is too small, 0.5, 1 and 1.5 are taken.
    """
    once, twice, thrice, four = (int((counts == count).sum()) for count in (1, 2, 3, 4))
    if once and twice and thrice:
        share = once / (once + 2 * twice)
        found = np.array([1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * four / thrice])
        if ((found > 0) & (found < [1, 2, 3])).all():
            return np.concatenate([[0.0], found])
    return np.array([0.0, 0.5, 1.0, 1.5])


def main() -> None:
    from regard.evaluation.likelihood import total
    from regard.evaluation.perplexity import text_likelihoods
    from regard.foundation.display import bar
    from regard.tasks.loaded import load_run
    from regard.tasks.preparation import prepare
    from regard.text.specials import BOS, EOS, MASK, PAD, SEP

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("runs/language-model"))
    parser.add_argument("--order", type=int, default=5)
    arguments = parser.parse_args()
    if not arguments.run.exists():
        print(f"{arguments.run} is not there: regard train recipes/language-model.yaml --run {arguments.run}")
        return
    writer = load_run(arguments.run)
    prepared = prepare(writer.config, arguments.run)
    held_out = prepared.test_pairs or prepared.validation_pairs
    texts = [pair.source for pair in held_out]
    tokenizer = writer.target_tokenizer
    started = time.process_time()
    learnt = (prepared.train[place][1] for place in range(len(prepared.train)))
    counted = KneserNey(learnt, arguments.order, tokenizer.size, begin=BOS, end=EOS, never=(PAD, SEP, MASK))
    log_probs = counted.log_probs(tokenizer.encode_batch(texts))
    seconds = time.process_time() - started
    with bar() as progress:
        neural = total(text_likelihoods(writer, texts, progress=progress))
    assert neural.tokens == len(log_probs), "both must be asked for the same tokens"
    sort = "test" if prepared.test_pairs else "validation"
    lines = [
        f"# A language model and a Kneser-Ney {arguments.order}-gram",
        "",
        f"`python benchmarks/kneser_ney.py {arguments.run}`: {len(prepared.train):,} documents of "
        f"{prepared.train.tokens[1]:,} tokens to learn from; asked for: {neural.tokens:,} tokens and ends of "
        f"{len(texts):,} {sort} documents. Vocabulary {tokenizer.size:,} ({tokenizer.kind}). Interpolated modified "
        f"Kneser-Ney (Chen and Goodman, 1999), counted and asked in {seconds:.1f} s of one core.",
        "",
        "| model | perplexity per token | bits per character |",
        "|---|--:|--:|",
    ]
    for name, log_prob in (
        (f"Kneser-Ney {arguments.order}-gram", float(log_probs.sum())),
        (writer.config.cell, neural.log_prob),
    ):
        bits = -log_prob / neural.characters / math.log(2)
        lines.append(f"| {name} | {math.exp(-log_prob / neural.tokens):.2f} | {bits:.3f} |")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "kneser_ney.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
