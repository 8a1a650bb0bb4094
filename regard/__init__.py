"""Regard: sequence-to-sequence models you can see through.

import regard
model = regard.load("runs/dates")
model.translate("Saturday 09 May 2018")
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.translator import Translator

__version__ = "0.1.0"


def load(run: Path | str, overrides: Sequence[str] = ()) -> "Translator":
    """Open a trained run: raw text goes in, raw text comes out."""
    from regard.run import Run

    Run.open(run)  # before torch is imported: a mistyped name is told at once
    from regard.translator import Translator

    return Translator.load(run, overrides)
