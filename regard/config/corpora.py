"""Public corpora that a configuration can name: their files, their origin, and their location on this machine.

The registry is `corpora.toml`. A corpus is a directory of its name, in the directory that REGARD_DATA names or in the
cache (`$XDG_CACHE_HOME/regard/data`, by default `~/.cache/regard/data`); REGARD_DATA is searched first.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from regard.foundation.errors import RegardError, UsageError

REGISTRY = Path(__file__).with_name("corpora.toml")


@dataclass(frozen=True)
class CorpusFile:
    """One file of a corpus."""

    path: str
    """Path below the directory of the corpus; `PATH.gz` is accepted in its place."""
    size: int
    """Bytes of its content after unpacking."""
    url: str | None = None
    """Public address; `None` if none is known that serves exactly this content."""
    unpack: str | None = None
    """How the download is converted: `gzip`, or `latin-1` for text that is recoded to UTF-8."""
    sha256: str | None = None
    """SHA-256 of its content after unpacking; `None` if it is not known."""


@dataclass(frozen=True)
class KnownCorpus:
    """One entry of the registry."""

    name: str
    title: str
    page: str
    """Address of its project page."""
    licence: str
    citation: str
    files: dict[str, CorpusFile]
    sections: dict[str, dict[str, Any]]
    """The sections of `data` (train, validation, test) for each part; their files are named as in `files`."""
    note: str | None = None

    @property
    def downloadable(self) -> bool:
        """Whether every file has a public address."""
        return all(file.url for file in self.files.values())

    def files_of(self, part: str | None) -> list[CorpusFile]:
        """Return the files that a part of the corpus needs; all of them for `None`."""
        if part is None:
            return list(self.files.values())
        return [self.files[name] for name in dict.fromkeys(_strings(self.sections[part])) if name in self.files]


@cache
def known_corpora(registry: Path = REGISTRY) -> dict[str, KnownCorpus]:
    """Read the registry: every corpus by its name."""
    entries = tomllib.loads(registry.read_text(encoding="utf-8"))
    return {name: _corpus(name, entry) for name, entry in entries.items()}


def _corpus(name: str, entry: dict[str, Any]) -> KnownCorpus:
    base, files = entry.pop("base", None), {}
    for path, facts in entry.pop("files").items():
        origin = facts.pop("from", None)
        files[path] = CorpusFile(path, url=base + origin if base and origin else None, **facts)
    return KnownCorpus(name, files=files, **entry)


def find_corpus(name: str) -> tuple[KnownCorpus, str | None]:
    """Return the corpus and the part that a name such as `multi30k/en-de` or `multi30k` refers to."""
    corpus_name, slash, part = name.partition("/")
    corpora = known_corpora()
    if corpus_name not in corpora:
        raise UsageError(f"{_quote(name)} is not a known corpus{_hint(corpus_name, corpora)}")
    corpus = corpora[corpus_name]
    if not slash:
        return corpus, None
    if part not in corpus.sections:
        raise UsageError(
            f"{_quote(name)} is not a known corpus. {corpus_name} has "
            f"{', '.join(f'{corpus_name}/{section}' for section in corpus.sections)}."
        )
    return corpus, part


def corpus_settings(name: str) -> dict[str, Any]:
    """Return the sections of `data` for a corpus, with the paths of its files on this machine."""
    corpus, part = find_corpus(name)
    if part is None:
        if len(corpus.sections) > 1:
            parts = ", ".join(f"{corpus.name}/{section}" for section in corpus.sections)
            raise UsageError(f"{name} has several parts. Name one of {parts}.")
        (part,) = corpus.sections
    places = {file.path: locate_file(corpus, file) for file in corpus.files_of(part)}
    missing = [path for path, location in places.items() if location is None]
    if missing:
        raise RegardError(missing_corpus(corpus, part, missing[0]))
    found = {path: str(location) for path, location in places.items()}
    return {section: _replace_files(settings, found) for section, settings in corpus.sections[part].items()}


def missing_corpus(corpus: KnownCorpus, part: str | None, path: str) -> str:
    """Return the error message for a corpus whose file `path` is not on this machine."""
    name = f"{corpus.name}/{part}" if part else corpus.name
    where = " or ".join(f"{root}" for root in search_roots())
    if corpus.downloadable:
        return (
            f"The corpus {name} is not on this machine ({corpus.name}/{path} is not in {where}). "
            f"Type `regard data get {name}`, or set REGARD_DATA to a directory that has it."
        )
    return (
        f"The corpus {name} is not on this machine ({corpus.name}/{path} is not in {where}), and `regard data get` "
        f"cannot download it. Set REGARD_DATA to a directory that has it; `regard data list {corpus.name}` shows its "
        "origin."
    )


def locate_file(corpus: KnownCorpus, file: CorpusFile) -> Path | None:
    """Return the path of a file of a corpus on this machine, or `None`."""
    for root in search_roots():
        path = root / corpus.name / file.path
        for candidate in (path, path.with_name(path.name + ".gz")):
            if candidate.is_file():
                return candidate
    return None


def search_roots() -> list[Path]:
    """Return the directories that are searched for corpora: REGARD_DATA, then the cache."""
    own = os.environ.get("REGARD_DATA")
    if not own:
        return [cache_directory()]
    path = Path(own).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(
            f"REGARD_DATA is {_quote(own)}, which is not a directory. Set it to the directory that holds your corpora, "
            "or unset it."
        )
    return [path, cache_directory()]


def cache_directory() -> Path:
    """Return the directory that downloads are kept in; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification ignores relative paths
        return Path(base) / "regard" / "data"
    try:
        return Path.home() / ".cache" / "regard" / "data"
    except RuntimeError:
        raise UsageError(
            "There is no home directory to keep downloads in. Set XDG_CACHE_HOME or REGARD_DATA to a directory."
        ) from None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(inner)


def _replace_files(settings: Any, places: Mapping[str, str]) -> Any:
    """Return the settings with the names of files replaced by their paths."""
    if isinstance(settings, Mapping):
        return {key: _replace_files(value, places) for key, value in settings.items()}
    return places.get(settings, settings) if isinstance(settings, str) else settings


def _hint(name: str, known: Mapping[str, KnownCorpus]) -> str:
    near = difflib.get_close_matches(name[:60].lower(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ". `regard data list` shows all known corpora."


def _quote(text: str) -> str:
    shown = text if len(text) <= 80 else text[:79] + "…"
    return '"' + "".join(c if c.isprintable() else "?" for c in shown) + '"'
