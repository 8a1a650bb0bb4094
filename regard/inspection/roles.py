"""What the heads of a model do: where they look, how surely, along which relations, and how much they are needed.

Voita et al. (2019), "Analyzing multi-head self-attention: specialized heads do the heavy lifting, the rest can be
pruned", with importances after Michel et al. (2019).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import padded
from regard.data.conllu import Sentence
from regard.data.corpus import Pair
from regard.data.lines import read_lines
from regard.data.prepare import is_prepared, prepare
from regard.data.progress import Progress
from regard.data.store import TokenStore
from regard.errors import UsageError
from regard.evaluation.metrics import score_text
from regard.inspection.dependencies import Dependencies, Relation
from regard.inspection.habits import Frequencies, Habits, equal_tokens
from regard.inspection.importance import Importance, Pairs, every_head, importance
from regard.inspection.interventions import attentions, scale_head
from regard.inspection.maps import Kind
from regard.inspection.role_views import HeadFigures, Roles
from regard.inspection.words import Matched, matched_corpus
from regard.nn import taps
from regard.run import Run
from regard.text.specials import BOS, EOS, PAD
from regard.translator import Translator, groups

POSITIONAL = 0.9
"""A head is positional if so large a share of its maxima is at one relative offset (Voita et al., 2019).

Of the tokens that have a neighbour there: the first has none before it, and in sentences of a dozen tokens that alone
would be most of what is missing. An offset that fewer than half of the tokens have does not count.
"""
SYNTACTIC = 1.1
"""A head follows a relation if it is right so many times as often as the best fixed offset (Voita et al., 2019)."""
COPYING = 0.9
"""A head copies if so large a share of its maxima is on the very token that it stands for."""
RARE, BEYOND_CHANCE = 0.5, 2.0
"""A head looks at rare tokens if so large a share of its maxima is on the two rarest, so many times chance."""
DEAD = 1e-5
"""A head is dead if neither its slope nor its absence moves the loss by so much, in nats a token."""

LEAST_PAIRS = 100
"""Occurrences of a relation without which nothing is said about it."""

BATCH_TOKENS = 4096


def heads(
    run: Path | str,
    corpus: Path | str | None = None,
    *,
    pairs: int = 200,
    bleu: bool = False,
    most: int | None = None,
    progress: Progress | None = None,
) -> Roles:
    """What every head of a run does on a corpus: CoNLL-U, or plain text without the syntactic part.

    Without a corpus, the sources of the run's validation pairs are read. Heads of the decoder, and the importance of
    all, are judged by that many of the run's validation pairs; `bleu` also translates them once for each head.
    """
    opened = Run.open(run)
    translator = Translator.load(opened.directory)
    if not is_prepared(opened.directory):
        raise UsageError(
            f"{opened.directory} no longer holds its data (data/), by whose pairs heads are judged: put it back."
        )
    prepared = prepare(opened.config, opened.directory)
    chosen = prepared.validation_pairs[:pairs]
    read = [pair.source for pair in prepared.validation_pairs] if corpus is None else corpus
    counted = frequencies(prepared.train, translator.source_tokenizer.size)
    return describe(translator, read, chosen, counted, bleu=bleu, most=most, progress=progress)


def describe(
    translator: Translator,
    corpus: Path | str | Sequence[str],
    pairs: Sequence[Pair],
    counted: Frequencies | None = None,
    *,
    bleu: bool = False,
    most: int | None = None,
    progress: Progress | None = None,
) -> Roles:
    """As `heads`, of any translator: a corpus (a file, or texts), pairs, and how often source tokens occurred."""
    model = translator.model
    found = attentions(model)
    if not any(one.heads for one in found.values()):
        raise UsageError(f"This model ({model.cell.cell}) has no attention, so it has no heads to describe.")
    if not pairs:
        raise UsageError("Heads are judged by at least one sentence pair: ask for more than 0.")
    sentences, name = _sentences(corpus, translator, most)
    habits = {one: Habits(found[one].heads) for one in found}
    inside = [one for one in found if one.startswith("encoder.")]
    dependencies = Dependencies({one: found[one].heads for one in inside})
    training = model.training
    model.eval()
    try:
        if inside:
            _read_sources(translator, sentences, inside, habits, dependencies, counted, progress)
        read = list(_batched(translator, pairs))
        _read_pairs(translator, read, habits)
        weighed = importance(model, read, progress)
        lost = _bleu(translator, pairs, progress) if bleu else None
    finally:
        model.train(training)
    parsed = any(one.sentence.words for one in sentences)
    relations = dependencies.relations(LEAST_PAIRS) if parsed and inside else []
    figures = [_figures(one, head, habits[one], weighed, relations, lost) for one, head in every_head(model)]
    return Roles(
        cell=model.cell.cell,
        corpus=name,
        sentences=len(sentences) if inside else 0,
        pairs=len(pairs),
        loss=weighed.loss,
        heads=figures,
        relations=relations,
        parsed=parsed,
    )


def frequencies(store: TokenStore, vocabulary: int) -> Frequencies:
    """How often each source token occurs in a store."""
    return Frequencies(store.counts(vocabulary)[0])


def _sentences(
    corpus: Path | str | Sequence[str], translator: Translator, most: int | None
) -> tuple[list[Matched], str]:
    """The sentences of a corpus that fit the model, and what to call it."""
    longest = translator.config.data.cleaning.max_length
    tokenizer = translator.source_tokenizer
    if isinstance(corpus, Path | str):
        path = Path(corpus)
        if ".conllu" in path.suffixes:
            return matched_corpus(path, tokenizer, longest=longest, most=most), path.name
        texts, name = list(read_lines(path)), path.name
    else:
        texts, name = list(corpus), "validation sources"
    texts = [text for text in texts if text.strip()]
    rows = zip(texts, tokenizer.encode_batch(texts), strict=True)
    short = [Matched(Sentence(text, [], 0), ids, []) for text, ids in rows if 0 < len(ids) <= longest][:most]
    if not short:
        raise UsageError(f"{name} has no text of 1 to {longest} tokens: give another corpus.")
    return short, name


def _read_sources(
    translator: Translator,
    sentences: Sequence[Matched],
    inside: Sequence[str],
    habits: Mapping[str, Habits],
    dependencies: Dependencies,
    counted: Frequencies | None,
    progress: Progress | None,
) -> None:
    """Let the encoder read a corpus in batches, and count where its heads look."""
    model, done = translator.model, 0
    for group in groups([len(one.ids) for one in sentences], BATCH_TOKENS):
        batch = [sentences[place] for place in group]
        source = translator._batch([one.ids for one in batch])  # B×S
        with torch.no_grad(), taps.watch(model, *(f"{name}.weights" for name in inside)) as seen:
            model.encode(source)
        lengths = torch.tensor([len(one.ids) for one in batch])
        ids, weights = source.cpu(), {name: seen[f"{name}.weights"].float().cpu() for name in inside}
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        rarity = counted.rarity(ids, real) if counted is not None else None
        same = equal_tokens(ids, ids)
        for name in inside:
            habits[name].add(weights[name], lengths, lengths, same, rarity)
        if batch[0].tokens:
            dependencies.add(weights, batch)
        done += len(batch)
        if progress:
            progress("reading the corpus", done, len(sentences))


@torch.no_grad()
def _read_pairs(translator: Translator, pairs: Pairs, habits: Mapping[str, Habits]) -> None:
    """Let the decoder read targets, and count where its heads look; row t to the source is what led to token t."""
    model = translator.model
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    texts = None
    if tokenizers[0] is not tokenizers[1]:
        texts = tokenizers[1].vocabulary, tokenizers[0].vocabulary
    names = [name for name in attentions(model) if name.startswith("decoder.")]
    for read, wanted in pairs if names else ():
        with taps.watch(model, *(f"{name}.weights" for name in names)) as seen:
            model(read, wanted[:, :-1])
        source, target = read.cpu(), wanted.cpu()
        sources, targets = (source != PAD).sum(1) - 1, (target != PAD).sum(1) - 2  # without BOS and EOS
        said = target[:, 1:]  # B×T
        across, along = equal_tokens(said, source, texts), equal_tokens(said[:, :-1], said[:, :-1])
        for name in names:
            weights = seen[f"{name}.weights"].float().cpu()
            if name.endswith("source_attention"):
                habits[name].add(weights, targets, sources, across)
            else:
                habits[name].add(weights[:, :, 1:, 1:], targets, targets, along)


def _batched(translator: Translator, pairs: Sequence[Pair]) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs as padded batches of like length, on the model's device."""
    sources = translator.source_tokenizer.encode_batch([pair.source for pair in pairs])
    targets = translator.target_tokenizer.encode_batch([pair.target for pair in pairs])
    device = translator.model.output_bias.device
    lengths = [max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)]
    for group in groups(lengths, BATCH_TOKENS // 2):
        yield (
            padded([np.asarray(sources[place]) for place in group], [], [EOS]).to(device),
            padded([np.asarray(targets[place]) for place in group], [BOS], [EOS]).to(device),
        )


def _bleu(
    translator: Translator, pairs: Sequence[Pair], progress: Progress | None
) -> dict[tuple[str, int] | None, float]:
    """BLEU of greedy translations with each head left out, and with all (under `None`)."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    every: list[tuple[str, int] | None] = [None, *every_head(translator.model)]
    found = {}
    for done, one in enumerate(every, start=1):
        without = nullcontext() if one is None else taps.watch(translator.model, write=scale_head(*one, 0.0))
        with without:
            outputs = translator.translate(sources, beam=1)
        found[one] = score_text(outputs, references, ["bleu"]).values["bleu"]
        if progress:
            progress("translating without each head", done, len(every))
    return found


def _figures(
    name: str,
    head: int,
    habits: Habits,
    weighed: Importance,
    relations: Sequence[Relation],
    lost: Mapping[tuple[str, int] | None, float] | None,
) -> HeadFigures:
    """All that was found out about one head, and what to call it."""
    side, *rest = name.split(".")
    kind: Kind = "source" if name.endswith("source_attention") else "encoder" if side == "encoder" else "decoder"
    offset, times = habits.best_offset(head)
    rows = max(1, habits.rows)
    rare = habits.rare_rows
    followed = [
        (one.name, one.direction, one.accuracy[name][head], one.baseline)
        for one in relations
        if name in one.accuracy and one.accuracy[name][head] >= SYNTACTIC * one.baseline
    ]
    figures: dict[str, Any] = {
        "attention": name,
        "kind": kind,
        "layer": next((int(part) for part in rest if part.isdigit()), 0),
        "head": head,
        "confidence": float(habits.surest[head]) / rows,
        "offset": offset,
        "at_offset": times / rows,
        "of_possible": times / max(1, habits.reachable(offset)),
        "offsets": dict(sorted(habits.offsets[head].items(), key=lambda item: -item[1])[:9]),
        "rows": habits.rows,
        "same": float(habits.same[head]) / rows,
        "rarest": float(habits.rare[head]) / rare if rare else None,
        "two_rarest": float(habits.two[head]) / rare if rare else None,
        "chance": habits.chance / rare if rare else None,
        "slope": float(weighed.gradient[name][head]),
        "importance": float(weighed.share(name)[head]),
        "rise": float(weighed.rise[name][head]),
        "bleu_lost": None if lost is None else lost[None] - lost[name, head],
        "followed": sorted(followed, key=lambda one: one[3] / max(one[2], 1e-9)),
    }
    return HeadFigures(**figures, roles=_roles(figures))


def _roles(figures: Mapping[str, Any]) -> list[str]:
    """What to call a head, the most telling name first."""
    roles = []
    common = figures["at_offset"] >= figures["of_possible"] / 2
    positional = common and figures["of_possible"] >= POSITIONAL
    itself = positional and figures["offset"] == 0 and figures["kind"] != "source"
    if figures["slope"] < DEAD and abs(figures["rise"]) < DEAD:
        roles.append("dead")
    if figures["same"] >= COPYING and not itself:
        roles.append("copy")
    if positional:
        roles.append("positional")
    if figures["two_rarest"] is not None:
        enough = max(RARE, BEYOND_CHANCE * figures["chance"])
        if figures["two_rarest"] >= enough:
            roles.append("rare")
    if figures["followed"]:
        roles.append("syntactic")
    return roles
