"""A run in a worker: what it answers to the tasks of the service."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.text.specials import SPECIALS

if TYPE_CHECKING:
    from regard.api.model import Model
    from regard.data.corpus import Pair
    from regard.engines.plain_text import PlainText
    from regard.tasks.generation import TextGenerator

PLAIN = {"beam", "length_penalty", "whole"}
"""Options that the plain-text path supports."""
MOST_CHECKPOINTS = 3
"""Checkpoints of a run that a worker keeps in memory."""


class ModelKey(NamedTuple):
    """Which model, and which version of it: reloading counts versions up."""

    name: str
    version: int
    run: str
    engine: str


class WorkerModel:
    """A run in a worker, in up to three forms, each opened when it is first needed."""

    def __init__(self, key: ModelKey) -> None:
        self.key = key
        self._plain: PlainText | bool | None = False  # False: not tried yet
        self._generator: TextGenerator | None = None
        self._model: Model | None = None
        self._checkpoints: dict[int, Model] = {}
        self._corpora: dict[tuple[Path, ...], list[Pair]] = {}

    @property
    def tokens(self) -> int:
        """Source tokens that the plain-text path has translated so far."""
        return 0 if self._plain is None or isinstance(self._plain, bool) else self._plain.tokens

    def open(self, task: str) -> None:
        """Open the form that a plain request of this task uses, so that the first request need not wait."""
        if task == "translate_aligned" or (task == "translate" and self.plain is None):
            _ = self.generator
        elif task == "reply":
            suggester: Any = self.model
            suggester.prepare()
        elif task != "translate":
            _ = self.model

    @property
    def plain(self) -> "PlainText | None":
        """The path for plain text that does not need torch, if the engine has one."""
        if isinstance(self._plain, bool):
            from regard.engines.choice import open_plain_text

            self._export()
            self._plain = open_plain_text(self.key.engine, Path(self.key.run), [])
        return self._plain

    def _export(self) -> None:
        """Export the run for CTranslate2, if it is not done yet, in another process: this one stays without torch."""
        from regard.engines.ctranslate2_cache import is_exported
        from regard.formats.ctranslate2_library import installed

        quantize = "int8" if self.key.engine.endswith("int8") else "float32"
        if self.key.engine != "native" and installed() and not is_exported(Run.open(Path(self.key.run)), quantize):
            code = "import sys; from pathlib import Path; from regard.engines.choice import open_plain_text as o; "
            code += "o(sys.argv[1], Path(sys.argv[2]), [])"
            command = [sys.executable, "-c", code, self.key.engine, self.key.run]
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr)  # failures are told later

    @property
    def generator(self) -> "TextGenerator":
        """The text generator of the chosen engine."""
        if self._generator is None:
            from regard.engines.choice import open_engine

            self._generator = open_engine(self.key.engine, [Path(self.key.run)])
        return self._generator

    @property
    def native(self) -> "TextGenerator":
        """The native generator, which knows the score of each token."""
        return self.model.loaded.generator

    @property
    def model(self) -> "Model":
        """The run as `regard.load` opens it."""
        if self._model is None:
            import regard

            self._model = regard.load(self.key.run)
        return self._model

    def at_step(self, step: int | None) -> "Model":
        """The run, or the checkpoint of a step of it; the last few checkpoints are kept."""
        if step is None:
            return self.model
        if step not in self._checkpoints:
            import regard

            while len(self._checkpoints) >= MOST_CHECKPOINTS:
                del self._checkpoints[next(iter(self._checkpoints))]
            self._checkpoints[step] = regard.load(self.key.run, step=step)
        return self._checkpoints[step]

    def translate(self, texts: list[str], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return for each text its best output, as `regard translate` gives it, with what `with` asks for.

        Every output has `text`; unless the plain-text path was enough, also the other fields of
        `regard translate --format jsonl`. Of a text that is too long for the model, the plain-text path returns only
        `pieces`, pairs of text and white space, which are then asked for with the option `whole`.
        """
        options = dict(options)
        wanted = set(options.pop("with", ()))
        if not wanted and set(options) <= PLAIN and self.plain is not None and self.plain.facts.texts == 1:
            return self._translate_plain(self.plain, texts, **options)
        search = search_from(options)
        generator = self.native if "scores" in wanted else self.generator
        lists = generator.hypotheses(texts, search)
        if wanted & {"alignment", "attention"}:
            lists = [
                [generator.explain(text, hypothesis) for hypothesis in best]
                for text, best in zip(texts, lists, strict=True)
            ]
        from regard.search.formats import as_object

        tokenizers = generator.source.tokenizer, generator.tokenizer
        objects = [
            as_object(0, text, best, wanted, tokenizers, search.count) for text, best in zip(texts, lists, strict=True)
        ]
        if "confidence" in wanted:
            from regard.evaluation.confidence import rate_best

            ratings = rate_best(self.model.loaded, Path(self.key.run), texts, lists)
            objects = [fields | rating for fields, rating in zip(objects, ratings, strict=True)]
        return [{name: value for name, value in fields.items() if name not in ("line", "source")} for fields in objects]

    def _translate_plain(
        self,
        plain: "PlainText",
        texts: list[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        whole: bool = False,
    ) -> list[dict[str, Any]]:
        cut = [[]] * len(texts) if whole else plain.split(texts)
        short = [text for text, pieces in zip(texts, cut, strict=True) if len(pieces) <= 1]
        found = iter(plain.translate(short, beam, length_penalty, whole=True) or ())
        return [{"pieces": pieces} if len(pieces) > 1 else {"text": next(found)} for pieces in cut]

    def translate_aligned(self, texts: list[str], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return for each text its outputs, each with the alignment of its words, for translation of markup."""
        from regard.tasks.aligned import translate_aligned

        lists = translate_aligned(self.generator, texts, search_from(options))
        fields = [[{"text": aligned.text, "alignment": aligned.alignment} for aligned in found] for found in lists]
        return [{**best, "others": others} for best, *others in fields]

    def predict(self, inputs: list[Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the facts of the result for each input, as `regard predict --json` gives them."""
        from regard.tasks.bad_inputs import BadInputs

        search = search_from(options) if options else None
        given = [tuple(item) if isinstance(item, list) else item for item in inputs]
        try:
            return [{**result.facts, "line": result.line} for result in self.model(given, search)]
        except BadInputs as error:
            raise RegardError(error.reasons) from None

    def stream(
        self, inputs: list[str], options: Mapping[str, Any], show: Callable[[str], None]
    ) -> list[dict[str, Any]]:
        """Return the continuation of one prompt; `show` gets the text as it grows, without what it had before."""
        search = search_from(options)
        generator = self.model.loaded.generator
        (prompt,) = inputs
        tokens: list[int] = []
        shown = ""

        def show_tokens(step: list[int]) -> None:
            nonlocal shown
            if step[0] >= len(SPECIALS):
                tokens.append(step[0])
            text = generator.tokenizer.decode(tokens)
            if len(text) > len(shown) and text.startswith(shown) and not text.endswith("\ufffd"):
                show(text[len(shown) :])
                shown = text

        generator.show_tokens = show_tokens
        try:
            (best,) = generator.hypotheses([prompt], search)
        finally:
            generator.show_tokens = None
        text = best[0].text if best else ""
        if text.startswith(shown):
            show(text[len(shown) :])
        return [{"text": text, "ended": best[0].ended if best else "end", "score": best[0].score if best else 0.0}]

    def score(self, inputs: list[Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the log-probability of the target of each pair (source, target), as `regard score` gives it."""
        from regard.evaluation.likelihood import likelihoods, total

        sources, targets = [pair[0] for pair in inputs], [pair[1] for pair in inputs]
        found = likelihoods(self.model.loaded, sources, targets)
        return [{**total([one]).facts(), "log_probs": list(one.log_probs)} for one in found]

    def reply(self, inputs: list[str], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the suggestions for each message, as `regard reply suggest --json` gives them."""
        explain, rate = bool(options.get("explain")), options.get("rate")
        suggester: Any = self.model
        return [suggester.suggest_for_mail(text, rate=rate).to_json(explain=explain) for text in inputs]

    def inspect(
        self, inputs: list[Any], options: Mapping[str, Any], show: Callable[[str], None] | None = None
    ) -> list[dict[str, Any]]:
        """Return the data of an analysis of each input; `options` has its name and its options.

        `show` gets the progress as JSON: what is done, how many steps of it, and of how many.
        """
        from regard.pages.shell import finite

        how, target, as_panels = options["analysis"], options.get("target"), options.get("panels", False)
        given_options = _checked_options(how, options.get("options") or {})
        given = [tuple(item) if isinstance(item, list) else item for item in inputs]

        def progress(task: str, done: int, count: int | None) -> None:
            if show is not None:
                show(json.dumps([task, done, count]))

        try:
            found = [self.model.explain(item, how, target, progress=progress, **given_options) for item in given]
        except (TypeError, AttributeError) as error:
            if not given_options:
                raise
            raise UsageError(f"An option of {how} has a value that does not fit ({str(error)[:200]}).") from None
        return [panels_of(result) if as_panels else finite(result.to_json()) for result in found]

    def watch(self, inputs: list[Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return how the model answers each input, with changes; `attention` adds the panels of its attention."""
        from regard.inspection.changes import change_from

        options = dict(options)
        changes = [change_from(change) for change in options.pop("changes", ())]
        with_attention = options.pop("attention", False)
        given = [tuple(item) if isinstance(item, list) else item for item in inputs]
        about: dict[str, Any] = {name: options.pop(name) for name in ("prefix", "top") if name in options}
        model = self.at_step(options.pop("step", None))
        if model.loaded.writes_text:
            about["search"] = search_from({"split": False, **options})
        found = [model.watch(item, changes=changes, **about) for item in given]
        rows = [result.to_json() for result in found]
        if model.loaded.translates_text and not changes:
            self._rate(model, given, found, rows)
        if with_attention:
            for row, result in zip(rows, found, strict=True):
                row["attention"] = [_panel(panel) for panel in result.attention_panels()]
        return rows

    def _rate(self, model: "Model", inputs: list[Any], found: Sequence[Any], rows: list[dict[str, Any]]) -> None:
        """Add the calibrated confidence to rows, if the run is calibrated."""
        from regard.evaluation.confidence import FILE, rate_best

        if (Path(self.key.run) / FILE).exists():
            lists = [result.found for result in found]
            ratings = rate_best(model.loaded, Path(self.key.run), inputs, lists)
            for row, rating in zip(rows, ratings, strict=True):
                row["rating"] = rating

    def corpus(self, inputs: list[Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return rows of a corpus; an input is the number of an example, and options have the paths of its files."""
        from regard.evaluation.corpus_table import corpus_rows, read_corpus

        paths = tuple(map(Path, options["paths"]))
        if paths not in self._corpora:
            self._corpora[paths] = read_corpus(self.model.loaded, paths)
        pairs = self._corpora[paths]
        chosen = [pairs[number] for number in inputs]
        rows = [row for some in corpus_rows(self.model.loaded, chosen, directory=Path(self.key.run)) for row in some]
        return [row.to_json() | {"number": number} for row, number in zip(rows, inputs, strict=True)]

    def describe(self, inputs: list[Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the parts of the model, and which analyses apply to it."""
        from regard.inspection.description import describe

        steps = Run.open(self.key.run).checkpoint_steps
        return [{**describe(self.model.loaded), "steps": steps} for _ in inputs]


def _checked_options(analysis: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an analysis of one input; others, such as paths of corpora, are refused."""
    from regard.inspection import registry

    found = registry.get(analysis)
    known = [parameter.name for parameter in found.parameters] if found is not None else list(options)
    for name in options:
        if name not in known:
            raise UsageError(f"{name!r} is not an option of {analysis}. It has {', '.join(known) or 'none'}.")
    return dict(options)


def panels_of(result: Any) -> dict[str, Any]:
    """Return what a page shows of a result."""
    return {"title": result.title, "panels": [_panel(panel) for panel in result.panels()]}


def _panel(panel: Any) -> dict[str, Any]:
    from regard.pages.shell import finite

    return {"view": panel.view, "data": finite(panel.data), "title": panel.title, "note": panel.note}


def search_from(options: Mapping[str, Any]) -> Any:
    """Return the search of options as in JSON: the fields of `Search`, and those of `Constraints`."""
    from regard.search import Constraints, Search

    options = dict(options)
    constraints: dict[str, Any] = {
        name: options.pop(name) for name in ("prefix", "require", "forbid", "only", "words") if name in options
    }
    for name in ("require", "forbid", "only", "keep", "words"):
        for holder in (constraints, options):
            if isinstance(holder.get(name), list):
                holder[name] = tuple(holder[name])
    options.setdefault("split", None)
    try:
        return Search(**options, constraints=Constraints(**constraints))
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2]
        raise UsageError(f"There is no search option {unknown}. See /docs for the options.") from None
