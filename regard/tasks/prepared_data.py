"""Prepared data that several runs share: tokenizers and stores in a directory of their own (`data.prepared`).

The directory has the same `tokenizers/` and `data/` as a run, and `prepared.json`, which is written last. It records
everything that determines the prepared data: settings, and the size and hash of every corpus file. A run whose
configuration differs is refused. A run gets the files as hard links where it can, and as copies otherwise, so that it
stays complete when the prepared data is deleted or moved.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from pydantic import AfterValidator
from pydantic.fields import FieldInfo

import regard
from regard.config.run import RunConfig
from regard.config.section import Section
from regard.config.text_corpora import CorpusSection, File
from regard.data.store import TokenStore
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.runs.file_lock import try_lock
from regard.runs.records import read_record, seal
from regard.tasks.inputs import Input
from regard.tasks.task import TaskKind

RECORD = "prepared.json"
FORMAT = "regard prepared data"
VERSION = 1
_UNRELATED = {"data": {"prepared", "corpus", "languages"}, "text": {"bpe_dropout"}}
"""Settings of these sections that do not change prepared data; `data.corpus` only names files."""
_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class FileIdentity:
    """What identifies the content of a file, or of a directory of files."""

    path: str
    bytes: int
    modified: int
    """Time of the last change in nanoseconds; 0 for a directory."""
    sha256: str


@dataclass(frozen=True, kw_only=True)
class PreparedRecord:
    """The content of `prepared.json`."""

    format: str
    version: int
    regard: str
    """The version of Regard that prepared the data."""
    settings: dict[str, str]
    """The settings that determine the prepared data, by path, as JSON."""
    files: dict[str, FileIdentity]
    """The files of the corpora, by the setting that names them."""


def is_complete(directory: Path) -> bool:
    """Return whether a directory has prepared data."""
    return (directory / RECORD).is_file()


def write_record(config: RunConfig, directory: Path) -> None:
    """Declare that the data in a directory is complete, with everything that determined it."""
    record = PreparedRecord(
        format=FORMAT,
        version=VERSION,
        regard=regard.__version__,
        settings=settings_of(config),
        files={name: identify(Path(path)) for name, path in _files_of(config).items()},
    )
    durable.write(directory / RECORD, json.dumps(seal(asdict(record)), indent=2))


def check_fits(config: RunConfig, directory: Path) -> None:
    """Raise if a directory has no prepared data, or if this configuration would prepare other data."""
    if not is_complete(directory):
        what = "is not complete" if (directory / "data").is_dir() else "is not a directory of prepared data"
        raise RegardError(f"{directory} {what}. Prepare it with: regard prepare CONFIG --to {directory}")
    record = read_record(directory / RECORD, PreparedRecord, sealed=True)
    if record.format != FORMAT or record.version > VERSION:
        raise RegardError(
            f"{directory / RECORD} is of version {record.version}, and this Regard reads up to {VERSION}. Update "
            "Regard."
        )
    if differences := [*_compare_settings(record.settings, settings_of(config)), *_compare_files(record, config)]:
        more = f", and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise UsageError(
            f"{directory} was prepared for another configuration: {'; '.join(differences[:3])}{more}. Change the "
            "configuration, or prepare the data again with `regard prepare` into another directory."
        )


def adopt(config: RunConfig, directory: Path, *, last: str) -> None:
    """Take over the prepared data that a configuration names, into the `data` and `tokenizers` of a run.

    The file called `last` comes last: it declares that the data of the run is complete.
    """
    assert config.data.prepared is not None
    origin = Path(config.data.prepared)
    check_fits(config, origin)
    for name in ("train", "validation"):
        TokenStore(origin / "data" / name).verify()
    files = [path for part in ("tokenizers", "data") for path in _walk(origin / part) if not path.is_symlink()]
    for path in sorted(files, key=lambda path: path.name == last):
        place = directory / path.relative_to(origin)
        place.parent.mkdir(parents=True, exist_ok=True)
        _link(path, place)


def _link(path: Path, place: Path) -> None:
    """Make `place` the same file, or a copy where a hard link is not possible."""
    place.unlink(missing_ok=True)
    try:
        os.link(path, place)
    except OSError:
        shutil.copyfile(path, place)


class PreparationLock:
    """Lets one process at a time prepare data in a directory; the system releases it when the process ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = (self._directory / ".lock").open("a")
        except OSError as error:
            raise RegardError(f"Cannot write to {self._directory}: {error.strerror or error}.") from error
        if not try_lock(self._file.fileno()):
            self._file.close()
            raise RegardError(f"Another process is preparing {self._directory}. Wait for it, or choose another --to.")

    def __exit__(self, *_: object) -> None:
        self._file.close()


def settings_of(config: RunConfig) -> dict[str, str]:
    """Return the settings that determine prepared data, by path, as JSON; without names of files."""
    found = {
        **_flatten("data", config.data),
        **_flatten("text", config.text),
        **_flatten("task", config.task),
        "model.start_from": json.dumps(config.model.start_from),
    }
    data = config.data
    if data.joined or not data.validation or (data.held_out_test and not data.test):  # the seed of what is drawn
        found["training.seed"] = json.dumps(config.training.seed)
    if TaskKind.of(config).input.gather is not Input.gather and config.model.encoder is not None:
        found |= _flatten("model.encoder", config.model.encoder)  # sizes of images, lengths of sounds
    return found


def _flatten(path: str, section: Section) -> dict[str, str]:
    """Return the settings of a section by path; names of files are left out, since files are compared by content."""
    found: dict[str, str] = {}
    for name, info in type(section).model_fields.items():
        value, place = getattr(section, name), f"{path}.{name}"
        if name in _UNRELATED.get(path, ()) or (isinstance(section, CorpusSection) and _names_files(info)):
            continue
        if isinstance(value, Section):
            found |= _flatten(place, value)
        elif not (name == "model" and path.startswith("text.")):
            found[place] = json.dumps(value, sort_keys=True, default=str)
    return found


def _names_files(info: FieldInfo) -> bool:
    """Return whether a field of a corpus is a file or a list of files."""
    expands = [one for one in get_args(File) if isinstance(one, AfterValidator)]
    return info.annotation == list[File] or any(one in info.metadata for one in expands)


def _files_of(config: RunConfig) -> dict[str, str]:
    """Return all files that prepared data is made of, by the setting that names each."""
    found: dict[str, str] = {}
    data = config.data
    for name, corpus in (("train", data.train), ("validation", data.validation), ("test", data.test)):
        if corpus is None:
            continue
        for field, info in type(corpus).model_fields.items():
            if _names_files(info):
                value = getattr(corpus, field)
                paths = value if isinstance(value, list) else [value]
                found |= {f"data.{name}.{field}[{number}]": path for number, path in enumerate(paths)}
    for name, tokenizer in (("tokenizer", config.text.tokenizer), ("target", config.text.target)):
        if tokenizer is not None and tokenizer.model is not None:
            found[f"text.{name}.model"] = tokenizer.model
    return found


def identify(path: Path) -> FileIdentity:
    """Return the identity of a file; of a directory, that of the names and sizes of all its files."""
    try:
        if path.is_dir():
            sizes = {str(file.relative_to(path)): file.stat().st_size for file in _walk(path)}
            listing = json.dumps(sizes, sort_keys=True).encode()
            return FileIdentity(
                path=str(path), bytes=sum(sizes.values()), modified=0, sha256=hashlib.sha256(listing).hexdigest()
            )
        facts = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror or error}.") from error
    return FileIdentity(path=str(path), bytes=facts.st_size, modified=facts.st_mtime_ns, sha256=digest)


def _walk(directory: Path) -> Iterator[Path]:
    return (path for path in sorted(directory.rglob("*")) if path.is_file())


def _compare_settings(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """Yield what differs, as parts of a sentence."""
    for name in dict.fromkeys([*here, *there]):
        if there.get(name) != here.get(name):
            yield f"{name} is {_show(there.get(name))} there and {_show(here.get(name))} here"


def _show(value: str | None) -> str:
    if value is None:
        return "not set"
    return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…"


def _compare_files(record: PreparedRecord, config: RunConfig) -> Iterator[str]:
    """Yield which files differ; size and time of the last change are compared first, and the hash if times differ.

    A file that does not exist here is not needed any more, and is accepted under its name.
    """
    here = _files_of(config)
    for name in dict.fromkeys([*here, *record.files]):
        known, path = record.files.get(name), here.get(name)
        if known is None or path is None:
            yield f"{name} is {known.path if known else 'not set'} there and {path or 'not set'} here"
            continue
        file = Path(path)
        if not file.exists():
            if path != known.path:
                yield f"{name} is {known.path} there and {path}, which does not exist, here"
            continue
        facts = file.stat()
        if file.is_file() and (facts.st_size, facts.st_mtime_ns) == (known.bytes, known.modified):
            continue
        if (file.is_file() and facts.st_size != known.bytes) or identify(file).sha256 != known.sha256:
            yield f"{path} ({name}) has other content"
