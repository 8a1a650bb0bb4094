"""The kinds of attention, by the two sides that they connect, and how maps of tokens become maps of words."""

from typing import Literal

Kind = Literal["picture", "source", "between", "encoder", "places", "decoder"]
KINDS: dict[Kind, str] = {
    "picture": "to the picture",
    "source": "to the source",
    "between": "between the texts",
    "encoder": "inside the source",
    "places": "inside the picture",
    "decoder": "inside the target",
}
"""Which sides an attention joins."""

MERGING = (
    "A word is given the sum of what its tokens are given, and gives the mean of what they give; a word is what stands "
    "between white space, and a special token is a word of its own."
)
"""The rule by which maps of tokens become maps of words (as in Voita et al., 2019)."""


def kind_of(path: str) -> Kind:
    """Which sides an attention joins, by its path in the model."""
    if path.endswith(("source_attention", "question_attention")) or path == "pool":
        return "source"
    if path.endswith("picture_attention"):
        return "picture"
    if path.startswith("picture."):
        return "places"
    return "between" if path == "between" else "encoder" if path.startswith("encoder.") else "decoder"


def layer_of(path: str) -> int:
    """The layer of an attention, or the look, counted from 0."""
    return next((int(part) for part in path.split(".") if part.isdigit()), 0)
