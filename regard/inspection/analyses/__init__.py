"""The analyses: one folder each, found by `regard.inspection.registry`."""
