"""A Transformer whose weights are written by hand, so that what each of its heads does is known beforehand.

It says its source again. Its vectors are one-hot: a place for each token, a place for each position, a place for each
answer. In the encoder, head 0 looks at the token before, head 1 at tokens equal to its own, head 2 anywhere, and finds
nothing. In the decoder, head 1 of the attention to the source looks at the token that is to be said, and copies it; all
other heads find nothing.

    planted().translate("a b c") == "a b c"
"""

import torch
from torch import Tensor

from regard.config.loading import from_mapping
from regard.config.run import RunConfig
from regard.config.text import Tokenizer as Settings
from regard.models import Model, build
from regard.nn.attention import Attention
from regard.tasks.loaded import LoadedRun
from regard.text.learning import train as learn
from regard.text.specials import SPECIALS
from tests.loading import loaded

SYMBOLS = "abcdefghijkl"
LONGEST = 18
"""Tokens of a text, the end symbol included."""

ENCODER, SOURCE = "encoder.layers.0.attention", "decoder.layers.0.source_attention"
TRUTH = {(ENCODER, 0): "previous", (ENCODER, 1): "copy", (ENCODER, 2): "dead", (SOURCE, 1): "copy"}
"""What the heads do; all others are dead."""

VOCABULARY = len(SPECIALS) + len(SYMBOLS)
HEAD = max(VOCABULARY, LONGEST)
WIDTH = 3 * HEAD
TOKEN, POSITION, ANSWER = slice(0, VOCABULARY), slice(HEAD, HEAD + LONGEST), slice(2 * HEAD, 2 * HEAD + VOCABULARY)
"""Where in a vector the token, its position and the answer stand."""

SHARP = 4.0
"""How much better a wanted key fits than any other, in units of the normed vectors."""


def planted() -> LoadedRun:
    """The model with its tokenizer, ready to be asked."""
    settings = Settings(kind="words", min_frequency=1)
    tokenizer = learn(settings, lambda: iter([" ".join(SYMBOLS)]), "text.tokenizer")
    return loaded(model(), config(), tokenizer)


def config() -> RunConfig:
    """One layer a side, three heads, learned positions, nothing tied."""
    side = {"kind": "transformer", "layers": 1, "feed_forward": 2}
    return from_mapping(
        {
            "data": {"train": {"generate": "copy"}, "cleaning": {"max_length": LONGEST - 1}},
            "text": {"tokenizer": {"kind": "words"}},
            "model": {
                "width": WIDTH,
                "dropout": 0.0,
                "encoder": side,
                "decoder": side,
                "attention": {"heads": 3, "score": "dot"},
                "positions": {"kind": "learned", "max_length": LONGEST},
                "embeddings": {"tie": "none"},
            },
            "decoding": {"beam": 1, "max_length": LONGEST - 1},
        }
    )


@torch.no_grad()
def model() -> Model:
    """The weights, all zero but for those that do something."""
    made = build(config().model, VOCABULARY, VOCABULARY).eval()
    for name, parameter in made.named_parameters():
        parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
    for embedding in (made.source_embedding, made.decoder.embedding):
        embedding.weight[:, TOKEN] = torch.eye(VOCABULARY) / embedding.scale
    for side in (made.encoder, made.decoder):
        side.entrance.places.weight[:, POSITION] = torch.eye(LONGEST)
    place, token = torch.eye(LONGEST), torch.eye(VOCABULARY)
    before = torch.diag(torch.ones(LONGEST - 1), -1)  # row t has its one at t − 1
    inside = made.encoder.layers[0].attention
    _look(inside, 0, query=(POSITION, before), key=(POSITION, place))
    _look(inside, 1, query=(TOKEN, token), key=(TOKEN, token))
    _carry(inside, 0, [TOKEN], ANSWER, 0.1)  # a whiff of the token before, which the decoder hears
    _carry(inside, 1, [TOKEN], TOKEN, 0.5)
    across = made.decoder.layers[0].source_attention
    _look(across, 1, query=(POSITION, place), key=(POSITION, place))
    _carry(across, 1, [TOKEN, ANSWER], ANSWER, 1.0)
    made._output[:, ANSWER] = torch.eye(VOCABULARY)
    return made


def _look(attention: Attention, head: int, *, query: tuple[slice, Tensor], key: tuple[slice, Tensor]) -> None:
    """Let a head compare a part of the vector that looks with a part of those looked at; rows say what each becomes.

    The norm before it moves all coordinates alike, and with them the scores of all keys.
    """
    rows = slice(head * HEAD, head * HEAD + HEAD)
    for linear, (part, matrix) in ((attention.query, query), (attention.key, key)):
        assert linear is not None
        linear.weight[rows][: len(matrix), part] = SHARP**0.5 * matrix.T


def _carry(attention: Attention, head: int, parts: list[slice], into: slice, times: float) -> None:
    """Let a head carry the sum of some parts of the vectors it finds into a part of its result."""
    rows = slice(head * HEAD, head * HEAD + HEAD)
    size = into.stop - into.start
    assert attention.value is not None and attention.out is not None
    for part in parts:
        attention.value.weight[rows][:size, part] = torch.eye(size)
    attention.out.weight[into, rows][:, :size] = times * torch.eye(size)
