"""What the heads of a model do: where they look, how surely, along which relations, and how much they are needed.

Voita et al. (2019), "Analyzing multi-head self-attention: specialized heads do the heavy lifting, the rest can be
pruned", with importances after Michel et al. (2019).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import pad_rows
from regard.data.conllu import Sentence
from regard.data.corpus import Pair
from regard.data.lines import read_lines
from regard.data.store import InMemoryStore
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection import requirements
from regard.inspection.analyses.heads.dependencies import Dependencies, Relation
from regard.inspection.analyses.heads.habits import Frequencies, HeadHabits, equal_tokens
from regard.inspection.analyses.heads.importance import Importance, every_head, importance
from regard.inspection.analyses.heads.lost_scores import Lost, lost_scores
from regard.inspection.analyses.heads.result import Followed, HeadFigures, Roles
from regard.inspection.attention_kinds import kind_of, layer_of
from regard.inspection.corpus import MatchedSentence, read_matched_sentences, read_texts
from regard.inspection.interventions import attentions
from regard.inspection.sides import batch_attention
from regard.inspection.states import end_of_text, longest_sentence, read_text
from regard.metrics.intervals import Interval
from regard.nn import taps
from regard.runs.run import Run
from regard.tasks.inputs.text import length_groups
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.preparation import is_prepared, prepare
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch
from regard.training.validation import JUDGING_SEED

POSITIONAL = 0.9
"""A head is positional if so large a share of its maxima is at one relative offset (Voita et al., 2019).

Of the tokens that have a neighbour there: the first has none before it, and in sentences of a dozen tokens that alone
would be most of what is missing. An offset that fewer than half of the tokens have does not count.
"""
COPYING = 0.9
"""A head copies if this share of its maxima is on a token equal to its own."""
RARE, BEYOND_CHANCE = 0.5, 2.0
"""A head looks at rare tokens if this share of its maxima is on the two rarest, and this many times chance."""
DEAD = 1e-5
"""A head is dead if neither its slope nor its absence moves the loss by so much, in nats a token."""

LEAST_PAIRS = 100
"""Occurrences that a relation needs to be reported."""

BATCH_TOKENS = 4096

MOST_TEXTS = 1000
"""Texts of a corpus that serve as examples, where a run has none of its own."""


def heads(
    run: Path | str,
    corpus: Path | str | None = None,
    *,
    pairs: int = 200,
    score: bool = False,
    most: int | None = None,
    progress: Progress | None = None,
) -> Roles:
    """What every head of a run of any task does on a corpus: CoNLL-U, or plain text without the syntactic part.

    A corpus is read by the end that reads text by itself; all other heads, and without a corpus all, are described over
    the run's validation examples. Importance is measured on `pairs` of those; `score` also answers them once
    without each head.
    """
    opened = Run.open(run)
    subject = load_run(opened)
    if reason := requirements.heads("describe")(subject):
        raise UsageError(reason)
    any_text = subject.output.any_text
    if not is_prepared(opened.directory):
        if corpus is None or not any_text:
            remedy = "give a --corpus of texts." if any_text else "put it back."
            raise UsageError(
                f"{opened.directory} holds no data (data/), whose examples are needed to describe heads: {remedy}"
            )
        texts = [Pair(text, "") for text in read_texts(corpus, most or MOST_TEXTS)]
        noun = f"texts of {Path(corpus).name}"
        return describe_heads(
            subject, texts, corpus, None, pairs=pairs, score=score, most=most, noun=noun, progress=progress
        )
    prepared = prepare(opened.config, opened.directory)
    task = prepared.task
    has_text = task.vocabularies.source is not None or task.vocabularies.target is not None
    counted = Frequencies(task.frequencies(prepared.train)) if has_text else None
    examples = prepared.validation_pairs
    return describe_heads(subject, examples, corpus, counted, pairs=pairs, score=score, most=most, progress=progress)


def describe_heads(
    subject: LoadedRun,
    examples: Sequence[Pair],
    corpus: Path | str | Sequence[str] | None = None,
    counted: Frequencies | None = None,
    *,
    pairs: int = 200,
    score: bool = False,
    most: int | None = None,
    noun: str | None = None,
    progress: Progress | None = None,
) -> Roles:
    """As `heads`, of any task and model: examples, a corpus (a file, or texts), how often tokens occurred."""
    task, model = subject.task, subject.model
    found = attentions(model)
    if reason := requirements.heads("describe")(subject):
        raise UsageError(reason)
    if score and not subject.config.task.scores:
        raise UsageError(
            f"A run of the task {subject.config.task.kind} is measured by its loss alone: leave --score out."
        )
    judged = examples[:pairs]
    if not judged:
        raise UsageError("Importance needs at least one example: give a number above 0.")
    sentences, name = ([], None) if corpus is None else _read_sentences(corpus, subject, most)
    work = _HeadObserver(subject, counted, progress)
    training = model.training
    model.eval()
    try:
        by_corpus = work.read_corpus(sentences) if corpus is not None else set()
        shown = examples[:most] if corpus is None else judged
        work.read_examples(list(training_batches(task, shown, model.device)), set(found) - by_corpus)
        read = list(training_batches(task, judged, model.device))
        weighed = importance(task, model, read, progress)
        metric, lost = lost_scores(subject, judged, progress) if score else (None, {})
    finally:
        model.train(training)
    parsed = any(sentence.sentence.words for sentence in sentences)
    relations = work.dependencies.relations(LEAST_PAIRS) if work.dependencies and parsed else []
    figures = [
        _head_figures(attention, head, work.habits[attention], weighed, relations, lost)
        for attention, head in every_head(model)
    ]
    return Roles(
        cell=subject.config.cell,
        corpus=name,
        sentences=len(sentences),
        read=sorted(by_corpus),
        examples=len(shown),
        pairs=len(judged),
        noun=noun or f"validation {task.noun}",
        loss=weighed.loss,
        loss_name=task.output.loss_name,
        metric=metric,
        heads=figures,
        relations=relations,
        parsed=parsed,
    )


def training_batches(task: Task, examples: Sequence[Pair], device: torch.device) -> Iterator[TrainingBatch]:
    """Examples as batches for scoring, on a device."""
    sources, targets, _ = task.scored_rows(examples, task.kind.cleaning.max_length)
    random = torch.Generator().manual_seed(JUDGING_SEED)
    for batch in task.batches(InMemoryStore(sources, targets)).once():
        yield task.training_batch(batch, random, training=False).to(device)


def _read_sentences(
    corpus: Path | str | Sequence[str], subject: LoadedRun, most: int | None
) -> tuple[list[MatchedSentence], str]:
    """The sentences of a corpus that fit the model, and what to call it."""
    if reason := requirements.corpus(subject):
        raise UsageError(f"{reason} Leave --corpus out, and its heads are described over its own validation examples.")
    longest = min(longest_sentence(subject.config), subject.config.data.cleaning.max_length)
    tokenizer = subject.source_tokenizer
    if isinstance(corpus, Path | str):
        path = Path(corpus)
        if ".conllu" in path.suffixes:
            return read_matched_sentences(path, tokenizer, longest=longest, most=most), path.name
        texts, name = list(read_lines(path)), path.name
    else:
        texts, name = list(corpus), "the texts given"
    texts = [text for text in texts if text.strip()]
    rows = zip(texts, tokenizer.encode_batch(texts), strict=True)
    short = [MatchedSentence(Sentence(text, [], 0), ids, []) for text, ids in rows if 0 < len(ids) <= longest][:most]
    if not short:
        raise UsageError(f"{name} has no text of 1 to {longest} tokens: give another corpus.")
    return short, name


class _HeadObserver:
    """Counts where the heads of a model look."""

    def __init__(self, subject: LoadedRun, counted: Frequencies | None, progress: Progress | None) -> None:
        self.subject, self.model, self.counted, self.progress = subject, subject.model, counted, progress
        self.found = attentions(self.model)
        self.habits = {name: HeadHabits(attention.heads) for name, attention in self.found.items()}
        self.end = end_of_text(self.model)
        self.dependencies: Dependencies | None = None
        source, target = subject.task.vocabularies.source, subject.task.vocabularies.target
        self.texts = None
        if source and target and source.fingerprint != target.fingerprint:
            self.texts = target.vocabulary, source.vocabulary

    @torch.no_grad()
    def read_corpus(self, sentences: Sequence[MatchedSentence]) -> set[str]:
        """Run a model on texts alone, in batches; return the attentions that were used."""
        frame, device, done = self.subject.input.frame, self.model.device, 0
        names: set[str] = set()
        for group in length_groups([len(sentence.ids) for sentence in sentences], BATCH_TOKENS):
            batch = [sentences[index] for index in group]
            ids = pad_rows([np.asarray(example.ids) for example in batch], *frame).to(device)  # B×S
            with taps.watch(self.model, "*.weights") as seen:
                read_text(self.model, ids)
            names = {name for name in self.found if f"{name}.weights" in seen}
            tensors = {"source": ids, "inputs": ids}
            for name in names:
                self._add(name, tensors, seen)
            if batch[0].tokens and names:
                self._relate(batch, {name: seen.passes(f"{name}.weights")[0] for name in names})
            done += len(batch)
            if self.progress:
                self.progress("reading the corpus", done, len(sentences))
        return names

    @torch.no_grad()
    def read_examples(self, given: Sequence[TrainingBatch], names: Collection[str]) -> None:
        """Run the model on batches, and count where these attentions look."""
        if not names:
            return
        for done, batch in enumerate(given, start=1):
            with taps.watch(self.model, *(f"{name}.weights" for name in names)) as seen:
                self.subject.output.loss(self.model, batch)
            for name in names:
                self._add(name, batch.tensors, seen)
            if self.progress:
                self.progress(f"reading {self.subject.task.noun}", done, len(given))

    def _add(self, name: str, tensors: Mapping[str, Tensor], seen: taps.Recording) -> None:
        kind = kind_of(name)
        for attention in batch_attention(self.model, name, tensors, seen):
            rows, columns = attention.rows.ids, attention.columns.ids
            if rows is None or columns is None:  # a picture has neither order nor words
                self.habits[name].add(attention.weights, attention.seen, ordered=False)
                continue
            same = equal_tokens(rows, columns, self.texts if kind == "source" else None)
            rarity = None
            if self.counted is not None and kind == self.end:
                rarity = self.counted.rarity(columns, attention.columns.real)
            self.habits[name].add(attention.weights, attention.seen, same, rarity)

    def _relate(self, batch: Sequence[MatchedSentence], weights: Mapping[str, Tensor]) -> None:
        """Count along which relations heads look: weights B×H×S×S, special symbols included."""
        if self.dependencies is None:
            causal = self.end == "decoder"
            self.dependencies = Dependencies({name: self.found[name].heads for name in weights}, causal=causal)
        before = len(self.subject.input.frame.before)
        own = {
            name: attention_weights[:, :, before:, before:].float().cpu() for name, attention_weights in weights.items()
        }
        self.dependencies.add(own, batch)


def _head_figures(
    name: str,
    head: int,
    habits: HeadHabits,
    weighed: Importance,
    relations: Sequence[Relation],
    lost: Lost,
) -> HeadFigures:
    """Return the figures of one head, and its roles."""
    offset, times = habits.best_offset(head)
    rows = max(1, habits.rows)
    rare = habits.rare_rows
    followed = [
        Followed(
            relation=relation.name,
            direction=relation.direction,
            accuracy=relation.accuracy[name][head],
            interval=relation.intervals[name][head],
            baseline=relation.baseline,
            p=relation.p[name][head],
        )
        for relation in relations
        if name in relation.follows and relation.follows[name][head]
    ]
    figures: dict[str, Any] = {
        "attention": name,
        "kind": kind_of(name),
        "layer": layer_of(name),
        "head": head,
        "confidence": float(habits.surest[head]) / rows,
        "offset": offset if habits.offsets[head] else None,
        "at_offset": times / rows,
        "of_possible": times / max(1, habits.reachable(offset)),
        "offsets": dict(sorted(habits.offsets[head].items(), key=lambda item: -item[1])[:9]),
        "rows": habits.rows,
        "same": float(habits.same[head]) / rows if habits.offsets[head] else None,
        "rarest": float(habits.rare[head]) / rare if rare else None,
        "two_rarest": float(habits.two[head]) / rare if rare else None,
        "chance": habits.chance / rare if rare else None,
        "slope": float(weighed.gradient[name][head]),
        "importance": float(weighed.share(name)[head]),
        "rise": float(weighed.rise[name][head]),
        "score_lost": lost[name, head][0] if lost else None,
        "followed": sorted(followed, key=lambda relation: relation.baseline / max(relation.accuracy, 1e-9)),
        "intervals": {
            **_head_intervals(name, head, habits, rare > 0, weighed),
            "score_lost": lost[name, head][1] if lost else None,
        },
    }
    return HeadFigures(**figures, roles=_roles(figures))


def _head_intervals(
    name: str, head: int, habits: HeadHabits, has_rare: bool, weighed: Importance
) -> dict[str, Interval | None]:
    """Return the 95 % intervals of a head's figures by their names; `None` where a figure has none."""
    shares = habits.intervals()
    found: dict[str, Interval | None] = dict.fromkeys(("confidence", "of_possible", "same", "two_rarest"))
    for figure in found if shares is not None else ():
        absent = (figure == "two_rarest" and not has_rare) or (
            figure in ("of_possible", "same") and not habits.offsets[head]
        )
        found[figure] = None if absent or shares is None else _pair(shares[figure][head])
    found["importance"] = _pair(weighed.share_95[name][head])
    found["rise"] = _pair(weighed.rise_95[name][head])
    return found


def _pair(ends: Tensor) -> Interval | None:
    low, high = ends.tolist()
    return None if math.isnan(low) else (low, high)


def _roles(figures: Mapping[str, Any]) -> list[str]:
    """Return the roles of a head, the most specific first."""
    roles = []
    ordered = figures["offset"] is not None
    common = ordered and figures["at_offset"] >= figures["of_possible"] / 2
    positional = common and figures["of_possible"] >= POSITIONAL
    itself = positional and figures["offset"] == 0 and figures["kind"] != "source"
    if figures["slope"] < DEAD and abs(figures["rise"]) < DEAD:
        roles.append("dead")
    if ordered and figures["same"] >= COPYING and not itself:
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
