"""Sounds by name: the path of a WAV, FLAC or OGG file, a path into a zip file, synthetic speech, or several joined.

`joined: a.wav + 0.25 s + b.wav` is one sound followed by a pause and another sound.
Axes: N samples.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.archives import archive_of, is_file, list_files, read_content
from regard.data.log_mel import Frames, Samples, log_mel, resample
from regard.data.synthetic_speech import SPOKEN, synthesise
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

ENDINGS = (".wav", ".flac", ".ogg")
FORMATS = ("WAV", "WAVEX", "FLAC", "OGG")
LARGEST = 500_000_000
"""Bytes of the largest file that is read."""
RATES = (1_000, 768_000)
"""Lowest and highest sample rate that is accepted."""
JOINED, PLUS = "joined: ", " + "
MEMORY = "memory-sound:"
"""Prefix of the names of sounds in memory."""
_ARRAYS: dict[str, tuple[Samples, int | None]] = {}
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
                raise RegardError(f"{part[:200]} does not exist. Give the path of a sound, such as speech.wav.")


def list_sounds(place: str) -> list[str]:
    """Return the names, within a folder or a zip file, of all the sounds there."""
    return list_files(place, ENDINGS, noun="sound")


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


@contextmanager
def sounds_in_memory() -> Iterator[Callable[[object], str]]:
    """Give names to sounds that are arrays for as long as the context lasts.

    A sound is an array of samples, N or N×channels, at the rate of the model, or a tuple of such an array and its rate.
    """
    names: list[str] = []

    def keep(sound: Any) -> str:
        rate = None
        if isinstance(sound, tuple):
            if len(sound) != 2 or not isinstance(sound[1], int | np.integer):
                raise RegardError("A sound in a tuple must be (samples, sample rate).")
            sound, rate = sound[0], _check_rate(int(sound[1]), "The array")
        values = np.asarray(sound)
        if values.dtype.kind not in "fiu" or values.ndim not in (1, 2):
            raise RegardError(
                f"A sound must be a path or an array of samples (N or N×channels), not {type(sound).__name__} of "
                f"{values.dtype} {'×'.join(map(str, values.shape)) or 'without axes'}."
            )
        if values.dtype.kind in "iu":
            if values.dtype not in (np.dtype(np.int16), np.dtype(np.int32)):
                raise RegardError(f"Samples must be floats, int16 or int32, not {values.dtype}. Convert them first.")
            values = values / -float(np.iinfo(values.dtype).min)
        samples = _to_mono(values.astype(np.float32), "The array")
        names.append(f"{MEMORY}{next(_NUMBERS)}")
        _ARRAYS[names[-1]] = samples, rate
        return names[-1]

    try:
        yield keep
    finally:
        for name in names:
            del _ARRAYS[name]


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
    if name.startswith(MEMORY):
        if name not in _ARRAYS:
            raise RegardError(f"{name[:200]} does not exist. Give the path of a sound, such as speech.wav.")
        samples, rate = _ARRAYS[name]
        return samples, rate or wanted.rate
    if not name.strip():
        raise RegardError("The name of a sound is empty. Give the path of a sound, such as speech.wav.")
    soundfile = _soundfile()
    is_synthetic = name.startswith(SPOKEN)
    content = synthesise(name) if is_synthetic else read_content(name, limit=LARGEST, noun="sound")
    if not content:
        raise RegardError(f"{name} is empty. Record it again, or leave it out.")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if file.format not in FORMATS:
                raise RegardError(f"{name} is a sound in format {file.format}. Convert it to WAV, FLAC or OGG.")
            rate = _check_rate(file.samplerate, name)
            _check_length(name, file.frames / rate, wanted)
            samples = file.read(dtype="float32", always_2d=True)  # N×channels
    except RegardError:
        raise
    except Exception as error:  # a damaged file can make the decoder raise anything
        reason = str(error).split(": ", 1)[-1].rstrip(".")[:200] or type(error).__name__
        raise RegardError(f"{name} cannot be read as WAV, FLAC or OGG ({reason}). It may be damaged.") from None
    return _to_mono(samples, name), rate


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
            f"{name[:200]} lasts {seconds:,.1f} seconds, but this model reads at most {wanted.max_seconds:g} "
            "(model.encoder.max_seconds). Cut it into shorter sounds."
        )


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError):
        raise RegardError(f"Sounds need soundfile. Install it with `{install_command('sound')}`.") from None
    return soundfile
