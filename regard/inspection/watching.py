"""Watching a model answer one input, as it is or with changes.

Axes: S source tokens, T output tokens, V vocabulary (or classes).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, cached_property

from regard.foundation.errors import UsageError
from regard.inspection.changes import Change, applied, check, check_reached
from regard.inspection.watched import Candidate, Prediction, Watched
from regard.search import Hypothesis, Search, SearchTree
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace
from regard.text.specials import EOS, SPECIALS

MOST_CANDIDATES = 50


def watch(
    run: LoadedRun,
    source: str,
    *,
    changes: Sequence[Change] = (),
    prefix: Sequence[int] = (),
    search: Search | None = None,
    top: int = 10,
) -> Watched:
    """Answer a source and record how: each prediction with its alternatives, the search, and every activation.

    Args:
        run: The run.
        source: The source, as tasks read it.
        changes: What is changed inside the model.
        prefix: Tokens that the output begins with. Without them, an output keeps the tokens of the unchanged model
            before the first position that a change can reach.
        search: Options of search, for runs that generate text.
        top: Candidates that are kept for each prediction.
    """
    if not isinstance(source, str) or not source.strip():
        raise UsageError("The input is empty. Give something to read.")
    if not 1 <= top <= MOST_CANDIDATES:
        raise UsageError(f"`top` is {top}. It must be between 1 and {MOST_CANDIDATES}.")
    check(run.model, changes)
    around = _Around(run, source, search or Search())
    if run.writes_text:
        return _watch_writing(run, source, tuple(changes), tuple(prefix), around, top)
    if prefix:
        raise UsageError("This run does not generate text, so that its output cannot begin with given tokens.")
    if not changes:
        return _watched(run, around.unchanged, (), top)
    with applied(run.model, changes, around):
        own = run.trace(source)  # for what it predicts now
    with applied(run.model, changes, around):
        trace = own.again({})
    check_reached(changes, trace)
    return _watched(run, trace, changes, top)


class _Around:
    """The unchanged passes that changes refer to."""

    def __init__(self, run: LoadedRun, source: str, search: Search) -> None:
        self.run, self.source, self.search = run, source, search

    @cached_property
    def found(self) -> list[Hypothesis]:
        """What the unchanged model writes, best first."""
        return self.run.hypotheses([self.source], self.search)[0]

    @cached_property
    def unchanged(self) -> Trace:
        """The pass of the unchanged model over its own output."""
        if not self.run.writes_text:
            return self.run.trace(self.source)
        return trace_output(self.run, self.source, self.found[0].tokens if self.found else ())

    @cache  # noqa: B019  (lives as long as the request)
    def other(self, source: str) -> Trace:
        """The pass of the unchanged model over another source and its own output."""
        return self.run.trace(source)


def trace_output(run: LoadedRun, source: str, tokens: Sequence[int]) -> Trace:
    """Run a model that generates text on a source and output tokens; a language model reads its prompt with them."""
    output = run.text_output("an output to trace")
    if run.config.task.input_kind().encoder:
        return output.trace_tokens(run.model, source, tokens)
    return output.trace_tokens(run.model, "", [*run.target_tokenizer.encode_batch([source])[0], *tokens])


def _watch_writing(
    run: LoadedRun, source: str, changes: tuple[Change, ...], prefix: tuple[int, ...], around: _Around, top: int
) -> Watched:
    prompt = 0 if run.config.task.input_kind().encoder else len(run.target_tokenizer.encode_batch([source])[0])
    first = min((change.first for change in changes), default=0)
    if changes and not prefix and first > prompt and around.found:
        prefix = around.found[0].tokens[: first - prompt]
    search = around.search
    if prefix:
        search = replace(search, constraints=replace(search.constraints, prefix_tokens=prefix))
    tree = None if search.samples else SearchTree()
    with applied(run.model, changes, around) if changes else nullcontext():
        found = run.hypotheses([source], search, trees=None if tree is None else [tree])[0]
    if not found:
        raise UsageError("The model writes nothing for this input.")
    best = found[0]
    with applied(run.model, changes, around) if changes else nullcontext():
        trace = trace_output(run, source, best.tokens)
    check_reached(changes, trace)
    watched = _watched(run, trace, changes, top)
    names = run.target_tokenizer.vocabulary
    return replace(
        watched,
        text=best.text,
        found=tuple(found),
        tree=() if tree is None else tuple(tree.to_json(lambda token: _readable(names, token))),
        ended=best.ended,
        prefix=len(prefix),
        prompt=prompt,
        ctc=run.config.decoding.ctc or 0.0,
    )


def _watched(run: LoadedRun, trace: Trace, changes: Sequence[Change], top: int) -> Watched:
    """Describe a pass: for each prediction the probability of what was chosen, and the most probable alternatives."""
    predictions: list[Prediction] = []
    if not trace.numeric:
        best = trace.log_probabilities.topk(min(top, trace.log_probabilities.shape[1]), dim=1)  # T×top
        entropies = -(trace.log_probabilities.exp() * trace.log_probabilities.clamp(min=-1e9)).sum(1)
        own = trace.target_log_probs
        ranks = (trace.log_probabilities > own[:, None]).sum(1) + 1
        for position in range(len(trace.target)):
            candidates = [
                Candidate(token, _name(run, trace, token), value)
                for token, value in zip(
                    best.indices[position].tolist(), best.values[position].exp().tolist(), strict=True
                )
            ]
            predictions.append(
                Prediction(
                    own[position].exp().item(), int(ranks[position]), entropies[position].item(), tuple(candidates)
                )
            )
    text = " ".join(trace.target.word_texts)
    return Watched(trace, text, tuple(predictions), tuple(changes))


def _name(run: LoadedRun, trace: Trace, token: int) -> str:
    if trace.labels is not None:
        return trace.labels[token]
    assert trace.tokenizer is not None
    return _readable(trace.tokenizer.vocabulary, token)


def _readable(vocabulary: Sequence[str], token: int) -> str:
    """Return a token as people read it: the mark of a word start becomes a space."""
    if token == EOS:
        return SPECIALS[EOS]
    return SPECIALS[token] if token < len(SPECIALS) else vocabulary[token].replace("▁", " ")
