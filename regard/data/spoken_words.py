"""Sequences of spoken words, joined from recordings of single words; the same settings always give the same ones.

Voices of espeak-ng can be further speakers. Each says every word `TIMES` times, at other speeds and pitches.
"""

import random
from collections.abc import Iterator

from regard.config.media_corpora import SpokenWords
from regard.data.sounds import join_sounds, list_sounds
from regard.data.synthetic_speech import SPOKEN, require_espeak
from regard.foundation.errors import RegardError

PAUSES = (0.05, 0.4)
"""Shortest and longest silence between two words, in seconds."""
VOICES = 1 / 3
"""Share of the sequences that voices of espeak-ng say, if there are any."""
TIMES = 2
"""How often a voice of espeak-ng says each word."""
SPEEDS, PITCHES, NEAR = (110, 220), (10, 80), 8
"""Words per minute, the middle pitch of a voice, and how far the pitch of a word is from it at most."""

Recordings = dict[str, list[tuple[str, str]]]
"""The sounds of each speaker: name and word."""


def read_spoken_words(corpus: SpokenWords) -> Iterator[tuple[str, str]]:
    """Yield the name of a sound and its words; each sequence has one speaker and occurs once."""
    recordings = find_recordings(corpus)
    spoken = speak_words(corpus.voices, recordings) if corpus.voices else {}
    if corpus.max_words == 1:
        for own in (*recordings.values(), *spoken.values()):
            yield from own
        return
    generator = random.Random(f"spoken words {corpus.seed}")
    failures = 0
    seen: set[tuple[str, ...]] = set()
    while len(seen) < corpus.size:
        speakers = spoken if spoken and generator.random() < VOICES else recordings
        own = speakers[generator.choice(sorted(speakers))]
        words = [generator.choice(own) for _ in range(generator.randint(corpus.min_words, corpus.max_words))]
        names = tuple(name for name, _ in words)
        if names in seen:
            failures += 1
            if failures > 100 * corpus.size:
                raise RegardError(
                    f"{corpus.name} make fewer than {corpus.size:,} different sequences of {corpus.min_words} to "
                    f"{corpus.max_words} words. Reduce size, or use longer sequences."
                )
            continue
        seen.add(names)
        pauses = [generator.uniform(*PAUSES) for _ in names[1:]]
        yield join_sounds(names, pauses) if pauses else names[0], " ".join(word for _, word in words)


def speak_words(voices: list[str], recordings: Recordings) -> Recordings:
    """Return the names of synthetic sounds in which each voice says the words of the recordings."""
    require_espeak()
    words = sorted({word for own in recordings.values() for _, word in own})
    spoken: Recordings = {}
    for voice in voices:
        generator = random.Random(f"voice {voice}")
        middle = generator.randint(*PITCHES)
        spoken[voice] = [
            (f"{SPOKEN}{voice} {generator.randint(*SPEEDS)} {middle + generator.randint(-NEAR, NEAR)} {word}", word)
            for word in words
            for _ in range(TIMES)
        ]
    return spoken


def find_recordings(corpus: SpokenWords) -> Recordings:
    """Return the recordings of each speaker that is used: path and word."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in list_sounds(corpus.spoken_words):
        word, *rest = name.rsplit("/", 1)[-1].rsplit(".", 1)[0].split("_")
        if len(rest) != 2 or not word:
            raise RegardError(
                f"{corpus.spoken_words} has a sound called {name}, but recordings are named WORD_SPEAKER_NUMBER, such "
                "as 7_anna_3.wav. Rename it, or remove it."
            )
        found.setdefault(rest[0], []).append((f"{corpus.spoken_words.rstrip('/')}/{name}", word))
    if not found:
        raise RegardError(f"{corpus.spoken_words} has no sounds (WAV, FLAC or OGG).")
    for speaker in (*(corpus.speakers or ()), *corpus.without_speakers):
        if speaker not in found:
            raise RegardError(
                f"{corpus.spoken_words} has no recordings of speaker `{speaker}`. It has {', '.join(sorted(found))}."
            )
    chosen = set(corpus.speakers or found) - set(corpus.without_speakers)
    if not chosen:
        raise RegardError(f"{corpus.name}: speakers and without_speakers leave no speaker. Name fewer to leave out.")
    return {speaker: recordings for speaker, recordings in sorted(found.items()) if speaker in chosen}
