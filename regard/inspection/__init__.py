"""From a trace to an explanation, and the views that draw it."""
