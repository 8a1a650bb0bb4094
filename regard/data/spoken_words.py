"""Sequences of spoken words, joined from recordings of single words; the same settings always give the same ones."""

import random
from collections.abc import Iterator

from regard.config.media_corpora import SpokenWords
from regard.data.sounds import join_sounds, list_sounds
from regard.foundation.errors import RegardError

PAUSES = (0.05, 0.4)
"""Shortest and longest silence between two words, in seconds."""


def read_spoken_words(corpus: SpokenWords) -> Iterator[tuple[str, str]]:
    """Yield the name of a sound and its words; each sequence has one speaker and occurs once."""
    recordings = find_recordings(corpus)
    if corpus.max_words == 1:
        for own in recordings.values():
            yield from own
        return
    generator = random.Random(f"spoken words {corpus.seed}")
    speakers, failures = sorted(recordings), 0
    seen: set[tuple[str, ...]] = set()
    while len(seen) < corpus.size:
        own = recordings[generator.choice(speakers)]
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


def find_recordings(corpus: SpokenWords) -> dict[str, list[tuple[str, str]]]:
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
