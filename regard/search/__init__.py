"""From a step model to hypotheses."""
