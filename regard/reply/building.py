"""Build suggested replies from conversations: responses, scorer, language model, trigger and sensitivity classifier.

The scorer learns in two phases: first from all short replies, which teach it language and what messages are about
(`start`); then only from replies that are responses, until the loss on held-out ones of these no longer falls. Every
step leaves its result in the directory, so that an interrupted build continues where it stopped.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.config.loading import from_mapping
from regard.config.run import RunConfig
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.reply.conversations import Exchange, read_exchanges
from regard.reply.intents import assign_intents
from regard.reply.language import main_language
from regard.reply.preprocessing import normalise_response
from regard.reply.responses import LONGEST, Response, collect_responses, read_responses, write_responses
from regard.reply.sensitivity import LABELS, built_in_list, parse_topics, read_topics
from regard.reply.suggester import KIND, WANTED, label_probability
from regard.runs.bundle import Bundle, is_bundle
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.training.loop import train

MEMBERS = ("scorer", "language", "trigger", "sensitivity")
START = "start"
"""The run of the scorer's first phase, which is no member: it is not needed after the build."""
UNWANTED = "none"
ALPHA = 0.1
"""Weight of log P(response). On validation pairs of the Self-dialogue corpus, more costs rank, and less suggests fewer
different responses."""
RATE = 0.5
SEED = 1
VOCABULARY = 4000
MANY = 100_000
"""Exchanges that support a vocabulary of this size; fewer have the vocabulary that they support."""
OTHERS = 8
FEWEST = 20
"""Exchanges below which nothing can be learned."""
LOOKED_AT = 500
"""Messages from which the language is identified."""
CALIBRATED_ON = 2000
"""Held-out messages on which the trigger's probabilities are ranked."""

VALIDATED_ON = 1000
"""Pairs on which the loss of the scorer is measured, at most."""

Report = Callable[[str], None]
Pair = tuple[str, str]
"""A message and its reply, both normalised."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What a build depends on, in addition to the conversations."""

    least: int = 5
    """Conversations in which a reply must occur to become a response."""
    hold_out: float = 0.1
    """Share of conversations that are kept for evaluation."""
    model: str = "lstm"
    """The scorer: `lstm`, as in the paper, or `transformer`."""
    steps: int = 1500
    """Training steps of each phase of the scorer, at most; the other members need fewer."""

    def __post_init__(self) -> None:
        if self.least < 1:
            raise UsageError(f"least is {self.least}. It must be at least 1.")
        if not 0.0 <= self.hold_out < 0.9:
            raise UsageError(f"hold_out is {self.hold_out}. It must be between 0 and 0.9.")
        if self.model not in ("lstm", "transformer"):
            raise UsageError(f"model is {self.model[:40]!r}. It must be lstm or transformer.")
        if self.steps < 1:
            raise UsageError(f"steps is {self.steps}. It must be at least 1.")


def build(
    conversations: Path,
    directory: Path,
    options: BuildOptions,
    *,
    report: Report,
    progress: Progress | None = None,
) -> Bundle:
    """Build a bundle from conversations, or continue an interrupted build."""
    _check_directory(directory, conversations, options)
    exchanges = _read(conversations, progress)
    held_out, rest = _split(exchanges, options.hold_out)
    report(f"{len(exchanges):,} exchanges: {len(rest):,} for training, {len(held_out):,} held out.")
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    responses = _responses(directory, rest, options, report)
    _write_data(data, directory, rest, responses)
    if held_out:
        _write_conversations(directory / "held-out.jsonl", held_out)
    for name in (START, *MEMBERS):
        run = directory / name
        started = (run / "run.json").is_file()
        if started and Run.open(run).status == "finished":
            report(f"{name}: already trained.")
            continue
        report(f"{name}: {'resuming' if started else 'training'} in {run}.")
        train(Run.open(run).config if started else _config(name, data, options, len(rest)), run, resume=started)
    settings = {
        "alpha": ALPHA,
        "rate": RATE,
        "language": main_language(exchange.message for exchange in rest[:LOOKED_AT]),
        "quantiles": _quantiles(directory, held_out or rest),
    }
    return Bundle.create(directory, KIND, list(MEMBERS), settings)


def _check_directory(directory: Path, conversations: Path, options: BuildOptions) -> None:
    """Create the directory, or raise if it was built from something else."""
    wanted = {"conversations": conversations.name, **asdict(options)}
    path = directory / "build.json"
    if is_bundle(directory):
        raise UsageError(f"{directory} is built already. Choose another directory with --run, or remove it.")
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        for name, value in wanted.items():
            if found.get(name) != value:
                raise UsageError(
                    f"{directory} was begun with {name}={found.get(name)}, and not {value}. Continue with the same "
                    "options, or choose another directory with --run."
                )
        return
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty. Choose another directory with --run.")
    directory.mkdir(parents=True, exist_ok=True)
    durable.write(path, json.dumps(wanted, indent=2) + "\n")


def _read(conversations: Path, progress: Progress | None) -> list[Exchange]:
    exchanges = []
    for exchange in read_exchanges(conversations):
        exchanges.append(exchange)
        if progress and len(exchanges) % 1000 == 0:
            progress("reading exchanges", len(exchanges), None)
    if len(exchanges) < FEWEST:
        raise RegardError(
            f"{conversations} has {len(exchanges)} messages with replies. Suggested replies need thousands to be "
            f"useful, and {FEWEST} at the very least."
        )
    return exchanges


def _split(exchanges: Sequence[Exchange], share: float) -> tuple[list[Exchange], list[Exchange]]:
    """Return held-out exchanges and the rest; a conversation is held out as a whole or not at all."""
    conversations = sorted({exchange.conversation for exchange in exchanges})
    random.Random(SEED).shuffle(conversations)
    chosen = set(conversations[: round(share * len(conversations))])
    held_out = [exchange for exchange in exchanges if exchange.conversation in chosen]
    return held_out, [exchange for exchange in exchanges if exchange.conversation not in chosen]


def _responses(directory: Path, exchanges: Sequence[Exchange], options: BuildOptions, report: Report) -> list[Response]:
    """Return the response set: that of an interrupted build, or a new one."""
    path = directory / "responses.yaml"
    if not path.is_file():
        candidates = collect_responses(exchanges, options.least)
        if len(candidates) < 3:
            raise RegardError(
                f"Only {len(candidates)} replies occur in at least {options.least} conversations. Lower --least, or "
                "add conversations."
            )
        write_responses(path, assign_intents(candidates))
    if not (directory / "sensitive.yaml").is_file():
        durable.write(directory / "sensitive.yaml", built_in_list())
    responses = read_responses(path)
    intents = len({response.intent for response in responses})
    report(f"{len(responses):,} responses with {intents:,} intents: {path}")
    return responses


def _write_data(data: Path, directory: Path, exchanges: Sequence[Exchange], responses: Sequence[Response]) -> None:
    """Write the training files of all members."""
    known = {response.normal for response in responses}
    pairs = [(exchange.message.lower(), normalise_response(exchange.reply)) for exchange in exchanges]
    inside, others, validation = _scorer_pairs(pairs, known)
    mixed = [*inside, *others]
    random.Random(SEED).shuffle(mixed)
    _write_pairs(data / "pairs.tsv", mixed)
    _write_pairs(data / "responses.tsv", inside)
    _write_pairs(data / "validation.tsv", validation)
    _write_lines(data / "replies.txt", (reply for _, reply in [*mixed, *validation]))
    _write_lines(data / "trigger.txt", _trigger_lines(pairs, known))
    topics = read_topics(directory / "sensitive.yaml") or parse_topics(built_in_list())
    examples = [example for topic in topics for example in topic.examples]
    _write_lines(data / "sensitivity.txt", _sensitivity_lines(examples, pairs))


def _scorer_pairs(pairs: Sequence[Pair], known: set[str]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Return what the scorer learns from: pairs whose reply is a response, others, and pairs for its validation.

    There are `OTHERS` times as many others, with short replies. They teach it language, so that it can score responses
    that people add by hand. The validation pairs are a twentieth of those whose reply is a response.
    """
    inside = [pair for pair in pairs if pair[1] in known]
    others = [pair for pair in pairs if pair[1] and pair[1] not in known and len(pair[1].split()) <= LONGEST]
    random.Random(SEED).shuffle(inside)
    random.Random(SEED).shuffle(others)
    held_out = max(1, min(VALIDATED_ON, len(inside) // 20))
    return inside[held_out:], others[: max(OTHERS * len(inside), FEWEST)], inside[:held_out]


def _trigger_lines(pairs: Sequence[Pair], known: set[str]) -> Iterator[str]:
    """Yield labelled messages: all that were answered by a response, and twice as many others."""
    wanted = [message for message, reply in pairs if reply in known]
    others = [message for message, reply in pairs if reply not in known]
    random.Random(SEED).shuffle(others)
    lines = [f"{WANTED} {message}" for message in wanted]
    lines += [f"{UNWANTED} {message}" for message in others[: max(2 * len(wanted), 1)]]
    random.Random(SEED).shuffle(lines)
    yield from lines


def _sensitivity_lines(examples: Sequence[str], pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield labelled messages: the examples of the list, several times, and ordinary messages."""
    ordinary = [message for message, _ in pairs]
    random.Random(SEED).shuffle(ordinary)
    ordinary = ordinary[: 20 * max(1, len(examples))]
    repeats = max(1, len(ordinary) // (4 * max(1, len(examples))))
    lines = [f"{LABELS[0]} {message}" for message in ordinary]
    lines += [f"{LABELS[1]} {example}" for example in examples for _ in range(repeats)]
    random.Random(SEED).shuffle(lines)
    yield from lines


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    durable.write(path, "".join(f"{line}\n" for line in lines))


def _write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    _write_lines(path, (f"{message}\t{reply}" for message, reply in pairs))


def _write_conversations(path: Path, exchanges: Sequence[Exchange]) -> None:
    rows = ({"message": exchange.message, "reply": exchange.reply} for exchange in exchanges)
    durable.write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _config(name: str, data: Path, options: BuildOptions, count: int) -> RunConfig:
    """Return the configuration of a member, or of the scorer's first phase."""
    if name in (START, "scorer"):
        return _scorer_config(data, options, count, second=name == "scorer")
    return (
        _language_config(data, options, count) if name == "language" else _classifier_config(name, data, options, count)
    )


def _vocabulary(count: int) -> dict[str, Any]:
    return {"kind": "bpe", "lower": True, **({"vocabulary": VOCABULARY} if count > MANY else {})}


def _scorer_model(options: BuildOptions, count: int) -> dict[str, Any]:
    if options.model == "transformer":
        return {"width": 128, "encoder": {"kind": "transformer"}, "decoder": {"kind": "transformer"}}
    side = {"kind": "rnn", "cell": "lstm", "layers": 1}
    return {"width": 256 if count > MANY else 128, "encoder": side, "decoder": side, "join": {"kind": "attention"}}


def _scorer_config(data: Path, options: BuildOptions, count: int, *, second: bool) -> RunConfig:
    """Return the configuration of the scorer's first or second phase.

    The responses are few and are learned by heart within some epochs, so dropout is higher in the second phase, and the
    best validation decides.
    """
    steps = options.steps
    return from_mapping(
        {
            "data": {
                "train": {"tsv": str(data / ("responses.tsv" if second else "pairs.tsv"))},
                "validation": {"tsv": str(data / "validation.tsv")},
                "cleaning": {"max_length": 80, "max_ratio": 100.0, "duplicates": "keep"},
            },
            "text": {} if second else {"tokenizer": _vocabulary(count)},
            "model": {
                **_scorer_model(options, count),
                "dropout": 0.4 if second else 0.2,
                **({"start_from": str(data.parent / START)} if second else {}),
            },
            "training": {
                "steps": steps,
                "batch_tokens": 2048,
                "label_smoothing": 0.0,
                "validate_every": max(1, steps // (20 if second else 5)),
                "validation_sample": 20,
                "schedule": {"kind": "cosine", "warmup": min(200, max(1, steps // (20 if second else 10)))},
                "optimizer": {"learning_rate": 0.0015 if second else 0.002},
                "early_stopping": {"metric": "loss", "patience": 6 if second else 100},
            },
        }
    )


def _language_config(data: Path, options: BuildOptions, count: int) -> RunConfig:
    """Return the configuration of the language model of replies."""
    steps = max(1, options.steps // 3)
    return from_mapping(
        {
            "task": {"kind": "language-model", "length": 64},
            "data": {"train": {"text": str(data / "replies.txt")}, "held_out": max(1, min(1000, count // 20))},
            "text": {"tokenizer": _vocabulary(count)},
            "model": {"width": 128, "dropout": 0.1, "decoder": {"kind": "rnn", "cell": "lstm", "layers": 1}},
            "training": {
                "steps": steps,
                "batch_tokens": 2048,
                "label_smoothing": 0.0,
                "validate_every": max(1, steps // 3),
                "schedule": {"kind": "cosine", "warmup": min(100, max(1, steps // 10))},
                "optimizer": {"learning_rate": 0.003},
            },
        }
    )


def _classifier_config(name: str, data: Path, options: BuildOptions, count: int) -> RunConfig:
    """Return the configuration of the trigger or of the sensitivity classifier.

    Both start from the scorer's encoder, which has read many more messages than they have labels for.
    """
    steps = max(1, options.steps // 6)
    model = _scorer_model(options, count)
    return from_mapping(
        {
            "task": {"kind": "classification"},
            "data": {
                "train": {"labelled": str(data / f"{name}.txt")},
                "held_out": max(1, min(500, count // 20)),
                "cleaning": {"max_length": 80, "duplicates": "keep"},
            },
            "model": {
                "width": model["width"],
                "encoder": model["encoder"],
                "dropout": 0.4,
                "start_from": str(data.parent / "scorer"),
            },
            "training": {
                "steps": steps,
                "batch_tokens": 2048,
                "validate_every": max(1, steps // 8),
                "schedule": {"kind": "cosine", "warmup": min(30, max(1, steps // 10))},
                "optimizer": {"learning_rate": 0.001},
            },
        }
    )


def _quantiles(directory: Path, exchanges: Sequence[Exchange]) -> list[float]:
    """Return the quantiles of the trigger's probability on messages."""
    run = load_run(directory / "trigger")
    messages = [exchange.message.lower() for exchange in exchanges]
    random.Random(SEED).shuffle(messages)
    shares = [label_probability(run, message, WANTED) for message in messages[:CALIBRATED_ON]]
    return [float(share) for share in np.quantile(shares, np.linspace(0.0, 1.0, 101))]
