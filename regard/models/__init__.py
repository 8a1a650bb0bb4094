"""Assemblies of blocks: encoders, decoders, joins, the model."""
