"""Outputs of models, one module for each kind."""

from typing import Any

from regard.tasks.outputs.caption import CaptionOutput
from regard.tasks.outputs.document import DocumentOutput
from regard.tasks.outputs.label import LabelOutput
from regard.tasks.outputs.masked_words import MaskedWordsOutput
from regard.tasks.outputs.number import NumberOutput
from regard.tasks.outputs.output import Output
from regard.tasks.outputs.tags import TagsOutput
from regard.tasks.outputs.text import TextOutput
from regard.tasks.outputs.transcript import TranscriptOutput

OUTPUTS: dict[str, type[Output[Any]]] = {
    "text": TextOutput,
    "caption": CaptionOutput,
    "transcript": TranscriptOutput,
    "document": DocumentOutput,
    "label": LabelOutput,
    "number": NumberOutput,
    "tags": TagsOutput,
    "masked-words": MaskedWordsOutput,
}
"""Every output by the name that tasks have for it (`regard.config.task`)."""

__all__ = ["OUTPUTS", "Output"]
