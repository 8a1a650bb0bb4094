"""Input files: from arguments (files, directories, globs) to shards, each with the name of its output."""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.bulk.layouts import layout_name
from regard.foundation.errors import UsageError

QUARANTINE = ".quarantine.jsonl"
"""Ending of the files of lines that could not be translated."""
STATE = ".bulk"
"""Directory inside the output directory that holds the state of the job."""

_MAGIC = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Shard:
    """An input file, and where its output goes."""

    path: Path
    name: str
    """Path of the output, relative to the output directory."""
    layout: str

    @property
    def stamp(self) -> tuple[int, int]:
        """Size and modification time of the input."""
        facts = self.path.stat()
        return facts.st_size, facts.st_mtime_ns


@dataclass(frozen=True)
class Part:
    """One of several jobs that divide the shards: `3/64`."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Part":
        """Return the part that a text such as `3/64` names."""
        number, slash, of = text.partition("/")
        if not slash or not number.isdecimal() or not of.isdecimal() or not 1 <= int(number) <= int(of):
            raise UsageError(f"--shard is I/N, such as 3/64 for the third of 64 jobs, not `{text}`.")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def find_shards(arguments: Sequence[str], output: Path, form: str | None = None) -> list[Shard]:
    """Return the shards that files, directories and globs name, ordered by the names of their outputs.

    Below a directory or the fixed part of a glob, relative paths are kept. Single files keep theirs below the directory
    that all of them share.
    """
    named = [Path(argument) for argument in arguments if Path(argument).is_file()]
    shared = Path(os.path.commonpath([file.absolute().parent for file in named])) if named else Path()
    found: list[tuple[Path, Path]] = []
    for argument in arguments:
        path = Path(argument)
        if path.is_file():
            found.append((path, path.absolute().relative_to(shared)))
        elif path.is_dir():
            found += [(file, file.relative_to(path)) for file in sorted(path.rglob("*")) if _is_input(file, path)]
        elif _MAGIC.search(argument):
            base = Path(*_fixed_parts(path))
            matches = [Path(match) for match in sorted(glob.glob(argument, recursive=True))]  # noqa: PTH207
            files = [file for file in matches if file.is_file() and _is_input(file, base)]
            if not files:
                raise UsageError(f"No file matches {argument}. Check the pattern, and put it in quotation marks.")
            found += [(file, file.relative_to(base)) for file in files]
        else:
            raise UsageError(f"{argument} does not exist. Name files, directories or patterns such as 'corpus/*.gz'.")
    inside = output.resolve()
    shards: dict[str, Shard] = {}
    for path, relative in found:
        if path.resolve().is_relative_to(inside):
            if path in named:
                raise UsageError(f"{path} is in the output directory {output}. Name another directory with -o.")
            continue
        name = relative.as_posix()
        if name in shards and not shards[name].path.samefile(path):
            raise UsageError(
                f"{shards[name].path} and {path} would both be translated to {output / name}. Name the directory that "
                "contains both instead."
            )
        shards[name] = Shard(path, name, layout_name(path, form))
    if not shards and found:
        raise UsageError(f"The output directory {output} contains the inputs. Name another directory with -o.")
    if not shards:
        raise UsageError(f"There is no file to translate in {', '.join(arguments)}.")
    return [shards[name] for name in sorted(shards)]


def _is_input(file: Path, base: Path) -> bool:
    """Return whether a file below a directory is an input: not hidden, and not a quarantine of an earlier job."""
    hidden = any(part.startswith(".") for part in file.relative_to(base).parts)
    return file.is_file() and not hidden and not file.name.endswith(QUARANTINE)


def _fixed_parts(path: Path) -> list[str]:
    """Return the parts of a glob before the first one with a wildcard."""
    parts: list[str] = []
    for part in path.parts:
        if _MAGIC.search(part):
            break
        parts.append(part)
    return parts


def select(shards: Sequence[Shard], part: Part) -> list[Shard]:
    """Return the shards of one of several jobs: every N-th."""
    return list(shards[part.number - 1 :: part.of])
