"""Finds the training examples whose states are nearest to those of a trace (after Khandelwal et al., 2020 and 2021).

Axes: Q asked tokens, D width.
"""

from dataclasses import replace

from regard.foundation.errors import UsageError
from regard.inspection.analyses.nearest.result import Example, Nearest, Neighbour, Query
from regard.inspection.last_states import ends_of, last_states, longest_target
from regard.inspection.state_index import StateIndex
from regard.inspection.states import End
from regard.models import Model
from regard.tasks.loaded import LoadedRun
from regard.tasks.outputs.label import LabelOutput
from regard.tasks.outputs.tags import TagsOutput
from regard.tasks.trace import Side, Trace
from regard.text.specials import EOS

NO_TAG = 0
"""What a token store has where a token has no tag."""


def nearest(
    trace: Trace,
    run: LoadedRun,
    index: StateIndex,
    *,
    side: End | None = None,
    position: int | None = None,
    count: int = 5,
) -> Nearest:
    """Return the nearest indexed examples of each token of one side of a trace, or of the token at one position.

    Args:
        trace: The trace of a source, and of the run's output or another target.
        run: The run whose examples are indexed.
        index: The index; it must be of the same weights.
        side: Whose states; by default those of the decoder if there is one.
        position: Counted from 0, special tokens included.
        count: Examples for each token.
    """
    index.check(run)
    end = side or ends_of(run.model)[-1]
    tokens = trace.source if end == "encoder" else trace.target
    index.vectors(end)  # refuses a side that the model does not have
    if position is not None and not 0 <= position < len(tokens):
        raise UsageError(
            f"There is no token {position} on the {end}'s side: its tokens are numbered from 0 to {len(tokens) - 1}."
        )
    source, asked = trace.tensors()
    states = last_states(run.model, source, asked if isinstance(run.model, Model) else None)[end][0]
    positions = range(len(tokens)) if position is None else [position]
    found = index.search(end, states[list(positions)].float().cpu().numpy(), count)
    numbers: dict[int, int] = {}
    queries = [
        Query(
            place,
            tokens.tokens[place],
            [
                Neighbour(numbers.setdefault(match.example, len(numbers)), match.position, match.similarity)
                for match in matches
            ],
        )
        for place, matches in zip(positions, found, strict=True)
    ]
    examples = [_example(run, index, number) for number in numbers]
    return Nearest(
        side=end,
        source=trace.source,
        target=trace.target,
        queries=queries,
        examples=examples,
        header=index.header,
    )


def _example(run: LoadedRun, index: StateIndex, number: int) -> Example:
    """Return an indexed example with the tokens that its states belong to."""
    source, target = (ids.tolist() for ids in index.examples[number])
    frame = run.input.frame
    row = int(index.rows[number])
    if not isinstance(run.model, Model):
        side = Side.of(run.source_tokenizer, [*frame.before, *source, *frame.after])
        return Example(row, run.source_tokenizer.decode(source), side, *_prediction(run, target))
    longest = longest_target(run)
    ends = [EOS] if longest is None or len(target) < longest else []
    tokenizer = run.target_tokenizer
    written = Side.of(tokenizer, [*target, *ends])
    found = Example(row, "", Side([], [], [], []), tokenizer.decode(target), written)
    if run.model.encoder is None:
        return found
    read = Side.of(run.source_tokenizer, [*frame.before, *source, *frame.after])
    return replace(found, source=run.source_tokenizer.decode(source), source_side=read)


def _prediction(run: LoadedRun, ids: list[int]) -> tuple[str, Side]:
    """Return the label or the tags of an example; nothing for other tasks."""
    names: list[str] = []
    if isinstance(run.output, LabelOutput):
        names = [run.output.labels[ids[0]]]
    elif isinstance(run.output, TagsOutput):
        names = [run.output.known.names[tag - 1] for tag in ids if tag != NO_TAG]
    return " ".join(names), Side.of_labels(names, list(range(len(names))))
