"""Text normalisation and tokenizers."""
