"""A plain translation on a fast engine, known from its words alone.

Reading the command line with all its verbs takes longer than such a translation of a few sentences. What has any other
option, or is not quite right, goes the ordinary way, which says so.
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
"""What a plain translation may say, with one value each."""


def translated_quickly(given: Sequence[str]) -> bool:
    """Do what a command line asks for, if it is a plain translation on a fast engine; whether it was."""
    if given[:1] != ["translate"]:
        return False
    read = _read(given[1:])
    if read is None:
        return False
    words, options = read
    if options.get("engine", "native") == "native" or not words or options.get("beam", 1) < 1:
        return False
    from regard.cli.places import check_places
    from regard.cli.plain_text import translate_plainly
    from regard.cli.words import told_apart

    runs, files, overrides = told_apart(words)
    output = options.get("output")
    if len(runs) != 1 or (output is not None and output.exists()) or options.get("length_penalty", 0.0) < 0:
        return False
    check_places(output)
    beam, penalty = options.get("beam"), options.get("length_penalty")
    return translate_plainly(options["engine"], runs[0], files, overrides, output, beam, penalty, split=None)


def _read(words: Sequence[str]) -> tuple[list[str], dict[str, Any]] | None:
    """Arguments and options by name; nothing where a word is not understood."""
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
