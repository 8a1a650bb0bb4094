"""Tokenizer settings."""

from typing import Literal

from pydantic import Field

from regard.config.section import Section


class Tokenizer(Section):
    """One tokenizer, trained on the training corpus at the start of a run."""

    kind: Literal["bpe", "unigram", "characters", "words", "sentencepiece", "wordpiece"] = "bpe"
    """`bpe` and `unigram` fall back to bytes, so no text is unknown; `words` has an unknown word.
    `sentencepiece` and `wordpiece` are read from `model`, not trained."""
    model: str | None = None
    """`sentencepiece`: the file of a trained SentencePiece model; `wordpiece`: a `vocab.txt`, as BERT has it."""
    vocabulary: int | None = Field(default=None, ge=16)
    """Number of tokens; by default as many as the corpus supports, up to 8,000 (good for small corpora)."""
    min_frequency: int = Field(default=2, ge=1)
    """Smallest number of occurrences of a word (or merge) that gets its own token."""
    unicode: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode normal form; NFC changes nothing visible, NFKC also folds ½, ﬁ and full-width letters."""
    lower: bool = False
    """Lower-case all text; helps on very small corpora, but outputs are lower-case too."""


class Text(Section):
    """The tokenizers of a run."""

    tokenizer: Tokenizer = Tokenizer()
    """The tokenizer of both sides."""
    target: Tokenizer | None = None
    """Another tokenizer for the target side; setting it makes the vocabularies separate."""
    joint: bool = True
    """One vocabulary for both sides: names and numbers are often equal, and embeddings can be shared."""
    bpe_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability of dropping a merge while training (Provilkov et al., 2020); 0.1 helps on small corpora. With
    `model.copying`, equal words of source and target are cut alike."""

    @property
    def shared(self) -> bool:
        """Whether source and target use one vocabulary."""
        return self.joint and self.target is None
