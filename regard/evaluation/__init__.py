"""Evaluation of models and of their outputs: likelihood, metrics, comparisons, contrastive suites, human judgements."""
