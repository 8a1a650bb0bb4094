"""The bodies of requests to `/v1`, and of its answers."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchOptions(_Body):
    """How outputs are searched for; the same options as those of `regard translate`."""

    beam: int | None = Field(default=None, ge=1, le=100, description="Beam width; 1 is greedy.")
    count: int = Field(default=1, ge=1, le=100, description="Outputs per text, best first.")
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    coverage_penalty: float = Field(default=0.0, ge=0, le=1000)
    full_beam: bool = False
    groups: int = Field(default=1, ge=1, le=100, description="Groups of a diverse beam search.")
    diversity: float = Field(default=0.5, ge=0, le=1000)
    samples: int = Field(default=0, ge=0, le=1000, description="Number of samples; 0 searches instead.")
    temperature: float = Field(default=1.0, ge=0, le=1000)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int = 0
    utility: str | None = Field(
        default=None, description="Metric by which to choose among samples, or outputs of the beam, such as `chrf`."
    )
    prefix: str | None = Field(default=None, description="Outputs begin with this text.")
    require: list[str] = Field(default=[], max_length=100, description="Outputs contain these texts.")
    forbid: list[str] = Field(default=[], max_length=1000, description="Outputs contain none of these phrases.")
    only: list[str] | None = Field(default=None, max_length=100_000, description="Outputs are among these.")
    words: tuple[int, int] | None = Field(default=None, description="Least and most words of an output.")
    keep: list[str] = Field(default=[], max_length=10, description="Copied unchanged: urls, numbers, placeholders.")
    split: bool | None = Field(default=None, description="Split texts into sentences; by default those too long.")

    @field_validator("words", mode="before")
    @classmethod
    def _check_words(cls, value: Any) -> Any:
        if value is not None and not (isinstance(value, list | tuple) and len(value) == 2):
            raise PydanticCustomError("words", "Give a list of two numbers, the least and the most, such as [3, 8]")
        return value

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return self.model_dump(exclude_defaults=True)


class TranslateRequest(SearchOptions):
    """Texts to translate, by a model or between two languages."""

    texts: list[str | dict[str, Any] | list[Any]] = Field(
        min_length=1, description="Texts; for a model that reads records also objects and lists of triples."
    )
    model: str | None = Field(default=None, description="Name of a model; by default the only one, or by languages.")
    source: str | None = None
    target: str | None = None
    extras: list[Literal["scores", "alignment", "attention", "confidence"]] = Field(
        default=[],
        description="More on each output: token scores, word alignment, attention, confidence.",
    )


class PredictRequest(_Body):
    """Inputs of a model that predicts labels, numbers, tags or words."""

    inputs: list[str | list[str]] = Field(
        default=[], description="Texts, or lists of two texts for models that read two; with a file, its question."
    )
    file: str | None = Field(default=None, description="An image or a sound file as base64, if the model reads one.")
    model: str | None = None


class GenerateRequest(SearchOptions):
    """Prompts of a language model."""

    prompts: list[str] = Field(min_length=1)
    model: str | None = None
    stream: bool = Field(
        default=False, description="Send the text as it grows, as server-sent events; one prompt, greedy or one sample."
    )


class ScoreRequest(_Body):
    """Pairs of source and target, whose probability is asked."""

    pairs: list[tuple[str, str]] = Field(min_length=1)
    model: str | None = None


class ReplyRequest(_Body):
    """Messages to which replies are suggested."""

    messages: list[str] = Field(min_length=1, description="Texts of chat messages or mails.")
    model: str | None = None
    rate: float | None = Field(default=None, ge=0, le=1, description="Share of messages that get suggestions.")
    explain: bool = Field(default=False, description="Also return the cleaned message and all candidates.")


class ChoiceRequest(_Body):
    """What a user did with suggestions."""

    shown: list[str] = Field(min_length=1, max_length=10)
    chosen: str | None = Field(default=None, description="The suggestion that was inserted; null for none.")
    sent: str | None = Field(default=None, max_length=10_000, description="The text that was sent, perhaps edited.")
    model: str | None = None


class Attached(_Body):
    """An input that may be a file."""

    input: str | list[str] = Field(default="", description="A text, or two; with a file, the text that belongs to it.")
    file: str | None = Field(default=None, description="An image or a sound file as base64, if the model reads one.")
    model: str | None = None


class InspectRequest(Attached):
    """An input that is to be explained."""

    target: str | None = Field(default=None, description="The output to explain; by default the model's own.")
    options: dict[str, Any] = Field(default={}, description="Options of the analysis.")
    panels: bool = Field(default=False, description="Return what a page shows, instead of the JSON of the analysis.")
    stream: bool = Field(default=False, description="Send the progress as server-sent events, and then the answer.")


class WatchRequest(Attached):
    """An input that the model is watched answering, as it is or changed."""

    changes: list[dict[str, Any]] = Field(default=[], max_length=200, description="Changes inside the model.")
    prefix: list[int] = Field(default=[], max_length=10_000, description="Tokens that the output begins with.")
    top: int = Field(default=10, ge=1, le=50, description="Candidates for each prediction.")
    step: int | None = Field(default=None, ge=0, le=10**12, description="Use the checkpoint of this training step.")
    attention: bool = Field(default=False, description="Also return where the model looked, as a page shows it.")
    beam: int | None = Field(default=None, ge=1, le=20)
    count: int = Field(default=1, ge=1, le=20)
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    coverage_penalty: float = Field(default=0.0, ge=0, le=1000)


class CorpusRequest(_Body):
    """Some examples of a corpus that the server was started with."""

    corpus: str
    model: str | None = None
    start: int = Field(default=0, ge=0)
    count: int = Field(default=16, ge=1, le=64)


class ExportRequest(_Body):
    """A state of the studio, and the answers that it was made from."""

    state: dict[str, Any]
    recording: dict[str, Any]


class Outputs(BaseModel):
    """The answer to a request."""

    model: str
    outputs: list[dict[str, Any]]


class ModelDescription(BaseModel):
    """One model."""

    name: str
    task: str
    verb: str
    source: str | None
    target: str | None
    engine: str
    version: int
