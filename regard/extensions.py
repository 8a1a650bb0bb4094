"""Add your own components to Regard without changing it.

A module of your own registers what it adds:

    from torch import Tensor
    from regard import extensions
    from regard.nn.scores import Score

    @extensions.attention_score("cosine")
    class Cosine(Score):
        ...

Configurations that list the module under `plugins` can then say `model.attention.score: cosine`, and errors, schema and
help know the name. A run records which modules it needs, and is refused where they are not loaded.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from regard.config import choices, plugins
from regard.config.plugins import load

if TYPE_CHECKING:
    from regard.data.corpus import Reader
    from regard.metrics.metric import Metric
    from regard.nn.positions import MakeDistances, MakePlaces
    from regard.nn.recurrence import MakeCell
    from regard.nn.scores import MakeScore

__all__ = [
    "added_positions",
    "attention_score",
    "corpus_format",
    "load",
    "metric",
    "positions_in_attention",
    "recurrent_cell",
]

Score = TypeVar("Score", bound="MakeScore")
Places = TypeVar("Places", bound="MakePlaces")
Distances = TypeVar("Distances", bound="MakeDistances")
Cell = TypeVar("Cell", bound="MakeCell")
AnyReader = TypeVar("AnyReader", bound="Reader")
AnyMetric = TypeVar("AnyMetric", bound="type[Metric]")
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

    It is called with the path of a file and the options as keywords, and gives (source, target) pairs of texts; for a
    classifier the target is the label, for a tagger the tags of all words with spaces between them.
    """
    from regard.data.corpus import READERS

    return _register(name, READERS, choices.READERS)


def metric(name: str) -> Callable[[AnyMetric], AnyMetric]:
    """Register a `regard.metrics.metric.Metric` for `--metrics NAME`, `--mbr NAME` and `regard compare`."""
    from regard.metrics.scoring import METRICS

    return _register(name, METRICS)


def _register(name: str, registry: dict[str, Any], *names: choices.Choices) -> Callable[[Component], Component]:
    """Return a decorator that puts a component into a registry, and its name into the choices of settings."""

    def register(component: Component) -> Component:
        plugin = plugins.register(component.__module__)
        if name in registry and getattr(registry[name], "__module__", "") != component.__module__:
            raise ValueError(f"the name {name!r} is taken: choose another")
        for known in names:
            known.add(name, plugin)
        registry[name] = component
        return component

    return register
