"""The model: an encoder, a decoder, and what joins the two.

Fields that are `None` follow from the other settings: `regard.config.cell.resolve` fills them in, and rejects
combinations that cannot work.
"""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.choices import CELLS, POSITIONS, SCORES
from regard.config.kinds import Kinds
from regard.config.section import Section

Width = Annotated[int, Field(ge=2, le=65_536)]
Layers = Annotated[int, Field(ge=1, le=256)]


class SideSettings(Section):
    """What encoders and decoders have in common."""

    kind: str
    width: Width | None = None
    """Width of the states; by default `model.width`."""

    @property
    def attends(self) -> bool:
        """Whether it has self-attention."""
        return False

    @property
    def uses_positions(self) -> bool:
        """Whether it needs position information."""
        return False

    @property
    def form_in_words(self) -> str:
        """The variant of its kind in parentheses; empty if there is only one."""
        return ""


class EncoderSettings(SideSettings):
    """Base of all encoders."""


class DecoderSettings(SideSettings):
    """Base of all decoders."""


class BagEncoder(EncoderSettings):
    """A baseline without word order: each token is its embedding, the summary is their mean or sum."""

    kind: Literal["bag"] = "bag"
    width: Width | None = None
    """Width of the states; by default `model.width`."""
    pool: Literal["mean", "sum"] = "mean"
    """How the embeddings are combined into one vector."""


class RnnEncoder(EncoderSettings):
    """A stacked recurrent network over the source."""

    kind: Literal["rnn"] = "rnn"
    cell: Annotated[str, CELLS] = "gru"
    """GRU trains fastest for its quality; LSTM is Sutskever's choice; Elman shows why gates were invented."""
    layers: Layers = 1
    """Depth of the stack."""
    width: Width | None = None
    """Width of the states, both directions together; by default `model.width`."""
    direction: Literal["forward", "backward", "both"] = "both"
    """`backward` reads the source reversed (Sutskever et al., 2014); `both` gives each direction half the width."""


class ConvEncoder(EncoderSettings):
    """Stacked gated convolutions with residual connections (Gehring et al., 2017)."""

    kind: Literal["conv"] = "conv"
    layers: Layers = 4
    """Number of layers; each widens the receptive field by `kernel - 1` positions."""
    kernel: Annotated[int, Field(ge=1, le=99)] = 3
    """Kernel size in positions; odd, so that the window is centred."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""

    @property
    def uses_positions(self) -> bool:
        """True: convolutions see only nearby tokens."""
        return True


class _TransformerFields(SideSettings):
    """What Transformer encoder and decoder have in common."""

    kind: Literal["transformer"] = "transformer"
    layers: Layers = 4
    """Depth."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""
    feed_forward: Width | None = None
    """Inner width of the feed-forward blocks; by default four times the width."""
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    """ReLU as in the paper; SwiGLU (Shazeer, 2020) has a third matrix, so give it two thirds of the inner width."""
    norm: Literal["layer", "rms"] = "layer"
    """LayerNorm, or RMSNorm (Zhang and Sennrich, 2019), which neither centres nor shifts."""
    norm_place: Literal["pre", "post"] = "pre"
    """`pre` trains well without a tuned warm-up; `post` is the paper's."""

    @property
    def attends(self) -> bool:
        """Always."""
        return True

    @property
    def uses_positions(self) -> bool:
        """True: self-attention ignores order."""
        return True


class TransformerEncoder(_TransformerFields, EncoderSettings):
    """Self-attention and feed-forward blocks (Vaswani et al., 2017)."""

    window: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Local attention: each position attends to at most this many before and after it, so that time and memory grow in
    proportion to the length, not to its square (Beltagy et al., 2020); by default to all positions."""
    within_fields: bool = False
    """Records: a token attends to its own field and to the markers of all fields, and markers attend to everything."""


class ImageEncoder(EncoderSettings):
    """Encodes an image as a grid of features."""

    kind: Literal["image"] = "image"
    form: Literal["conv", "patches"] = "conv"
    """`conv`: a small convolutional network. `patches`: a Transformer over square pieces (Dosovitskiy et al., 2021)."""
    size: Annotated[int, Field(ge=4, le=1024)] = 48
    """Pixels per side; all images are resized to it."""
    patch: Annotated[int, Field(ge=2, le=256)] = 4
    """Pixels per side of one cell of the grid; for `conv`, which halves the image repeatedly, a power of two."""
    layers: Layers = 2
    """Number of layers over the grid: convolutions (`conv`), or Transformer layers (`patches`)."""
    width: Width | None = None
    """Width of the features; by default `model.width`."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return self.size // self.patch, self.size // self.patch

    @property
    def attends(self) -> bool:
        """True for a Transformer over patches."""
        return self.form == "patches"

    @property
    def form_in_words(self) -> str:
        """`conv` or `patches`, in parentheses."""
        return f" ({self.form})"


BODIES: Kinds[EncoderSettings] = Kinds(TransformerEncoder, RnnEncoder, ConvEncoder, BagEncoder)
"""The encoders, by kind, that read vectors with a mask, so that they can be the body of a sound encoder."""


class SoundEncoder(EncoderSettings):
    """Encodes a sound: convolutions join every four frames of 10 ms, then another encoder reads the result."""

    kind: Literal["sound"] = "sound"
    body: Annotated[EncoderSettings, BODIES] = TransformerEncoder()
    """The encoder after the convolutions, with its own settings."""
    channels: Annotated[int, Field(ge=1, le=4096)] = 32
    """Channels of the convolutions."""
    pool_bands: bool = False
    """Whether the convolutions reduce the bands by maxima of neighbours, after normalising each frame, instead of
    skipping every other band; the second convolution then has twice the channels. Recommended if speakers of the
    training data are few: voices differ in where their bands lie."""
    rate: Annotated[int, Field(ge=1000, le=192_000)] = 16_000
    """Samples per second; sounds with another rate are resampled."""
    bands: Annotated[int, Field(ge=4, le=256)] = 80
    """Mel bands of a frame."""
    max_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Longer sounds are refused."""
    even_loudness: bool = False
    """Whether quiet stretches of a sound are raised, by up to 30 dB, to the loudness of the others. Recommended if
    sounds have parts from different recordings, or from different distances."""
    normalise: bool = False
    """Whether each mel band is standardised within a sound, which removes most of the difference between microphones
    and some of that between voices. Recommended if speakers of the training data are few."""
    width: Width | None = None
    """Width of the states, which is that of the body; by default `model.width`."""

    @property
    def attends(self) -> bool:
        """Whether the body does."""
        return self.body.attends

    @property
    def uses_positions(self) -> bool:
        """Whether the body does."""
        return self.body.uses_positions

    @property
    def form_in_words(self) -> str:
        """The body."""
        return f" ({self.body.kind})"


class RnnDecoder(DecoderSettings):
    """A recurrent network that generates the target one token at a time."""

    kind: Literal["rnn"] = "rnn"
    cell: Annotated[str, CELLS] = "gru"
    """The recurrent cell."""
    layers: Layers = 1
    """Depth of the stack."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""


class ConvDecoder(DecoderSettings):
    """Causal gated convolutions over the target (Gehring et al., 2017)."""

    kind: Literal["conv"] = "conv"
    layers: Layers = 4
    """Number of layers; each sees `kernel - 1` more positions to the left."""
    kernel: Annotated[int, Field(ge=1, le=99)] = 3
    """Kernel size in positions: the current one and those before it."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""

    @property
    def uses_positions(self) -> bool:
        """True: convolutions see only nearby tokens."""
        return True


class TransformerDecoder(_TransformerFields, DecoderSettings):
    """Masked self-attention, attention to the source, feed-forward (Vaswani et al., 2017)."""


class FixedJoin(Section):
    """The whole source in a single vector."""

    kind: Literal["fixed"] = "fixed"
    form: Literal["initial", "transformed", "every-step"] | None = None
    """How the vector enters: as the decoder's first state; through a learned transform into it; or at every step."""


class AttentionJoin(Section):
    """Every decoding step attends to all source states."""

    kind: Literal["attention"] = "attention"
    order: Literal["before", "after"] | None = None
    """Recurrent decoders: attend before the recurrence (Bahdanau et al., 2015) or after it (Luong et al., 2015)."""
    input_feeding: bool | None = None
    """Recurrent decoders, `after`: feed the attentional state into the next step (Luong et al., 2015)."""


class Attention(Section):
    """Settings of all attention in the model."""

    score: Annotated[str, SCORES] | None = None
    """By default `scaled-dot`; `additive` before a recurrence, `bilinear` after one, as in their papers."""
    heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """By default 4 with a Transformer side, otherwise 1."""
    project: bool | None = None
    """Learned projections of queries, keys, values and result; by default on with a Transformer or conv side."""
    keys_values: Literal["split", "shared"] = "split"
    """Whether keys and values have separate projections or share one."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Dropout on the weights; 0, as in the paper, allows fused attention."""


class Positions(Section):
    """Position information for self-attention and convolutions (recurrent networks need none)."""

    kind: Annotated[str, POSITIONS]
    """`sinusoidal`, `learned`: added to embeddings. The others act inside self-attention, by distance."""
    max_length: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    """`learned`: the longest sequence, which is the number of vectors."""
    max_distance: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    """`relative`, `bias`: distances beyond this share one vector or scalar (Shaw et al., 2018)."""
    ntk: Annotated[float, Field(ge=1.0, le=1024.0)] = 1.0
    """`rotary`: inputs up to this multiple of the trained length; stretches slow rotations, keeps fast ones."""


class Embeddings(Section):
    """Token vectors and the output layer."""

    width: Width | None = None
    """Width of token vectors; by default `model.width`."""
    tie: Literal["none", "target", "all"] | None = None
    """`target`: output layer = target embeddings (Press and Wolf, 2017); `all`: source too, the default if joint."""
    scale: bool = True
    """Multiply token vectors by √width (Vaswani et al., 2017); off in some imported models."""
    norm: bool = False
    """LayerNorm over the sum of token and position vectors, before the first layer, as in BERT."""


class Letters(Section):
    """Vectors of words from their letters, by a convolution (Ma and Hovy, 2016), for words unseen in training."""

    width: Width = 32
    """Width of the vector of a letter, which is a byte of UTF-8."""
    filters: Annotated[int, Field(ge=1, le=65_536)] = 64
    """Number of patterns of neighbouring letters."""
    kernel: Annotated[int, Field(ge=1, le=31)] = 5
    """Letters of a pattern; odd, so that it is centred."""


ENCODERS: Kinds[EncoderSettings] = Kinds(
    BagEncoder, RnnEncoder, ConvEncoder, TransformerEncoder, ImageEncoder, SoundEncoder
)
"""Every encoder by its kind."""
DECODERS: Kinds[DecoderSettings] = Kinds(RnnDecoder, ConvDecoder, TransformerDecoder)
"""Every decoder by its kind."""

Encoder = Annotated[EncoderSettings, ENCODERS]
Decoder = Annotated[DecoderSettings, DECODERS]
Join = Annotated[FixedJoin | AttentionJoin, Field(discriminator="kind")]


class Model(Section):
    """The settings of a model."""

    width: Width = 256
    """Model width D, unless a part sets its own; 256 suits corpora of ten thousand to a million pairs."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Dropout, at the places that each component's paper uses."""
    norm_epsilon: Annotated[float, Field(gt=0.0, le=0.1)] = 1e-5
    """Epsilon that every LayerNorm adds to the variance; imported models have their own (BERT: 1e-12)."""
    encoder: Encoder | None = TransformerEncoder()
    """The encoder of the source; a task without a source has none."""
    picture: ImageEncoder | None = None
    """The encoder of the image, in a task that reads an image and a text."""
    decoder: Decoder | None = TransformerDecoder()
    """The decoder of the target; a task without a target text has none."""
    join: Join | None = AttentionJoin()
    """How the decoder reads the encoder's states."""
    field_positions: bool = False
    """Records: add learned vectors for the number of a token's field, for its part (name or value; subject, property or
    object), and for its position in this part (after Lebret et al., 2016)."""
    copying: bool = False
    """Whether each step may also copy a source token, by attention of its own (See et al., 2017); needs one vocabulary
    for both sides, and helps with names and numbers."""
    attention: Attention = Attention()
    """Score function and heads of all attention in the model."""
    positions: Positions | None = None
    """By default sinusoidal if a side has no recurrence, otherwise none."""
    embeddings: Embeddings = Embeddings()
    """Token vectors and the output layer."""
    letters: Letters | None = None
    """Tagging: add a vector computed from the letters of each word; `{}` has the default settings."""
    start_from: Annotated[str, Field(min_length=1)] | None = None
    """Directory of a run from which tokenizer and weights are taken, for the parts that both have."""
    pruned: dict[str, list[Annotated[int, Field(ge=0)]]] | None = None
    """The remaining heads, counted from 0, of pruned attentions, such as `encoder.layers.0.attention: [0, 2]`."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules that the model needs."""
        body = self.encoder.body if isinstance(self.encoder, SoundEncoder) else None
        sides = [side.cell for side in (self.encoder, body, self.decoder) if isinstance(side, RnnEncoder | RnnDecoder)]
        named = (
            SCORES.plugin_of(self.attention.score),
            POSITIONS.plugin_of(self.positions.kind if self.positions else None),
            *(CELLS.plugin_of(cell) for cell in sides),
            ENCODERS.plugin_of(self.encoder.kind if self.encoder else None),
            DECODERS.plugin_of(self.decoder.kind if self.decoder else None),
        )
        return sorted({name for name in named if name})

    @property
    def learned_positions(self) -> int | None:
        """Number of learned position vectors; `None` if the length is not limited."""
        return self.positions.max_length if self.positions and self.positions.kind == "learned" else None

    @property
    def attentions(self) -> list[str]:
        """The names of all attentions, the encoder's first, without those that a task adds."""
        names = []
        if isinstance(self.encoder, TransformerEncoder | ImageEncoder) and self.encoder.attends:
            names += [f"encoder.layers.{depth}.attention" for depth in range(self.encoder.layers)]
        if isinstance(self.encoder, SoundEncoder) and isinstance(self.encoder.body, TransformerEncoder):
            names += [f"encoder.body.layers.{depth}.attention" for depth in range(self.encoder.body.layers)]
        if self.picture is not None and self.picture.attends:
            names += [f"picture.layers.{depth}.attention" for depth in range(self.picture.layers)]
        to_source = self.join is not None and self.join.kind == "attention"
        if isinstance(self.decoder, RnnDecoder):
            return [*names, "decoder.source_attention"] if to_source else names
        layers = self.decoder.layers if isinstance(self.decoder, TransformerDecoder | ConvDecoder) else 0
        for depth in range(layers):
            if isinstance(self.decoder, TransformerDecoder):
                names.append(f"decoder.layers.{depth}.attention")
            if to_source:
                names.append(f"decoder.layers.{depth}.source_attention")
        return names

    @property
    def cell(self) -> str:
        """A short description, such as `rnn → rnn, attention (additive)`."""
        image = f" + image{self.picture.form_in_words}" if self.picture else ""
        reads = f"{self.encoder.kind}{self.encoder.form_in_words}{image}" if self.encoder else ""
        ends = " → ".join(end for end in (reads, self.decoder.kind if self.decoder else "") if end)
        if self.join is None:
            return ends
        join = f"attention ({self.attention.score})" if self.join.kind == "attention" else f"fixed ({self.join.form})"
        return f"{ends}, {join}{', copying' if self.copying else ''}"
