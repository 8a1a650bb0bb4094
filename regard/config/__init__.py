"""Typed configuration: one section per component, overrides, presets, errors that help."""
