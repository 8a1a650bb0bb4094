"""What can be asked of a run: its parts by name, and which analyses apply to it."""

from typing import Any

from regard.inspection.attention_kinds import kind_of, layer_of
from regard.inspection.interventions import attentions
from regard.inspection.registry import explanations
from regard.models.parts import Entrance
from regard.nn import taps
from regard.nn.attention import Attention
from regard.tasks.loaded import LoadedRun

VECTORS = ("states", "embedded", "after_attention", "after_source_attention", "head_outputs", "output")
"""Last parts of the names of taps that have a vector for each position."""


def describe(run: LoadedRun) -> dict[str, Any]:
    """Return the parts of a run's model, its search, and its analyses with the reason where one does not apply."""
    model, config = run.model, run.config
    positions = {
        name.split(".")[0]
        for name, module in model.named_modules()
        if (isinstance(module, Entrance) and module.places is not None)
        or (isinstance(module, Attention) and module.distances is not None)
    }
    kind = config.task.input_kind()
    return {
        "task": config.task.kind,
        "arrow": config.task.arrow,
        "cell": config.cell,
        "writes": run.writes_text,
        "reads": "sound" if kind.sound else "image" if kind.image else "text" if kind.encoder else "prompt",
        "texts": config.data.train.texts,
        "attentions": [
            {"name": name, "kind": kind_of(name), "layer": layer_of(name), "heads": module.heads}
            for name, module in attentions(model).items()
        ],
        "taps": [name for name in taps.names(model) if name.rpartition(".")[2] in VECTORS],
        "positions": sorted(positions),
        "trainedLength": run.input.trained_length if run.translates_text else None,
        "beam": config.decoding.beam if run.writes_text else None,
        "lengthPenalty": config.decoding.length_penalty if run.writes_text else None,
        "analyses": [{**analysis.to_json(), "reason": analysis.applies(run)} for analysis in explanations()],
    }
