"""The front door of a trained run: raw text in, raw text out.

Axes: B batch, S source positions, T target positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Self, overload

import torch
from torch import Tensor

from regard.config.run import RunConfig
from regard.data.batches import SOURCE_FRAME, Frame
from regard.foundation.errors import RegardError, UsageError
from regard.models import Model, build
from regard.nn import taps
from regard.runs.run import Run
from regard.search import Constraints, Hypothesis, ModelSteps, Search, SearchTree, StepModel, beam, greedy, sample
from regard.search.alignment import attention_to_source, word_alignment
from regard.search.assembly import assemble, choose
from regard.search.forbidden import Forbidden, Reading
from regard.search.kept import Pieces, kept_rule
from regard.search.rules import Every, Free, Rule, Stuck, may_end
from regard.search.side_by_side import MOST, Interruptible, side_by_side
from regard.search.steps import AttentiveSteps, Source
from regard.tasks.trace import Side, Trace, check_cost, trace
from regard.text.joined import check_parts
from regard.text.loops import patience_for
from regard.text.normalising import WORD_START
from regard.text.sentences import Piece, keep_whole, pieces
from regard.text.specials import BOS, EOS, PAD, UNK
from regard.text.tokenizer import Tokenizer

Texts = list[str] | tuple[str, ...]

_NOTHING_READ: frozenset[Reading] = frozenset()

LEAST_BESIDE = 2
"""A batch holds `decoding.batch_tokens` over the beam, at least over this: even greedily there is one for each core."""


class Translator:
    """A model with its tokenizers and its configuration: all that text needs on its way through."""

    def __init__(
        self, model: Model, config: RunConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        self.model = model
        self.config = config
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.trained_length = config.data.cleaning.max_length
        """Longest source in tokens that the model has learnt from."""
        self._rules: dict[Constraints, Rule] = {}
        self._spelt: Pieces | None = None

    @classmethod
    def load(cls, directory: "Path | str | Run", overrides: Sequence[str] = ()) -> Self:
        """The translator of a run directory, on the best device at hand; overrides as on the command line."""
        from regard.data.form import load_tokenizers, parted
        from regard.foundation.device import choose_device, keep_freed

        run = Run.open(directory)
        check_overrides(overrides)
        keep_freed()
        config = run.load_config(overrides)
        cls.refuse(config, run.directory)
        source, target = load_tokenizers(run.tokenizers)
        source = parted(config, source)
        model = run.load_model(
            lambda: build(config.model, source.size, target.size),
            {"source": source.fingerprint, "target": target.fingerprint},
        )
        model = model.to(choose_device(config.training.device)).eval().laid_out()
        translator = cls(model, config, source, target)
        translator.trained_length = _trained_length(run.data / "train") or translator.trained_length
        return translator

    @property
    def frame(self) -> Frame:
        """The special tokens around what is read."""
        return SOURCE_FRAME

    def fresh(self) -> Model:
        """A model of the same shape that has learned nothing."""
        return build(self.config.model, self.source_tokenizer.size, self.target_tokenizer.size)

    @classmethod
    def refuse(cls, config: RunConfig, directory: Path) -> None:
        """Refuse a run of another shape, with what it is used by."""
        if config.shape.kind == "translation":
            return
        use = f"regard {config.shape.verb} {directory}"
        raise UsageError(f"{directory} translates nothing ({config.shape.arrow}: {config.cell}): use {use}.")

    @overload
    def translate(self, text: str, search: Search | None = None, *, beam: int | None = None) -> str: ...

    @overload
    def translate(self, text: Texts, search: Search | None = None, *, beam: int | None = None) -> list[str]: ...

    def translate(self, text: str | Texts, search: Search | None = None, *, beam: int | None = None) -> str | list[str]:
        """The best output for a text, or for each of a list of texts; `beam` 1 is greedy, by default the run's own.

        An empty text stays empty. The order and the company of texts do not matter.
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
        """The best hypotheses for each text, best first; none for an empty text.

        `beam` and `count` change those of `search`; `trees`, one per text, record the beam (of texts not split).
        """
        if isinstance(texts, str):
            raise UsageError("Hypotheses are for a list of texts: write [text].")
        _check_texts(texts)
        if search is not None and not isinstance(search, Search):
            raise UsageError(
                f"The search is {str(search)[:80]!r} ({type(search).__name__}). It must be an object of "
                "regard.search.Search."
            )
        if trees is not None and len(trees) != len(texts):
            raise UsageError(f"There are {len(trees)} search trees for {len(texts)} texts: give one for each.")
        search = self._settled(search or Search(), beam, count)
        if search.splits is False or self.config.data.train.texts > 1:
            return self._find(texts, search, trees)
        cut = [self._pieces(text, search) for text in texts]
        return [assemble(row, found, search) for row, found in zip(cut, self._find_pieces(cut, search), strict=True)]

    def explained(self, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with its attention (mean of layers and heads) and its word alignment."""
        encoded = self.source_tokenizer.encode(source)
        target = self._tensor([[BOS, *hypothesis.tokens, EOS]])
        weights = attention_to_source(self.model, self._tensor([[*encoded.ids, EOS]]), target)  # T×S
        words, word = [], -1
        for token in hypothesis.tokens:
            word += token == UNK or self.target_tokenizer.vocabulary[token].startswith(WORD_START) or word < 0
            words.append(word)
        return replace(
            hypothesis,
            attention=tuple(map(tuple, weights.tolist())),
            alignment=word_alignment(weights, encoded.words, words),
        )

    def forced(self, source: str, target: str | None = None) -> tuple[Tensor, Tensor]:
        """Source tokens 1×S and target tokens 1×T (with their specials) of a forced target, or of the model's own."""
        ids = self.source_tokenizer.encode_batch([source])[0]
        if target is None:
            best = self.hypotheses([source])[0]
            said = list(best[0].tokens) if best else []
        else:
            said = self.target_tokenizer.encode_batch([target])[0]
        return self._tensor([[*ids, EOS]]), self._tensor([[BOS, *said, EOS]])

    def trace(self, source: str, target: str | None = None) -> Trace:
        """Watch the model translate a source, or read a target that it is given: every tap by its name."""
        if not isinstance(source, str) or not source.strip():
            raise UsageError("There is nothing to look into: give a source text that is not empty.")
        check_parts(source, self.config.data.train.texts)
        check_cost(self.model, len(self.source_tokenizer.encode_batch([source])[0]))
        source_ids, target_ids = self.forced(source, target)
        self._check_lengths([source_ids[0, :-1].tolist(), target_ids[0, 1:-1].tolist()])
        said, read = target_ids[0, 1:].tolist(), target_ids[0, :-1].tolist()
        if target is not None and UNK in said:
            raise UsageError(
                f'The target "{target[:80]}" has a word that this model cannot say (word '
                f"{Side.of(self.target_tokenizer, said).words[said.index(UNK)] + 1}): use words of its vocabulary."
            )
        tokenizer = self.target_tokenizer
        sides = Side.of(self.source_tokenizer, source_ids[0].tolist()), Side.of(tokenizer, said)
        return trace(self.model, *sides, Side.of(tokenizer, read), tokenizer=tokenizer)

    def _settled(self, search: Search, beam: int | None, count: int | None) -> Search:
        """A search with nothing left open."""
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

    def _pieces(self, text: str, search: Search) -> list[Piece]:
        """A text in pieces that fit the model; whole, if it fits and nobody asks for more."""
        most = min(self.config.data.cleaning.max_length, self._longest_source)

        def tokens(text: str) -> int:
            return len(self.source_tokenizer.encode_batch([text])[0])

        if search.splits is None and tokens(text) <= min(self.trained_length, most):
            return [Piece(text, "")]
        cut = pieces(text, lambda piece: tokens(piece) <= most)
        return keep_whole(cut, [(one.start, one.end) for one in search.kept(text)]) if search.keep else cut

    def _find_pieces(self, cut: Sequence[list[Piece]], search: Search) -> list[list[list[Hypothesis]]]:
        """The hypotheses for each piece of each text.

        Where phrases are forbidden, pieces are searched one after the other: each must not complete a phrase that any
        hypothesis for those before it begins.
        """
        if not search.constraints.forbid:
            each = iter(self._find([piece.text for row in cut for piece in row], search, None))
            return [[next(each) for _ in row] for row in cut]
        forbidden = search.constraints.rule(self.target_tokenizer)
        assert isinstance(forbidden, Forbidden)  # other constraints are for texts that are not split
        readings = [frozenset([forbidden.start]) for _ in cut]
        found: list[list[list[Hypothesis]]] = [[] for _ in cut]
        for number in range(max(map(len, cut), default=0)):
            rows = [row for row in range(len(cut)) if len(cut[row]) > number]
            before = [readings[row] for row in rows] if number else None
            best = self._find([cut[row][number].text for row in rows], search, None, before)
            for row, hypotheses in zip(rows, best, strict=True):
                found[row].append(hypotheses)
                said = [one.tokens for one in hypotheses] or [()]
                readings[row] = frozenset(
                    forbidden.follow(reading, tokens, spaced=bool(cut[row][number].space))
                    for reading in readings[row]
                    for tokens in said
                )
        return found

    def _find(
        self,
        texts: Sequence[str],
        search: Search,
        trees: Sequence[SearchTree] | None,
        before: Sequence[frozenset[Reading]] | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each text, by batches of similar length, each distinct text searched once.

        `before` says how forbidden phrases may have begun before the output for each text.
        """
        asked = list(zip(texts, before or [_NOTHING_READ] * len(texts), strict=True))
        distinct_asked = list(dict.fromkeys(asked)) if trees is None else asked
        distinct_texts = [text for text, _ in distinct_asked]
        sources = self._sources(distinct_texts)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        beside = max(search.samples or search.beam or 1, LEAST_BESIDE)
        rules = self._rules_for(distinct_asked, search)
        batches = list(self._grouped(sources, self.config.decoding.batch_tokens // beside))
        batches += [[place] for place, ids in enumerate(sources) if not ids and not self._may_be_empty(rules, place)]
        attentive = search.coverage_penalty != 0 or (bool(search.keep) and self._has_attention)

        def searched(batch: list[int], stop: Event) -> list[list[Hypothesis]]:
            shown = [trees[place] for place in batch] if trees else None
            asked = [distinct_texts[one] for one in batch], [sources[one] for one in batch]
            own = [rules[place] for place in batch] if rules else None
            return self._search(*asked, search, own, shown, stop, attentive=attentive)

        # Taps see one batch after the other, and a graphics card computes one after the other.
        single = len(batches) == 1 or attentive or self._device.type != "cpu"
        results = side_by_side(searched, batches, most=1 if single or taps.watched(self.model) else MOST)
        for batch in batches:
            try:
                best = next(results)
            except Stuck as error:
                text = distinct_texts[batch[error.row]]
                raise RegardError(
                    f'No output found for "{text[:80]}" keeps to all constraints: relax one, or use a wider beam.'
                ) from None
            for place, hypotheses in zip(batch, best, strict=True):
                said = [replace(one, text=self.target_tokenizer.decode(one.tokens)) for one in hypotheses]
                found[place] = choose(said, search)
        if len(distinct_asked) == len(texts):
            return found
        by_text = dict(zip(distinct_asked, found, strict=True))
        return [by_text[one] for one in asked]

    def _search(
        self,
        texts: list[str],
        sources: list[list[int]],
        search: Search,
        rules: list[Rule] | None,
        trees: list[SearchTree] | None,
        stop: Event,
        *,
        attentive: bool,
    ) -> list[list[Hypothesis]]:
        steps, batch = self._steps(texts, sources, attentive=attentive)
        steps = Interruptible(steps, stop)
        limits = self._limits(sources)
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
            return [[one] for one in greedy(steps, batch, limits, **options)]
        kinds: dict[str, Any] = {
            name: getattr(search, name) for name in ("coverage_penalty", "count", "groups", "diversity")
        }
        return beam(
            steps,
            batch,
            limits,
            width=search.beam or 1,
            full=search.full_beam,
            text=self.target_tokenizer.decode,
            trees=trees,
            **kinds,
            **options,
        )

    def _sources(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts."""
        sources = self.source_tokenizer.encode_batch(texts)
        self._check_lengths(sources)
        return sources

    def _grouped(self, sources: list[list[int]], tokens: int) -> Iterator[list[int]]:
        """Places of texts that are searched together."""
        return groups([len(ids) for ids in sources], tokens)

    def _limits(self, sources: list[list[int]]) -> list[int]:
        """The most tokens that may be written for each source."""
        ratio = self.config.decoding.max_ratio
        return [min(self._longest, int(ratio * len(ids)) + 10) for ids in sources]

    def _steps(self, texts: list[str], sources: list[list[int]], *, attentive: bool) -> tuple[StepModel[Any], Source]:
        """What is searched, and its sources."""
        steps = AttentiveSteps(self.model) if attentive else ModelSteps(self.model)
        return steps, Source.of(self._batch(sources))

    def _batch(self, sources: list[list[int]]) -> Tensor:
        longest = max(map(len, sources)) + 1
        return self._tensor([[*ids, EOS] + [PAD] * (longest - len(ids) - 1) for ids in sources])  # B×S

    def _rules_for(self, asked: Sequence[tuple[str, frozenset[Reading]]], search: Search) -> list[Rule] | None:
        """What the output for each text must keep to; nothing, if there is nothing to keep to."""
        if not search.constraints and not search.keep:
            return None
        return [self._rule(search, text, before) for text, before in asked]

    def _rule(self, search: Search, text: str, before: frozenset[Reading]) -> Rule:
        """What the output for a text must keep to."""
        constraints = search.constraints
        if constraints not in self._rules:
            self._rules[constraints] = constraints.rule(self.target_tokenizer) if constraints else Free()
        rule = self._rules[constraints]
        if before and isinstance(rule, Forbidden):
            rule = rule.resumed(before)
        kept = search.kept(text)
        if not kept:
            return rule
        if self._spelt is None:
            self._spelt = Pieces(self.target_tokenizer)
        offsets = self.source_tokenizer.encode(text).offsets
        return Every([rule, kept_rule(text, kept, offsets, constraints, self._spelt)])

    def _may_be_empty(self, rules: list[Rule] | None, place: int) -> bool:
        """Whether the output for a text may be empty, as far as its rule is concerned."""
        return rules is None or may_end(rules[place], (), self.target_tokenizer.size)

    @property
    def _has_attention(self) -> bool:
        """Whether search can tell where in the source the model looks."""
        return any(name.endswith("source_attention.weights") for name in taps.names(self.model))

    def _with_room(self, limit: int, needs: int) -> int:
        """A limit that leaves room for what rules need."""
        if self._positions is not None and needs >= self._positions:
            raise UsageError(
                f"The constraints need {needs} tokens, but this model has learned {self._positions} positions."
            )
        room = limit + needs + 1 if needs else limit
        return room if self._positions is None else min(room, self._positions)

    @property
    def _positions(self) -> int | None:
        """How many positions have been learned, where they are."""
        positions = self.config.model.positions
        return positions.max_length if positions and positions.kind == "learned" else None

    @property
    def _longest(self) -> int:
        """Longest output in tokens: the configured limit, or where learned positions end."""
        return min(self.config.decoding.max_length, self._positions or self.config.decoding.max_length)

    @property
    def _longest_source(self) -> int:
        """Longest source in tokens: a batch, or where learned positions end (one is for the end symbol)."""
        most = max(self.config.decoding.batch_tokens, 2) - 1
        return most if self._positions is None else min(most, self._positions - 1)

    def _check_lengths(self, sources: list[list[int]]) -> None:
        for place, ids in enumerate(sources, start=1):
            if self._positions is not None and len(ids) >= self._positions:
                name = "The text" if len(sources) == 1 else f"Text {place}"
                raise RegardError(
                    f"{name} has {len(ids)} tokens, but this model has learned {self._positions} positions "
                    "(one is for the end symbol): split it."
                )

    @property
    def _device(self) -> torch.device:
        return self.model.output_bias.device

    def _tensor(self, rows: list[list[int]]) -> Tensor:
        return torch.tensor(rows, device=self._device)


def _trained_length(store: Path) -> int | None:
    """Longest source in tokens among a run's training data, if it is still there."""
    from regard.data.store import TokenStore

    try:
        return int(TokenStore(store).lengths[0].max())
    except (OSError, ValueError, RegardError):
        return None


def groups(lengths: list[int], tokens: int) -> Iterator[list[int]]:
    """Places of non-empty texts in groups of similar length, longest first, of at most `tokens` padded tokens each."""
    order = sorted(
        (place for place, length in enumerate(lengths) if length), key=lambda place: (-lengths[place], place)
    )
    group: list[int] = []
    for place in order:
        if group and (len(group) + 1) * (lengths[group[0]] + 1) > tokens:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _check_texts(given: object) -> None:
    """Refuse what is neither a text nor a list of texts."""
    if isinstance(given, str):
        return
    if not isinstance(given, list | tuple):
        raise UsageError(f"A text, or a list of texts, can be translated; this is of type {type(given).__name__}.")
    for place, text in enumerate(given, start=1):
        if not isinstance(text, str):
            raise UsageError(f"Text {place} of the list is no text, but of type {type(text).__name__}.")


def check_overrides(overrides: Sequence[str]) -> None:
    """Refuse settings that a trained model cannot change any more."""
    for override in overrides:
        name = override.partition("=")[0].strip()
        if not name.startswith("decoding.") and name not in ("model.positions.ntk", "training.device"):
            raise UsageError(
                f"{name} cannot be changed in a trained run: decoding.* can, and training.device, and "
                "model.positions.ntk (for rotary positions)."
            )
