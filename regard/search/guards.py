"""The guard against endless repetition, as search uses it; what it does is in `regard.text.loops`."""

from regard.text.loops import PATIENCE, loop_start, patience_for

__all__ = ["PATIENCE", "loop_start", "patience_for"]
