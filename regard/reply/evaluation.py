"""Evaluate suggested replies on held-out conversations, next to simple baselines."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.reply.conversations import Exchange, read_exchanges
from regard.reply.measures import Ranking, Suggested, summarise
from regard.reply.preprocessing import normalise_response
from regard.reply.selection import Scored
from regard.reply.suggester import Suggester

T = TypeVar("T")
SCORER, FREQUENCY, BAG_OF_WORDS = "scorer", "frequency", "bag of words"
BASELINES = (FREQUENCY, BAG_OF_WORDS)
MOST = 1000
"""Messages that get suggestions, so that an evaluation takes minutes; chosen evenly."""
PENALISED = 400
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
    found: dict[str, Any] = {
        "conversations": str(conversations),
        "exchanges": len(exchanges),
        "share_in_responses": sum(normalise_response(exchange.reply) in index for exchange in exchanges)
        / len(exchanges),
        "responses": len(suggester.responses),
        "ranked": len(known),
        "ranking": {name: _facts(ranking) for name, ranking in rankings.items()},
        "advantage": {
            name: dict(zip(("mrr", "low", "high"), rankings[SCORER].advantage(rankings[name]), strict=True))
            for name in rankings
            if name in BASELINES
        },
        "suggesting": _suggesting(suggester, _spread(known, most), _spread(exchanges, most), progress),
    }
    return found


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
    """Return the ranks of real replies by the scorer, with and without α, and by the frequency of responses."""
    plain = []
    for number, (exchange, wanted) in enumerate(zip(known, true, strict=True), start=1):
        plain.append(suggester.scorer.rank_of(exchange.message.lower(), wanted))
        if progress:
            progress("ranking real replies", number, len(known))
    penalised = []
    few = _spread(list(zip(known, true, strict=True)), PENALISED)
    for number, (exchange, wanted) in enumerate(few, start=1):
        scores = suggester.scorer.score_by_trie(exchange.message.lower())
        penalised.append(_rank(scores - suggester.settings.alpha * suggester.priors, wanted))
        if progress:
            progress("ranking all responses", number, len(few))
    counts = np.array([response.count for response in suggester.responses], dtype=float)
    return {
        SCORER: Ranking(np.array(plain)),
        "scorer, generic responses penalised": Ranking(np.array(penalised)),
        FREQUENCY: Ranking(np.array([_rank(counts, wanted) for wanted in true])),
        **_bag_of_words(suggester, known, true),
    }


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
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=12, random_state=1, n_jobs=2)
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


def _suggesting(
    suggester: Suggester, known: Sequence[Exchange], sampled: Sequence[Exchange], progress: Progress | None
) -> dict[str, Any]:
    """Return the measures of suggestions, with and without diversity and trigger."""
    ways = {
        "diverse, without trigger": (known, 1.0, True),
        "not diverse, without trigger": (known, 1.0, False),
        "all messages, with trigger": (sampled, None, True),
        "all messages, without trigger": (sampled, 1.0, True),
    }
    intents = {response.normal: response.intent for response in suggester.responses}
    found: dict[str, Any] = {}
    for name, (exchanges, rate, diverse) in ways.items():
        rows, reasons = [], Counter[str]()
        for number, exchange in enumerate(exchanges, start=1):
            answer = suggester.suggest(exchange.message, rate=rate, diverse=diverse)
            if answer.reason:
                reasons[answer.reason.split("(")[0].strip()] += 1
            rows.append(Suggested(_intents(answer.suggestions), intents.get(normalise_response(exchange.reply))))
            if progress:
                progress(name, number, len(exchanges))
        found[name] = {**summarise(rows), "reasons": dict(reasons)}
    return found


def _intents(suggestions: Sequence[Scored]) -> tuple[str, ...]:
    return tuple(scored.response.intent for scored in suggestions)


def _spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items, evenly chosen."""
    if len(items) <= most:
        return list(items)
    return [items[index] for index in np.linspace(0, len(items) - 1, most).astype(int)]
