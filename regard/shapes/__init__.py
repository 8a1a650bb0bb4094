"""The shapes of sequence model: each a file that ties a form of examples, a model, an objective and a judgement."""
