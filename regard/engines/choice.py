"""Choice of the engine: the native one, which supports everything, or a faster one.

Every engine is a `TextGenerator`: texts and a search in, hypotheses out. Unsupported requests are passed on to the
native engine, with a note the first time.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.foundation.display import note
from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.engines.plain_text import PlainText
    from regard.tasks.generation import TextGenerator

ENGINES = ("native", "ctranslate2", "ctranslate2-int8", "auto")

OpenEngine = Callable[[Path, Sequence[str]], "TextGenerator"]
"""From a run directory and overrides to a generator."""

ADDED: dict[str, OpenEngine] = {}
"""Engines that extensions add, by name."""


def open_engine(
    name: str, runs: Sequence[Path], overrides: Sequence[str] = (), *, token_scores: bool = False
) -> "TextGenerator":
    """Return the generator of a run, or of an ensemble; `auto` is the fastest engine with equal outputs.

    `token_scores` requests the score of each token, which only the native engine provides.
    """
    if name in ADDED:
        if len(runs) > 1:
            raise UsageError(f"The engine {name} takes one run. Leave out the others, or use --engine native.")
        return ADDED[name](runs[0], overrides)
    if name not in ENGINES:
        raise UsageError(f"--engine must be one of {', '.join((*ENGINES, *ADDED))}, not `{name}`.")
    if name == "native":
        return _native(runs, overrides)
    lacking = _lacks(runs, overrides, token_scores)
    if name == "auto":
        from regard.formats.ctranslate2_library import installed

        return _native(runs, overrides) if lacking or not installed() else _fast_or_native(runs, overrides)
    from regard.engines.ctranslate2_engine import open_ctranslate2
    from regard.formats.ctranslate2_library import library

    library()
    if lacking:
        note(f"CTranslate2 does not support {lacking}; the native engine is used for it.")
        return _native(runs, overrides)
    return open_ctranslate2(runs[0], overrides, "int8" if name.endswith("int8") else "float32")


def open_plain_text(name: str, run: Path, overrides: Sequence[str]) -> "PlainText | None":
    """Return the plain-text path of an engine, or `None` if there is none; `open_engine` then gives the reason."""
    from regard.formats.ctranslate2_library import installed

    if name not in ENGINES or name == "native" or not installed() or _lacks([run], overrides, token_scores=False):
        return None
    from regard.engines.plain_text import PlainText

    try:
        return PlainText(run, overrides, "int8" if name.endswith("int8") else "float32")
    except UsageError:
        raise
    except RegardError:
        return None


def _lacks(runs: Sequence[Path], overrides: Sequence[str], token_scores: bool) -> str:
    """Return what CTranslate2 does not support in this call; empty if it supports everything."""
    if len(runs) > 1:
        return "ensembles"
    if token_scores:
        return "scores of single tokens"
    return next((f"changes of {one.partition('=')[0]}" for one in overrides if not one.startswith("decoding.")), "")


def _fast_or_native(runs: Sequence[Path], overrides: Sequence[str]) -> "TextGenerator":
    from regard.engines.ctranslate2_engine import open_ctranslate2

    try:
        return open_ctranslate2(runs[0], overrides, "float32")
    except UsageError:
        raise
    except RegardError as error:  # an unsupported model; the native engine reports other problems
        note(f"{error} The native engine is used.")
        return _native(runs, overrides)


def _native(runs: Sequence[Path], overrides: Sequence[str]) -> "TextGenerator":
    from regard.tasks.loaded import load_run

    members = [load_run(run, overrides, verb="translate") for run in runs]
    if len(members) == 1:
        return members[0].generator
    from regard.tasks.ensemble import ensemble

    return ensemble(members)
