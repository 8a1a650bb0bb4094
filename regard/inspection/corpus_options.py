"""Options that every analysis over a corpus has, declared once; nothing here imports torch."""

from pathlib import Path
from typing import Annotated

from regard.inspection.options import Option

MOST = 200
"""Examples that are read by default."""

Corpus = Annotated[Path, Option("Sources, one on each line, or CoNLL-U: means over all outputs.")]
Reference = Annotated[
    Path | None,
    Option("A reference for each source: adds means by error. As CoNLL-U, words are grouped by part of speech."),
]
Most = Annotated[int, Option("Read at most this many examples of the corpus, drawn at random.", minimum=1)]
Seed = Annotated[int, Option("Seed of what is drawn at random.", minimum=0)]
