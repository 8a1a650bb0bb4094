"""Inputs of a list that cannot be answered: which they are and why, without losing the answers to the others.

The command line and Python share this: the command line prints the reason in place of the answer and goes on; Python
raises `BadInputs`, which carries both.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from regard.foundation.errors import RegardError, UsageError

R = TypeVar("R")

SHOWN = 5
"""Number of inputs that an error lists with reasons."""
SHOWN_CHARACTERS = 80


class BadInputs(RegardError):
    """Some inputs of a list cannot be answered."""

    def __init__(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Describe a list of inputs by their results, some of which are the errors that they raised."""
        self.problems = {index: error for index, error in enumerate(results) if isinstance(error, RegardError)}
        """Why an input cannot be answered, by its index."""
        self.answers = [None if index in self.problems else result for index, result in enumerate(results)]
        """The answers to the other inputs; `None` for those that have a problem."""
        self.reasons = "\n".join(
            f"inputs[{index}]: {error}" if len(inputs) > 1 else str(error) for index, error in self.problems.items()
        )
        """The problems alone, one a line."""
        reasons = [f"inputs[{index}] ({_shorten(inputs[index])}): {error}" for index, error in self.problems.items()]
        if len(reasons) > SHOWN:
            reasons = [*reasons[:SHOWN], f"… and {len(reasons) - SHOWN:,} more."]
        super().__init__(
            f"{len(self.problems):,} of {len(inputs):,} inputs cannot be answered. Leave them out, or take the other "
            "answers from the `answers` of this error.\n" + "\n".join(reasons)
        )


def answer_each(
    answer: Callable[[list[str]], list[R]], inputs: Sequence[str], check: Callable[[str], None] = lambda text: None
) -> list[R | RegardError]:
    """Return the answer to each input, or the error that the input raises.

    Inputs are answered together; only where one of them raises are they answered in smaller and smaller groups. A
    `UsageError` of `answer` is about how it is called and is raised; one of `check`, which looks at a single input, is
    about that input.
    """
    problems: dict[int, RegardError] = {}
    for index, text in enumerate(inputs):
        try:
            check(text)
        except RegardError as problem:
            problems[index] = problem
    checked = [text for index, text in enumerate(inputs) if index not in problems]
    found = _answer_group(answer, checked)
    for index, error in problems.items():  # in ascending order
        found.insert(index, error)
    return found


def answer_all(
    answer: Callable[[list[str]], list[R]],
    texts: Sequence[str],
    check: Callable[[str], None] = lambda text: None,
    *,
    inputs: Sequence[Any] | None = None,
) -> list[R]:
    """Return the answer to each text; raise `BadInputs` if some have none.

    `inputs` are the caller's arguments, if they are not the texts themselves.
    """
    found = answer_each(answer, texts, check)
    answers = [answer for answer in found if not isinstance(answer, RegardError)]
    if len(answers) < len(found):
        raise BadInputs(texts if inputs is None else inputs, found)
    return answers


def _answer_group(answer: Callable[[list[str]], list[R]], texts: list[str]) -> list[R | RegardError]:
    if not texts:
        return []
    try:
        return [*answer(texts)]
    except UsageError:
        raise
    except RegardError as error:
        if len(texts) == 1:
            return [error]
    half = len(texts) // 2
    return [*_answer_group(answer, texts[:half]), *_answer_group(answer, texts[half:])]


def _shorten(given: Any) -> str:
    """Return the name of an input for errors: a text or a path in quotes, anything else by its type."""
    if isinstance(given, tuple):
        return ", ".join(map(_shorten, given))
    text = str(given) if isinstance(given, str) or hasattr(given, "__fspath__") else None
    if text is None:
        return type(given).__name__
    short = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    return '"' + short.encode("unicode_escape").decode() + '"' if not short.isprintable() else f'"{short}"'
