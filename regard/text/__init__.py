"""From raw text to tokens and back: normalising and tokenizers."""
