"""Attribution: which tokens of the input, and of the output so far, made each token of the output likely.

One pipeline for every model: questions about the answers, the values of each method, and the result that shows them.

Axes: S source tokens, T target tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.attribute.methods import METHODS, Answer, Method, ask, check_methods, runners_up
from regard.inspection.analyses.attribute.one_side import OneSideAttribution, answer_text
from regard.inspection.analyses.attribute.other_word import OtherWord, compare_with_word, word_ids
from regard.inspection.analyses.attribute.result import Attribution
from regard.inspection.flow import attention_flows
from regard.inspection.gain import Gain
from regard.inspection.influence import Influence
from regard.inspection.vectors import Question
from regard.tasks.trace import Trace

WHY = "why it was predicted"


def attribute(
    trace: Trace,
    methods: Sequence[str] = tuple(METHODS),
    *,
    instead: str | None = None,
    at: int | None = None,
    progress: Progress | None = None,
) -> Attribution | OneSideAttribution:
    """Attribute every answer, and its lead over the runner-up, to the tokens that were read.

    With `instead`, its lead over that word or label. A word of a text that was generated is compared as a whole, at
    target word `at` (counted from 1); a label is compared with every answer, or with answer `at`. `at` may be left out
    where there is only one. A token is always compared with the blank: the vector of the unknown word at its position.
    """
    check_methods(methods)
    chosen = cast(Sequence[Method], methods)
    if not (len(trace.source) and len(trace.inputs)):
        return OneSideAttribution(trace, _answers(trace, chosen, instead, at, progress))
    gain, flows = Gain.of(trace), attention_flows(trace)
    if instead is None:
        return Attribution(trace, _answers(trace, chosen, None, None, progress), gain, flows)
    other = compare_with_word(trace, instead, at)
    return Attribution(trace, _compare_words(trace, other, chosen, progress), gain, flows, other)


def _answers(
    trace: Trace, methods: Sequence[Method], instead: str | None, at: int | None, progress: Progress | None
) -> list[Answer]:
    """Explain each answer by itself, and against another: the runner-up, or one that is a single token or label."""
    targets = torch.tensor(trace.target.ids)
    if trace.numeric:
        if instead is not None:
            raise UsageError("A number has no other answer to be compared with: leave out --instead.")
        return [ask(trace, [Question(targets, number=True)], methods, progress).answer(0, "what made the number", None)]
    others, places = runners_up(trace), list(range(len(targets)))
    if instead is not None:
        others, places = _other_answers(trace, instead, at)
    asked = ask(trace, [Question(targets), Question(targets, others)], methods, progress)
    against = "and not the runner-up" if instead is None else f"and not “{instead.strip()}”"
    texts = [
        answer_text(trace, token_id) if position in places else "" for position, token_id in enumerate(others.tolist())
    ]
    answers = [asked.answer(0, WHY, None), asked.answer(1, f"{WHY} {against}", texts)]
    return answers if instead is None else [_only_at(answers[1], places), answers[0]]


def _only_at(answer: Answer, places: Sequence[int]) -> Answer:
    """Return an answer with amounts at some target tokens only, zero elsewhere."""
    kept = torch.zeros(len(answer.explained), dtype=torch.bool)
    kept[list(places)] = True
    nothing = torch.zeros(())
    methods = {
        method: replace(
            found,
            source=torch.where(kept[:, None], found.source, nothing),
            prefix=torch.where(kept[:, None], found.prefix, nothing),
            by_word=None,
        )
        for method, found in answer.methods.items()
    }
    return replace(answer, methods=methods, explained=torch.where(kept, answer.explained, nothing))


def _compare_words(
    trace: Trace, other: OtherWord, methods: Sequence[Method], progress: Progress | None
) -> list[Answer]:
    """Explain why one word was written and not another: amounts for the whole word, less those for the other word.

    Both passes read the same prefix up to the word, so their columns correspond; what the tokens of a word do for each
    other is left out.
    """
    mine = ask(trace, [Question(torch.tensor(trace.target.ids))], methods, progress)
    theirs = ask(other.trace, [Question(torch.tensor(other.trace.target.ids))], methods, progress)
    first = other.places[0]

    def row(amounts: Tensor, places: list[int]) -> Tensor:
        return amounts[places].sum(0)

    def place_at_word(value: Tensor, size: int) -> Tensor:
        """Return the values of one word at its first token or at its row, and zero elsewhere."""
        found = torch.zeros(size, *value.shape)
        found[first if size == len(trace.target) else other.word] = value
        return found

    found: dict[Method, Influence] = {}
    for method, influence in mine.found[0].items():
        other_influence = theirs.found[0][method]
        source = row(influence.source, other.places) - row(other_influence.source, other.own)
        prefix = torch.zeros(len(trace.inputs))
        prefix[: first + 1] = (row(influence.prefix, other.places))[: first + 1] - row(
            other_influence.prefix, other.own
        )[: first + 1]
        words, others = influence.words(trace), other_influence.words(other.trace)
        theirs_word = other.trace.target.words[other.own[0]]
        seen = trace.inputs.words[first] + 1
        by_prefix = torch.zeros(words[1].shape[1])
        by_prefix[:seen] = words[1][other.word, :seen] - others[1][theirs_word, :seen]
        count = len(words[0])
        by_word = torch.zeros(count, words[0].shape[1]), torch.zeros(count, len(by_prefix))
        by_word[0][other.word] = words[0][other.word] - others[0][theirs_word]
        by_word[1][other.word] = by_prefix
        size = len(trace.target)
        found[method] = replace(
            influence, source=place_at_word(source, size), prefix=place_at_word(prefix, size), by_word=by_word
        )
    explained, gaps = torch.zeros(len(trace.target)), None
    explained[first] = row(mine.explained[0], other.places) - row(theirs.explained[0], other.own)
    if mine.gaps is not None and theirs.gaps is not None:
        gaps = torch.zeros(len(trace.target))
        gaps[first] = row(mine.gaps[0], other.places) + row(theirs.gaps[0], other.own)
    texts = [other.text if position == first else "" for position in range(len(trace.target))]
    steps = max(mine.steps, theirs.steps)
    lead = Answer(f"{WHY} and not “{other.text}”", texts, found, explained, gaps, steps)
    return [lead, mine.answer(0, WHY, None)]


def _other_answers(trace: Trace, text: str, at: int | None) -> tuple[Tensor, list[int]]:
    """Return another answer to set each against (T), and the places where it is."""
    count = len(trace.target)
    if trace.labels is None:
        ids = word_ids(trace, text)
        if len(ids) > 1:
            raise UsageError(
                f'"{text.strip()[:80]}" has {len(ids)} tokens in this vocabulary, but this model answers with one '
                "token at a time: give a word that is one token."
            )
        answers = [position for position, special in enumerate(trace.target.special) if not special]
        if at is not None and not 1 <= at <= len(answers):
            raise UsageError(f"There is no answer {at} to replace: there are answers 1 to {len(answers)}.")
        if at is None and len(answers) > 1:
            raise UsageError(
                f'There are {len(answers)} answers, and "{text.strip()[:80]}" can be compared with any of them: name '
                "one with --at N (in Python at=N)."
            )
        return torch.full((count,), ids[0]), [answers[(at or 1) - 1]]
    if text.strip() not in trace.labels:
        known = ", ".join(trace.labels[:10])
        raise UsageError(f"`{text.strip()[:40]}` is not a label of this run: use {known}.")
    places = list(range(count)) if at is None else [at - 1]
    if not set(places) <= set(range(count)):
        raise UsageError(f"There is no answer {at} to replace: there are answers 1 to {count}.")
    return torch.full((count,), trace.labels.index(text.strip())), places
