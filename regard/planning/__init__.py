"""The cost of a run before it is trained."""

from regard.planning.corpus_sample import Lengths
from regard.planning.estimate import UTILISATION, Plan, flops_per_token, plan
from regard.planning.hardware import HARDWARE, parse_devices
from regard.planning.memory import format_memory

__all__ = ["HARDWARE", "UTILISATION", "Lengths", "Plan", "flops_per_token", "format_memory", "parse_devices", "plan"]
