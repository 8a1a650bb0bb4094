"""Build suggested replies from conversations: responses, scorer, language model, trigger and sensitivity classifier.

The scorer learns in two phases: first from all short replies, which teach it language and what messages are about
(`start`); then only from replies that are responses, until the loss on held-out ones of these no longer falls. Every
step leaves its result in the directory, so that an interrupted build continues where it stopped.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.reply.conversations import Exchange, read_exchanges
from regard.reply.intents import assign_intents
from regard.reply.language import main_language
from regard.reply.members import MEMBERS, START, BuildOptions, member_config
from regard.reply.preprocessing import normalise_response
from regard.reply.response_classifier import ResponseClassifier
from regard.reply.responses import LONGEST, Response, collect_responses, read_responses, write_responses
from regard.reply.scorer import Scorer
from regard.reply.sensitivity import LABELS, THRESHOLDS, built_in_list, find_topic, parse_topics, read_topics
from regard.reply.suggester import KIND, OLD_THRESHOLD, WANTED, label_probability
from regard.runs.bundle import Bundle, is_bundle
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.training.loop import train

UNWANTED = "none"
BUILD = "build.json"
"""What a build was begun with, so that it is continued with the same."""
ALPHA = 0.1
"""Weight of log P(response). On validation pairs of the Self-dialogue corpus, more costs rank, and less suggests fewer
different responses."""
RATE = 0.5
SEED = 1
OTHERS = 8
FEWEST = 20
"""Exchanges below which nothing can be learned."""
LOOKED_AT = 500
"""Messages from which the language is identified."""
CALIBRATED_ON = 2000
"""Held-out messages on which the trigger's probabilities are ranked."""

ORDINARY = 20
"""Ordinary messages for each example of a sensitive one."""
COMMON = 4
"""The examples are repeated until ordinary messages are so many times as frequent."""
UNSEEN = 8
"""One of so many examples is for validation."""
FALSE_ALARMS = 0.015
"""Share of ordinary messages that the classifier of sensitive messages may take for sensitive."""

WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Weights of the classifier that are tried."""
WEIGHED_ON = 300
"""Validation pairs on which they are tried, at most."""
VALIDATED_ON = 1000
"""Pairs on which the loss of the scorer is measured, at most."""

Report = Callable[[str], None]
Pair = tuple[str, str]
"""A message and its reply, both normalised."""


def build(
    conversations: Path,
    directory: Path,
    options: BuildOptions,
    *,
    report: Report,
    progress: Progress | None = None,
) -> Bundle:
    """Build a bundle from conversations, or continue an interrupted build."""
    made_from = {"conversations": conversations.name, **asdict(options)}
    _check_directory(directory, made_from)
    exchanges = _read(conversations, progress)
    directory.mkdir(parents=True, exist_ok=True)
    durable.write(directory / BUILD, json.dumps(made_from, indent=2) + "\n")
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
        train(Run.open(run).config if started else member_config(name, data, options, len(rest)), run, resume=started)
    settings = {
        "alpha": ALPHA,
        "rate": RATE,
        "weight": _weight(directory, responses),
        "language": main_language(exchange.message for exchange in rest[:LOOKED_AT]),
        "quantiles": _quantiles(directory, held_out or rest),
        "sensitive": _sensitive_threshold(directory, rest),
    }
    return Bundle.create(directory, KIND, list(MEMBERS), settings)


def _check_directory(directory: Path, made_from: dict[str, Any]) -> None:
    """Raise an error if a directory cannot be built in, or was begun with something else."""
    path = directory / BUILD
    if is_bundle(directory):
        raise UsageError(f"{directory} is built already. Choose another directory with --run, or remove it.")
    if path.is_file():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise UsageError(f"{path} is damaged. Choose another directory with --run.") from None
        for name, value in made_from.items():
            if found.get(name) != value:
                raise UsageError(
                    f"{directory} was begun with {name}={found.get(name)}, and not {value}. Continue with the same "
                    "options, or choose another directory with --run."
                )
        return
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty. Choose another directory with --run.")


def _read(conversations: Path, progress: Progress | None) -> list[Exchange]:
    exchanges = []
    for exchange in read_exchanges(conversations):
        exchanges.append(exchange)
        if progress and len(exchanges) % 1000 == 0:
            progress("reading exchanges", len(exchanges), None)
    answered = sum(bool(exchange.reply) for exchange in exchanges)
    if answered < FEWEST:
        raise RegardError(
            f"{conversations} has {answered} messages with replies. Suggested replies need thousands to be "
            f"useful, and {FEWEST} at the very least."
        )
    different = len({exchange.message.lower() for exchange in exchanges})
    if different < FEWEST:
        raise RegardError(
            f"{conversations} has {different} different messages. Suggested replies need thousands to be useful, and "
            f"{FEWEST} at the very least."
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
    training, held_out = _sensitivity_lines(examples, pairs)
    _write_lines(data / "sensitivity.txt", iter(training))
    _write_lines(data / "sensitivity-validation.txt", iter(held_out))


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
    """Yield labelled messages: all that were answered by a response, and twice as many others, where there are any."""
    wanted = [message for message, reply in pairs if reply in known]
    others = [message for message, reply in pairs if reply not in known]
    if not others:  # a table of messages and usual replies: nobody answered the replies
        others = list(dict.fromkeys(reply for _, reply in pairs))
    random.Random(SEED).shuffle(others)
    lines = [f"{WANTED} {message}" for message in wanted]
    lines += [f"{UNWANTED} {message}" for message in others[: max(2 * len(wanted), 1)]]
    random.Random(SEED).shuffle(lines)
    yield from lines


def _sensitivity_lines(examples: Sequence[str], pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    """Return labelled messages for training and for validation: the examples of the list, and ordinary messages.

    Validation has no example of the training, so that it says how well messages are recognised that nobody wrote down.
    """
    texts = list(dict.fromkeys(examples))
    random.Random(SEED).shuffle(texts)
    ordinary = list(dict.fromkeys(message for message, _ in pairs))
    random.Random(SEED).shuffle(ordinary)
    ordinary = ordinary[: ORDINARY * max(1, len(texts))]
    few, some = len(texts) // UNSEEN, len(ordinary) // UNSEEN
    repeats = max(1, len(ordinary) // (COMMON * max(1, len(texts))))
    parts = []
    for chosen, others in ((repeats * texts[few:], ordinary[some:]), (texts[:few], ordinary[:some])):
        lines = [f"{LABELS[1]} {text}" for text in chosen] + [f"{LABELS[0]} {text}" for text in others]
        random.Random(SEED).shuffle(lines)
        parts.append(lines)
    return parts[0], parts[1]


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    durable.write(path, "".join(f"{line}\n" for line in lines))


def _write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    _write_lines(path, (f"{message}\t{reply}" for message, reply in pairs))


def _write_conversations(path: Path, exchanges: Sequence[Exchange]) -> None:
    rows = ({"message": exchange.message, "reply": exchange.reply} for exchange in exchanges)
    durable.write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _weight(directory: Path, responses: Sequence[Response]) -> float:
    """Return the weight of the classifier with which real replies of validation pairs are ranked best, by MRR."""
    index = {response.normal: number for number, response in enumerate(responses)}
    lines = (directory / "data" / "validation.tsv").read_text(encoding="utf-8").splitlines()[:WEIGHED_ON]
    pairs = [(message, index[reply]) for message, reply in (line.split("\t") for line in lines) if reply in index]
    scorer = Scorer(load_run(directory / "scorer"), list(index))
    classifier = ResponseClassifier(load_run(directory / "classifier"), list(index))
    ranks: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
    for message, wanted in pairs:
        first, second = scorer.score_by_trie(message), classifier.log_probs(message)
        for weight in WEIGHTS:
            scores = first + weight * second
            ranks[weight].append(1 + float(np.sum(scores > scores[wanted])))
    return max(WEIGHTS, key=lambda weight: float(np.mean(1 / np.array(ranks[weight]))))


def _quantiles(directory: Path, exchanges: Sequence[Exchange]) -> list[float]:
    """Return the quantiles of the trigger's probability on messages."""
    run = load_run(directory / "trigger")
    messages = [exchange.message.lower() for exchange in exchanges]
    random.Random(SEED).shuffle(messages)
    shares = [label_probability(run, message, WANTED) for message in messages[:CALIBRATED_ON]]
    return [float(share) for share in np.quantile(shares, np.linspace(0.0, 1.0, 101))]


def _sensitive_threshold(directory: Path, exchanges: Sequence[Exchange]) -> float:
    """Return the probability that a share `FALSE_ALARMS` of ordinary messages reaches, within `THRESHOLDS`.

    The messages are not those of the training, and not those in which the list finds a topic.
    """
    run, topics = load_run(directory / "sensitivity"), read_topics(directory / "sensitive.yaml")
    lines = (directory / "data" / "sensitivity.txt").read_text(encoding="utf-8").splitlines()
    trained = {line.split(" ", 1)[-1] for line in lines}
    messages = list(dict.fromkeys(exchange.message.lower() for exchange in exchanges))
    random.Random(SEED).shuffle(messages)
    chosen = (message for message in messages if message not in trained and not find_topic(topics, message))
    shares = [label_probability(run, message, LABELS[1]) for message in islice(chosen, CALIBRATED_ON)]
    return float(np.clip(np.quantile(shares, 1 - FALSE_ALARMS), *THRESHOLDS)) if shares else OLD_THRESHOLD
