"""Tasks: inputs and outputs of models, and the objects that use trained runs."""
