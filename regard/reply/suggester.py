"""From a message to three suggestions, or to none with the reason."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import RegardError, UsageError
from regard.reply.feedback import read_feedback
from regard.reply.filters import is_intimate
from regard.reply.language import identify_language
from regard.reply.preprocessing import LONGEST_MESSAGE, clean_chat, clean_mail, join_lines
from regard.reply.quotations import remove_quotations
from regard.reply.responses import read_responses
from regard.reply.scorer import Reading, Scorer, response_priors
from regard.reply.selection import Scored, choose_suggestions
from regard.reply.sensitivity import find_topic, read_topics
from regard.runs.bundle import Bundle
from regard.tasks.loaded import LoadedRun, load_run
from regard.tasks.results import Label
from regard.text.languages import language_name

KIND = "reply"
CANDIDATES = 16
"""Responses that are scored by both models."""
OPPOSITES = 8
"""Responses of the opposite polarity that the second search returns."""
OLD_THRESHOLD = 0.35
"""Probability from which messages are sensitive in bundles that were built without one of their own."""
WANTED = "reply"
"""The label of messages that a short reply answers."""


@dataclass(frozen=True)
class Suggestions:
    """Up to three suggestions for a message; without any, the reason."""

    suggestions: tuple[Scored, ...]
    reason: str | None
    message: str
    """The message as the models read it."""
    probability: float | None
    """Probability that a short reply is wanted, if the trigger was asked."""
    candidates: tuple[Scored, ...] = ()
    """The best responses before diversity."""

    @property
    def texts(self) -> list[str]:
        """The suggested texts."""
        return [scored.response.text for scored in self.suggestions]

    def __repr__(self) -> str:
        return f"Suggestions({self.texts})" if self.suggestions else f"Suggestions(none: {self.reason})"

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def to_json(self, *, explain: bool = False) -> dict[str, Any]:
        """Return plain data; with `explain` also everything that led to the suggestions."""
        plain: dict[str, Any] = {"suggestions": [_plain(scored) for scored in self.suggestions], "reason": self.reason}
        if explain:
            plain |= {
                "message": self.message,
                "reply_wanted": self.probability,
                "candidates": [_plain(scored) for scored in self.candidates],
            }
        return plain


def _plain(scored: Scored) -> dict[str, Any]:
    return {**asdict(scored.response), "score": scored.score, "log_prob": scored.log_prob, "prior": scored.prior}


class Suggester:
    """A bundle for suggested replies, loaded: `suggester("Are you coming?")` gives `Suggestions`."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.directory = bundle.directory
        self.settings = ReplySettings.of(bundle)
        self.responses = read_responses(self.directory / "responses.yaml")
        self.topics = read_topics(self.directory / "sensitive.yaml")
        self.scorer = Scorer(
            load_run(bundle.member("scorer")),
            [response.normal for response in self.responses],
            load_run(bundle.member("classifier")) if "classifier" in bundle.record.members else None,
            weight=self.settings.weight,
        )
        self._by_polarity: dict[str, tuple[list[int], Scorer]] = {}

    @classmethod
    def open(cls, directory: Path | str) -> "Suggester":
        """Open a bundle that `regard reply build` has made."""
        return cls(Bundle.open(directory, KIND))

    def __repr__(self) -> str:
        return f"<regard suggested replies {self.directory}: {len(self.responses):,} responses>"

    @cached_property
    def priors(self) -> NDArray[np.float64]:
        """log P of each response under the language model."""
        run = load_run(self.bundle.member("language"))
        return response_priors(run, [response.normal for response in self.responses])

    @cached_property
    def bonuses(self) -> NDArray[np.float64]:
        """What earlier choices of the user add to the score of each response; zeros without feedback."""
        return read_feedback(self.directory / "feedback.jsonl").bonuses(self.responses)

    @cached_property
    def trigger(self) -> LoadedRun:
        """The classifier that decides whether a short reply is wanted."""
        return load_run(self.bundle.member("trigger"))

    @cached_property
    def sensitivity(self) -> LoadedRun:
        """The classifier of sensitive messages."""
        return load_run(self.bundle.member("sensitivity"))

    def prepare(self) -> None:
        """Load every member now, so that the first message need not wait."""
        _ = self.priors, self.bonuses, self.trigger, self.sensitivity
        if self.settings.language:
            identify_language("a message that is long enough to be identified")

    def __call__(self, message: Any, *, rate: float | None = None) -> Any:
        """Return the suggestions for a message, or for each of a list of messages."""
        if isinstance(message, list):
            return [self(one, rate=rate) for one in message]
        if not isinstance(message, str):
            raise UsageError(f"The message is of type {type(message).__name__}. It must be a text.")
        return self.suggest(clean_chat(message), rate=rate, original=message)

    def suggest_for_mail(self, text: str, *, rate: float | None = None) -> Suggestions:
        """Return the suggestions for the text of a mail, from which quotations and the signature are removed."""
        return self.suggest(clean_mail(text), rate=rate, original=remove_quotations(text))

    def suggest(
        self, message: str, *, rate: float | None = None, diverse: bool = True, original: str = ""
    ) -> Suggestions:
        """Return the suggestions for a cleaned message.

        Args:
            message: The message as `clean_chat` or `clean_mail` return it.
            rate: The share of messages that get suggestions, between 0 and 1; 1 asks no trigger.
            diverse: Whether the suggestions differ in intent and polarity.
            original: The message before it was cleaned. The list of sensitive topics reads it, too, because capitalised
                words such as Alzheimer become placeholders.
        """
        least = self.settings.threshold(rate)
        message = message.lower()
        reason, wanted = self.consider(message, original)
        if reason:
            return Suggestions((), reason, message, None)
        if wanted < least:
            return Suggestions((), f"A short reply is not likely to be wanted ({wanted:.0%}).", message, wanted)
        reading = self.scorer.read(message)
        ranked = self._rescore(message, self.scorer.rank_read(reading, CANDIDATES))
        chosen = choose_suggestions(
            ranked, lambda polarity: self._of_polarity(message, reading, polarity), diverse=diverse
        )
        return Suggestions(tuple(chosen), None, message, wanted, tuple(ranked))

    def consider(self, message: str, original: str = "") -> tuple[str | None, float]:
        """Return why a cleaned message must not get suggestions, or `None`, and the trigger's probability.

        The probability is −∞ if there is a reason against suggestions.
        """
        message = message.lower()
        if not message.strip():
            reason: str | None = "The message is empty."
        elif len(original) > LONGEST_MESSAGE:
            reason = f"The message is longer than {LONGEST_MESSAGE:,} characters, which a short reply does not answer."
        else:
            reason = self._refusal(message, join_lines(original))
        return (reason, -math.inf) if reason else (None, self.probability(message))

    def rank(self, message: str, count: int = CANDIDATES) -> list[Scored]:
        """Return the best responses for a cleaned message in lower case, best first."""
        return self._rescore(message, self.scorer.rank(message, count))

    def probability(self, message: str) -> float:
        """Return the probability that a short reply is wanted."""
        return label_probability(self.trigger, message, WANTED)

    def _refusal(self, message: str, original: str) -> str | None:
        """Return why a message must not get suggestions; `None` if it may."""
        language = identify_language(message) if self.settings.language else None
        if language is not None and language != self.settings.language:
            names = language_name(language), language_name(self.settings.language or "")
            return f"The message is in {names[0]}, but the responses are in {names[1]}."
        if found := find_topic(self.topics, message) or find_topic(self.topics, original):
            return f"The message is sensitive ({found[0]}: “{found[1]}”)."
        share = label_probability(self.sensitivity, message, "sensitive")
        return (
            f"The message is sensitive (with a probability of {share:.0%})."
            if share >= self.settings.sensitive
            else None
        )

    def _rescore(self, message: str, found: Iterable[tuple[int, float]]) -> list[Scored]:
        """Return responses by log P(response | message) − α log P(response), best first."""
        intimate = is_intimate(message)
        scored = [
            Scored(
                self.responses[index],
                log_prob - self.settings.alpha * float(self.priors[index]) + float(self.bonuses[index]),
                log_prob,
                float(self.priors[index]),
            )
            for index, log_prob in found
            if intimate or not is_intimate(self.responses[index].text)
        ]
        return sorted(scored, key=lambda one: -one.score)

    def _of_polarity(self, message: str, reading: Reading, polarity: str) -> list[Scored]:
        """Return the best responses of a polarity: the second search."""
        if polarity not in self._by_polarity:
            indices = [index for index, response in enumerate(self.responses) if response.polarity == polarity]
            self._by_polarity[polarity] = indices, self.scorer.among(indices)
        indices, scorer = self._by_polarity[polarity]
        if not indices:
            return []
        return self._rescore(
            message, ((indices[output], score) for output, score in scorer.rank_read(reading, OPPOSITES))
        )


def label_probability(run: LoadedRun, message: str, label: str) -> float:
    """Return the probability that a classifier gives to a label."""
    result = run.predict(message)
    return float(result.probabilities.get(label, 0.0)) if isinstance(result, Label) else 0.0


@dataclass(frozen=True)
class ReplySettings:
    """The settings of a bundle."""

    alpha: float
    """Weight of log P(response) that is subtracted: more gives less generic suggestions."""
    rate: float
    """Share of messages that get suggestions by default."""
    quantiles: tuple[float, ...]
    """Quantiles 0, 1, …, 100 % of the trigger's probability on held-out messages."""
    language: str | None = None
    """The code of the language of the conversations; `None` if it is not known."""
    weight: float = 0.0
    """Weight of the classifier in the scorer; that of the sequence-to-sequence run is 1."""
    sensitive: float = OLD_THRESHOLD
    """Probability from which the classifier takes a message for sensitive."""

    @classmethod
    def of(cls, bundle: Bundle) -> "ReplySettings":
        """Read the settings of a bundle strictly."""
        found = bundle.record.settings
        quantiles = found.get("quantiles")
        numbers = [found.get("alpha"), found.get("rate"), *(quantiles if isinstance(quantiles, list) else [None])]
        if not all(isinstance(number, int | float) and np.isfinite(number) for number in numbers) or len(numbers) < 4:
            raise RegardError(
                f"{bundle.directory / 'bundle.json'} lacks settings of suggested replies. Build it again."
            )
        language, weight = found.get("language"), found.get("weight", 0.0)
        if not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            raise RegardError(f"{bundle.directory / 'bundle.json'} has the weight {weight}. It must be 0 or more.")
        sensitive = found.get("sensitive", OLD_THRESHOLD)
        if not isinstance(sensitive, int | float) or not 0 <= sensitive <= 1:
            raise RegardError(
                f"{bundle.directory / 'bundle.json'} has {sensitive} for `sensitive`. It must be between 0 and 1."
            )
        return cls(
            float(numbers[0]),
            float(numbers[1]),
            tuple(float(number) for number in numbers[2:]),
            language if isinstance(language, str) else None,
            float(weight),
            float(sensitive),
        )

    def threshold(self, rate: float | None = None) -> float:
        """Return the probability from which a message gets suggestions, so that a share `rate` of messages does."""
        rate = self.rate if rate is None else rate
        if not 0.0 <= rate <= 1.0:
            raise UsageError(f"The rate is {rate}. It must be between 0 and 1.")
        if rate in (0.0, 1.0):
            return 2.0 if rate == 0.0 else -1.0
        return float(np.interp(1.0 - rate, np.linspace(0.0, 1.0, len(self.quantiles)), self.quantiles))
