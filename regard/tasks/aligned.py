"""Translations with word alignments, which put markup back."""

from collections.abc import Sequence

from regard.search import Search
from regard.search.hypothesis import Hypothesis
from regard.tasks.generation import TextGenerator
from regard.text.inline_tags import Aligned, Alignment
from regard.text.specials import EOS


def translate_aligned(generator: TextGenerator, texts: Sequence[str], search: Search) -> list[list[Aligned]]:
    """Return the translations of each text, best first, each with the alignment of its words.

    Alignments come from attention. Where there is none, because the model has a fixed vector instead or the text was
    split, words are aligned by their relative positions.
    """
    lists = generator.hypotheses(list(texts), search)
    return [
        [Aligned(hypothesis.text, _alignment(generator, text, hypothesis)) for hypothesis in best] or [Aligned("", [])]
        for text, best in zip(texts, lists, strict=True)
    ]


def _alignment(generator: TextGenerator, text: str, hypothesis: Hypothesis) -> Alignment:
    if generator.has_attention and "\n" not in text and not _is_split(hypothesis):
        found = generator.explain(text, hypothesis).alignment
        if found:
            return found
    return diagonal(len(text.split()), len(hypothesis.text.split()))


def _is_split(hypothesis: Hypothesis) -> bool:
    """Return whether a hypothesis was joined from pieces, which have end symbols between them."""
    return EOS in hypothesis.tokens


def diagonal(source: int, target: int) -> list[tuple[int, int]]:
    """Return the alignment of each target word with the source word at the same relative position."""
    return [(index * source // target, index) for index in range(target)] if source else []
