"""Suggested replies behind HTTP, and the demo inbox in a browser."""
