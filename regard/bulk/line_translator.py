"""Translation of lines with the engines and options of `regard translate`, without torch where it is not needed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.bulk.decoding_options import Assignment
from regard.engines.choice import open_engine, open_plain_text
from regard.foundation.errors import RegardError

if TYPE_CHECKING:
    from regard.search import Search
    from regard.tasks.generation import TextGenerator


class LineTranslator:
    """A run with its engine and search, as `regard translate` opens them."""

    def __init__(self, assignment: Assignment) -> None:
        if assignment.plugins:
            from regard.config.plugins import load

            for name in assignment.plugins:
                load(name)
        self._run, self._assignment = Path(assignment.run), assignment
        self._generator: TextGenerator | None = None
        self._search: Search | None = None
        self._plain = None
        if assignment.engine != "native" and assignment.decoding.is_plain:
            self._plain = open_plain_text(assignment.engine, self._run, assignment.overrides)
        self._texts = self._plain.facts.texts if self._plain else self._full()[0].config.data.train.texts
        self.tokens = 0
        """Source tokens translated so far."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the best output for each line, as `regard translate` writes it."""
        for line in lines:
            if self._texts > 1 and line.strip() and (count := line.count("\t") + 1) != self._texts:
                raise RegardError(f"It has {count} tab-separated texts, but this run reads {self._texts}.")
        outputs = None
        if self._plain is not None:
            before = self._plain.tokens
            outputs = self._plain.translate(
                lines, self._assignment.decoding.beam, self._assignment.decoding.length_penalty
            )
            self.tokens += self._plain.tokens - before
        if outputs is None:
            generator, search = self._full()
            outputs = generator.translate(list(lines), search)
            self.tokens += sum(map(len, generator.source.tokenizer.encode_batch(list(lines))))
        return [" ".join(output.splitlines()).replace("\t", " ") for output in outputs]

    def count_cut(self, lines: Sequence[str]) -> int:
        """Return how many of some lines, which were translated, are longer than the run reads."""
        from regard.tasks.inputs.text import TextInput

        source = None if self._generator is None else self._generator.source  # plain translation reads whole lines
        return source.count_cut(lines) if isinstance(source, TextInput) else 0

    def _full(self) -> "tuple[TextGenerator, Search]":
        """Return the generator and the search that support everything."""
        if self._generator is None or self._search is None:
            self._generator = open_engine(self._assignment.engine, [self._run], self._assignment.overrides)
            self._search = self._assignment.decoding.search(self._run)
        return self._generator, self._search


Translate = Callable[[Sequence[str]], list[str]]


def translate_lines(translate: Translate, lines: Sequence[str]) -> tuple[list[str], dict[int, str]]:
    """Translate lines together; return their outputs, and why lines that make it fail are left out, by their index.

    Those lines are found by halving. Then the others are translated together, as if those lines were empty.
    """
    reasons: dict[int, str] = {}
    try:
        return translate(lines), reasons
    except Exception:
        _find_failing(translate, lines, range(len(lines)), reasons)
    cleared = ["" if index in reasons else line for index, line in enumerate(lines)]
    try:
        return translate(cleared), reasons
    except Exception:  # lines that fail together only
        outputs = []
        for index, line in enumerate(cleared):
            try:
                outputs += translate([line])
            except Exception as error:
                reasons[index] = _reason(error)
                outputs.append("")
        return outputs, reasons


def _find_failing(translate: Translate, lines: Sequence[str], places: range, reasons: dict[int, str]) -> None:
    """Note the reason of each line among some that fails on its own."""
    try:
        translate([lines[index] for index in places])
    except Exception as error:
        if len(places) == 1:
            reasons[places[0]] = _reason(error)
            return
        middle = len(places) // 2
        _find_failing(translate, lines, places[:middle], reasons)
        _find_failing(translate, lines, places[middle:], reasons)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, RegardError) else f"{type(error).__name__}: {str(error)[:300]}"
