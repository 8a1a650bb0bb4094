"""Inputs of models, one module for each kind."""

from regard.tasks.inputs.image import ImageInput
from regard.tasks.inputs.image_and_text import ImageAndTextInput
from regard.tasks.inputs.input import Input
from regard.tasks.inputs.nothing import NoInput
from regard.tasks.inputs.record import RecordInput
from regard.tasks.inputs.sound import SoundInput
from regard.tasks.inputs.text import TextInput

INPUTS: dict[str, type[Input]] = {
    "text": TextInput,
    "record": RecordInput,
    "image": ImageInput,
    "image-and-text": ImageAndTextInput,
    "sound": SoundInput,
    "nothing": NoInput,
}
"""Every input by the name that tasks have for it (`regard.config.task`)."""

__all__ = ["INPUTS", "Input"]
