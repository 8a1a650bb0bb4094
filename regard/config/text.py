"""How raw text becomes tokens."""

from typing import Literal

from pydantic import Field

from regard.config.section import Section


class Tokenizer(Section):
    """One tokenizer, trained on the training corpus as the first act of a run."""

    kind: Literal["bpe", "unigram", "characters", "words", "sentencepiece", "wordpiece"] = "bpe"
    """`bpe` and `unigram` fall back to bytes, so nothing is ever unknown; `words` has an unknown word.
    `sentencepiece` and `wordpiece` are not learnt but read from `model`."""
    model: str | None = None
    """`sentencepiece`: the file of a trained SentencePiece model; `wordpiece`: a `vocab.txt`, as BERT has it."""
    vocabulary: int | None = Field(default=None, ge=16)
    """Number of tokens; by default as many as the corpus supports, up to 8,000 (good for small corpora)."""
    min_frequency: int = Field(default=2, ge=1)
    """A word (or merge) seen less often than this gets no token of its own."""
    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode normal form; NFC changes nothing a reader can see, NFKC also folds ½, ﬁ and full-width letters."""
    lower: bool = False
    """Lower-case everything; helps on very small corpora, loses the case of the output."""


class Text(Section):
    """The tokenizers of a run."""

    tokenizer: Tokenizer = Tokenizer()
    """The tokenizer of both sides."""
    target: Tokenizer | None = None
    """Another tokenizer for the target side; setting it makes the vocabularies separate."""
    joint: bool = True
    """One vocabulary for both sides: names and numbers look alike, and embeddings can be shared."""
    bpe_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of dropping a merge while training (Provilkov et al., 2020); 0.1 helps on small corpora."""

    @property
    def shared(self) -> bool:
        """Whether source and target use one vocabulary."""
        return self.joint and self.target is None
