"""Evaluate suggested replies on held-out conversations, next to simple baselines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.reply.conversations import Exchange, read_exchanges
from regard.reply.measures import Ranking, Suggested, Trigger, summarise
from regard.reply.preprocessing import normalise_response
from regard.reply.scorer import Scorer
from regard.reply.selection import SHOWN, Scored
from regard.reply.suggester import Suggester

T = TypeVar("T")
SCORER, FREQUENCY, BAG_OF_WORDS = "scorer", "frequency", "bag of words"
BASELINES = (FREQUENCY, BAG_OF_WORDS)
MOST = 3000
"""Messages that get suggestions, so that an evaluation takes minutes; chosen evenly."""
PENALISED = 200
"""Messages for which all responses are scored, which is slow; chosen evenly."""


def evaluate(
    suggester: Suggester, conversations: Path, *, most: int = MOST, progress: Progress | None = None
) -> dict[str, Any]:
    """Return rankings and suggestions measured on conversations that were not trained on."""
    exchanges = [exchange for exchange in read_exchanges(conversations) if exchange.reply]
    index = {response.normal: number for number, response in enumerate(suggester.responses)}
    known = [exchange for exchange in exchanges if normalise_response(exchange.reply) in index]
    if not known:
        raise RegardError(f"No reply in {conversations} is in responses.yaml, so nothing can be ranked.")
    true = [index[normalise_response(exchange.reply)] for exchange in known]
    rankings = _rankings(suggester, known, true, progress)
    others = [name for name in rankings if name != SCORER and len(rankings[name].ranks) == len(known)]
    share = len(known) / len(exchanges)
    return {
        "conversations": str(conversations),
        "exchanges": len(exchanges),
        "share_in_responses": share,
        "responses": len(suggester.responses),
        "ranked": len(known),
        "ranking": {name: _facts(ranking) for name, ranking in rankings.items()},
        "advantage": {name: rankings[SCORER].advantage(rankings[name]) for name in others},
        **_suggesting(suggester, _spread(known, most), _spread(exchanges, most), share, progress),
    }


def _facts(ranking: Ranking) -> dict[str, Any]:
    low, high = ranking.interval()
    return {
        "messages": len(ranking.ranks),
        "mrr": ranking.mrr,
        "interval": [low, high],
        **{f"p@{k}": ranking.precision_at(k) for k in (1, 3, 10)},
    }


def _rankings(
    suggester: Suggester, known: Sequence[Exchange], true: Sequence[int], progress: Progress | None
) -> dict[str, Ranking]:
    """Return the ranks of real replies by the scorer and its experts, with α, and by the baselines."""
    scorers = {SCORER: suggester.scorer}
    if suggester.scorer.classifier:
        scorers["sequence-to-sequence alone"] = Scorer(suggester.scorer.run, suggester.scorer.responses)
    found = {}
    for name, scorer in scorers.items():
        ranks = []
        for number, (exchange, wanted) in enumerate(zip(known, true, strict=True), start=1):
            ranks.append(scorer.rank_of(exchange.message.lower(), wanted))
            if progress:
                progress(f"ranking real replies, {name}", number, len(known))
        found[name] = Ranking(np.array(ranks))
    if classifier := suggester.scorer.classifier:
        rows = (classifier.log_probs(exchange.message.lower()) for exchange in known)
        found["classifier alone"] = Ranking(
            np.array([_rank(row, wanted) for row, wanted in zip(rows, true, strict=True)])
        )
    counts = np.array([response.count for response in suggester.responses], dtype=float)
    return {
        **found,
        "scorer, generic responses penalised": _penalised(suggester, known, true, progress),
        FREQUENCY: Ranking(np.array([_rank(counts, wanted) for wanted in true])),
        **_bag_of_words(suggester, known, true),
    }


def _penalised(
    suggester: Suggester, known: Sequence[Exchange], true: Sequence[int], progress: Progress | None
) -> Ranking:
    """Return the ranks of some real replies by the score from which suggestions are chosen."""
    ranks = []
    few = _spread(list(zip(known, true, strict=True)), PENALISED)
    for number, (exchange, wanted) in enumerate(few, start=1):
        scores = suggester.scorer.score_by_trie(exchange.message.lower())
        ranks.append(_rank(scores - suggester.settings.alpha * suggester.priors, wanted))
        if progress:
            progress("ranking all responses", number, len(few))
    return Ranking(np.array(ranks))


def _bag_of_words(suggester: Suggester, known: Sequence[Exchange], true: Sequence[int]) -> dict[str, Ranking]:
    """Return the ranks by logistic regression on words and word pairs, where scikit-learn is installed."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import SGDClassifier
    except ImportError:
        return {}
    index = {response.normal: number for number, response in enumerate(suggester.responses)}
    paths = [suggester.directory / "data" / name for name in ("pairs.tsv", "validation.tsv")]
    rows = [line.split("\t") for path in paths if path.is_file() for line in path.read_text("utf-8").splitlines()]
    if not rows:
        return {}
    pairs = [(row[0], index[row[1]]) for row in rows if len(row) == 2 and row[1] in index]
    vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    sources = vectors.fit_transform([message for message, _ in pairs])
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=12, tol=None, random_state=1, n_jobs=2)
    model.fit(sources, [number for _, number in pairs])
    columns = {int(number): column for column, number in enumerate(model.classes_)}
    scores = model.decision_function(vectors.transform([exchange.message.lower() for exchange in known]))
    ranks = [
        _rank(row, columns[wanted]) if wanted in columns else np.inf for row, wanted in zip(scores, true, strict=True)
    ]
    return {BAG_OF_WORDS: Ranking(np.array(ranks))}


def _rank(scores: Any, wanted: int) -> float:
    """Return the rank of an index, from 1; ties count half."""
    higher = float(np.sum(scores > scores[wanted]))
    return higher + 1 + (float(np.sum(scores == scores[wanted])) - 1) / 2


@dataclass(frozen=True)
class _Answer:
    """What a message gets without the trigger, diverse or not."""

    diverse: Suggested
    best: Suggested
    wanted: float
    """The trigger's probability."""


def _suggesting(
    suggester: Suggester,
    known: Sequence[Exchange],
    sampled: Sequence[Exchange],
    share: float,
    progress: Progress | None,
) -> dict[str, Any]:
    """Return the measures of suggestions, with and without diversity and trigger.

    Intents are judged on messages whose real reply is a response; coverage is measured on messages in general. Both
    together give what is right among all messages, of which `share` have such a reply.
    """
    intents = {response.normal: response.intent for response in suggester.responses}
    judged = []
    for number, exchange in enumerate(known, start=1):
        judged.append(_answer(suggester, exchange, intents[normalise_response(exchange.reply)]))
        if progress:
            progress("suggesting", number, len(known))
    wanted, reasons = [], Counter[str]()
    for number, exchange in enumerate(sampled, start=1):
        reason, probability = suggester.consider(exchange.message)
        wanted.append(probability)
        if reason:
            reasons[reason.split("(")[0].strip()] += 1
        if progress:
            progress("asking the trigger", number, len(sampled))
    found: dict[str, Any] = {}
    for trigger in (False, True):
        least = suggester.settings.threshold(None if trigger else 1.0)
        coverage = float(np.mean([probability >= least for probability in wanted]))
        for diverse in (True, False):
            rows = [_triggered(answer, least, diverse=diverse) for answer in judged]
            name = f"{'diverse' if diverse else 'best three'}, {'with' if trigger else 'without'} trigger"
            found[name] = summarise(rows, coverage=coverage, share=share)
    least = suggester.settings.threshold(None)
    passed = Trigger(np.array([answer.wanted for answer in judged]) >= least, np.array(wanted) >= least)
    return {
        "suggesting": found,
        "trigger": {"rate": suggester.settings.rate, "messages": len(sampled), **passed.facts()},
        "refused": dict(reasons),
    }


def _answer(suggester: Suggester, exchange: Exchange, true: str) -> _Answer:
    """Return the suggestions for a message without the trigger; its best candidates are those without diversity."""
    answer = suggester.suggest(exchange.message, rate=1.0)
    wanted = -np.inf if answer.probability is None else answer.probability
    return _Answer(_judged(answer.suggestions, true), _judged(answer.candidates[:SHOWN], true), wanted)


def _judged(suggestions: Sequence[Scored], true: str) -> Suggested:
    return Suggested(tuple(scored.response.intent for scored in suggestions), true)


def _triggered(answer: _Answer, least: float, *, diverse: bool) -> Suggested:
    """Return what is suggested if the trigger's probability must be at least `least`."""
    suggested = answer.diverse if diverse else answer.best
    return suggested if answer.wanted >= least else Suggested((), suggested.true)


def _spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items, evenly chosen."""
    if len(items) <= most:
        return list(items)
    return [items[index] for index in np.linspace(0, len(items) - 1, most).astype(int)]
