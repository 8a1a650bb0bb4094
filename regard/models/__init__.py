"""Models and their parts: encoders, decoders and the joins between them."""

from regard.models.memory import DecodingState, Memory
from regard.models.model import Model, build

__all__ = ["DecodingState", "Memory", "Model", "build"]
