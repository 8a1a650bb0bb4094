"""Where a speech recogniser looks: whether its attention is on the word that it writes, and moves forward.

    python benchmarks/spoken_attention.py runs/spoken-numbers
    python benchmarks/spoken_attention.py runs/spoken-numbers --sounds 50

Reads sequences of spoken words of the run's test part, of which it is known where each word is, and uses those that are
transcribed without an error.
"""

import argparse
from itertools import islice
from pathlib import Path

import regard
from regard.config.model import SoundEncoder
from regard.data.corpus import read
from regard.data.log_mel import FRAMES_PER_SECOND
from regard.data.sounds import JOINED, PLUS, SoundFormat, read_frames
from regard.foundation.display import columns
from regard.nn.subsampling import FACTOR
from regard.runs.run import Run

ATTENTION = "decoder.source_attention.weights"
SLACK = 2
"""Positions of 40 ms that a layer of two convolutions looks further."""


def stretches(name: str, wanted: SoundFormat) -> list[tuple[float, float]]:
    """Return the first and the last position of each sound of a joined one."""
    found, start = [], 0.0
    for part in name.removeprefix(JOINED).split(PLUS):
        if part.endswith(" s"):
            start += float(part[:-2]) * FRAMES_PER_SECOND / FACTOR
            continue
        end = start + len(read_frames(part, wanted)[0]) / FACTOR
        found.append((start, end))
        start = end
    return found


def main() -> None:
    """Print shares of words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("runs/spoken-numbers"))
    parser.add_argument("--sounds", type=int, default=120, help="of the test part")
    arguments = parser.parse_args()
    config = Run.open(arguments.run).config
    encoder, test = config.model.encoder, config.data.test
    assert isinstance(encoder, SoundEncoder) and test is not None
    model = regard.load(arguments.run)
    wanted = SoundFormat(encoder.rate, encoder.bands, encoder.max_seconds)
    used = words = inside = forward = 0
    share = 0.0
    for pair in islice(read(test), arguments.sounds):
        trace = model.trace(pair.source)
        if [token for token in trace.target.tokens if token != "</s>"] != pair.target.split():
            continue
        used, last = used + 1, -1
        for weights, (start, end) in zip(trace.activations[ATTENTION][0], stretches(pair.source, wanted), strict=False):
            place = int(weights.argmax())  # weights: S
            words += 1
            inside += start - SLACK <= place <= end + SLACK
            forward += place >= last
            share += float(weights[int(start) : int(end) + 1].sum())
            last = place
    rows = [
        ["sequences without an error", f"{used} of {arguments.sounds}"],
        ["words", f"{words}"],
        ["most attention on the spoken word", f"{100 * inside / max(1, words):.1f} %"],
        ["most attention not before that of the last word", f"{100 * forward / max(1, words):.1f} %"],
        ["share of attention inside the spoken word", f"{100 * share / max(1, words):.1f} %"],
    ]
    print(columns([["", str(arguments.run)], *rows], right=[1]))


if __name__ == "__main__":
    main()
