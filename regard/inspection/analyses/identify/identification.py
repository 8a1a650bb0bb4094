"""Identifiability over a corpus: raw and effective attention by length, tokens and their contributions by layer.

Axes: H heads, S source tokens, T target tokens, L layers (the embedding first).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches import Frame, pad_rows
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection import requirements
from regard.inspection.analyses.identify.effective import Slices, correlation, project
from regard.inspection.analyses.identify.identification_result import Identification, MixingByLayer, Similarity
from regard.inspection.analyses.identify.token_identity import token_identity
from regard.inspection.analyses.identify.token_mixing import measure_mixing
from regard.inspection.attention_kinds import Kind, kind_of, layer_of
from regard.inspection.interventions import attentions
from regard.inspection.sides import batch_attention
from regard.inspection.states import batches, end_of_text, longest_sentence, read_text
from regard.metrics.intervals import Interval, ratio_intervals, resample_counts, small_sample_factor
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn import taps
from regard.tasks.loaded import LoadedRun
from regard.text.joined import TAB
from regard.text.specials import BOS, EOS, PAD

FEWEST = 20
"""Sentences without which maps cannot be learned and measured."""

MIXED = 100
"""Sentences whose contributions are computed: they take by far the longest."""

PROJECTIONS = 4
"""For each token of those; their errors nearly cancel over a corpus."""


def identify_corpus(
    subject: LoadedRun,
    texts: Sequence[str],
    targets: Sequence[str] | None = None,
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Identification:
    """How identifiable attention and tokens are over some texts, of any model that reads text by itself.

    Where it translates, targets are the model's own (greedy) by default. Texts that it reads apart are texts apart.
    """
    model, frame = subject.model, subject.input.frame
    if reason := requirements.corpus(subject):
        raise UsageError(f"{reason} Leave --corpus out, and name one input: regard inspect identify RUN INPUT.")
    if targets is not None and len(targets) != len(texts):
        raise RegardError(
            f"There are {len(targets):,} targets for {len(texts):,} texts: give one target for each text."
        )
    if not subject.writes_text and len(model.texts(torch.tensor([[BOS, EOS]]))) > 1:
        texts = [part for text in texts for part in text.split(TAB)]
    ids = subject.source_tokenizer.encode_batch(list(texts))
    longest = longest_sentence(subject.config)
    kept = [index for index, row in enumerate(ids) if 0 < len(row) <= longest]
    if len(kept) < FEWEST:
        raise RegardError(f"There are {len(kept)} texts of 1 to {longest} tokens: at least {FEWEST} are needed.")
    sources = [ids[index] for index in kept]
    alike: list[Similarity] = []
    if attentions(model):
        outputs: list[list[int]] | None = None
        if subject.writes_text and end_of_text(model) == "encoder":
            given = targets and [targets[index] for index in kept]
            outputs = _targets(subject, [texts[index] for index in kept], given, progress)
            outputs = [row[:longest] for row in outputs]
        alike = attention_similarities(model, sources, outputs, frame, progress)
    tokens = token_identity(model, sources, frame=frame, seed=seed, progress=progress)
    chosen = np.random.default_rng(seed).permutation(len(sources))[:MIXED]
    mixed_tokens = _measure_mixing(model, [sources[index] for index in chosen], frame, progress)
    return Identification(alike, tokens, mixed_tokens, len(sources), len(texts) - len(sources))


def _targets(
    translator: LoadedRun, texts: list[str], targets: Sequence[str] | None, progress: Progress | None
) -> list[list[int]]:
    """The target tokens of each text, without special ones."""
    if targets is not None:
        return translator.target_tokenizer.encode_batch(list(targets))
    found: list[list[int]] = []
    for start in range(0, len(texts), 64):
        best = translator.hypotheses(texts[start : start + 64], beam=1)
        found += [list(hypotheses[0].tokens) if hypotheses else [] for hypotheses in best]
        if progress:
            progress("translating", len(found), len(texts))
    return found


def attention_similarities(
    model: Model | EncoderModel,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]] | None,
    frame: Frame,
    progress: Progress | None = None,
) -> list[Similarity]:
    """Raw against effective weights of every attention and sentence, its heads averaged, padding taken away."""
    found: list[Similarity] = []
    done = 0
    longest = [max(len(source), len(targets[index]) if targets else 0) + 2 for index, source in enumerate(sources)]
    for places in batches(longest, tokens=2048):
        ids = pad_rows([np.asarray(sources[position], dtype=np.int64) for position in places], *frame).to(
            model.device
        )  # B×S
        tensors = {"source": ids, "inputs": ids}
        if targets is not None:
            read = pad_rows([np.asarray(targets[position], dtype=np.int64) for position in places], [BOS], [])  # B×T
            tensors = {"source": ids, "inputs": read.to(model.device), "outputs": read}
        found += _batch(model, tensors, places, written=targets is not None)
        done += len(places)
        if progress:
            progress("comparing attention", done, len(sources))
    return found


@torch.no_grad()
def _batch(
    model: Model | EncoderModel, tensors: Mapping[str, Tensor], sentences: Sequence[int], *, written: bool
) -> list[Similarity]:
    with taps.watch(model, "*.weights", "*.values") as recording:
        if written:
            model.outputs(tensors["source"], tensors["inputs"])
        else:
            read_text(model, tensors["source"])
    found = []
    names = [
        name for name, attention in attentions(model).items() if attention.heads and f"{name}.weights" in recording
    ]
    for name in names:
        kind, module = kind_of(name), attentions(model)[name]
        passes = list(batch_attention(model, name, tensors, recording))
        values = recording.passes(f"{name}.values") if len(passes) > 1 else [recording[f"{name}.values"]]
        for attention, seen in zip(passes, values, strict=True):
            assert attention.rows.ids is not None and attention.columns.ids is not None  # text, on both sides
            slices = Slices.of(module, seen.shape[3])
            queries, lengths = ((ids != PAD).sum(1).tolist() for ids in (attention.rows.ids, attention.columns.ids))
            for row, (tall, wide) in enumerate(zip(queries, lengths, strict=True)):
                if attention.columns.real[row].any():  # a second text may be empty
                    raw, what = attention.weights[row, :, :tall, :wide], seen[row, :, :wide].cpu()
                    found.append(_similarity(kind, layer_of(name), raw, what, slices, sentences[row]))
    return found


def _similarity(kind: Kind, layer: int, weights: Tensor, values: Tensor, slices: Slices, sentence: int) -> Similarity:
    """Of one attention in one sentence: weights H×T×S, values H×S×K."""
    ranks, alike = [], []
    length, causal = values.shape[1], kind == "decoder"
    for head, what in zip(weights, slices.mix(values), strict=True):
        part, rank = project(head, what, causal=causal)
        ranks.append(rank)
        alike.append(correlation(head, part, causal=causal))
    whole = sum(rank == length for rank in ranks) / len(ranks)
    mean = sum(ranks) / len(ranks), whole, sum(alike) / len(alike)
    return Similarity(kind, layer, length, values.shape[2], *mean, sentence=sentence)


def _measure_mixing(
    model: Model | EncoderModel, sources: Sequence[list[int]], frame: Frame, progress: Progress | None
) -> MixingByLayer:
    own: list[Tensor] = []
    main: list[Tensor] = []
    error: list[Tensor] = []
    for number, ids in enumerate(sources, start=1):
        found = measure_mixing(model, [*frame.before, *ids, *frame.after], projections=PROJECTIONS, seed=number)
        tokens = slice(len(frame.before), len(frame.before) + len(ids))
        own.append(found.own[:, tokens])
        main.append(found.still_main[:, tokens])
        error.append(found.error.diagonal(dim1=1, dim2=2)[:, tokens])
        if progress:
            progress("following tokens", number, len(sources))
    shares, first, errors = torch.cat(own, 1), torch.cat(main, 1), torch.cat(error, 1)
    return MixingByLayer(
        shares.median(1).values.tolist(),
        shares.mean(1).tolist(),
        first.double().mean(1).tolist(),
        _mixing_intervals(own, main),
        errors.square().mean(1).sqrt().tolist(),
        len(sources),
        shares.shape[1],
        PROJECTIONS,
    )


def _mixing_intervals(own: Sequence[Tensor], main: Sequence[Tensor]) -> dict[str, list[Interval | None]]:
    """Return the 95 % intervals, layer by layer, by a bootstrap over sentences; tensors are L×tokens of each."""
    layers, lengths = len(own[0]), np.array([shares.shape[1] for shares in own], dtype=np.float64)
    sums = [
        torch.cat([shares.double().sum(1), other.double().sum(1)]).numpy()
        for shares, other in zip(own, main, strict=True)
    ]
    counts = resample_counts(len(own))
    means = ratio_intervals(np.stack(sums), lengths[:, None], counts=counts)  # 2L×2
    if means is None:
        return {name: [None] * layers for name in ("median", "mean", "still_main")}
    sentence = np.repeat(np.arange(len(own)), lengths.astype(int))  # N: the sentence of each token
    shares = torch.cat(list(own), 1).double().numpy()  # L×N
    intervals = [(max(0.0, float(low)), min(1.0, float(high))) for low, high in means]
    medians: list[Interval | None] = [_median_interval(row, sentence, counts) for row in shares]
    return {"median": medians, "mean": [*intervals[:layers]], "still_main": [*intervals[layers:]]}


def _median_interval(values: NDArray[np.float64], sentence: NDArray[np.int64], counts: NDArray[np.float64]) -> Interval:
    """Return the 95 % interval of the median of values N by resamples of sentences (samples × sentences)."""
    order = np.argsort(values, kind="stable")
    below = counts[:, sentence[order]].cumsum(1)  # samples × N: how many values are at most this large
    places = (below < below[:, -1:] / 2).sum(1)  # the lower median, as torch has it
    median = float(values[order[(len(values) - 1) // 2]])
    ends = np.quantile(values[order[places]], (0.025, 0.975))
    low, high = median + small_sample_factor(counts.shape[1]) * (ends - median)
    return max(0.0, min(float(low), median)), min(1.0, max(float(high), median))
