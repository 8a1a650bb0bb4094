"""The configurations of a bundle's members."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.loading import from_mapping
from regard.config.run import RunConfig
from regard.foundation.errors import UsageError

START = "start"
"""The run of the scorer's first phase, which is no member: it is not needed after the build."""
MEMBERS = ("scorer", "classifier", "language", "trigger", "sensitivity")
VOCABULARY = 4000
MANY = 100_000
"""Exchanges that support a vocabulary of this size; fewer have the vocabulary that they support."""
LEAST_STEPS = 60
"""Steps without which a classifier has learned nothing."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What a build depends on, in addition to the conversations."""

    least: int = 5
    """Conversations in which a reply must occur to become a response."""
    hold_out: float = 0.1
    """Share of conversations that are kept for evaluation."""
    model: str = "lstm"
    """The scorer: `lstm`, as in the paper, or `transformer`."""
    steps: int = 2500
    """Training steps of the scorer's first phase; the others need fewer."""

    def __post_init__(self) -> None:
        if self.least < 1:
            raise UsageError(f"least is {self.least}. It must be at least 1.")
        if not 0.0 <= self.hold_out < 0.9:
            raise UsageError(f"hold_out is {self.hold_out}. It must be between 0 and 0.9.")
        if self.model not in ("lstm", "transformer"):
            raise UsageError(f"model is {self.model[:40]!r}. It must be lstm or transformer.")
        if self.steps < 1:
            raise UsageError(f"steps is {self.steps}. It must be at least 1.")


def member_config(name: str, data: Path, options: BuildOptions, count: int) -> RunConfig:
    """Return the configuration of a member, or of the scorer's first phase.

    Args:
        name: The name of the member.
        data: The directory of the training files.
        options: The options of the build.
        count: The number of exchanges to learn from.
    """
    if name in (START, "scorer"):
        return _scorer_config(data, options, count, second=name == "scorer")
    if name == "classifier":
        return _response_classifier_config(data, options)
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
    steps = max(1, 3 * options.steps // 5) if second else options.steps
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


def _response_classifier_config(data: Path, options: BuildOptions) -> RunConfig:
    """Return the configuration of the classifier whose labels are responses: a bag of words.

    It ignores the order of words and starts from nothing, so that its errors differ from those of the scorer.
    """
    steps = max(1, 2 * options.steps // 5)
    return from_mapping(
        {
            "task": {"kind": "classification"},
            "data": {
                "train": {"tsv": str(data / "responses.tsv")},
                "validation": {"tsv": str(data / "validation.tsv")},
                "cleaning": {"max_length": 80, "duplicates": "keep"},
            },
            "text": {"tokenizer": {"kind": "words", "lower": True}},
            "model": {"width": 256, "dropout": 0.5, "encoder": {"kind": "bag"}},
            "training": {
                "steps": steps,
                "batch_tokens": 2048,
                "label_smoothing": 0.0,
                "validate_every": max(1, steps // 10),
                "validation_sample": 20,
                "schedule": {"kind": "cosine", "warmup": min(50, max(1, steps // 10))},
                "optimizer": {"learning_rate": 0.003},
                "early_stopping": {"metric": "loss", "patience": 3},
            },
        }
    )


def _language_config(data: Path, options: BuildOptions, count: int) -> RunConfig:
    """Return the configuration of the language model of replies."""
    steps = max(1, options.steps // 5)
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
    steps = max(options.steps // 6, min(options.steps, LEAST_STEPS))
    model = _scorer_model(options, count)
    separate = data / f"{name}-validation.txt"
    return from_mapping(
        {
            "task": {"kind": "classification"},
            "data": {
                "train": {"labelled": str(data / f"{name}.txt")},
                **(
                    {"validation": {"labelled": str(separate)}}
                    if separate.is_file() and separate.stat().st_size
                    else {"held_out": max(1, min(500, count // 20))}
                ),
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
