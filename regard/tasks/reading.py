"""Many texts through a model that only reads, in batches of similar length.

Axes: B batch, S source positions.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import padded
from regard.data.form import Form, share_room
from regard.foundation.errors import RegardError, UsageError
from regard.models.reader import Reader
from regard.tasks.trace import Given, Side, Trace, check_cost, trace
from regard.tasks.translator import groups
from regard.text.joined import TAB
from regard.text.tokenizer import Tokenizer


@torch.inference_mode()
def read_all(
    config: RunConfig, form: Form, model: nn.Module, rows: Sequence[Sequence[int]], of: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """What `of` makes of the tokens of each text, in their order: one row each of its result B×…, on the CPU."""
    check_lengths(config, rows)
    device = next(model.parameters()).device
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    for group in groups([len(ids) + 1 for ids in rows], config.decoding.batch_tokens):
        batch = padded([np.asarray(rows[place], dtype=np.int64) for place in group], *form.frames[0])  # B×S
        for place, row in zip(group, of(batch.to(device)).float().cpu(), strict=True):
            found[place] = row
    return found


def read_one(
    config: RunConfig,
    form: Form,
    model: Reader,
    ids: Sequence[int],
    places: Sequence[int],
    said: Callable[[Tensor], Side],
    *,
    labels: tuple[str, ...] | None = None,
) -> Trace:
    """The trace of one text's tokens, with answers at some places; `said` makes their side of the scores T×C."""
    if not ids:
        raise UsageError("There is nothing to look into: give a text that is not empty.")
    check_lengths(config, [ids])
    frame = form.frames[0]
    given = Given([*frame.before, *ids, *frame.behind], list(places))
    tensors = given.tensors(model.device)
    check_cost(model, len(given.source))
    with torch.inference_mode():
        scores = model.scores(model.outputs(*tensors))[0].cpu()  # T×C
    whole = [one for text in model.texts(tensors[0]) for one in text[0].tolist()]
    source, nothing = Side.of(form.source, whole), Side.of(form.source, [])
    tokenizer = None if labels is not None else form.source
    return trace(model, source, said(scores), nothing, tokenizer=tokenizer, labels=labels, given=given)


def fit_texts(config: RunConfig, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[str], int]:
    """Return texts cut to what a model can read at once, and how many were cut.

    That is `decoding.batch_tokens`, or as many positions as it has learned. Of several texts with tabs between them,
    the longest are cut, so that something is left of each.
    """
    positions, most = config.model.positions, max(config.decoding.batch_tokens, 3) - 2  # two are for the ends
    if positions is not None and positions.kind == "learned":
        most = min(most, positions.max_length - 2)
    lengths = [len(ids) for ids in tokenizer.encode_batch(texts)]
    found = [
        text if length <= most else _fit(tokenizer, text, most) for text, length in zip(texts, lengths, strict=True)
    ]
    return found, sum(length > most for length in lengths)


def _fit(tokenizer: Tokenizer, text: str, most: int) -> str:
    room = most
    while True:  # the tokens of a text that was cut need not be a prefix of those of the whole
        parts = text.split(TAB)
        spans = [tokenizer.encode(part).offsets for part in parts]
        kept = share_room([len(span) for span in spans], room - len(parts) + 1)
        cut = [part[: span[n - 1][1]] if n else "" for part, span, n in zip(parts, spans, kept, strict=True)]
        found = TAB.join(cut)
        if len(tokenizer.encode_batch([found])[0]) <= most or room <= 0:
            return found
        room -= 1


def check_lengths(config: RunConfig, rows: Sequence[Sequence[int]]) -> None:
    """Refuse texts that reach beyond the positions that a model has learned."""
    positions = config.model.positions
    if positions is None or positions.kind != "learned":
        return
    for number, ids in enumerate(rows, start=1):
        if len(ids) + 2 > positions.max_length:
            name = "The text" if len(rows) == 1 else f"Text {number:,}"
            raise RegardError(
                f"{name} has {len(ids):,} tokens, but this model has learned {positions.max_length} positions "
                "(two are for the ends): split it or leave it out."
            )


def predicting(place: str, text: str) -> str:
    """How a run that predicts is used from Python."""
    return f"import regard\n\nmodel = regard.load({place!r})\nmodel({text!r})"
