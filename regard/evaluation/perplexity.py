"""Log-probabilities of texts by a language model: each is read in sliding windows, and every token is scored once.

Axes: B batch, T target positions, E output width, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np
import torch

from regard.data.batches import cut, pad_rows
from regard.data.packing import Window, windows
from regard.evaluation.likelihood import LOGITS, Likelihood
from regard.foundation.progress import Progress
from regard.tasks.loaded import LoadedRun
from regard.tasks.outputs.document import DocumentOutput
from regard.text.specials import BOS, EOS


@torch.inference_mode()
def text_likelihoods(writer: LoadedRun, texts: Sequence[str], *, progress: Progress | None = None) -> list[Likelihood]:
    """Return log P(text) = Σ log P(token | tokens before it in its window), with the end symbol as the last token."""
    assert isinstance(writer.output, DocumentOutput)
    length, stride = writer.output.settings.window
    rows = [[BOS, *ids, EOS] for ids in writer.target_tokenizer.encode_batch(texts)]
    found = [(row, window) for row, ids in enumerate(rows) for window in windows(len(ids), length, stride)]
    sizes = np.asarray([window.end - window.start for _, window in found], dtype=np.int32)
    order = np.argsort(sizes, kind="stable")
    log_probs: list[list[float]] = [[0.0] * (len(ids) - 1) for ids in rows]
    writer.model.eval()
    for start, end in cut(sizes[order], writer.config.decoding.batch_tokens).tolist() if found else ():
        batch = [found[index] for index in order[start:end]]
        for (row, window), values in zip(batch, _batch(writer, rows, batch), strict=True):
            first = window.start + window.known
            log_probs[row][first : window.end - 1] = values
        if progress:
            progress("scoring", end, len(found))
    normal = [writer.target_tokenizer.normalise(text) for text in texts]
    return [
        Likelihood(tuple(values), len(text.split()) + 1, len(text) + 1)
        for values, text in zip(log_probs, normal, strict=True)
    ]


def _batch(writer: LoadedRun, rows: list[list[int]], batch: list[tuple[int, Window]]) -> list[list[float]]:
    """Return the log-probabilities of the tokens that each window scores."""
    model = writer.model
    device = model.output_bias.device
    pieces = [np.asarray(rows[row][window.start : window.end], dtype=np.uint32) for row, window in batch]
    target = pad_rows(pieces, (), ()).to(device)  # B×T+1
    states = model.decode(model.encode(target), target[:, :-1])  # B×T×E
    most = max(1, LOGITS // len(model.output_bias))
    found = []
    for (_, window), states_of, tokens in zip(batch, states, target, strict=True):
        asked = slice(window.known, window.end - window.start - 1)
        parts = [
            torch.log_softmax(model.scores(some).float(), dim=-1).gather(1, wanted[:, None]).squeeze(1)
            for some, wanted in zip(
                torch.split(states_of[asked], most), torch.split(tokens[1:][asked], most), strict=True
            )
        ]
        found.append(torch.cat(parts).tolist())
    return found
