"""The public Python API: `load`, `train`, and the result types of models."""
