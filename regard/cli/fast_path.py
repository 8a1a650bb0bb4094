"""Fast path: parses a plain translation on a fast engine without importing Typer, pydantic or torch.

Typer (with the pydantic that it imports) takes longer to start than such a translation of a few sentences. A command
line with any other option, or with a mistake, takes the ordinary path, which reports it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--engine": ("engine", str),
    "--beam": ("beam", int),
    "--length-penalty": ("length_penalty", float),
    "--output": ("output", Path),
    "-o": ("output", Path),
}
"""The options of a plain translation: the name and the type of the value."""


def run_fast_path(given: Sequence[str]) -> bool:
    """Run a command line if it is a plain translation on a fast engine; return whether it was."""
    if given[:1] != ["translate"]:
        return False
    parsed = _parse(given[1:])
    if parsed is None:
        return False
    words, options = parsed
    if options.get("engine", "native") == "native" or not words or options.get("beam", 1) < 1:
        return False
    from regard.cli.places import check_places
    from regard.cli.plain_text import translate_plain_text
    from regard.cli.words import split_arguments

    runs, files, overrides = split_arguments(words)
    output = options.get("output")
    if len(runs) != 1 or (output is not None and output.exists()) or options.get("length_penalty", 0.0) < 0:
        return False
    check_places(output)
    beam, penalty = options.get("beam"), options.get("length_penalty")
    return translate_plain_text(options["engine"], runs[0], files, overrides, output, beam, penalty, split=None)


def _parse(words: Sequence[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Return arguments and options by name, or None if a word is not a plain translation's."""
    arguments: list[str] = []
    options: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in OPTIONS:
            key, kind = OPTIONS[name]
            try:
                options[key] = kind(value or next(rest))
            except (StopIteration, ValueError):
                return None
        elif word.startswith("-") and word != "-":
            return None
        else:
            arguments.append(word)
    return arguments, options
