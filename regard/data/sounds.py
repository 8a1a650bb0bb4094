"""Sounds by name: the path of a WAV, FLAC or OGG file, a path into a zip file, synthetic speech, or several joined.

`joined: a.wav + 0.25 s + b.wav` is one sound followed by a pause and another sound.
Axes: N samples.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from regard.data.archives import absence_of, archive_of, is_file, list_files, read_content
from regard.data.arrays import as_array, describe_array
from regard.data.lines import open_file
from regard.data.log_mel import Frames, Samples, log_mel, resample
from regard.data.manifests import SOUND_ENDINGS
from regard.data.synthetic_speech import SPOKEN, synthesise
from regard.data.wav_header import missing_bytes
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG")
LARGEST = 500_000_000
"""Bytes of the largest file that is read."""
RATES = (1_000, 768_000)
"""Lowest and highest sample rate that is accepted."""
JOINED, PLUS = "joined: ", " + "
MEMORY = "memory-sound:"
"""Prefix of the names of sounds in memory; after a number and another colon follows what errors call them."""
LARGEST_GAP = 0.01
"""Largest share of the samples that a WAV file may lack; some programs write headers that are off by a few bytes."""
_ARRAYS: dict[str, tuple[Samples, int | None] | bytes] = {}
_NUMBERS = count(1)


@dataclass(frozen=True)
class SoundFormat:
    """The format of sounds that a model reads."""

    rate: int
    """Samples per second; other rates are resampled."""
    bands: int
    """Mel bands."""
    max_seconds: float
    """Longer sounds are refused."""


def read_frames(name: str, wanted: SoundFormat) -> tuple[Frames, set[int]]:
    """Return the log-mel features of a sound, S×F, and the sample rates that were resampled."""
    return _read_frames(name, file_stamp(name), wanted)


def check_sound(name: str) -> None:
    """Raise if a file of this sound does not exist, without reading it."""
    for part in _parts(name):
        if isinstance(part, str) and not part.startswith((MEMORY, SPOKEN)) and archive_of(part) is None:
            if not part.strip():
                raise RegardError("The name of a sound is empty. Give the path of a sound, such as speech.wav.")
            if not is_file(part):
                raise RegardError(f"{part[:200]} {absence_of(part)}. Give the path of a sound, such as speech.wav.")


def read_header(path: str) -> tuple[int, float]:
    """Return the sample rate of a file and its length in seconds, without reading its samples."""
    check_sound(path)
    with _opened(path, path[:200]) as file:
        rate = _check_rate(file.samplerate, path[:200])
        return rate, file.frames / rate


def list_sounds(place: str) -> list[str]:
    """Return the names, within a folder or a zip file, of all the sounds there."""
    return list_files(place, SOUND_ENDINGS, remedy="Name a folder, or a zip file, of sounds.")


def sounds_inside(name: str) -> list[str]:
    """Return the sounds of a folder or of a zip file by their paths, of which there must be one; else nothing."""
    is_zip = name.lower().endswith(".zip") and is_file(name)
    if not is_zip and absence_of(name) != "is a directory":
        return []
    found = list_sounds(name)
    if not found:
        what = "zip file" if is_zip else "directory"
        raise RegardError(f"{name} is a {what} without sounds (WAV, FLAC, OGG). Name one that has some.")
    return [f"{name.rstrip('/')}/{inside}" for inside in found]


def read_stream(name: str) -> bytes | None:
    """Return the content of standard input (`-`), of a pipe or of a device; `None` of anything else."""
    if name != "-" and (is_file(name) or absence_of(name) != "is not a file"):
        return None
    try:
        if name == "-":
            content = sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b""  # none if it is closed
        else:
            with open_file(Path(name)) as file:
                content = file.read(LARGEST + 1)
    except OSError as error:
        raise RegardError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(content) > LARGEST:
        raise RegardError(f"{name} has more than {LARGEST:,} bytes. Cut it into shorter sounds.")
    return content


def file_stamp(name: str) -> str | None:
    """Return size and modification time of the files of a sound; `None` if one is missing."""
    stamps = []
    for part in _parts(name):
        if isinstance(part, str) and part.startswith(MEMORY):
            if part not in _ARRAYS:
                return None
            stamps.append(part)
        elif isinstance(part, str) and part.startswith(SPOKEN):
            stamps.append(SPOKEN)  # the name says all
        elif isinstance(part, str):
            try:
                status = Path(archive_of(part) or part).stat()
            except (OSError, ValueError):
                return None
            stamps.append(f"{status.st_size}:{status.st_mtime_ns}")
    return " ".join(dict.fromkeys(stamps))


def join_sounds(names: Sequence[str], pauses: Sequence[float]) -> str:
    """Return the name of several sounds with pauses, in seconds, between them."""
    parts = [names[0]]
    for name, pause in zip(names[1:], pauses, strict=True):
        parts += [f"{pause:.3f} s", name]
    return JOINED + PLUS.join(parts)


class KeepSound(Protocol):
    """Gives a name to a sound in memory."""

    def __call__(self, sound: object, /, label: str = ...) -> str:
        """Return the name; errors call the sound by the label."""


@contextmanager
def sounds_in_memory() -> Iterator[KeepSound]:
    """Give names to sounds that are arrays, or the bytes of a file, for as long as the context lasts.

    An array has samples, N or N×channels, at the rate of the model; a tuple has such an array and its rate.
    """
    names: list[str] = []

    def keep(sound: object, /, label: str = "The sound") -> str:
        content = bytes(sound) if isinstance(sound, bytes | bytearray | memoryview) else _from_array(sound)
        names.append(f"{MEMORY}{next(_NUMBERS)}:{label}")
        _ARRAYS[names[-1]] = content
        return names[-1]

    try:
        yield keep
    finally:
        for name in names:
            del _ARRAYS[name]


def _from_array(sound: Any) -> tuple[Samples, int | None]:
    """Return the samples, N, of an array or of a tuple with an array, and the rate if it is given."""
    rate = None
    if isinstance(sound, tuple):
        if len(sound) != 2 or not isinstance(sound[1], int | np.integer) or isinstance(sound[1], bool):
            raise RegardError("A sound in a tuple must be (samples, sample rate), the rate a whole number.")
        sound, rate = sound[0], _check_rate(int(sound[1]), "The array")
    values = as_array(sound)
    if values is None or values.dtype.kind not in "fiu" or values.ndim not in (1, 2):
        raise RegardError(
            f"A sound must be a path, the bytes of a file, or an array of samples (N or N×channels), not "
            f"{type(sound).__name__}{describe_array(values)}."
        )
    if values.dtype.kind in "iu":
        if values.dtype not in (np.dtype(np.int16), np.dtype(np.int32)):
            raise RegardError(f"Samples must be floats, int16 or int32, not {values.dtype}. Convert them first.")
        values = values / -float(np.iinfo(values.dtype).min)
    if values.ndim == 2 and values.shape[1] > values.shape[0] > 0:
        shape = "×".join(map(str, values.shape))
        raise RegardError(f"An array of {shape} has more channels than samples. Transpose it to samples×channels.")
    return _to_mono(values.astype(np.float32), "The array"), rate


@lru_cache(maxsize=256)
def _read_frames(name: str, stamp: str | None, wanted: SoundFormat) -> tuple[Frames, set[int]]:
    samples, rates = _read_samples(name, wanted)
    return log_mel(samples, wanted.rate, wanted.bands), rates


def _read_samples(name: str, wanted: SoundFormat) -> tuple[Samples, set[int]]:
    """Return the samples of a sound at the wanted rate, one channel, and other rates that it or its parts had."""
    pieces: list[Samples] = []
    rates: set[int] = set()
    seconds = 0.0
    for part in _parts(name):
        if isinstance(part, float):
            seconds += part
            _check_length(name, seconds, wanted)
            pieces.append(np.zeros(round(part * wanted.rate), dtype=np.float32))
            continue
        samples, rate = _decode(part, wanted)
        seconds += len(samples) / rate
        _check_length(name, seconds, wanted)
        if rate != wanted.rate:
            rates.add(rate)
        pieces.append(resample(samples, rate, wanted.rate))
    return np.concatenate(pieces), rates


def _parts(name: str) -> list[str | float]:
    """Return the names of sounds and the lengths of pauses that a name consists of."""
    if not name.startswith(JOINED):
        return [name]
    parts: list[str | float] = []
    for part in name.removeprefix(JOINED).split(PLUS):
        number = part.removesuffix(" s")
        try:
            pause = float(number) if number != part else None
        except ValueError:
            pause = None
        if pause is not None and not 0 <= pause < 1e6:
            raise RegardError(f"`{part}` is not a pause. Give seconds, such as `0.25 s`.")
        parts.append(part.strip() if pause is None else pause)
    return parts


def _decode(name: str, wanted: SoundFormat) -> tuple[Samples, int]:
    """Return the samples of one sound, N, its channels averaged, and their rate."""
    if not name.strip():
        raise RegardError("The name of a sound is empty. Give the path of a sound, such as speech.wav.")
    if name.startswith(MEMORY):
        kept = _ARRAYS.get(name)
        if kept is None:
            raise RegardError(f"{_shown(name)} does not exist. Give the path of a sound, such as speech.wav.")
        if not isinstance(kept, bytes):
            return kept[0], kept[1] or wanted.rate
        content = kept
    elif name.startswith(SPOKEN):
        content = synthesise(name)
    else:
        content = read_content(name, limit=LARGEST, noun="sound")
    name = _shown(name)
    if not content:
        raise RegardError(f"{name} is empty. Record it again, or leave it out.")
    with _opened(io.BytesIO(content), name) as file:
        rate = _check_rate(file.samplerate, name)
        _check_length(name, file.frames / rate, wanted)
        count = -1 if file.seekable() else file.frames
        samples = file.read(count, dtype="float32", always_2d=True)  # N×channels
    missing, announced = missing_bytes(content)
    if missing > LARGEST_GAP * announced:
        raise RegardError(
            f"{name} is cut short: its header announces {announced:,} bytes of samples, and {missing:,} of them are "
            "missing. Copy or record it again."
        )
    return _to_mono(samples, name), rate


@contextmanager
def _opened(file: str | io.BytesIO, name: str) -> Iterator[Any]:
    """Open a file with soundfile; errors call it by the name."""
    soundfile = _soundfile()
    try:
        with soundfile.SoundFile(file) as opened:
            if opened.format not in FORMATS:
                raise RegardError(f"{name} is a sound in format {opened.format}. Convert it to WAV, FLAC or OGG.")
            yield opened
    except RegardError:
        raise
    except Exception as error:  # a damaged file can make the decoder raise anything
        reason = str(error).split(": ", 1)[-1].rstrip(".")[:200] or type(error).__name__
        raise RegardError(f"{name} cannot be read as WAV, FLAC or OGG ({reason}). It may be damaged.") from None


def _shown(name: str) -> str:
    """Return what errors call a sound."""
    _, _, label = name.removeprefix(MEMORY).partition(":")
    return (label if name.startswith(MEMORY) and label else name)[:200]


def _to_mono(samples: Samples, name: str) -> Samples:
    """Average the channels; raises if there are no samples, or some that are not finite."""
    mono = samples.mean(axis=1) if samples.ndim == 2 and samples.shape[1] else samples.reshape(-1)
    if not len(mono):
        raise RegardError(f"{name} has no samples. Record it again, or leave it out.")
    if not np.isfinite(mono).all():
        raise RegardError(f"{name} has samples that are not finite numbers. It may be damaged.")
    return np.ascontiguousarray(mono)


def _check_rate(rate: int, name: str) -> int:
    if not RATES[0] <= rate <= RATES[1]:
        raise RegardError(f"{name} has a sample rate of {rate:,} Hz. It must be from {RATES[0]:,} to {RATES[1]:,}.")
    return rate


def _check_length(name: str, seconds: float, wanted: SoundFormat) -> None:
    if seconds > wanted.max_seconds:
        raise RegardError(
            f"{_shown(name)} lasts {seconds:,.1f} seconds, but this model reads at most {wanted.max_seconds:g} "
            "(model.encoder.max_seconds). Cut it into shorter sounds."
        )


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError):
        raise RegardError(f"Sounds need soundfile. Install it with `{install_command('sound')}`.") from None
    return soundfile
