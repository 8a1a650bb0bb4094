"""Computes how much of each output word came from the source, and how much from the prefix.

Axes: S source tokens, T target tokens.
"""

from regard.foundation.errors import UsageError
from regard.inspection.analyses.contributions.result import Contributions
from regard.inspection.flow import attention_flows, why_not_applicable
from regard.inspection.gain import Gain
from regard.tasks.trace import Trace


def contributions(trace: Trace) -> Contributions:
    """Contributions by ALTI+ (Ferrando et al., 2022), with rollout and attention to compare; for Transformer decoders.

    Words that are less likely with their source than without it (`Gain`) are flagged.
    """
    why = why_not_applicable(trace)
    if why:
        raise UsageError(why)
    return Contributions(trace, attention_flows(trace), Gain.of(trace))
