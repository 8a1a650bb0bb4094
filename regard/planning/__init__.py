"""The cost of a run before it is trained."""

from regard.planning.corpus_sample import Lengths
from regard.planning.estimate import UTILISATION, Elsewhere, Plan, flops_per_token, plan
from regard.planning.hardware import HARDWARE, parse_devices
from regard.planning.memory import format_memory
from regard.planning.scaling import Parallel

__all__ = [
    "HARDWARE",
    "UTILISATION",
    "Elsewhere",
    "Lengths",
    "Parallel",
    "Plan",
    "flops_per_token",
    "format_memory",
    "parse_devices",
    "plan",
]
