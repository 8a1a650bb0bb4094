"""Data preparation: builds tokenizers, stores and pairs in a run directory once, and reopens them afterwards."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from regard.config.data import FEW_EXAMPLES
from regard.config.run import RunConfig
from regard.config.text_corpora import JsonTexts, TextFiles
from regard.data.cleaning import CleaningReport, Fate, refuse_large_losses, with_fate
from regard.data.corpus import Pair, describe
from regard.data.lines import check_rereadable
from regard.data.store import StoreWriter, TokenStore
from regard.data.survey import survey
from regard.foundation import durable
from regard.foundation.errors import RegardError, TooFew, UsageError
from regard.foundation.progress import Progress
from regard.runs.manifest import Manifest
from regard.runs.records import DamagedFile, read_file, read_record
from regard.tasks.prepared_data import PreparationLock, adopt, check_fits, is_complete, write_record
from regard.tasks.task import Task, TaskKind
from regard.tasks.training_corpus import TrainingCorpus, read_checked, read_training_pairs, workers_for

MUCH = 0.9
"""Share of the examples asked for below which fewer held-out examples are reported."""
_CHUNK = 2000
_UNFINISHED, _FINISHED = "unfinished", "finished.json"
_TOKENIZERS = (*(f"{side}.{end}" for side in ("shared", "source", "target") for end in ("json", "spm")), "labels.json")


@dataclass(frozen=True)
class Prepared:
    """The prepared data of a run."""

    task: Task
    """The task, with its tokenizers and labels."""
    train: TokenStore
    validation: TokenStore
    validation_pairs: list[Pair]
    """Raw validation examples; example i has the ids `validation[i]`."""
    test_pairs: list[Pair]
    """Raw test examples, not truncated; empty without a test corpus."""
    report: CleaningReport

    def verify(self) -> None:
        """Compare the token stores with their checksums, and their ids with the vocabularies."""
        for store in (self.train, self.validation):
            store.verify(self.task.id_limits)


def is_prepared(directory: Path) -> bool:
    """Return whether a run directory already contains its tokenizers and stores."""
    return (directory / "data" / _FINISHED).exists()


def verify_stores(directory: Path) -> None:
    """Compare the token stores of a run with their checksums; does nothing before they are complete."""
    if is_prepared(directory):
        for name in ("train", "validation"):
            TokenStore(directory / "data" / name).verify()


def prepare(
    config: RunConfig, directory: Path, progress: Progress | None = None, *, workers: int | None = None
) -> Prepared:
    """Build the tokenizers and stores of a run, or reopen them without reading the corpora if they exist.

    A large corpus is prepared by as many `workers` as there are cores, unless their number is given. The result does
    not depend on it.
    """
    if not is_prepared(directory):
        _check_untrained(directory)
        try:
            if config.data.prepared is not None:
                _adopt(config, directory)
            else:
                _build(config, directory, progress, workers)
        except TooFew as error:
            raise TooFew(f"{error}{_format_thinning(config.data.every)}") from None
        except OSError as error:
            raise RegardError(f"Cannot write to {directory}: {error.strerror or error}.") from error
    return _open(config, directory)


def _format_thinning(every: int) -> str:
    """Return a hint for too little data: the share of examples that `data.every` left out."""
    return f"\nOnly one example in {every:,} was used. Make data.every smaller." if every > 1 else ""


def _check_untrained(directory: Path) -> None:
    """Raise an error if the run has weights: new tokenizers would not fit them."""
    checkpoints = directory / "checkpoints"
    trained = (directory / "model.safetensors").exists() or (checkpoints.is_dir() and any(checkpoints.iterdir()))
    if trained:
        raise RegardError(
            f"{directory / 'data'} is missing, and the trained model of {directory} cannot use other data. Restore "
            f"{directory / 'data'}, evaluate the run on your own files, or start a new run."
        )


def _build(config: RunConfig, directory: Path, progress: Progress | None, workers: int | None) -> None:
    data, kind = config.data, TaskKind.of(config)
    check_rereadable(file for corpus in (data.train, data.validation, data.test) if corpus for file in corpus.files)
    _make_room(directory)
    held = {"validation": data.validation, "test": data.test}
    known = {name: list(read_checked(corpus, kind)) for name, corpus in held.items() if corpus}
    validation = [pair for _, pair in known.get("validation", ())]  # scored examples are never filtered
    with workers_for(config, workers) as crew:
        corpus = TrainingCorpus(config, crew, progress)
        report = corpus.survey(validation, directory / "data")
        _check_survey(config, kind, report)
        task, set_aside = corpus.learn(report)
        task.save(directory / "tokenizers")
        report.notes += task.output.remarks()
        for name in [name for name, pairs in set_aside.items() if pairs]:
            one = f"{describe(data.train)}, {_one(kind)}"
            located = [(f"{one} {number:,}, held out for {name},", pair) for number, pair in set_aside[name]]
            known[name] = _answerable(located, task, report.notes)
        if not data.validation:
            validation = [pair for _, pair in known["validation"]]
        test = [pair for _, pair in known.get("test", ())]
        task.gather(chain(corpus.pairs(), validation, test), directory / "data", progress)
        for where, pair in chain(*known.values()):
            task.check(pair, where)
        for name, some in known.items():
            if missing := task.output.missing([pair for _, pair in some]):
                report.notes.append(f"The {name} data {missing}")
        too_long = corpus.store(task, report, directory)
    if too_long:
        report.drop(Fate.TOO_LONG, too_long[0], len(too_long))
        report.train -= len(too_long)
        refuse_large_losses(data.cleaning, report, kind.noun)
    report.notes += task.input.remarks()
    if not report.train:
        raise TooFew(f"Cleaning left no training {_one(kind)}. Change data.cleaning.\n{report}")
    if not validation:
        raise RegardError(f"There is no validation {_one(kind)}. Name more under data.validation.")
    longest = kind.cleaning.max_length
    cut = stored(enumerate(validation), task, longest, directory / "data" / "validation", scored=True)
    report.notes += _notes_on_scored({"validation": validation, "test": test}, kind, len(cut), longest)
    report.joined = len(TokenStore(directory / "data" / "train")) - report.train if data.joined else 0
    _write_pairs(directory / "data" / "validation.jsonl", validation)
    _write_pairs(directory / "data" / "test.jsonl", test)
    durable.write(directory / "data" / _FINISHED, json.dumps(report.to_json(), indent=2))
    (directory / "data" / _UNFINISHED).unlink()


def _adopt(config: RunConfig, directory: Path) -> None:
    """Take over data that was prepared before (`data.prepared`)."""
    _make_room(directory)
    adopt(config, directory, last=_FINISHED)
    (directory / "data" / _UNFINISHED).unlink()


def prepare_shared(
    config: RunConfig, directory: Path, progress: Progress | None = None, *, workers: int | None = None
) -> tuple[Prepared, bool]:
    """Prepare data that runs can share (`data.prepared`); return it, and whether it was there already.

    What an interrupted preparation left is deleted. Data that was prepared for another configuration is refused.
    """
    if config.data.prepared is not None:
        raise UsageError("data.prepared names data that is prepared already. Remove the setting to prepare it.")
    with PreparationLock(directory):
        known = is_complete(directory)
        if known:
            check_fits(config, directory)
        elif is_prepared(directory):  # complete but for its record
            (directory / "data" / _FINISHED).rename(directory / "data" / _UNFINISHED)
        prepared = prepare(config, directory, progress, workers=workers)
        if not known:
            write_record(config, directory)
    return prepared, known


def _check_survey(config: RunConfig, kind: TaskKind, report: CleaningReport) -> None:
    """Raise if too little is left for training, and add notes on what is unusual."""
    data = config.data
    report.notes += _fewer_held_out(config, report, kind)
    if not report.train:
        raise TooFew(f"Cleaning left no training {_one(kind)}. Change data.cleaning.\n{report}")
    refuse_large_losses(data.cleaning, report, kind.noun)
    if report.train < FEW_EXAMPLES and not isinstance(data.train, TextFiles | JsonTexts):  # few documents may be long
        report.notes.append(
            f"There are only {report.train:,} training {kind.noun}. A model memorises so few, and its results for "
            "others are guesses. Use at least a few hundred."
        )


def _notes_on_scored(scored: Mapping[str, list[Pair]], kind: TaskKind, cut: int, longest: int) -> list[str]:
    """Return notes on scored examples that are empty or truncated."""
    found = []
    for name, pairs in scored.items():
        empty = sum(not all(getattr(pair, text).strip() for text in kind.texts) for pair in pairs)
        if empty:
            found.append(f"Of {len(pairs):,} {name} {kind.noun}, {empty:,} have an empty side. They are scored too.")
    if cut:
        found.append(
            f"Of {len(scored['validation']):,} validation {kind.noun}, {cut:,} have a side of more than {longest:,} "
            f"tokens (data.cleaning.max_length). Their loss is that of the first {longest:,} tokens of each side. They "
            "are scored too."
        )
    return found


def training_pairs(config: RunConfig) -> Iterator[Pair]:
    """Return the raw training pairs of a run; its corpus is read and split again, with the same result."""
    data, kind = config.data, TaskKind.of(config)
    train = read_training_pairs(config)
    fate, _ = survey(
        train(),
        kind.cleaning,
        held_out=0 if data.validation else data.held_out,
        tested=0 if data.test else data.held_out_test,
        seed=config.training.seed,
        texts=kind.texts,
        together=kind.group,
    )
    return (pair for _, pair in with_fate(train(), fate, Fate.TRAIN))


def _answerable(held: list[tuple[str, Pair]], task: Task, notes: list[str]) -> list[tuple[str, Pair]]:
    """Return the held-out examples that fit the vocabularies; a note is added for those that do not."""
    fits, odd = [], []
    for where, pair in held:
        try:
            task.check(pair, where)
            fits.append((where, pair))
        except RegardError:
            odd.append(pair)
    if odd:
        labels = ", ".join(f"`{label[:40]}`" for label in dict.fromkeys(pair.target.strip() for pair in odd[:3]))
        several = (
            f"{len(odd):,} held-out {task.noun} have labels" if len(odd) > 1 else "One held-out example has a label"
        )
        more = ", …" if len(odd) > 3 else ""
        notes.append(f"{several} that no training example has ({labels}{more}). Such examples were left out.")
    return fits


def _make_room(directory: Path) -> None:
    """Delete what an interrupted build left in a run directory, and nothing else."""
    data, tokenizers = directory / "data", directory / "tokenizers"
    unfinished = data / _UNFINISHED
    if data.exists() and any(data.iterdir()) and not unfinished.exists():
        raise RegardError(f"{data} exists and does not belong to a Regard run. Choose another directory for the run.")
    data.mkdir(parents=True, exist_ok=True)
    unfinished.touch()
    tokenizers.mkdir(exist_ok=True)
    for path in (*data.iterdir(), *(tokenizers / name for name in _TOKENIZERS)):
        if path.is_dir():
            shutil.rmtree(path)
        elif path != unfinished:
            path.unlink(missing_ok=True)


def _fewer_held_out(config: RunConfig, report: CleaningReport, kind: TaskKind) -> Iterator[str]:
    """Yield a sentence if fewer examples are held out than the configuration asks for."""
    data = config.data
    for name, asked, found, purpose in (
        ("held_out", 0 if data.validation else data.held_out, report.held_out, "validation"),
        ("held_out_test", 0 if data.test else data.held_out_test, report.tested, "the test"),
    ):
        if name in data.model_fields_set and found < MUCH * asked:
            yield (
                f"{found:,} {kind.noun} are held out for {purpose}, fewer than data.{name} ({asked:,}): at most a "
                "tenth of those left after cleaning."
            )


def _one(kind: TaskKind) -> str:
    """Return the singular noun for examples."""
    return kind.noun.removesuffix("s")


def stored(
    pairs: Iterable[tuple[int, Pair]], task: Task, max_length: int, directory: Path, *, scored: bool = False
) -> list[int]:
    """Tokenise pairs into a store, chunk by chunk, and return the numbers of pairs that are too long.

    Training pairs that are too long are left out; `scored` pairs are truncated to `max_length` tokens.
    """
    too_long = []
    with StoreWriter(directory, task.largest_id) as writer:
        pairs = iter(pairs)
        while chunk := list(islice(pairs, _CHUNK)):
            rows = task.scored_rows if scored else task.rows
            source, target, left_out = rows([pair for _, pair in chunk], max_length)
            too_long += [chunk[place][0] for place in left_out]
            writer.write(source, target)
    return too_long


def _open(config: RunConfig, directory: Path) -> Prepared:
    data = directory / "data"
    manifest = Manifest.load(directory)
    manifest.check(directory, (name for name in manifest.under("data") if not name.startswith("data/pictures/")))
    task = TaskKind.of(config).load(directory / "tokenizers")
    prepared = Prepared(
        task=task,
        train=TokenStore(data / "train"),
        validation=TokenStore(data / "validation"),
        validation_pairs=read_pairs(data / "validation.jsonl"),
        test_pairs=read_pairs(data / "test.jsonl"),
        report=read_record(data / _FINISHED, CleaningReport),
    )
    for name, pairs in (("validation", prepared.validation_pairs), ("test", prepared.test_pairs)):
        for number, pair in enumerate(pairs, start=1):
            place = f"{data / name}.jsonl, line {number:,},"
            if problem := task.kind.problem(pair):
                raise DamagedFile(f"{place} {problem}")
            task.check(pair, place)
    return prepared


def _write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    durable.write(path, "".join(json.dumps(pair._asdict()) + "\n" for pair in pairs))


def read_pairs(path: Path) -> list[Pair]:
    """Read the raw validation or test examples of a run."""
    pairs = []
    for number, line in enumerate(read_file(path, largest=1 << 34).decode("utf-8", "replace").split("\n"), start=1):
        if not line:
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or set(content) != set(Pair._fields):
            raise DamagedFile(f"{path} is damaged: line {number:,} is not an example. Restore it.")
        if not all(isinstance(text, str) for text in content.values()):
            raise DamagedFile(f"{path} is damaged: line {number:,} contains something other than text. Restore it.")
        pairs.append(Pair(**content))
    return pairs
