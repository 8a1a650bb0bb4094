"""Recognise a file of examples whose sources are the names of sounds or pictures, and find those files."""

import os
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from unicodedata import normalize

from regard.data.archives import Listing, archive_of, is_file, list_files
from regard.data.manifests import PICTURE_ENDINGS, SOUND_ENDINGS
from regard.data.recognition import LOOKED_AT, TARGETS, Examples, recognise_task
from regard.foundation.errors import RegardError, UsageError


@dataclass(frozen=True)
class Medium:
    """A kind of file that a source can name, and how a configuration describes such examples."""

    noun: str
    endings: tuple[str, ...]
    foreign: tuple[str, ...]
    """Endings of other formats of such files, which cannot be read."""
    text_task: str
    """The task whose targets are texts."""
    label_task: str
    """The task whose targets are labels."""
    folder: str
    """The setting of a corpus that names the folder of the files."""
    rows: str
    """The setting that names the manifest."""
    name: str
    """Prefix of the settings that choose the column, or the field, of names."""
    text: str
    """Prefix of the settings that choose the column, or the field, of texts or labels."""

    @property
    def tasks(self) -> tuple[str, str]:
        """Both tasks."""
        return self.text_task, self.label_task

    @property
    def formats(self) -> str:
        """The formats of its files."""
        *others, last = (ending.removeprefix(".").upper() for ending in self.endings)
        return f"{', '.join(others)} or {last}"

    def has(self, name: str, *, readable: bool = False) -> bool:
        """Return whether a name has the ending of such a file, or of one that can be read."""
        return name.strip().lower().endswith(self.endings if readable else self.endings + self.foreign)


MEDIA = (
    Medium(
        noun="sound",
        endings=SOUND_ENDINGS,
        foreign=(".mp3", ".m4a", ".aac", ".opus", ".wma", ".webm"),
        text_task="speech-recognition",
        label_task="sound-classification",
        folder="sounds",
        rows="manifest",
        name="sound",
        text="text",
    ),
    Medium(
        noun="picture",
        endings=PICTURE_ENDINGS,
        foreign=(".tif", ".tiff", ".svg", ".heic", ".avif"),
        text_task="captioning",
        label_task="image-classification",
        folder="images",
        rows="captions",
        name="image",
        text="caption",
    ),
)
MANIFEST_TASKS = tuple(task for medium in MEDIA for task in medium.tasks)
MANIFEST_TARGETS = ("text", "transcript", "transcription", "sentence", "caption", "word", "words", *TARGETS)
"""Common names of the column of texts or labels."""


@dataclass(frozen=True)
class Manifest:
    """A file of examples whose sources name sounds or pictures."""

    medium: Medium
    column: str
    """The column of names."""
    folder: str
    """The folder of the files, relative to the working directory if it is inside."""
    files: list[str]
    """The paths of the files, for the inspected examples."""


def refuse_media(paths: Sequence[str]) -> None:
    """Raise for a sound or a picture, and for a folder or a zip file of them: their texts are needed, too."""
    for path in paths:
        inside, what = [path], "a"
        if Path(path).is_dir():
            files = (name for _, _, names in os.walk(path) for name in names)
            inside, what = list(islice(files, LOOKED_AT)), "a folder of"
        elif zipfile.is_zipfile(path) and path.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                inside, what = archive.namelist(), "a zip file of"
        medium = next((medium for medium in MEDIA if any(map(medium.has, inside))), None)
        if medium is not None:
            plural = "" if what == "a" else "s"
            unpack = "Unpack it, and name" if what == "a zip file of" else "Name"
            raise UsageError(
                f"{path} is {what} {medium.noun}{plural}, and texts or labels are needed, too. {unpack} a table, such "
                f"as {medium.rows}.tsv, with the path of a {medium.noun} and its text or label in each row."
            )


def find_names(examples: Examples, source: str | None = None, target: str | None = None) -> tuple[Medium, str] | None:
    """Return the medium and the column that names the most files, or the given source column; `None` without one."""
    if source is not None:
        examples.column(source)
    counts: Counter[tuple[Medium, str]] = Counter()
    for column in [name for name in examples.names if name != target] if source is None else [source]:
        texts = [text for text in examples.column(column) if text.strip()]
        for medium in MEDIA:
            count = sum(map(medium.has, texts))
            if 2 * count > len(texts):
                counts[medium, column] = count
    return counts.most_common(1)[0][0] if counts else None


def find_files(examples: Examples, medium: Medium, column: str) -> Manifest:
    """Return the manifest with the files that it names; raises if one does not exist."""
    path = examples.files[0]
    names = [name.strip() for name in examples.column(column)]
    if examples.kind == "paired":
        raise UsageError(
            f"{path} names {medium.noun}s. Write one table (.tsv) with the name of a {medium.noun} and its text in "
            "each row, and name that."
        )
    found = [_find(name, path) for name in names]
    missing = [name for name, file in zip(names, found, strict=True) if file is None]
    if missing:
        raise _missing(missing, len(names), medium, column, path)
    files = [file for file in found if file is not None]
    other = next((name for name in names if not medium.has(name, readable=True)), None)
    if other is not None:
        raise RegardError(
            f"{path} names {medium.noun}s in column {column}, but `{other[:100]}` is not {medium.formats}. Convert "
            "it, or remove the row."
        )
    return Manifest(medium, column, _folder(names, files, path, medium), files)


def _missing(missing: Sequence[str], count: int, medium: Medium, column: str, path: str) -> RegardError:
    """Return the error of names whose files do not exist."""
    some = "none of them exists" if len(missing) == count else f"{len(missing):,} of {count:,} do not exist"
    start = f"{path} names {medium.noun}s in column {column}, but {some}, such as `{missing[0][:100] or '(empty)'}`."
    if archive := next(filter(None, (archive_of(str(Path(path).parent / name)) for name in missing)), None):
        return RegardError(f"{start} Unpack {archive}, and name the unpacked files.")
    texts = ", or add --task translation if they are texts" if len(missing) == count else ", or remove the rows"
    return RegardError(
        f"{start} Give paths relative to the folder of {Path(path).name} or to where the command runs{texts}."
    )


def recognise_media_task(medium: Medium, targets: Sequence[str]) -> tuple[str, str]:
    """Return the task of a manifest, by the rule that tells labels of texts from other texts, and the reason."""
    found, reason = recognise_task([""] * len(targets), targets)
    return (medium.label_task, reason) if found == "classification" else (medium.text_task, "targets are texts")


def _find(name: str, manifest: str) -> str | None:
    """Return the path of a file: relative to its manifest or to the working directory, in any Unicode normal form."""
    for base in dict.fromkeys([str(Path(manifest).parent), "."]):
        for form in dict.fromkeys([name, normalize("NFC", name), normalize("NFD", name)]):
            path = os.path.normpath(Path(base) / form)
            if name and is_file(path):
                return path
    return None


def _folder(names: Sequence[str], files: Sequence[str], manifest: str, medium: Medium) -> str:
    """Return the deepest folder in which reading the manifest finds these files by these names."""
    here = Path.cwd()
    absolute = [_absolute(file) for file in files]
    shared = Path(os.path.commonpath([file.parent for file in absolute]))
    bases = [_absolute(manifest).parent, here]
    for folder in dict.fromkeys([shared, *(base for base in bases if shared.is_relative_to(base))]):
        shown = str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
        files_there = list_files(shown, medium.endings, remedy=f"Name a folder of {medium.noun}s.")
        listing = Listing(shown, files_there)
        found = (listing.find(name, manifest) for name in names)
        if all(name is not None and folder / name == file for name, file in zip(found, absolute, strict=True)):
            return shown
    raise RegardError(
        f"{manifest} names {medium.noun}s that reading it does not find, such as `{names[0][:100]}`: they are in a "
        "hidden folder, or names mean several files. Move them to one folder, and give their paths relative to it."
    )


def _absolute(path: str) -> Path:
    """Return an absolute path without `..`; links are not followed, since names are those of the links."""
    return Path(os.path.normpath(Path.cwd() / path))
