"""The grid: what reads the source, what writes the target, and what joins the two.

Fields left as `None` follow from the rest of the cell: `regard.config.cell.resolve` fills them in, and says in
one sentence why a cell cannot work.
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
        """Whether the side attends to itself."""
        return False

    @property
    def uses_positions(self) -> bool:
        """Whether the side has to be told where a token stands."""
        return False

    @property
    def form_in_words(self) -> str:
        """Which form of its kind it is, in parentheses; empty where there is one form."""
        return ""


class EncoderSettings(SideSettings):
    """What every encoder has."""


class DecoderSettings(SideSettings):
    """What every decoder has."""


class BagEncoder(EncoderSettings):
    """The order-blind baseline: each token is its embedding, the summary is their mean or sum."""

    kind: Literal["bag"] = "bag"
    width: Width | None = None
    """Width of the states; by default `model.width`."""
    pool: Literal["mean", "sum"] = "mean"
    """How the embeddings become one vector."""


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
    """Depth; each layer widens the view by `kernel - 1` positions."""
    kernel: Annotated[int, Field(ge=1, le=99)] = 3
    """Positions each layer looks at; odd, so that the view is centred."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""

    @property
    def uses_positions(self) -> bool:
        """Convolutions know only what is near."""
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
    """`pre` trains without care for warm-up; `post` is the paper's."""

    @property
    def attends(self) -> bool:
        """Always."""
        return True

    @property
    def uses_positions(self) -> bool:
        """Self-attention knows no order."""
        return True


class TransformerEncoder(_TransformerFields, EncoderSettings):
    """Self-attention and feed-forward blocks (Vaswani et al., 2017)."""


class ImageEncoder(EncoderSettings):
    """Reads a picture: a grid of features, each of which stands for a place in it."""

    kind: Literal["image"] = "image"
    form: Literal["conv", "patches"] = "conv"
    """`conv`: a small convolutional network. `patches`: a Transformer over square pieces (Dosovitskiy et al., 2021)."""
    size: Annotated[int, Field(ge=4, le=1024)] = 48
    """Pixels a side: pictures are brought to this size, whole, whatever their own."""
    patch: Annotated[int, Field(ge=2, le=256)] = 4
    """Pixels a side of what one place of the grid stands for; `conv` halves the picture so often: a power of two."""
    layers: Layers = 2
    """Depth behind the grid: convolutions (`conv`), or Transformer layers (`patches`)."""
    width: Width | None = None
    """Width of the features; by default `model.width`."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of places."""
        return self.size // self.patch, self.size // self.patch

    @property
    def attends(self) -> bool:
        """A Transformer over patches attends; convolutions do not."""
        return self.form == "patches"

    @property
    def form_in_words(self) -> str:
        """Convolutions, or patches."""
        return f" ({self.form})"


BODIES: Kinds[EncoderSettings] = Kinds(TransformerEncoder, RnnEncoder, ConvEncoder, BagEncoder)
"""The encoders that read vectors and their mask, by kind: what a sound encoder can hand its frames to."""


class SoundEncoder(EncoderSettings):
    """Reads a sound: convolutions join every four frames of 10 ms, then another encoder reads the result."""

    kind: Literal["sound"] = "sound"
    body: Annotated[EncoderSettings, BODIES] = TransformerEncoder()
    """The encoder behind the convolutions, with settings of its own."""
    channels: Annotated[int, Field(ge=1, le=4096)] = 32
    """Channels of the convolutions."""
    rate: Annotated[int, Field(ge=1000, le=192_000)] = 16_000
    """Samples per second; sounds with another rate are resampled."""
    bands: Annotated[int, Field(ge=4, le=256)] = 80
    """Mel bands of a frame."""
    max_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Longer sounds are refused."""
    width: Width | None = None
    """Width of the states, which is that of the body; by default `model.width`."""

    @property
    def attends(self) -> bool:
        """If the body does."""
        return self.body.attends

    @property
    def uses_positions(self) -> bool:
        """If the body does."""
        return self.body.uses_positions

    @property
    def form_in_words(self) -> str:
        """The body."""
        return f" ({self.body.kind})"


class RnnDecoder(DecoderSettings):
    """A recurrent network that writes the target one token at a time."""

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
    """Depth; each layer looks `kernel - 1` positions further back."""
    kernel: Annotated[int, Field(ge=1, le=99)] = 3
    """Positions each layer looks at, the current one and those before it."""
    width: Width | None = None
    """Width of the states; by default `model.width`."""

    @property
    def uses_positions(self) -> bool:
        """Convolutions know only what is near."""
        return True


class TransformerDecoder(_TransformerFields, DecoderSettings):
    """Masked self-attention, attention to the source, feed-forward (Vaswani et al., 2017)."""


class FixedJoin(Section):
    """The whole source in a single vector."""

    kind: Literal["fixed"] = "fixed"
    form: Literal["initial", "transformed", "every-step"] | None = None
    """How the vector enters: as the decoder's first state; through a learned transform into it; or at every step."""


class AttentionJoin(Section):
    """Every decoding step looks back at all source states."""

    kind: Literal["attention"] = "attention"
    order: Literal["before", "after"] | None = None
    """Recurrent decoders: attend before the recurrence (Bahdanau et al., 2015) or after it (Luong et al., 2015)."""
    input_feeding: bool | None = None
    """Recurrent decoders, `after`: feed the attentional state into the next step (Luong et al., 2015)."""


class Attention(Section):
    """How queries are compared with keys, wherever the model attends."""

    score: Annotated[str, SCORES] | None = None
    """By default `scaled-dot`; `additive` before a recurrence, `bilinear` after one, as in their papers."""
    heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """By default 4 with a Transformer side, otherwise 1."""
    project: bool | None = None
    """Learned projections of queries, keys, values and result; by default wherever a Transformer or conv side is."""
    keys_values: Literal["split", "shared"] = "split"
    """Whether keys and values have projections of their own or share one."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Dropout on the weights; 0 keeps attention fused, and the paper has none."""


class Positions(Section):
    """How self-attention and convolutions know where a token stands (recurrent networks know by themselves)."""

    kind: Annotated[str, POSITIONS]
    """`sinusoidal`, `learned`: added to embeddings. The others act inside self-attention, by distance."""
    max_length: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    """`learned`: the longest sequence there is a vector for."""
    max_distance: Annotated[int, Field(ge=1, le=1_000_000)] = 32
    """`relative`, `bias`: distances beyond this share one vector or scalar (Shaw et al., 2018)."""
    ntk: Annotated[float, Field(ge=1.0, le=1024.0)] = 1.0
    """`rotary`: how many times the trained length is to be read; stretches slow rotations, keeps fast ones."""


class Embeddings(Section):
    """Token vectors and the output layer."""

    width: Width | None = None
    """Width of token vectors; by default `model.width`."""
    tie: Literal["none", "target", "all"] | None = None
    """`target`: output layer = target embeddings (Press and Wolf, 2017); `all`: source too, the default if joint."""
    scale: bool = True
    """Multiply token vectors by √width (Vaswani et al., 2017); off in some imported models."""
    norm: bool = False
    """LayerNorm over token vectors and what positions add to them, before the first layer, as in BERT."""


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
    """One cell of the grid."""

    width: Width = 256
    """Model width D, unless a part has its own; 256 suits corpora of ten thousand to a million pairs."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Dropout wherever the part's paper puts it."""
    norm_epsilon: Annotated[float, Field(gt=0.0, le=0.1)] = 1e-5
    """What every LayerNorm adds to the variance that it divides by; imported models have their own (BERT: 1e-12)."""
    encoder: Encoder | None = TransformerEncoder()
    """What reads the source; a task that reads none has no encoder."""
    picture: ImageEncoder | None = None
    """What reads the image, in a task that reads an image and a text."""
    decoder: Decoder | None = TransformerDecoder()
    """What writes the target; a task that writes none has no decoder."""
    join: Join | None = AttentionJoin()
    """What joins the two."""
    attention: Attention = Attention()
    """The score and heads of every attention in the model."""
    positions: Positions | None = None
    """By default sinusoidal where a side has no recurrence, otherwise none."""
    embeddings: Embeddings = Embeddings()
    """Token vectors and the output layer."""
    start_from: Annotated[str, Field(min_length=1)] | None = None
    """Directory of a run whose tokenizer and weights this one starts from, as far as they have parts in common."""
    pruned: dict[str, list[Annotated[int, Field(ge=0)]]] | None = None
    """The heads that are left, counted from 0, of attentions that were pruned: `encoder.layers.0.attention: [0, 2]`."""

    @property
    def plugins(self) -> list[str]:
        """The extension modules that the cell needs."""
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
        """How many positions the model can learn vectors for; `None` where no position is too far."""
        return self.positions.max_length if self.positions and self.positions.kind == "learned" else None

    @property
    def attentions(self) -> list[str]:
        """The names of all attentions of the cell, the encoder's first; what a task adds has names of its own."""
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
        """The cell of the grid in a few words, such as `rnn → rnn, attention (additive)`, without an end left off."""
        image = f" + image{self.picture.form_in_words}" if self.picture else ""
        reads = f"{self.encoder.kind}{self.encoder.form_in_words}{image}" if self.encoder else ""
        ends = " → ".join(end for end in (reads, self.decoder.kind if self.decoder else "") if end)
        if self.join is None:
            return ends
        join = f"attention ({self.attention.score})" if self.join.kind == "attention" else f"fixed ({self.join.form})"
        return f"{ends}, {join}"
