"""Text generation: searches for the outputs of raw sources.

Axes: B batch, S source positions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Protocol, overload

from regard.config.run import RunConfig
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model
from regard.nn import taps
from regard.search import Constraints, Hypothesis, Search, SearchTree, StepModel, beam, greedy, sample
from regard.search.assembly import assemble, choose
from regard.search.forbidden import Forbidden, Reading
from regard.search.kept import Pieces, kept_rule
from regard.search.rules import Every, Free, Rule, Stuck, may_end
from regard.search.steps import Source
from regard.search.threads import MOST, Interruptible, run_in_threads
from regard.text.loops import patience_for
from regard.text.sentences import Piece
from regard.text.tokenizer import Tokenizer

Texts = list[str] | tuple[str, ...]
Rows = list[list[int]]

_NOTHING_READ: frozenset[Reading] = frozenset()

LEAST_ROWS = 2
"""A batch holds `decoding.batch_tokens` divided by the beam, or at least by this: even greedy search has one batch for
each core."""


class SourceReader(Protocol):
    """The interface of inputs for generation: a `regard.tasks.inputs.Input`, or the inputs of an ensemble."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of sources that are text."""

    @property
    def is_text(self) -> bool:
        """Whether sources are text."""

    @property
    def aligns(self) -> bool:
        """Whether attention to the source can be read as a word alignment."""

    @property
    def positions(self) -> int | None:
        """The number of learned positions; `None` if positions are not limited."""

    def split(self, sources: Sequence[str], search: Search, /) -> tuple[list[list[Piece]], Rows]:
        """Split each source into pieces that fit the model; return the pieces, and the ids of all pieces in order."""

    def rows(self, sources: Sequence[str], /) -> Rows:
        """Return the ids of sources."""

    def groups(self, rows: Rows, tokens: int, /) -> Iterator[list[int]]:
        """Yield the indices of sources that are searched together."""

    def output_limit(self, row: list[int], /) -> int:
        """Return the maximum number of tokens that may be generated for a source."""

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, /, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model and the source of a batch, for search."""

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis, /) -> Hypothesis:
        """Return the hypothesis with its attention to the source and its word alignment."""

    def finish(self, source: str, text: str, /) -> str:
        """Return the output for a source from the text that a model wrote."""

    def reorder(self, source: str, hypotheses: list[Hypothesis], /) -> list[Hypothesis]:
        """Return hypotheses in the order of preference, given in the order of their scores."""

    @property
    def reorders(self) -> bool:
        """Whether `reorder` may change an order, so that search has to return whole beams."""

    def remarks(self) -> list[str]:
        """Return notes on the sources read so far, in sentences."""


class TextGenerator:
    """Generates texts with a model, its input and the tokenizer of its output."""

    def __init__(self, model: Model, config: RunConfig, source: SourceReader, tokenizer: Tokenizer) -> None:
        self.model = model
        self.config = config
        self.source = source
        self.tokenizer = tokenizer
        self.show_tokens: Callable[[list[int]], None] | None = None
        """Called with the token of each hypothesis before every step but the first of a search, to stream a text."""
        self._rules: dict[Constraints, Rule] = {}
        self._spellings: Pieces | None = None

    @overload
    def translate(self, text: str, search: Search | None = None, *, beam: int | None = None) -> str: ...

    @overload
    def translate(self, text: Texts, search: Search | None = None, *, beam: int | None = None) -> list[str]: ...

    def translate(self, text: str | Texts, search: Search | None = None, *, beam: int | None = None) -> str | list[str]:
        """Return the best output for a source, or for each of a list of sources; `beam` 1 is greedy.

        An empty text stays empty. Results do not depend on the order of sources or on other sources.
        """
        _check_texts(text)
        if isinstance(text, str):
            return self.translate([text], search, beam=beam)[0]
        return [best[0].text if best else "" for best in self.hypotheses(text, search, beam=beam)]

    def hypotheses(
        self,
        texts: Texts,
        search: Search | None = None,
        *,
        beam: int | None = None,
        count: int | None = None,
        trees: Sequence[SearchTree] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses for each source, best first; none for an empty text.

        `beam` and `count` override those of `search`; `trees`, one per source, record the beam of texts that are not
        split.
        """
        if isinstance(texts, str):
            raise UsageError("`hypotheses` takes a list of texts, but this is a single text. Write [text].")
        _check_texts(texts)
        if search is not None and not isinstance(search, Search):
            raise UsageError(
                f"The search is {str(search)[:80]!r} ({type(search).__name__}). It must be an object of "
                "regard.search.Search."
            )
        if trees is not None and len(trees) != len(texts):
            raise UsageError(f"There are {len(trees)} search trees for {len(texts)} texts. Give one for each text.")
        search = self._complete(search or Search(), beam, count)
        if search.splits is False:
            return self.find(texts, search, trees)
        cut, rows = self.source.split(texts, search)
        if all(len(pieces) == 1 for pieces in cut):
            return self.find([pieces[0].text for pieces in cut], search, trees, rows=rows)
        found = self._find_pieces(cut, search, rows)
        return [assemble(pieces, best, search) for pieces, best in zip(cut, found, strict=True)]

    def explain(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its attention to the source and, for text sources, its word alignment."""
        return self.source.explain(self.model, self.tokenizer, source, hypothesis)

    def _complete(self, search: Search, beam: int | None, count: int | None) -> Search:
        """Return the search options with every default filled in."""
        decoding = self.config.decoding
        search = replace(
            search,
            beam=search.beam if beam is None else beam,
            count=search.count if count is None else count,
            length_penalty=decoding.length_penalty if search.length_penalty is None else search.length_penalty,
        )
        if search.beam is not None or search.samples:
            return search
        return replace(search, beam=max(decoding.beam, search.count))

    def _find_pieces(self, cut: Sequence[list[Piece]], search: Search, rows: Rows) -> list[list[list[Hypothesis]]]:
        """Return the hypotheses for each piece of each text.

        With forbidden phrases, pieces are searched in order: a piece must not complete a phrase that any hypothesis of
        the pieces before it begins.
        """
        if not search.constraints.forbid:
            hypothesis_lists = iter(self.find([piece.text for row in cut for piece in row], search, None, rows=rows))
            return [[next(hypothesis_lists) for _ in row] for row in cut]
        forbidden = search.constraints.rule(self.tokenizer)
        assert isinstance(forbidden, Forbidden)  # other constraints are for texts that are not split
        readings = [frozenset([forbidden.start]) for _ in cut]
        found: list[list[list[Hypothesis]]] = [[] for _ in cut]
        for number in range(max(map(len, cut), default=0)):
            left = [row for row in range(len(cut)) if len(cut[row]) > number]
            before = [readings[row] for row in left] if number else None
            best = self.find([cut[row][number].text for row in left], search, None, before)
            for row, hypotheses in zip(left, best, strict=True):
                found[row].append(hypotheses)
                outputs = [hypothesis.tokens for hypothesis in hypotheses] or [()]
                readings[row] = frozenset(
                    forbidden.follow(reading, tokens, spaced=bool(cut[row][number].space))
                    for reading in readings[row]
                    for tokens in outputs
                )
        return found

    def find(
        self,
        texts: Sequence[str],
        search: Search,
        trees: Sequence[SearchTree] | None,
        before: Sequence[frozenset[Reading]] | None = None,
        rows: Rows | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for each source, in batches of similar length; equal sources are searched once.

        `before` are the states of forbidden phrases before the output for each source; `rows` are the ids of the
        sources if they are known.
        """
        asked = list(zip(texts, before or [_NOTHING_READ] * len(texts), strict=True))
        distinct_asked = list(dict.fromkeys(asked)) if trees is None else asked
        distinct_texts = [text for text, _ in distinct_asked]
        if rows is None:
            sources = self.source.rows(distinct_texts)
        else:
            by_asked = dict(zip(asked, rows, strict=True))
            sources = rows if len(distinct_asked) == len(asked) else [by_asked[key] for key in distinct_asked]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        rows_each = max(search.samples or search.beam or 1, LEAST_ROWS)
        rules = self._rules_for(distinct_asked, search)
        batches = list(self.source.groups(sources, self.config.decoding.batch_tokens // rows_each))
        batches += [
            [place] for place, ids in enumerate(sources) if not ids and not self._may_be_empty(search, rules, place)
        ]
        with_attention = search.coverage_penalty != 0 or (bool(search.keep) and self.has_attention)

        def searched(batch: list[int], stop: Event) -> list[list[Hypothesis]]:
            shown = [trees[place] for place in batch] if trees else None
            asked = [distinct_texts[index] for index in batch], [sources[index] for index in batch]
            own = [rules[place] for place in batch] if rules else None
            return self._search(*asked, search, own, shown, stop, with_attention=with_attention)

        # Watched taps and GPUs process one batch after the other.
        single = len(batches) == 1 or with_attention or self.model.device.type != "cpu"
        results = run_in_threads(searched, batches, most=1 if single or taps.watched(self.model) else MOST)
        for batch in batches:
            try:
                best = next(results)
            except Stuck as error:
                text = distinct_texts[batch[error.row]]
                raise RegardError(
                    f'No output found for "{text[:80]}" satisfies all constraints. Relax one, or use a wider beam.'
                ) from None
            for place, hypotheses in zip(batch, best, strict=True):
                source = distinct_texts[place]
                decoded = [
                    replace(hypothesis, text=self.source.finish(source, self.tokenizer.decode(hypothesis.tokens)))
                    for hypothesis in hypotheses
                ]
                found[place] = choose(self.source.reorder(source, decoded), search)
        if len(distinct_asked) == len(texts):
            return found
        by_text = dict(zip(distinct_asked, found, strict=True))
        return [by_text[key] for key in asked]

    def _search(
        self,
        texts: list[str],
        sources: list[list[int]],
        search: Search,
        rules: list[Rule] | None,
        trees: list[SearchTree] | None,
        stop: Event,
        *,
        with_attention: bool,
    ) -> list[list[Hypothesis]]:
        steps, batch = self.source.step_model(self.model, texts, sources, with_attention=with_attention)
        steps = Interruptible(steps, stop, self.show_tokens)
        limits = [self.source.output_limit(row) for row in sources]
        if rules is not None:
            limits = [self._with_room(limit, rule.needs) for limit, rule in zip(limits, rules, strict=True)]
        options: dict[str, Any] = {
            "length_penalty": search.length_penalty,
            "rules": rules,
            "patience": [patience_for(ids) for ids in sources],
        }
        if search.samples:
            drawn: dict[str, Any] = {name: getattr(search, name) for name in ("seed", "temperature", "top_k", "top_p")}
            return sample(steps, batch, limits, count=search.samples, **drawn, **options)
        if search.beam == 1 and not trees and not search.coverage_penalty:
            return [[hypothesis] for hypothesis in greedy(steps, batch, limits, **options)]
        kinds: dict[str, Any] = {
            name: getattr(search, name) for name in ("coverage_penalty", "count", "groups", "diversity")
        }
        if self.source.reorders or search.utility is not None:
            kinds["count"] = max(search.count, search.beam or 1)
        return beam(
            steps,
            batch,
            limits,
            width=search.beam or 1,
            full=search.full_beam,
            text=self.tokenizer.decode,
            trees=trees,
            **kinds,
            **options,
        )

    def _rules_for(self, asked: Sequence[tuple[str, frozenset[Reading]]], search: Search) -> list[Rule] | None:
        """Return the rule for the output of each text; `None` without constraints."""
        if not search.constraints and not search.keep:
            return None
        if search.keep and self.config.task.input_kind().record:
            raise UsageError("--keep copies parts of a text, but this run reads records. Leave it out.")
        return [self._rule(search, text, before) for text, before in asked]

    def _rule(self, search: Search, text: str, before: frozenset[Reading]) -> Rule:
        """Return the rule for the output of a text."""
        constraints = search.constraints
        if constraints not in self._rules:
            self._rules[constraints] = constraints.rule(self.tokenizer) if constraints else Free()
        rule = self._rules[constraints]
        if before and isinstance(rule, Forbidden):
            rule = rule.resumed(before)
        kept = search.kept(text)
        if not kept:
            return rule
        if self._spellings is None:
            self._spellings = Pieces(self.tokenizer)
        offsets = self.source.tokenizer.encode(text).offsets
        return Every([rule, kept_rule(text, kept, offsets, constraints, self._spellings)])

    def _may_be_empty(self, search: Search, rules: list[Rule] | None, place: int) -> bool:
        """Return whether the output for an empty text may be empty: a number of words alone does not require text."""
        if rules is None or not replace(search.constraints, words=None):
            return True
        return may_end(rules[place], (), self.tokenizer.size)

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention to the words of its source."""
        return self.source.aligns and any(name.endswith("source_attention.weights") for name in taps.names(self.model))

    def _with_room(self, limit: int, needs: int) -> int:
        """Return a limit with room for the tokens that rules need."""
        positions = self.source.positions
        if positions is not None and needs >= positions:
            raise UsageError(
                f"The constraints need {needs} tokens, but this model has learned {positions} positions. Shorten them."
            )
        room = limit + needs + 1 if needs else limit
        return room if positions is None else min(room, positions)


def _check_texts(given: object) -> None:
    """Raise `UsageError` for anything but a text or a list of texts."""
    if isinstance(given, str):
        return
    if not isinstance(given, list | tuple):
        raise UsageError(f"The input is of type {type(given).__name__}. It must be a text or a list of texts.")
    for index, text in enumerate(given, start=1):
        if not isinstance(text, str):
            raise UsageError(f"Item {index} of the list is of type {type(text).__name__}. It must be a text.")
