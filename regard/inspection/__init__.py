"""From a trace to an explanation, and the views that draw it.

import regard
from regard import inspection
trace = regard.load("runs/mine").trace("source text")
inspection.attention(trace).save("page.html")
"""

from collections.abc import Callable
from typing import Any

from regard.inspection.alignments import align
from regard.inspection.attribution import attribute
from regard.inspection.identifiability import identify
from regard.inspection.identification import identify_corpus
from regard.inspection.layer_lens import lens
from regard.inspection.maps import attention
from regard.inspection.patching import patch
from regard.inspection.patching_pairs import patch_pairs
from regard.inspection.probing import probe
from regard.inspection.pruning import prune
from regard.inspection.reasons import explain_words, reasons
from regard.inspection.reports import report
from regard.inspection.roles import heads
from regard.inspection.shares import contributions

ANALYSES: dict[str, Callable[..., Any]] = {
    "attention": attention,
    "attribute": explain_words,
    "contributions": contributions,
    "identify": identify,
    "lens": lens,
    "reasons": reasons,
}
"""The analyses of one trace by name, those of extensions included."""

__all__ = [
    "ANALYSES",
    "align",
    "attention",
    "attribute",
    "contributions",
    "heads",
    "identify",
    "identify_corpus",
    "lens",
    "patch",
    "patch_pairs",
    "probe",
    "prune",
    "reasons",
    "report",
]
