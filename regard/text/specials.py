"""The six special tokens, which have the same ids in every vocabulary."""

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<sep>", "<mask>")
PAD, BOS, EOS, UNK, SEP, MASK = range(len(SPECIALS))
