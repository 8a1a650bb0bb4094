"""The header of a WAV file: how many bytes of samples it announces."""

_CHUNK = 8
"""Bytes of the name and the size of a chunk."""


def missing_bytes(content: bytes) -> tuple[int, int]:
    """Return how many bytes of samples a file lacks, and how many its header announces; 0 of 0 if it does not say.

    A program that writes to a pipe does not know the size, and announces none or the largest number.
    """
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return 0, 0
    place = 12
    while place + _CHUNK <= len(content):
        size = int.from_bytes(content[place + 4 : place + _CHUNK], "little")
        place += _CHUNK
        if content[place - _CHUNK : place - 4] == b"data":
            is_known = 0 < size < 0x7FFF_0000
            return (max(0, place + size - len(content)), size) if is_known else (0, 0)
        place += size + size % 2
    return 0, 0
