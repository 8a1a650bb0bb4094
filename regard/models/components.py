"""Registries of encoders and decoders by their kind in a configuration."""

from collections.abc import Callable
from typing import Any

from regard.config import model as config
from regard.models.conv_decoder import ConvDecoder
from regard.models.decoder import Decoder
from regard.models.encoders import BagEncoder, ConvEncoder, Encoder, RnnEncoder, TransformerEncoder
from regard.models.image_encoder import make_image_encoder
from regard.models.recurrent_decoder import RnnDecoder
from regard.models.sound_encoder import SoundEncoder
from regard.models.transformer_decoder import TransformerDecoder

MakeEncoder = Callable[..., Encoder]
"""Called with the model's configuration, the encoder's section, and the keywords `name` (its path in the model) and
`drop_states`."""
MakeDecoder = Callable[[config.Model, Any, int], Decoder]
"""Called with the model's configuration, the decoder's section, and the size of the target vocabulary."""

ENCODERS: dict[str, MakeEncoder] = {
    "bag": BagEncoder,
    "rnn": RnnEncoder,
    "conv": ConvEncoder,
    "transformer": TransformerEncoder,
    "image": make_image_encoder,
    "sound": lambda cell, part, **options: SoundEncoder(cell, part, _make_body, **options),
}
"""Encoders by the kind of their section."""
DECODERS: dict[str, MakeDecoder] = {"rnn": RnnDecoder, "conv": ConvDecoder, "transformer": TransformerDecoder}
"""Decoders by the kind of their section."""


def _make_body(cell: config.Model, part: config.EncoderSettings, **options: Any) -> Encoder:
    """Build the encoder that follows the front end of another."""
    return ENCODERS[part.kind](cell, part, **options)


def make_encoder(cell: config.Model, *, drop_states: bool = True) -> Encoder:
    """Build the encoder of a model that has one; see `Encoder` for `drop_states`."""
    if cell.encoder is None:
        raise ValueError("The model configuration has no encoder.")
    return ENCODERS[cell.encoder.kind](cell, cell.encoder, name="encoder", drop_states=drop_states)


def reads_tokens(cell: config.Model) -> bool:
    """Return whether the configured encoder takes token vectors; otherwise it takes the tensors of its input."""
    if cell.encoder is None:
        return False
    return bool(getattr(ENCODERS[cell.encoder.kind], "reads_tokens", False))


def make_decoder(cell: config.Model, vocabulary: int) -> Decoder:
    """Build the decoder of a model that has one."""
    if cell.decoder is None:
        raise ValueError("The model configuration has no decoder.")
    return DECODERS[cell.decoder.kind](cell, cell.decoder, vocabulary)
