"""Formats hypotheses as rows of a table and as objects for JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.search.hypothesis import Hypothesis
from regard.text.specials import EOS, SPECIALS
from regard.text.tokenizer import Tokenizer


def as_rows(number: int, best: Sequence[Hypothesis], count: int, wanted: set[str]) -> Iterator[list[str]]:
    """Yield exactly `count` rows for a line: number, rank, score, text, then token scores and alignment if wanted."""
    for rank in range(count):
        one = best[rank] if rank < len(best) else None
        text = " ".join(one.text.splitlines()).replace("\t", " ") if one else ""
        row = [str(number), str(rank + 1), f"{one.score:.4f}" if one else "", text]
        if "scores" in wanted:
            row.append(" ".join(f"{value:.4f}" for value in one.log_probs) if one else "")
        if "alignment" in wanted:
            row.append(" ".join(f"{source}-{target}" for source, target in one.alignment or ()) if one else "")
        yield row


def as_object(
    number: int,
    source: str,
    best: Sequence[Hypothesis],
    wanted: set[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    count: int = 1,
) -> dict[str, Any]:
    """Return the object of one line; if `count` is above 1, hypotheses after the best are in `others`.

    An empty line has an empty hypothesis, so that every line has the same fields.
    """
    empty = Hypothesis((), (), 0.0, "end", attention=(), alignment=())
    fields = [_hypothesis_fields(source, one, wanted, tokenizers) for one in best or [empty]]
    others = {"others": fields[1:]} if count > 1 else {}
    return {"line": number, "source": source, **fields[0], **others}


def _hypothesis_fields(
    source: str, one: Hypothesis, wanted: set[str], tokenizers: tuple[Tokenizer, Tokenizer]
) -> dict[str, Any]:
    tokens = [tokenizers[1].vocabulary[token] for token in one.tokens]
    end = [SPECIALS[EOS]]
    fields: dict[str, Any] = {"text": one.text, "score": round(one.score, 4), "ended": one.ended}
    if "scores" in wanted:
        fields["tokens"] = tokens + (end if len(one.log_probs) == len(tokens) + 1 else [])
        fields["log_probs"] = [round(value, 4) for value in one.log_probs]
    if "alignment" in wanted:
        fields["alignment"] = one.alignment
    if "attention" in wanted:
        fields["attention"] = {
            "source": [*tokenizers[0].encode(source).tokens, *end] if one.attention else [],
            "target": tokens + end if one.attention else [],
            "weights": [[round(weight, 4) for weight in row] for row in one.attention or ()],
        }
    return fields
