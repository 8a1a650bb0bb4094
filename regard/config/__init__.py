"""Typed configuration: one section per component, overrides, presets and helpful errors."""
