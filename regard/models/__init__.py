"""Assemblies of blocks: encoders, decoders, joins, the model."""

from regard.models.memory import DecodingState, Memory
from regard.models.model import Model, build

__all__ = ["DecodingState", "Memory", "Model", "build"]
