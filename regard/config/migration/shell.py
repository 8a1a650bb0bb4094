"""Reads commands from shell scripts, without running anything."""

import re
import shlex
from dataclasses import dataclass

from regard.foundation.errors import UsageError

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.S)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_BREAKS = {"|", "||", "&&", ";", "&", "(", ")", "|&", ";;"}
_REDIRECTIONS = {">", ">>", "<", ">&", "&>", "<<", "<<<", ">|"}
LONGEST_VALUE = 10_000


@dataclass(frozen=True)
class ShellCommand:
    """One command of a script: its words with the variables that the script sets filled in."""

    line: int
    words: tuple[str, ...]


def shell_commands(text: str, name: str) -> list[ShellCommand]:
    """Return the commands of a script; pipelines and lists are taken apart, redirections are left out."""
    variables: dict[str, str] = {}
    found: list[ShellCommand] = []
    for number, line in _logical_lines(text):
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
            lexer.whitespace_split = True
            lexer.commenters = ""
            tokens = [*lexer, ";"]
        except ValueError:
            if "fairseq" in line or "train.py" in line:
                raise UsageError(
                    f"{name}:{number}: a quotation mark is not closed. Close it, then try again."
                ) from None
            continue
        words: list[str] = []
        skip = False
        for token in tokens:
            if skip:
                skip = False
            elif token in _REDIRECTIONS:
                skip = True
            elif token in _BREAKS:
                _add(found, number, words, variables)
                words = []
            else:
                words.append(token)
    return found


def _add(found: list[ShellCommand], number: int, words: list[str], variables: dict[str, str]) -> None:
    """Add a command, or the variables that it sets."""
    rest = [_filled(word, variables) for word in words]
    while rest and (rest[0] == "export" or _ASSIGNMENT.fullmatch(rest[0])):
        if match := _ASSIGNMENT.fullmatch(rest[0]):
            variables[match[1]] = match[2][:LONGEST_VALUE]
        rest = rest[1:]
    if rest:
        found.append(ShellCommand(number, tuple(rest)))


def _filled(word: str, variables: dict[str, str]) -> str:
    """Replace the variables that the script has set; others stay as they are."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), word)[:LONGEST_VALUE]


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a script without comments, continuation lines joined, each with its number.

    A comment between continuation lines, which a shell would not accept there, is skipped.
    """
    found: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_comment(raw).rstrip()
        if pending and not line and raw.strip():
            continue
        if not pending:
            start = number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        if (pending + line).strip():
            found.append((start, pending + line))
        pending = ""
    if pending.strip():
        found.append((start, pending))
    return found


def _without_comment(line: str) -> str:
    """Return a line up to the `#` that starts a comment: outside quotation marks, at the start of a word."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index]
    return line
