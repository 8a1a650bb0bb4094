"""Identifiability over a corpus: raw and effective attention by length, tokens and their contributions by layer.

Axes: H heads, S source tokens, T target tokens, L layers (the embedding first).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import padded
from regard.data.conllu import read_conllu
from regard.data.lines import read_lines
from regard.data.progress import Progress
from regard.errors import RegardError
from regard.inspection.effective import Slices, correlation, project
from regard.inspection.identification_result import Identification, Likeness, MixingByLayer
from regard.inspection.interventions import attentions
from regard.inspection.maps import kind_of
from regard.inspection.states import batches, longest_sentence
from regard.inspection.token_identity import token_identity
from regard.inspection.token_mixing import mixing
from regard.models import Model
from regard.nn import taps
from regard.text.specials import BOS, EOS
from regard.translator import Translator

FEWEST = 20
"""Sentences without which maps cannot be learned and measured."""
MIXED = 100
"""Sentences whose contributions are computed: they take by far the longest."""
PROJECTIONS = 4
"""For each token of those; their errors nearly cancel over a corpus."""


@dataclass(frozen=True)
class _Pair:
    source: list[int]
    target: list[int]


def read_texts(path: Path | str, most: int) -> list[str]:
    """The texts of a CoNLL-U file, or the lines of any other that are not empty; up to `most`."""
    if Path(path).name.removesuffix(".gz").endswith(".conllu"):
        return [sentence.text for sentence in islice(read_conllu(path), most)]
    return list(islice((line for line in read_lines(path) if line.strip()), most))


def identify_corpus(
    translator: Translator,
    texts: Sequence[str],
    targets: Sequence[str] | None = None,
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Identification:
    """How identifiable attention and tokens are over some texts; targets are the model's own (greedy) by default."""
    ids = translator.source_tokenizer.encode_batch(list(texts))
    if targets is not None and len(targets) != len(texts):
        raise RegardError(f"There are {len(targets):,} targets for {len(texts):,} texts: they must be as many.")
    longest = longest_sentence(translator.config)
    kept = [place for place, row in enumerate(ids) if 0 < len(row) <= longest]
    if len(kept) < FEWEST:
        raise RegardError(f"There are {len(kept)} texts of 1 to {longest} tokens: at least {FEWEST} are needed.")
    sources = [ids[place] for place in kept]
    model = translator.model
    alike: list[Likeness] = []
    if attentions(model):
        said = _targets(
            translator, [texts[place] for place in kept], targets and [targets[place] for place in kept], progress
        )
        pairs = [_Pair(source, target[:longest]) for source, target in zip(sources, said, strict=True)]
        alike = likenesses(model, pairs, progress)
    tokens = token_identity(model, sources, seed=seed, progress=progress)
    chosen = np.random.default_rng(seed).permutation(len(sources))[:MIXED]
    mixed_tokens = _mixing(model, [sources[place] for place in chosen], progress)
    return Identification(alike, tokens, mixed_tokens, len(sources), len(texts) - len(sources))


def _targets(
    translator: Translator, texts: list[str], targets: Sequence[str] | None, progress: Progress | None
) -> list[list[int]]:
    """The target tokens of each text, without special ones."""
    if targets is not None:
        return translator.target_tokenizer.encode_batch(list(targets))
    found: list[list[int]] = []
    for start in range(0, len(texts), 64):
        best = translator.hypotheses(texts[start : start + 64], beam=1)
        found += [list(one[0].tokens) if one else [] for one in best]
        if progress:
            progress("translating", len(found), len(texts))
    return found


def likenesses(model: Model, pairs: Sequence[_Pair], progress: Progress | None = None) -> list[Likeness]:
    """Raw against effective weights of every attention and sentence, its heads averaged, padding taken away."""
    found: list[Likeness] = []
    done = 0
    for places in batches([max(len(one.source), len(one.target)) + 1 for one in pairs], tokens=2048):
        found += _batch(model, [pairs[place] for place in places])
        done += len(places)
        if progress:
            progress("comparing attention", done, len(pairs))
    return found


@torch.no_grad()
def _batch(model: Model, pairs: Sequence[_Pair]) -> list[Likeness]:
    device = model.output_bias.device
    source = padded([np.asarray(one.source, dtype=np.int64) for one in pairs], [], [EOS]).to(device)  # B×S
    inputs = padded([np.asarray(one.target, dtype=np.int64) for one in pairs], [BOS], []).to(device)  # B×T
    with taps.watch(model, "*.weights", "*.values") as recording:
        model.decode(model.encode(source), inputs)
    found = []
    for name, module in attentions(model).items():
        weights, values = recording[f"{name}.weights"].cpu(), recording[f"{name}.values"].cpu()
        kind, slices = kind_of(name), Slices.of(module, values.shape[3])
        layer = next((int(piece) for piece in name.split(".") if piece.isdigit()), 0)
        for row, pair in enumerate(pairs):
            queries = len(pair.source if kind == "encoder" else pair.target) + 1
            length = len(pair.target if kind == "decoder" else pair.source) + 1
            raw, seen = weights[row, :, :queries, :length], values[row, :, :length]
            ranks, alike = [], []
            for one, what in zip(raw, slices.mixed(seen), strict=True):
                part, rank = project(one, what, causal=kind == "decoder")
                ranks.append(rank)
                alike.append(correlation(one, part, causal=kind == "decoder"))
            whole = sum(rank == length for rank in ranks) / len(ranks)
            found.append(
                Likeness(kind, layer, length, values.shape[3], sum(ranks) / len(ranks), whole, sum(alike) / len(alike))
            )
    return found


def _mixing(model: Model, sources: Sequence[list[int]], progress: Progress | None) -> MixingByLayer:
    own: list[Tensor] = []
    main: list[Tensor] = []
    error: list[Tensor] = []
    for number, ids in enumerate(sources, start=1):
        found = mixing(model, [*ids, EOS], projections=PROJECTIONS, seed=number)
        own.append(found.own[:, :-1])
        main.append(found.still_main[:, :-1])
        error.append(found.error.diagonal(dim1=1, dim2=2)[:, :-1])
        if progress:
            progress("following tokens", number, len(sources))
    shares, first, errors = torch.cat(own, 1), torch.cat(main, 1), torch.cat(error, 1)
    return MixingByLayer(
        shares.median(1).values.tolist(),
        shares.mean(1).tolist(),
        first.double().mean(1).tolist(),
        errors.square().mean(1).sqrt().tolist(),
        len(sources),
        shares.shape[1],
        PROJECTIONS,
    )
