"""Loaded runs without a run directory: a configuration, a model and tokenizers."""

from typing import Any

from regard.config.run import RunConfig
from regard.tasks.loaded import LoadedRun
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import Vocabularies
from regard.text.tokenizer import Tokenizer


def loaded(model: Any, config: RunConfig, source: Tokenizer, target: Tokenizer | None = None) -> LoadedRun:
    """A run that reads and writes with these tokenizers."""
    return LoadedRun(Task(TaskKind.of(config), Vocabularies(source=source, target=target or source)), model)
