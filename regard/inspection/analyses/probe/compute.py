"""What each layer knows of a property of words, with everything that a probe has to be compared to.

Probes after Belinkov et al. (2017), control tasks after Hewitt and Liang (2019), code lengths after Voita and Titov
(2020).

Axes: L layers (the embedding first), N words, D width, C labels.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches import Frame
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.probe.codelength import CodeLength, blocks, online_code
from regard.inspection.analyses.probe.properties import Labelled, read_labelled
from regard.inspection.analyses.probe.result import Curves, Probing
from regard.inspection.probes import Examples, Probes, train_probes
from regard.inspection.states import End, Pool, Reading, layer_names, layer_taps, longest_sentence, word_states
from regard.metrics.intervals import Interval, ratio_intervals
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.tasks.loaded import LoadedRun

KINDS: dict[str, int | None] = {"linear": None, "mlp": 128}
"""The probes, and the width of their hidden layer."""

FEWEST = 30
"""Sentences without which a corpus cannot be split."""


def probe(
    translator: LoadedRun,
    corpus: Path | str,
    wanted: str = "upos",
    *,
    dev: Path | str | None = None,
    sources: Path | str | None = None,
    most: int | None = None,
    pool: Pool = "mean",
    seed: int = 1,
    progress: Progress | None = None,
) -> Probing:
    """Ask every layer for a property of words.

    Sentences are split by chance: 80 % to learn from, 10 % to stop by, 10 % to measure on; with `dev`, that is what is
    measured on. With `sources` (a line for each sentence of the corpus) the corpus is what the decoder reads, as it is
    in a language model.
    """
    if dev is not None and sources is not None:
        raise UsageError("--dev and --sources do not go together: the sentences of --dev would have no sources.")
    if sources is not None and not translator.translates_text:
        raise UsageError("--sources are what a decoder looks at, and this model has no decoder with a source.")
    end: End = "encoder" if sources is None and has_encoder(translator) else "decoder"
    split = _split(translator, corpus, wanted, dev=dev, sources=sources, most=most, seed=seed, progress=progress)
    real = split.answers
    control = control_labels(split.words(), real, seed)  # N
    work = _ProbeTraining(split, translator.input.frame, progress)
    of_model = work.read(translator.model, pool, "reading layers")
    own = {kind: (work.ask(of_model, real, wide), work.ask(of_model, control, wide)) for kind, wide in KINDS.items()}
    of_random = work.read(build_untrained(translator, seed), pool, "reading untrained")
    random = {kind: work.ask(of_random, real, wide) for kind, wide in KINDS.items()}
    majority, per_word = baselines(split)
    return Probing(
        wanted=wanted,
        side=end,
        pool=pool,
        layers=layer_names(len(layer_taps(translator.model, end))),
        sentences={name: len(part) for name, part in split.parts.items()},
        words={name: len(split.words(name)) for name in split.parts},
        too_long=split.too_long,
        repeated=split.repeated,
        labels=split.labels,
        majority=majority,
        per_word=per_word,
        uniform=own["mlp"][0].code.uniform,
        curves={
            kind: Curves(
                truth.accuracy,
                chance.accuracy,
                random[kind].accuracy,
                _intervals(split, truth.right, chance.right, random[kind].right),
                truth.code,
                chance.code,
                random[kind].code,
            )
            for kind, (truth, chance) in own.items()
        },
        by_label=_by_label(split, own["mlp"][0].guesses),
    )


@dataclass(frozen=True)
class Split:
    """A corpus in three parts, each sentence of it in one, once."""

    parts: dict[str, list[tuple[Labelled, Reading]]]
    """`train`, `stop` and `test`, in this order."""
    labels: list[str]
    """The most frequent first."""
    too_long: int
    repeated: int
    """Sentences that were left out because they occur in the corpus more than once."""

    def words(self, name: str | None = None) -> list[str]:
        """The words of a part, or of all parts in order."""
        chosen = self.parts.values() if name is None else [self.parts[name]]
        return [word for part in chosen for sentence, _ in part for word in sentence.words]

    def given(self, name: str) -> list[str]:
        """The labels of a part."""
        return [label for sentence, _ in self.parts[name] for label in sentence.labels]

    @property
    def answers(self) -> Tensor:
        """The number of each word's label, all parts in order: N."""
        numbers = {label: index for index, label in enumerate(self.labels)}
        return torch.tensor([numbers[label] for name in self.parts for label in self.given(name)])

    @property
    def test_lengths(self) -> list[int]:
        """The number of words of each test sentence."""
        return [len(sentence.words) for sentence, _ in self.parts["test"]]

    @property
    def bounds(self) -> list[int]:
        """Where among all words the parts begin and end."""
        counts = (sum(len(sentence.words) for sentence, _ in part) for part in self.parts.values())
        return [0, *accumulate(counts)]


def control_labels(words: Sequence[str], labels: Tensor, seed: int) -> Tensor:
    """A label for each word *type*, drawn from the distribution of the real ones (Hewitt and Liang, 2019): N."""
    generator = torch.Generator().manual_seed(seed)
    types = {word: index for index, word in enumerate(dict.fromkeys(words))}
    drawn = labels[torch.randint(len(labels), (len(types),), generator=generator)]
    return drawn[torch.tensor([types[word] for word in words])]


def has_encoder(loaded: LoadedRun) -> bool:
    """Whether the model has an encoder; a language model has none."""
    return loaded.config.task.input_kind().encoder


def build_untrained(translator: LoadedRun, seed: int) -> Model | EncoderModel:
    """A model of the same configuration that has learned nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = translator.untrained()
    return made.to(translator.model.device).eval()


def baselines(split: Split) -> tuple[float, float]:
    """Accuracy on the test part of the most frequent label, and of each word's most frequent label."""
    seen: dict[str, Counter[str]] = {}
    for word, label in zip(split.words("train"), split.given("train"), strict=True):
        seen.setdefault(word, Counter())[label] += 1
    commonest = Counter(split.given("train")).most_common(1)[0][0]
    known = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    test = list(zip(split.words("test"), split.given("test"), strict=True))
    majority = sum(label == commonest for _, label in test) / len(test)
    return majority, sum(label == known.get(word, commonest) for word, label in test) / len(test)


@dataclass(frozen=True)
class _Answer:
    accuracy: list[float]
    code: CodeLength
    guesses: Tensor  # L×N of the test part
    right: Tensor  # L×N: whether they are right


class _ProbeTraining:
    """Probes of one split, with the progress of all of them together."""

    def __init__(self, split: Split, frame: Frame, progress: Progress | None) -> None:
        self.frame = frame
        self.readings = [reading for part in split.parts.values() for _, reading in part]
        self.bounds = split.bounds
        self.labels = len(split.labels)
        self.starts: list[int] = np.cumsum([0, *(len(sentence.words) for sentence, _ in split.parts["train"])])[
            :-1
        ].tolist()
        self.ends = blocks(self.starts, self.bounds[1])
        self.progress = progress
        self.done, self.total = 0, 3 * len(KINDS) * sum(self.ends)

    def read(self, model: Model | EncoderModel, pool: Pool, task: str) -> Tensor:
        """The states of all words L×N×D, each number of each layer with mean 0 and variance 1 over training words."""
        states = word_states(model, self.readings, pool=pool, frame=self.frame, task=task, progress=self.progress)
        for layer in states:  # in place: this is by far the largest thing in memory
            known = layer[: self.bounds[1]]
            spread, mean = torch.std_mean(known, dim=0, correction=0)
            layer.sub_(mean).div_(spread.clamp(min=1e-6))
        return states

    def ask(self, states: Tensor, answers: Tensor, hidden: int | None) -> _Answer:
        """Train probes for some answers, measure them, and find the length of the code."""
        train, stop, test = (
            Examples(states[:, start:end], answers[start:end])
            for start, end in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        )
        last = train_probes(train, stop, self.labels, hidden)
        self._train(len(train))
        code = online_code(train, stop, self.ends, self.labels, hidden, last, starts=self.starts, trained=self._train)
        return _answer(last, test, code)

    def _train(self, words: int) -> None:
        self.done += words
        if self.progress:
            self.progress("probing", self.done, self.total)


def _answer(probes: Probes, test: Examples, code: CodeLength) -> _Answer:
    guesses = probes.guesses(test.states)
    return _Answer(probes.accuracy(test), code, guesses, guesses == test.labels)


def _intervals(split: Split, truth: Tensor, control: Tensor, random: Tensor) -> dict[str, list[Interval | None]]:
    """Return the 95 % intervals of all curves by one bootstrap over the test sentences; hits are L×N."""
    figures = {"accuracy": truth, "control": control, "selectivity": truth.double() - control.double()}
    figures["untrained"] = random
    parts = np.concatenate([_sums(split, hits) for hits in figures.values()], axis=1)  # sentences × 4L
    found = ratio_intervals(parts, np.asarray(split.test_lengths, dtype=np.float64)[:, None])
    layers = len(truth)
    intervals: list[Interval | None] = [None] * (layers * len(figures))
    if found is not None:
        intervals = [(float(low), float(high)) for low, high in found]
    return {name: intervals[index * layers : (index + 1) * layers] for index, name in enumerate(figures)}


def _sums(split: Split, hits: Tensor) -> NDArray[np.float64]:
    """Return hits L×N summed by test sentence: sentences × L."""
    starts = np.cumsum([0, *split.test_lengths])[:-1]
    found: NDArray[np.float64] = np.add.reduceat(hits.double().numpy(), starts, axis=1).T
    return found


def _by_label(split: Split, guesses: Tensor) -> dict[str, tuple[int, list[float], list[Interval | None]]]:
    """For each label of the test part: how many words have it, the share of them found in each layer, intervals."""
    test = split.answers[split.bounds[2] :]
    found = {}
    for number, label in enumerate(split.labels):
        here = test == number
        if here.any():
            ends = ratio_intervals(_sums(split, here & (guesses == number)), _sums(split, here[None]))
            shares = (guesses[:, here] == number).double().mean(1).tolist()
            intervals: list[Interval | None] = [None] * len(shares)
            if ends is not None:
                intervals = [(max(0.0, float(low)), min(1.0, float(high))) for low, high in ends]
            found[label] = int(here.sum()), shares, intervals
    return found


def _split(
    translator: LoadedRun,
    corpus: Path | str,
    wanted: str,
    *,
    dev: Path | str | None,
    sources: Path | str | None,
    most: int | None,
    seed: int,
    progress: Progress | None,
) -> Split:
    alone = not has_encoder(translator)
    tokenizer = translator.source_tokenizer
    if sources is not None and translator.writes_text:
        tokenizer = translator.target_tokenizer
    longest = longest_sentence(translator.config)
    read, too_long = read_labelled(corpus, wanted, tokenizer, longest=longest, most=most, progress=progress)
    readings = _readings(read, alone=alone)
    if sources is not None:
        readings = _with_sources(translator, corpus, read, sources, too_long)
    whole = [(sentence, reading) for sentence, reading in zip(read, readings, strict=True) if sentence.words]
    if len(whole) < FEWEST:
        raise RegardError(
            f"{corpus} has {len(whole)} sentences with the property `{wanted}`: a probe needs at least {FEWEST}."
        )
    held: list[tuple[Labelled, Reading]] = []
    if dev is not None:
        others, _ = read_labelled(dev, wanted, tokenizer, longest=longest)
        held = [pair for pair in zip(others, _readings(others, alone=alone), strict=True) if pair[0].words]
    count = len(held) + len(whole)
    held = _without_repetitions(held, set())
    whole = _without_repetitions(whole, {tuple(sentence.ids) for sentence, _ in held})
    repeated = count - len(held) - len(whole)
    if len(whole) < FEWEST:
        raise RegardError(
            f"{corpus} has {len(whole)} different sentences with the property `{wanted}`: a probe needs at least "
            f"{FEWEST}."
        )
    order = np.random.default_rng(seed).permutation(len(whole))
    tenth = max(1, len(whole) // 10)
    if dev is None:
        pieces = {"train": order[2 * tenth :], "stop": order[tenth : 2 * tenth], "test": order[:tenth]}
        parts = {name: [whole[position] for position in places] for name, places in pieces.items()}
    else:
        pieces = {"train": order[tenth:], "stop": order[:tenth]}
        parts = {name: [whole[position] for position in places] for name, places in pieces.items()}
        parts["test"] = held
    labels = Counter(label for part in parts.values() for sentence, _ in part for label in sentence.labels)
    if len(labels) < 2:
        raise UsageError(
            f"Every word with the property `{wanted}` has the same label: there is nothing to tell apart. "
            "Choose another property."
        )
    return Split(parts, [label for label, _ in labels.most_common()], too_long, repeated)


def _without_repetitions(
    given: Sequence[tuple[Labelled, Reading]], known: set[tuple[int, ...]]
) -> list[tuple[Labelled, Reading]]:
    """Return the sentences, each once, that are not among those `known` by their tokens."""
    seen, found = set(known), []
    for sentence, reading in given:
        if tuple(sentence.ids) not in seen:
            seen.add(tuple(sentence.ids))
            found.append((sentence, reading))
    return found


def _readings(read: Sequence[Labelled], *, alone: bool) -> list[Reading]:
    """What an encoder reads, or a decoder that is `alone`."""
    if alone:
        return [Reading([], sentence.ids, sentence.tokens) for sentence in read]
    return [Reading(sentence.ids, None, sentence.tokens) for sentence in read]


def _with_sources(
    translator: LoadedRun, corpus: Path | str, read: Sequence[Labelled], sources: Path | str, too_long: int
) -> list[Reading]:
    if too_long:
        raise RegardError(
            f"{too_long} sentences of {corpus} are too long to be read: leave them and their sources out."
        )
    lines = [line for line, _ in zip(read_lines(sources), range(len(read) + 1), strict=False)]
    if len(lines) < len(read):
        raise RegardError(f"{sources} has {len(lines):,} lines for {len(read):,} sentences: they must be as many.")
    ids = translator.source_tokenizer.encode_batch(lines[: len(read)])
    return [Reading(source, sentence.ids, sentence.tokens) for source, sentence in zip(ids, read, strict=True)]
