"""From a trace to an explanation, and the views that draw it.

import regard
from regard import inspection
trace = regard.load("runs/mine").trace("source text")
inspection.attention(trace).save("page.html")
"""

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
from regard.inspection.reasons import reasons
from regard.inspection.reports import report
from regard.inspection.roles import heads
from regard.inspection.shares import contributions

__all__ = [
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
