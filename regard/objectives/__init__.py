"""Training objectives: the loss, and methods against exposure bias."""
