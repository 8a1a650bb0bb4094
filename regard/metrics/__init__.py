"""Scores of answers against references, with intervals and significance; none of them needs a model."""
