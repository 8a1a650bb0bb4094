"""Corpora in, token stores between, bucketed and resumable batches out; generated corpora."""
