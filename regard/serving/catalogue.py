"""The catalogue: the models that a server offers, and the languages between which they translate."""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.foundation.errors import RegardError, UsageError
from regard.runs.bundle import Bundle, is_bundle
from regard.runs.run import Run
from regard.serving.errors import RequestError
from regard.serving.worker_model import ModelKey
from regard.text.languages import find_code, language_name

if TYPE_CHECKING:
    from regard.config.run import RunConfig

LONGEST_ROUTE = 2
"""Models in a row at most: directly, or through one language between."""


@dataclass(frozen=True)
class Languages:
    """The pair of languages of a translation model."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> "Languages":
        """Return the languages of a text such as `en-de` or `en:pt-BR`."""
        source, mark, target = text.partition(":") if ":" in text else text.partition("-")
        if not mark or not all(re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", code) for code in (source, target)):
            raise UsageError(f"`{text}` is not a pair of languages. Write en-de, or en:pt-BR if a code has a hyphen.")
        return cls(source, target)

    @classmethod
    def of_run(cls, config: "RunConfig") -> "Languages | None":
        """Return the languages that a configuration states, or that its corpus or file names imply."""
        stated = config.data.languages
        if stated is not None:
            return cls(stated.source, stated.target)
        named = re.search(r"(?:^|[/_.-])([a-z]{2,3})-([a-z]{2,3})$", config.data.corpus or "")
        if named:
            return cls(named[1], named[2])
        codes = []
        for side in ("source", "target"):
            paths = getattr(config.data.train, side, None)
            names = [paths] if isinstance(paths, str | Path) else list(paths or ())
            ending = re.search(r"\.([a-z]{2,3})(?:\.gz|\.txt|\.bz2|\.xz)?$", str(names[0])) if names else None
            codes.append(ending[1] if ending and ending[1] not in ("csv", "tsv", "txt", "gz", "xz") else None)
        return cls(*codes) if all(codes) else None  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.source} to {self.target}"


@dataclass(frozen=True)
class ServedModel:
    """A trained run, or a bundle, that is offered under a name."""

    name: str
    run: Path
    engine: str
    task: str
    """The kind of task, such as `translation`."""
    verb: str
    """The verb of the command line that it answers to: `translate`, `predict`, `generate`, `reply`, …"""
    languages: Languages | None = None
    version: int = 0
    reads_files: bool = False
    """Whether an input is a file, an image or a sound: then a text of a client must never be taken for a path."""
    reads_text: bool = True
    """Whether an input is, or contains, a text."""
    reads_records: bool = False
    """Whether an input is a record, which a client may send as JSON."""

    @property
    def key(self) -> ModelKey:
        """What workers need to know of it."""
        return ModelKey(self.name, self.version, str(self.run), self.engine)

    @classmethod
    def open(cls, run: Path, *, name: str, engine: str, languages: Languages | None = None) -> "ServedModel":
        """Return the model of a run; raises `RegardError` if it is not a trained run."""
        if is_bundle(run):
            bundle = Bundle.open(run)
            return cls(name, run, "native", bundle.record.kind, bundle.record.kind)
        opened = Run.open(run)
        if not opened.weights.exists():
            raise RegardError(f"{run} has no trained weights yet. Train it first, or leave it out.")
        config = opened.load_config()
        verb = config.task.verb
        if verb == "translate":
            languages = languages or Languages.of_run(config)
        kind = config.task.input_kind()
        chosen = engine if verb == "translate" else "native"
        reads_files = kind.image or kind.sound
        return cls(
            name,
            run,
            chosen,
            config.task.kind,
            verb,
            languages,
            reads_files=reads_files,
            reads_text=kind.text,
            reads_records=kind.record,
        )


class Catalogue:
    """The models of a server."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.models: dict[str, ServedModel] = {}
        for model in models:
            if model.name in self.models:
                raise UsageError(f"Two models are called `{model.name}`. Give one of them another name, as NAME=RUN.")
            self.models[model.name] = model

    def key(self, name: str) -> ModelKey:
        """Return the present version of a model."""
        return self.models[name].key

    def get(self, name: str) -> ServedModel:
        """Return a model by name; raises a `RequestError` for an unknown one."""
        if name not in self.models:
            raise RequestError(404, f"There is no model `{name}`. Use one of: {', '.join(self.models)}.")
        return self.models[name]

    def only(self, verbs: Sequence[str]) -> ServedModel:
        """Return the one model that answers to any of the verbs; raises a `RequestError` if there are several."""
        fitting = [model for model in self.models.values() if model.verb in verbs]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            raise RequestError(400, f"No model here can {' or '.join(verbs)}.")
        names = ", ".join(model.name for model in fitting)
        raise RequestError(400, f"Several models can {' or '.join(verbs)}. Choose one with `model`: {names}.")

    def replace(self, model: ServedModel) -> None:
        """Put a new version of a model in the place of the old one."""
        self.models[model.name] = model

    def refresh(self, name: str) -> ServedModel:
        """Return the next version of a model, read again from its run."""
        old = self.get(name)
        new = ServedModel.open(old.run, name=old.name, engine=old.engine, languages=old.languages)
        return replace(new, version=old.version + 1)

    @property
    def pairs(self) -> dict[tuple[str, str], ServedModel]:
        """The model of each pair of languages; the first one listed wins."""
        found: dict[tuple[str, str], ServedModel] = {}
        for model in self.models.values():
            if model.languages is not None:
                found.setdefault((model.languages.source, model.languages.target), model)
        return found

    @property
    def sources(self) -> list[str]:
        """The codes of all source languages."""
        return list(dict.fromkeys(source for source, _ in self.pairs))

    @property
    def codes(self) -> list[str]:
        """The codes of all languages."""
        return list(dict.fromkeys(code for pair in self.pairs for code in pair))

    def targets(self, source: str) -> list[str]:
        """Return the languages that a source language can be translated to, itself included."""
        return [code for code in self.codes if code == source or self._path(source, code) is not None]

    def language(self, code: str) -> str:
        """Return the served spelling of a language code; raises a `RequestError` for a language not served."""
        found = find_code(code, self.codes)
        if found is None:
            raise RequestError(400, f"{code[:40]} is not supported")
        return found

    def route(self, source: str, target: str) -> list[ServedModel]:
        """Return the models that translate one after the other from source to target; none if they are equal."""
        if source == target:
            return []
        path = self._path(source, target)
        if path is None:
            raise RequestError(
                400,
                f"{language_name(target)} ({target}) is not available as a target language from "
                f"{language_name(source)} ({source})",
            )
        return path

    def _path(self, source: str, target: str) -> list[ServedModel] | None:
        """Return the shortest path of models between two languages, by breadth-first search."""
        waiting: deque[tuple[str, list[ServedModel]]] = deque([(source, [])])
        while waiting:
            reached, path = waiting.popleft()
            for (start, end), model in self.pairs.items():
                if start == reached and model not in path:
                    if end == target:
                        return [*path, model]
                    if len(path) + 1 < LONGEST_ROUTE:
                        waiting.append((end, [*path, model]))
        return None
