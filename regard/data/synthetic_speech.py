"""Speech by espeak-ng: texts or invented words, spoken by several voices; the same settings always give the same ones.

Invented words have open syllables of a few consonants and vowels, which languages such as Spanish spell as they sound:
a recogniser can learn them from scratch, and write words that it never heard. A sound is named by what it says, such as
`spoken: es+f2 160 45 bano tilu` (voice, words per minute, pitch, text).
"""

import random
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from functools import lru_cache

from regard.config.media_corpora import SyntheticSpeech
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError

SPOKEN = "spoken: "
"""Prefix of the names of synthetic sounds."""
CONSONANTS, VOWELS = "bdfklmnprstč", "aeiou"
PARTS = 5
"""Invented words belong to one of this many parts; the last has those that are kept from training."""
_NAME = re.compile(r"spoken: (?P<voice>[a-z0-9-]+\+[a-z0-9]+) (?P<speed>[0-9]{2,3}) (?P<pitch>[0-9]{1,2}) (?P<text>.+)")


def read_synthetic_speech(corpus: SyntheticSpeech) -> Iterator[tuple[str, str]]:
    """Yield the name of a sound and its words."""
    require_espeak()
    draw = random.Random(f"synthetic speech {corpus.seed}")
    for text in _invented(corpus, draw) if corpus.speech == "invented" else _texts(corpus):
        voice = f"{corpus.language}+{draw.choice(corpus.voices)}"
        speed, pitch = (draw.randint(low, high) for low, high in (corpus.speed, corpus.pitch))
        yield f"{SPOKEN}{voice} {speed} {pitch} {text}", text


def synthesise(name: str) -> bytes:
    """Return the WAV file of a synthetic sound."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise RegardError(
            f"`{name[:100]}` is not a synthetic sound. Its form is `spoken: VOICE SPEED PITCH TEXT`, such as "
            "`spoken: es+f2 160 45 bano tilu`."
        )
    voice, speed, pitch, text = found.groups()
    program, variant = require_espeak(), voice.partition("+")[2]
    if (known := _variants(program)) and variant not in known:  # espeak-ng would speak without the variant
        raise RegardError(f"espeak-ng has no voice variant `{variant}`. `espeak-ng --voices=variant` lists them.")
    done = subprocess.run(
        [program, "--stdout", "-v", voice, "-s", speed, "-p", pitch, "--", text], capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise RegardError(
            f"espeak-ng cannot speak with the voice {voice} ({(reason or ['no reason given'])[0]}). "
            "`espeak-ng --voices` lists its languages, `espeak-ng --voices=variant` its variants."
        )
    return _with_length(done.stdout)


@lru_cache(maxsize=1)
def require_espeak() -> str:
    """Return the path of espeak-ng; raises with a remedy if it is not installed."""
    program = shutil.which("espeak-ng")
    if program is None:
        raise RegardError(
            "Synthetic speech needs the program espeak-ng. Install it with `apt install espeak-ng` (Debian, Ubuntu) or "
            "`brew install espeak-ng` (macOS)."
        )
    return program


@lru_cache(maxsize=1)
def _variants(program: str) -> frozenset[str]:
    """Return the names of the variants of voices."""
    done = subprocess.run([program, "--voices=variant"], capture_output=True, check=False, text=True)
    return frozenset(re.findall(r"!v/(\S+)", done.stdout))


def is_kept_from_training(word: str) -> bool:
    """Return whether an invented word belongs to the part that only corpora with `unseen` contain."""
    return zlib.crc32(word.encode()) % PARTS == PARTS - 1


def _invented(corpus: SyntheticSpeech, draw: random.Random) -> Iterator[str]:
    for _ in range(corpus.size):
        yield " ".join(_word(corpus, draw) for _ in range(draw.randint(corpus.min_words, corpus.max_words)))


def _word(corpus: SyntheticSpeech, draw: random.Random) -> str:
    """Return an invented word of two or three syllables, of the part that the corpus takes its words from."""
    while True:
        syllables = (draw.choice(CONSONANTS) + draw.choice(VOWELS) for _ in range(draw.randint(2, 3)))
        word = "".join(syllables).replace("č", "ch")
        if is_kept_from_training(word) == corpus.unseen:
            return word


def _texts(corpus: SyntheticSpeech) -> Iterator[str]:
    for line in read_lines(corpus.speech):
        if text := " ".join(line.split()):
            yield text


def _with_length(content: bytes) -> bytes:
    """Return a WAV file that was written to a pipe, with the true length of its samples in the header."""
    place = content.find(b"data", 12)
    if place < 0:
        return content
    sizes = ((4, len(content) - 8), (place + 4, len(content) - place - 8))
    made = bytearray(content)
    for start, size in sizes:
        made[start : start + 4] = size.to_bytes(4, "little")
    return bytes(made)
