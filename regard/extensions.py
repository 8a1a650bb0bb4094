"""Add your own components to Regard without changing it.

Your module registers its components:

    from torch import Tensor
    from regard import extensions
    from regard.nn.scores import Score

    @extensions.attention_score("cosine")
    class Cosine(Score):
        ...

Configurations that list the module under `plugins` can then use `model.attention.score: cosine`; errors, schema and
help include the name. A run records the modules it needs, and raises an error if they are not loaded.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from regard.config import choices, plugins
from regard.config.plugins import load

if TYPE_CHECKING:
    from regard.config.model import DecoderSettings, EncoderSettings
    from regard.config.task import InputKind, OutputKind, TaskSettings
    from regard.data.corpus import Reader
    from regard.metrics.metric import Metric
    from regard.models.components import MakeDecoder, MakeEncoder
    from regard.nn.positions import MakeDistances, MakePlaces
    from regard.nn.recurrence import MakeCell
    from regard.nn.scores import MakeScore
    from regard.search.rules import Rule
    from regard.tasks.inputs import Input
    from regard.tasks.outputs import Output
    from regard.text.tokenizer import Tokenizer

__all__ = [
    "added_positions",
    "analysis",
    "attention_score",
    "constraint",
    "corpus_format",
    "decoder",
    "encoder",
    "engine",
    "input",
    "load",
    "metric",
    "output",
    "positions_in_attention",
    "recurrent_cell",
    "task",
    "tracker",
]

Score = TypeVar("Score", bound="MakeScore")
Places = TypeVar("Places", bound="MakePlaces")
Distances = TypeVar("Distances", bound="MakeDistances")
Cell = TypeVar("Cell", bound="MakeCell")
AnyReader = TypeVar("AnyReader", bound="Reader")
AnyMetric = TypeVar("AnyMetric", bound="type[Metric]")
AnyEncoder = TypeVar("AnyEncoder", bound="MakeEncoder")
AnyDecoder = TypeVar("AnyDecoder", bound="MakeDecoder")
AnyInput = TypeVar("AnyInput", bound="type[Input]")
AnyOutput = TypeVar("AnyOutput", bound="type[Output[Any]]")
AnyTask = TypeVar("AnyTask", bound="type[TaskSettings]")
AnyAnalysis = TypeVar("AnyAnalysis", bound="Callable[..., Any]")
AnyConstraint = TypeVar("AnyConstraint", bound="Callable[[str, Tokenizer], Rule]")
Component = TypeVar("Component", bound=Callable[..., Any])


def attention_score(name: str) -> Callable[[Score], Score]:
    """Register a `regard.nn.scores.Score`, or a function that builds one, as `model.attention.score: NAME`.

    It is called with the keywords `heads`, `query_width` and `key_width`.
    """
    from regard.nn.scores import SCORES

    return _register(name, SCORES, choices.SCORES)


def added_positions(name: str) -> Callable[[Places], Places]:
    """Register `regard.nn.positions.Places`, added to embeddings, as `model.positions.kind: NAME`.

    It is called with the keywords `width` and `max_length`.
    """
    from regard.nn.positions import PLACES

    return _register(name, PLACES, choices.POSITIONS, choices.ADDED_POSITIONS)


def positions_in_attention(name: str) -> Callable[[Distances], Distances]:
    """Register `regard.nn.positions.Distances`, which act inside self-attention, as `model.positions.kind: NAME`.

    It is called with the keywords `heads`, `width` (of a head), `max_distance`, `ntk` and `kept`.
    """
    from regard.nn.positions import DISTANCES

    return _register(name, DISTANCES, choices.POSITIONS)


def recurrent_cell(name: str) -> Callable[[Cell], Cell]:
    """Register a `regard.nn.recurrence.Recurrence` as `model.encoder.cell: NAME` and `model.decoder.cell: NAME`.

    It is called with the width of its inputs and the width of its state.
    """
    from regard.nn.recurrence import CELLS

    return _register(name, CELLS, choices.CELLS)


def corpus_format(name: str) -> Callable[[AnyReader], AnyReader]:
    """Register a function that reads a corpus format as `data.train: {reader: NAME, paths: FILE, options: {…}}`.

    It is called with the path of a file and the options as keywords, and yields (source, target) pairs of texts; for a
    classifier the target is the label, for a tagger the tags of all words, separated by spaces.
    """
    from regard.data.corpus import READERS

    return _register(name, READERS, choices.READERS)


def metric(name: str) -> Callable[[AnyMetric], AnyMetric]:
    """Register a `regard.metrics.metric.Metric` for `--metrics NAME`, `--mbr NAME` and `regard compare`."""
    from regard.metrics.scoring import METRICS

    return _register(name, METRICS)


def encoder(settings: "type[EncoderSettings]") -> Callable[[AnyEncoder], AnyEncoder]:
    """Register a `regard.models.encoders.Encoder` as `model.encoder.kind: KIND`, the kind of its settings.

    It is called with the model's configuration, its settings, and the keywords `name` (its path in the model) and
    `drop_states`.
    """
    from regard.config.model import ENCODERS as SETTINGS
    from regard.models.components import ENCODERS

    return _register_section(settings, SETTINGS, ENCODERS)


def decoder(settings: "type[DecoderSettings]") -> Callable[[AnyDecoder], AnyDecoder]:
    """Register a `regard.models.decoder.Decoder` as `model.decoder.kind: KIND`, the kind of its settings.

    It is called with the model's configuration, its settings and the size of the target vocabulary.
    """
    from regard.config.model import DECODERS as SETTINGS
    from regard.models.components import DECODERS

    return _register_section(settings, SETTINGS, DECODERS)


def input(name: str, kind: "InputKind") -> Callable[[AnyInput], AnyInput]:
    """Register a `regard.tasks.inputs.Input` that tasks name as their input; `kind` describes it."""
    from regard.config.task import INPUTS as KINDS
    from regard.tasks.inputs import INPUTS

    def register(component: AnyInput) -> AnyInput:
        _register(name, INPUTS)(component)
        KINDS[name] = kind
        return component

    return register


def output(name: str, kind: "OutputKind") -> Callable[[AnyOutput], AnyOutput]:
    """Register a `regard.tasks.outputs.Output` that tasks name as their output; `kind` describes it."""
    from regard.config.task import OUTPUTS as KINDS
    from regard.tasks.outputs import OUTPUTS

    def register(component: AnyOutput) -> AnyOutput:
        _register(name, OUTPUTS)(component)
        KINDS[name] = kind
        return component

    return register


def task(settings: AnyTask) -> AnyTask:
    """Register a `regard.config.task.TaskSettings`, which names an input and an output, as `task.kind: KIND`."""
    from regard.config.task import INPUTS, OUTPUTS, TASKS

    for name in ("input", "output", "title", "examples", "corpora"):
        if not hasattr(settings, name):
            raise ValueError(f"The task {settings.__name__} has no `{name}`. Set it in the class.")
    for part, known in ((settings.input, INPUTS), (settings.output, OUTPUTS)):
        if part not in known:
            raise ValueError(
                f"The task {settings.__name__} names {part!r}, which is not one of {', '.join(known)}. Register it "
                "before the task."
            )
    TASKS.add(settings, plugins.register(settings.__module__))
    _rebuild_configuration()
    return settings


def analysis(name: str) -> Callable[[AnyAnalysis], AnyAnalysis]:
    """Register an analysis of one trace: `regard inspect NAME RUN TEXT`, `model.explain(source, NAME)`, and reports.

    It is a function from a `regard.tasks.trace.Trace` to a `regard.inspection.result.Result`. Its docstring is the help
    of the command, and its other parameters are options (`regard.inspection.options.Option` describes them).
    """
    from regard.inspection import registry

    def register(function: AnyAnalysis) -> AnyAnalysis:
        plugins.register(function.__module__)
        registry.register(name, function)
        return function

    return register


def constraint(name: str) -> Callable[[AnyConstraint], AnyConstraint]:
    """Register a constraint for `--constraint NAME=VALUE` and `Constraints(extra={NAME: VALUE})`.

    It is a function from the value (a text) and the target tokenizer to a `regard.search.rules.Rule`.
    """
    from regard.search.constraints import EXTRA

    return _register(name, EXTRA)


def engine(name: str) -> Callable[[Component], Component]:
    """Register an engine for `regard translate --engine NAME`.

    It is a function from a run directory and overrides to a `regard.tasks.generation.TextGenerator`.
    """
    from regard.engines.choice import ADDED

    return _register(name, ADDED)


def tracker(name: str) -> Callable[[Component], Component]:
    """Register a `regard.training.trackers.Tracker` for `training.trackers`."""
    from regard.training.trackers import TRACKERS

    return _register(name, TRACKERS, choices.TRACKERS)


def _register_section(settings: Any, sections: Any, registry: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a decorator that registers a component under the kind of its settings."""
    from regard.config.kinds import kind_of

    def register(component: Any) -> Any:
        sections.add(settings, plugins.register(component.__module__))
        _rebuild_configuration()
        return _register(kind_of(settings), registry)(component)

    return register


def _rebuild_configuration() -> None:
    """Rebuild the configuration classes with added sections."""
    from regard.config.model import Model
    from regard.config.run import RunConfig

    Model.model_rebuild(force=True)
    RunConfig.model_rebuild(force=True)


def _register(name: str, registry: dict[str, Any], *names: choices.Choices) -> Callable[[Component], Component]:
    """Return a decorator that puts a component into a registry, and its name into the choices of settings."""

    def register(component: Component) -> Component:
        plugin = plugins.register(component.__module__)
        if name in registry and getattr(registry[name], "__module__", "") != component.__module__:
            raise ValueError(f"The name {name!r} is already registered. Choose another.")
        for known in names:
            known.add(name, plugin)
        registry[name] = component
        return component

    return register
