"""The analyses, one folder each."""
