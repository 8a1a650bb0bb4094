"""Reading corpora, storing their tokens, and serving length-bucketed, resumable batches; generated corpora."""
