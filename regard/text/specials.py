"""The six tokens that stand for no text, at the same places in every vocabulary."""

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<sep>", "<mask>")
PAD, BOS, EOS, UNK, SEP, MASK = range(len(SPECIALS))
