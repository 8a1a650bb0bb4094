"""How good is a model, and how good its text: likelihood, metrics, comparisons, contrasts, human judgements."""
