"""Scores an output and a reference by the same measure, and follows the reference through beam search.

Search errors and model errors are told apart as in Stahlberg and Byrne (2019), "On NMT Search Errors and Model Errors:
Cat Got Your Tongue?". Axes: T target tokens, V vocabulary.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.inspection.analyses.reference.result import ReferenceCost, ScoredText, Verdict
from regard.inspection.analyses.reference.watched_search import watch_search
from regard.models import Model
from regard.search import Search
from regard.search.hypothesis import Ended, scored
from regard.tasks.inputs.record import RecordInput
from regard.tasks.loaded import LoadedRun
from regard.tasks.outputs.decoded import DecodedOutput
from regard.tasks.trace import Trace
from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS


def reference(
    trace: Trace,
    run: LoadedRun,
    source: str,
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
) -> ReferenceCost:
    """Compare the output of a beam search with a reference.

    Args:
        trace: The trace of the reference: `run.trace(source, reference)`.
        run: The run, which generates text.
        source: The source of the trace.
        beam: Width of the beam; by default that of the run.
        length_penalty: Scores are sums of log-probabilities divided by length to this power; by default as in the run.
    """
    if not isinstance(run.output, DecodedOutput):
        raise UsageError(f"This run does not generate text ({run.config.task.arrow}), so it has no search.")
    width = beam or run.config.decoding.beam
    penalty = run.config.decoding.length_penalty if length_penalty is None else length_penalty
    wanted = trace.target.ids[:-1]  # without the end symbol
    found = watch_search(run, source, wanted, Search(beam=width, length_penalty=penalty))
    own = trace
    if list(found.output.tokens) != wanted:
        own = run.output.trace_tokens(run.model, source, found.output.tokens)
    ctc = run.config.decoding.ctc or 0.0
    if ctc:
        own, trace = (replace(each, log_probabilities=_search_scores(run, source, each)) for each in (own, trace))
    output = _scored(own, penalty, run.target_tokenizer.decode(list(found.output.tokens)), found.output.ended)
    other = _scored(trace, penalty, run.target_tokenizer.decode(wanted), "end")
    missing = None
    if isinstance(run.input, RecordInput) and run.input.reorders:
        texts = (run.input.finish(source, text.text) for text in (output, other))
        of_output, of_reference = (run.input.count_missing(source, text) for text in texts)
        missing = of_output, of_reference
    return ReferenceCost(
        source=trace.source,
        beam=width,
        length_penalty=penalty,
        ctc=ctc,
        output=output,
        reference=other,
        missing=missing,
        verdict=_verdict(output, other, missing),
        fate=found.fate,
        steps=found.steps,
    )


@torch.inference_mode()
def _search_scores(run: LoadedRun, source: str, trace: Trace) -> Tensor:
    """Return the scores T×V by which search with CTC ranks each next token of a target."""
    assert isinstance(run.model, Model)
    steps, content = run.input.step_model(run.model, [source], run.input.rows([source]), with_attention=False)
    state, found = steps.start(content), []
    for token in trace.inputs.ids:
        scores, state = steps.step(torch.tensor([token], device=run.model.device), state)  # 1×V
        found.append(scores[0].cpu())
    return torch.stack(found)


def _verdict(output: ScoredText, reference: ScoredText, missing: tuple[int, int] | None) -> Verdict:
    """Return whose error it is that the output is not the reference; `missing` values of a record decide first."""
    if output.side.ids == reference.side.ids:
        return "same"
    if missing is not None and missing[0] != missing[1]:
        return "search error" if missing[1] < missing[0] else "model error"
    unfinished = output.ended != "end"  # search ranks what the model has ended before what was cut off
    return "search error" if unfinished or reference.score > output.score else "model error"


def _scored(trace: Trace, penalty: float, text: str, ended: Ended) -> ScoredText:
    """Return the scores of the target of a trace."""
    log_probs = trace.target_log_probs  # T
    ranks = 1 + (trace.log_probabilities > log_probs[:, None]).sum(1)  # T
    best = trace.log_probabilities.max(1)
    values = tuple(log_probs.tolist())
    score = scored((), values, penalty, ended).score
    return ScoredText(
        text=text,
        side=trace.target,
        log_probs=values,
        score=score,
        ended=ended,
        ranks=ranks.tolist(),
        likeliest=[_text(trace, token) for token in best.indices.tolist()],
        likeliest_log_probs=best.values.tolist(),
    )


def _text(trace: Trace, token: int) -> str:
    """Return a token as people read it."""
    if trace.tokenizer is None or token < len(SPECIALS):
        return SPECIALS[token] if token < len(SPECIALS) else str(token)
    return trace.tokenizer.vocabulary[token].removeprefix(WORD_START) or "␣"
