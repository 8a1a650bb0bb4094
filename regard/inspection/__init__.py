"""From a trace to an explanation, and the views that draw it.

import regard
from regard import inspection
trace = regard.load("runs/mine").trace("source text")
inspection.attention(trace).save("page.html")
"""

from collections.abc import Callable
from typing import Any

from regard.inspection.analyses.align.compute import align
from regard.inspection.analyses.all.compute import report
from regard.inspection.analyses.attention.compute import attention
from regard.inspection.analyses.attribute.compute import attribute
from regard.inspection.analyses.attribute.reasons import explain_words, reasons
from regard.inspection.analyses.contributions.compute import contributions
from regard.inspection.analyses.heads.compute import heads
from regard.inspection.analyses.identify.compute import identify
from regard.inspection.analyses.identify.identification import identify_corpus
from regard.inspection.analyses.lens.compute import lens
from regard.inspection.analyses.patch.compute import patch
from regard.inspection.analyses.patch.pairs import patch_pairs
from regard.inspection.analyses.probe.compute import probe
from regard.inspection.analyses.prune.compute import prune

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
