"""Formats hypotheses as rows of a table and as objects for JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.search.hypothesis import Hypothesis
from regard.text.specials import EOS, SPECIALS
from regard.text.tokenizer import Tokenizer


def as_rows(number: int, best: Sequence[Hypothesis], count: int, wanted: set[str]) -> Iterator[list[str]]:
    """Yield exactly `count` rows for a line: number, rank, score, text, then token scores and alignment if wanted."""
    for rank in range(count):
        hypothesis = best[rank] if rank < len(best) else None
        text = " ".join(hypothesis.text.splitlines()).replace("\t", " ") if hypothesis else ""
        row = [str(number), str(rank + 1), f"{hypothesis.score:.4f}" if hypothesis else "", text]
        if "scores" in wanted:
            row.append(" ".join(f"{value:.4f}" for value in hypothesis.log_probs) if hypothesis else "")
        if "alignment" in wanted:
            row.append(
                " ".join(f"{source}-{target}" for source, target in hypothesis.alignment or ()) if hypothesis else ""
            )
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
    fields = [_hypothesis_fields(source, hypothesis, wanted, tokenizers) for hypothesis in best or [empty]]
    others = {"others": fields[1:]} if count > 1 else {}
    return {"line": number, "source": source, **fields[0], **others}


def _hypothesis_fields(
    source: str, hypothesis: Hypothesis, wanted: set[str], tokenizers: tuple[Tokenizer, Tokenizer]
) -> dict[str, Any]:
    tokens = [tokenizers[1].vocabulary[token] for token in hypothesis.tokens]
    end = [SPECIALS[EOS]]
    fields: dict[str, Any] = {"text": hypothesis.text, "score": round(hypothesis.score, 4), "ended": hypothesis.ended}
    if "scores" in wanted:
        fields["tokens"] = tokens + (end if len(hypothesis.log_probs) == len(tokens) + 1 else [])
        fields["log_probs"] = [round(value, 4) for value in hypothesis.log_probs]
    if "alignment" in wanted:
        fields["alignment"] = hypothesis.alignment
    if "attention" in wanted:
        fields["attention"] = {
            "source": [*tokenizers[0].encode(source).tokens, *end] if hypothesis.attention else [],
            "target": tokens + end if hypothesis.attention else [],
            "weights": [[round(weight, 4) for weight in row] for row in hypothesis.attention or ()],
        }
    return fields
