"""The service: answers requests with the models of the catalogue, independent of the protocol."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.serving.catalogue import Catalogue, ServedModel
from regard.serving.errors import RequestError
from regard.serving.files import TranslatedFiles
from regard.serving.measures import Measures
from regard.serving.scheduler import Scheduler
from regard.serving.settings import Keys, ServingSettings
from regard.text.documents import Document
from regard.text.html_tree import parse
from regard.text.inline_tags import Aligned
from regard.text.languages import Guess, LanguageIdentifier
from regard.text.markup import Segment, render, segments_of

LINE = re.compile(r"(\r\n|\r|\n)")


@dataclass(frozen=True)
class Translated:
    """The translation of one text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Others, best first, without the best."""

    @classmethod
    def of_ranks(cls, ranks: Sequence[str]) -> "Translated":
        """Return the first of some translations, best first, with the others as alternatives, each once."""
        return cls(ranks[0], tuple(dict.fromkeys(text for text in ranks[1:] if text != ranks[0])))


class Service:
    """A catalogue of models with workers that run them."""

    def __init__(self, catalogue: Catalogue, settings: ServingSettings, *, workers: int) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.limits = settings.limits
        self.keys = Keys(settings)
        self.measures = Measures()
        self.scheduler = Scheduler(
            catalogue.key,
            workers=workers,
            threads=settings.threads,
            queue_limit=self.limits.queue,
            cache_entries=self.limits.cache,
            wait_limit=self.limits.wait,
            batch_timeout=max(2 * self.limits.seconds, 60.0),
            memory_limit=self.limits.memory,
            idle_seconds=self.limits.idle_seconds,
            measures=self.measures,
        )
        self.identifier = LanguageIdentifier(catalogue.sources) if catalogue.sources else None
        self.files = TranslatedFiles(most=self.limits.files, seconds=self.limits.file_seconds)
        self.is_ready = False
        self.is_draining = False
        self.corpora: list[dict[str, Any]] = []
        """Test sets that the studio offers: `name`, `size` and `paths`."""

    async def start(self) -> None:
        """Start the workers."""
        await self.scheduler.start()
        self.is_ready = True

    async def stop(self) -> None:
        """Stop the workers."""
        self.is_ready = False
        self.files.close()
        await self.scheduler.stop()

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raise a `RequestError` if texts exceed the limits."""
        total = sum(map(len, texts))
        if total > self.limits.characters:
            raise RequestError(400, f"Invalid request: request ({total}) exceeds text limit ({self.limits.characters})")
        if len(texts) > self.limits.batch:
            raise RequestError(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({self.limits.batch})")
        self.measures.characters.inc(total)

    def detect(self, text: str) -> list[Guess]:
        """Return the served languages that a text may be in, most likely first."""
        return list(self.identifier.rank(text)) if self.identifier else []

    async def answer(
        self,
        model: ServedModel,
        task: str,
        inputs: Sequence[Any],
        options: Mapping[str, Any],
        show: Callable[[str], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the output of a model for each input; `show` gets the progress of a worker."""
        deadline = time.monotonic() + self.limits.seconds
        return await self.scheduler.answer(model.name, task, inputs, options, deadline=deadline, show=show)

    async def stream(
        self, model: ServedModel, content: str, options: Mapping[str, Any], show: Callable[[str], None]
    ) -> dict[str, Any]:
        """Return the output of a model for one input; `show` gets its parts as they are generated."""
        deadline = time.monotonic() + self.limits.seconds
        return await self.scheduler.stream(model.name, content, options, show, deadline=deadline)

    async def translate_html(
        self, documents: Sequence[str], route: Sequence[ServedModel], *, alternatives: int = 0
    ) -> list[Translated]:
        """Translate HTML documents or fragments by the models of a route; tags stay around the aligned words."""
        deadline = time.monotonic() + self.limits.seconds
        current = [Translated(document) for document in documents]
        for number, model in enumerate(route):
            count = 1 + (alternatives if number == len(route) - 1 else 0)
            roots = [parse(translated.text) for translated in current]
            segments = [segments_of(root) for root in roots]
            found = iter(
                await self._translate_segments(
                    model,
                    [segment for parts in segments for segment in parts],
                    deadline,
                    count=count,
                    is_admitted=number > 0,
                )
            )
            current = []
            for root, parts in zip(roots, segments, strict=True):
                lists = [next(found) for _ in parts]
                ranks = [render(root, [best[min(rank, len(best) - 1)] for best in lists]) for rank in range(count)]
                current.append(Translated.of_ranks(ranks))
        return current

    async def translate_document(self, name: str, content: bytes, route: Sequence[ServedModel]) -> bytes:
        """Translate a document by the models of a route."""
        deadline = time.monotonic() + self.limits.seconds
        for number, model in enumerate(route):
            document = Document.decode(name, content)
            self.check_texts([segment.text for segment in document.segments])
            found = await self._translate_segments(model, document.segments, deadline, is_admitted=number > 0)
            content = document.render([best[0] for best in found]).encode()
        return content

    async def _translate_segments(
        self,
        model: ServedModel,
        segments: Sequence[Segment],
        deadline: float,
        *,
        count: int = 1,
        is_admitted: bool,
    ) -> list[list[Aligned]]:
        """Return `count` translations of each segment, or fewer, best first; those with tags also get an alignment."""
        results: dict[int, list[Aligned]] = {}
        for task, tagged in (("translate", False), ("translate_aligned", True)):
            chosen = [index for index, segment in enumerate(segments) if segment.has_tags == tagged]
            if chosen:
                outputs = await self.scheduler.answer(
                    model.name,
                    task,
                    [segments[index].text for index in chosen],
                    _options_for(count),
                    deadline=deadline,
                    is_admitted=is_admitted,
                )
                is_admitted = True
                for index, output in zip(chosen, outputs, strict=True):
                    results[index] = [
                        Aligned(one["text"], [(source, target) for source, target in one.get("alignment", ())])
                        for one in (output, *(output.get("others") or ()))
                    ]
        return [results[index] for index in range(len(segments))]

    async def translate(
        self, texts: Sequence[str], route: Sequence[ServedModel], *, alternatives: int = 0
    ) -> list[Translated]:
        """Translate texts by the models of a route, one after the other; alternatives come from the last one."""
        deadline = time.monotonic() + self.limits.seconds
        current = [Translated(text) for text in texts]
        for number, model in enumerate(route):
            count = 1 + (alternatives if number == len(route) - 1 else 0)
            lines = [LINE.split(translated.text) for translated in current]
            contents = [part.strip() for parts in lines for part in parts[::2] if part.strip()]
            options = _options_for(count)
            outputs = await self.scheduler.answer(
                model.name, "translate", contents, options, deadline=deadline, is_admitted=number > 0
            )
            found = iter(outputs)
            current = []
            for parts in lines:
                own = [next(found) if index % 2 == 0 and part.strip() else None for index, part in enumerate(parts)]
                ranks = [
                    _assemble(parts, [_of_rank(output, rank) if output else None for output in own])
                    for rank in range(count)
                ]
                current.append(Translated.of_ranks(ranks))
        return current

    async def reload(self, name: str) -> ServedModel:
        """Read a run again and load it; if that fails, the old version stays in use."""
        from regard.foundation.errors import RegardError

        try:
            new = await asyncio.to_thread(self.catalogue.refresh, name)
        except RequestError:
            raise
        except RegardError as error:
            raise RequestError(500, f"{error} The old model stays in use.") from None
        await self.scheduler.load(new.key, new.verb)
        self.catalogue.replace(new)
        return new


def _options_for(count: int) -> dict[str, Any]:
    """Return the search options of so many translations."""
    return {"count": count, "beam": max(count, 5)} if count > 1 else {}


def _of_rank(output: Mapping[str, Any], rank: int) -> str:
    """Return the text of a rank of an output; the best if there are not so many."""
    others = output.get("others") or []
    return str(others[rank - 1]["text"] if 0 < rank <= len(others) else output["text"])


def _assemble(parts: Sequence[str], outputs: Sequence[str | None]) -> str:
    """Join lines and line breaks again, lines replaced by their outputs within the same white space."""
    whole = []
    for part, output in zip(parts, outputs, strict=True):
        if output is None:
            whole.append(part)
        else:
            start, end = len(part) - len(part.lstrip()), len(part.rstrip())
            whole.append(part[:start] + output + part[end:])
    return "".join(whole)
