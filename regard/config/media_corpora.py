"""Corpora of images and sounds in folders, with files that give their texts or labels."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from regard.config.text_corpora import CorpusSection, File, Paths


class ImageFiles(CorpusSection):
    """Images in a folder, and files with their captions; an image may have several."""

    images: File
    """Folder, or zip file, of pictures: PNG, JPEG, GIF, BMP or WebP."""
    captions: Paths
    """File or files with a picture's name and a caption per line: by tabs, as a table (`.csv`, `.xlsx`, `.parquet`) or
    as JSON (`.jsonl`). Text files are UTF-8, plain or gzip."""
    header: bool = False
    """Columns: whether the first line of each file names them and is skipped."""
    image_column: int = Field(default=1, ge=1)
    """Column of the picture's name, counted from 1."""
    caption_column: int = Field(default=2, ge=1)
    """Column of the caption, or of the answer, counted from 1."""
    question_column: int | None = Field(default=None, ge=1)
    """Column of a question about the picture, counted from 1; the caption is then its answer."""
    split_column: int | None = Field(default=None, ge=1)
    """Column with the part of the corpus that a line belongs to; see `split`."""
    image_field: str = "image"
    """JSON: field of the picture's name."""
    caption_field: str = "caption"
    """JSON: field of the caption: a string, or a list of several; or of the answer."""
    question_field: str | None = None
    """JSON: field of a question about the picture; the caption is then its answer."""
    split_field: str | None = None
    """JSON: field with the part of the corpus that a line belongs to; see `split`."""
    split: str | None = None
    """Which part to take, such as `train`; by default all lines."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        part = f" ({self.split})" if self.split else ""
        return f"{', '.join(self.captions)}{part} with the pictures of {self.images}"

    @property
    def listing(self) -> str | None:
        """The files of captions."""
        return "captions"

    @property
    def texts(self) -> int:
        """Number of texts of a source; a question counts as one, an image does not."""
        return 1 if self.question_column is None and self.question_field is None else 2

    @property
    def pictures(self) -> bool:
        """Whether a source is an image."""
        return True

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if (self.split is None) != (self.split_column is None and self.split_field is None):
            raise ValueError(
                "needs both split, the part of the corpus to use, and split_column (split_field), which names the "
                "part of each line. Set both, or neither."
            )
        return self


class SoundFiles(CorpusSection):
    """Sounds in a folder, and files that give the text or the label of each."""

    sounds: File
    """Folder, or zip file, of sounds: WAV, FLAC or OGG."""
    manifest: Paths
    """File or files with a sound's name and its text per line: by tabs, as a table (`.csv`, `.xlsx`, `.parquet`) or as
    JSON (`.jsonl`). Text files are UTF-8, plain or gzip."""
    header: bool = False
    """Columns: whether the first line of each file names them and is skipped."""
    sound_column: int = Field(default=1, ge=1)
    """Column of the name of the sound, counted from 1."""
    text_column: int = Field(default=2, ge=1)
    """Column of the text or the label, counted from 1."""
    sound_field: str = "sound"
    """JSON: field of the name of the sound."""
    text_field: str = "text"
    """JSON: field of the text or the label."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"{', '.join(self.manifest)} with the sounds of {self.sounds}"

    @property
    def listing(self) -> str | None:
        """The manifest."""
        return "manifest"


class SpokenWords(CorpusSection):
    """Recordings of single words, named `WORD_SPEAKER_NUMBER.wav`: alone, or several of one speaker with pauses."""

    spoken_words: File
    """Folder, or zip file, of the recordings."""
    speakers: list[str] | None = None
    """Whose recordings to use; by default those of all speakers."""
    without_speakers: list[str] = Field(default_factory=list)
    """Whose recordings to leave out, such as the speaker to test with."""
    min_words: int = Field(default=1, ge=1, le=100)
    """Fewest words of a sequence."""
    max_words: int = Field(default=1, ge=1, le=100)
    """Most words of a sequence; 1: every recording once, by itself."""
    size: int = Field(default=5000, ge=1, le=10_000_000)
    """How many sequences to make, if `max_words` is more than 1."""
    seed: int = 0
    """Different seeds make different sequences."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return f"the recordings of {self.spoken_words}"

    @property
    def listing(self) -> str | None:
        """None: the names of the recordings are the examples."""
        return None

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"has min_words {self.min_words} above max_words {self.max_words}. Swap them.")
        return self


class SyntheticSpeech(CorpusSection):
    """Speech by the program espeak-ng: invented words, or the lines of a text file, spoken by several voices."""

    speech: File
    """`invented`: words of open syllables, or a text file, plain or gzip, with a sentence per line."""
    language: str = Field(default="es", pattern=r"^[a-z]{2,3}(-[a-z0-9]+)*$")
    """Language of espeak-ng; Spanish spells invented words as they sound."""
    voices: list[Annotated[str, Field(pattern=r"^[a-z0-9]{1,30}$")]] = Field(
        default_factory=lambda: ["m1", "m2", "m3", "m4", "m5", "f1", "f2", "f3"], min_length=1
    )
    """Variants of the voice of espeak-ng, such as m1 to m8 and f1 to f5."""
    speed: list[int] = Field(default_factory=lambda: [130, 190], min_length=2, max_length=2)
    """Slowest and fastest speech, in words per minute: 80 to 450."""
    pitch: list[int] = Field(default_factory=lambda: [30, 70], min_length=2, max_length=2)
    """Lowest and highest pitch: 0 to 99."""
    min_words: int = Field(default=1, ge=1, le=100)
    """`invented`: fewest words of a sentence."""
    max_words: int = Field(default=4, ge=1, le=100)
    """`invented`: most words of a sentence."""
    unseen: bool = False
    """`invented`: take the fifth of all words that corpora without this setting never contain, to test with."""
    size: int = Field(default=2000, ge=1, le=10_000_000)
    """`invented`: number of sentences."""
    seed: int = 0
    """Different seeds give different sentences and voices."""

    @property
    def name(self) -> str:
        """A short description for messages."""
        return "the invented words of espeak-ng" if self.speech == "invented" else f"{self.speech}, spoken by espeak-ng"

    @property
    def listing(self) -> str | None:
        """None: the text file, if there is one, has the examples."""
        return None

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_words > self.max_words:
            raise ValueError(f"has min_words {self.min_words} above max_words {self.max_words}. Swap them.")
        for name, (low, high), least, most in (("speed", self.speed, 80, 450), ("pitch", self.pitch, 0, 99)):
            if not least <= low <= high <= most:
                raise ValueError(
                    f"has {name} {[low, high]}, which must be two numbers from {least} to {most}, in order."
                )
        return self
