"""What `import regard` offers: `load`, `train`, and the typed results of a model."""
