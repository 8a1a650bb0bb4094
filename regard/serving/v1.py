"""Regard's own API under `/v1`: everything that the verbs of the command line do, as JSON."""

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, UploadFile
from fastapi import Path as InPath
from fastapi import Request as HTTPRequest
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from regard.foundation.errors import UsageError
from regard.serving.bodies import (
    Attached,
    ChoiceRequest,
    CorpusRequest,
    ExportRequest,
    GenerateRequest,
    InspectRequest,
    ModelDescription,
    Outputs,
    PredictRequest,
    ReplyRequest,
    ScoreRequest,
    SearchOptions,
    TranslateRequest,
    WatchRequest,
)
from regard.serving.catalogue import ServedModel
from regard.serving.errors import RequestError
from regard.serving.requests import clean, clean_data, unless_gone
from regard.serving.service import Service

MOST_STUDIED = 5000
"""Characters of a text that is watched or inspected."""
SCENE = "shapes:"
"""How the text of a generated image begins, which is not a path."""


class API:
    """The endpoints of `/v1`."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def router(self) -> APIRouter:
        """Return the router of all endpoints."""
        router = APIRouter(prefix="/v1")
        router.get("/models", summary="List the models")(self.models)
        router.post("/models/{name}/reload", summary="Read a run again")(self.reload)
        router.get("/health", summary="Whether the server is ready")(self.health)
        router.post("/translate", summary="Translate texts")(self.translate)
        router.post("/predict", summary="Predict labels, numbers, tags or words")(self.predict)
        router.post("/generate", summary="Continue prompts with a language model")(self.generate)
        router.post("/caption", summary="Describe an image")(self.caption)
        router.post("/transcribe", summary="Transcribe a sound file")(self.transcribe)
        router.post("/reply", summary="Suggest replies to messages")(self.reply)
        router.post("/reply/choice", summary="Log which suggestion was chosen")(self.choice)
        router.post("/score", summary="Score given targets")(self.score)
        router.post("/inspect/{analysis}", summary="Explain a prediction")(self.inspect)
        router.post("/watch", summary="Watch a model answer, as it is or changed")(self.watch)
        router.post("/corpus", summary="Answer examples of a corpus of the server")(self.corpus)
        router.post("/studio/export", summary="Return the studio as one file", response_class=HTMLResponse)(self.export)
        router.get("/models/{name}", summary="Describe a model and what can be asked of it")(self.describe)
        return router

    def _model(self, name: str | None, *verbs: str) -> ServedModel:
        """Return the model of a request that answers to one of the verbs."""
        if name is None:
            return self.service.catalogue.only(verbs)
        model = self.service.catalogue.get(name)
        if model.verb not in verbs:
            raise RequestError(
                400, f"The model `{name}` does {model.task} and cannot {verbs[0]}. Use /v1/{model.verb} for it."
            )
        return model

    async def models(self) -> list[ModelDescription]:
        """List the models with their tasks and languages."""
        return [
            ModelDescription(
                name=model.name,
                task=model.task,
                verb=model.verb,
                source=model.languages.source if model.languages else None,
                target=model.languages.target if model.languages else None,
                engine=model.engine,
                version=model.version,
            )
            for model in self.service.catalogue.models.values()
        ]

    async def reload(self, name: Annotated[str, InPath(max_length=200)]) -> dict[str, Any]:
        """Load the run of a model again; if that fails, the old version stays in use."""
        model = await self.service.reload(name)
        return {"name": model.name, "version": model.version}

    async def health(self) -> dict[str, Any]:
        """Return whether the server is ready, and its load."""
        return {
            "status": "ready" if self.service.is_ready and not self.service.is_draining else "not ready",
            "waiting": self.service.scheduler.pending,
            "workers": sum(worker.is_alive for worker in self.service.scheduler.workers),
        }

    async def translate(self, request: HTTPRequest, body: TranslateRequest) -> Outputs:
        """Translate texts; each output has the fields of `regard translate --format jsonl`."""
        model = self._translator(body)
        texts = self._checked([_as_text(model, text) for text in body.texts])
        options = SearchOptions.model_validate(body.model_dump(include=set(SearchOptions.model_fields))).given()
        if body.extras:
            options["with"] = sorted(body.extras)
        outputs = await unless_gone(request, self.service.answer(model, "translate", texts, options))
        return Outputs(model=model.name, outputs=outputs)

    def _translator(self, body: TranslateRequest) -> ServedModel:
        if body.model is not None:
            return self._model(body.model, "translate")
        if body.source is None or body.target is None:
            return self._model(None, "translate")
        catalogue = self.service.catalogue
        route = catalogue.route(catalogue.language(body.source), catalogue.language(body.target))
        if len(route) != 1:
            raise RequestError(400, "No single model translates between these languages. Use /translate for a pivot.")
        return route[0]

    async def predict(self, request: HTTPRequest, body: PredictRequest) -> Outputs:
        """Predict with a model; each output has the fields of `regard predict --json`."""
        model = self._model(body.model, "predict")
        inputs = [_cleaned(item) for item in body.inputs]
        if body.file is not None:
            return await self._predict_file(request, body.file, inputs, model)
        if not inputs:
            raise RequestError(400, "There is no input. Give a list of `inputs`.")
        for item in inputs:
            _check_no_path(model, item)
        self.service.check_texts([part for item in inputs for part in ([item] if isinstance(item, str) else item)])
        outputs = await unless_gone(request, self.service.answer(model, "predict", inputs, {}))
        return Outputs(model=model.name, outputs=outputs)

    async def _predict_file(
        self, request: HTTPRequest, file: str, inputs: list[str | list[str]], model: ServedModel
    ) -> Outputs:
        """Answer for a file, or for each question about it."""
        if not model.reads_files:
            raise RequestError(400, f"The model `{model.name}` reads text. Leave out `file`.")
        questions = [text for item in inputs for text in ([item] if isinstance(item, str) else item)]
        self.service.check_texts(questions)
        _check_alone(model, questions, "inputs")
        with _uploaded(_decoded(file)) as path:
            given: list[Any] = [[path, question] for question in questions] or [path]
            outputs = await unless_gone(request, self.service.answer(model, "predict", given, {}))
        return Outputs(model=model.name, outputs=outputs)

    async def generate(self, request: HTTPRequest, body: GenerateRequest) -> Any:
        """Continue prompts."""
        model = self._model(body.model, "generate")
        options = SearchOptions.model_validate(body.model_dump(include=set(SearchOptions.model_fields))).given()
        prompts = self._checked(body.prompts)
        if body.stream:
            if len(prompts) > 1 or body.count > 1 or body.samples > 1 or (body.beam or 1) > 1:
                raise RequestError(400, "A stream is one text: give one prompt, without a beam or several samples.")
            if not body.samples:
                options["beam"] = 1
            return StreamingResponse(self._events(model, prompts[0], options), media_type="text/event-stream")
        outputs = await unless_gone(request, self.service.answer(model, "predict", prompts, options))
        return Outputs(model=model.name, outputs=outputs)

    async def _events(self, model: ServedModel, prompt: str, options: dict[str, Any]) -> AsyncIterator[str]:
        """Yield the events of a stream: parts of the text, then the whole output, or an error."""
        parts: asyncio.Queue[str | None] = asyncio.Queue()
        work = asyncio.ensure_future(self.service.stream(model, prompt, options, parts.put_nowait))
        work.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                yield f"data: {json.dumps({'text': part}, ensure_ascii=False)}\n\n"
            yield f"event: done\ndata: {json.dumps(work.result(), ensure_ascii=False)}\n\n"
        except RequestError as error:
            yield f"event: error\ndata: {json.dumps({'error': str(error)})}\n\n"
        finally:
            work.cancel()  # the client is gone, or all is sent

    async def score(self, request: HTTPRequest, body: ScoreRequest) -> Outputs:
        """Return the log-probabilities of targets, given their sources."""
        model = self._model(body.model, "translate")
        pairs = [[clean(source), clean(target)] for source, target in body.pairs]
        self.service.check_texts([text for pair in pairs for text in pair])
        outputs = await unless_gone(request, self.service.answer(model, "score", pairs, {}))
        return Outputs(model=model.name, outputs=outputs)

    async def reply(self, request: HTTPRequest, body: ReplyRequest) -> Outputs:
        """Suggest replies; each output has the fields of `regard reply suggest --json`."""
        model = self._model(body.model, "reply")
        messages = self._checked(body.messages)
        options = {"rate": body.rate, "explain": body.explain}
        outputs = await unless_gone(request, self.service.answer(model, "reply", messages, options))
        return Outputs(model=model.name, outputs=outputs)

    async def choice(self, body: ChoiceRequest) -> dict[str, str]:
        """Append a choice to `feedback.jsonl` of the bundle; only if the server was started with `log_choices`."""
        from regard.reply.feedback import log_choice

        if not self.service.settings.log_choices:
            raise RequestError(403, "This server does not log choices. Start it with --log-choices.")
        model = self._model(body.model, "reply")
        try:
            log_choice(model.run / "feedback.jsonl", body.shown, body.chosen, body.sent)
        except UsageError as error:
            raise RequestError(400, str(error)) from None
        return {"status": "logged"}

    async def inspect(
        self, request: HTTPRequest, analysis: Annotated[str, InPath(max_length=50)], body: InspectRequest
    ) -> Any:
        """Return the data of an analysis of `regard inspect`, as its JSON file has it."""
        own = {"analysis": analysis, "target": body.target, "panels": body.panels}
        options = clean_data({"options": body.options, **own})
        if not body.stream:
            return _as_response(await self._study(request, body, "inspect", options))
        return StreamingResponse(self._progress(request, body, options), media_type="text/event-stream")

    async def _progress(
        self, request: HTTPRequest, body: InspectRequest, options: dict[str, Any]
    ) -> AsyncIterator[str]:
        """Yield the progress of an analysis, then its data, or an error."""
        parts: asyncio.Queue[str | None] = asyncio.Queue()
        work = asyncio.ensure_future(self._study(request, body, "inspect", options, parts.put_nowait))
        work.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                yield f"event: progress\ndata: {part}\n\n"
            yield f"event: done\ndata: {work.result().model_dump_json()}\n\n"
        except RequestError as error:
            yield f"event: error\ndata: {json.dumps({'error': str(error)})}\n\n"
        finally:
            work.cancel()  # the client is gone, or all is sent

    async def watch(self, request: HTTPRequest, body: WatchRequest) -> Any:
        """Return each prediction with its candidates, the search and, if wanted, where the model looked."""
        names = set(WatchRequest.model_fields) - set(Attached.model_fields)
        options = clean_data(body.model_dump(include=names, exclude_defaults=True))
        return _as_response(await self._study(request, body, "watch", options))

    async def describe(self, request: HTTPRequest, name: Annotated[str, InPath(max_length=200)]) -> dict[str, Any]:
        """Return the parts of a model by name, and which analyses apply to it."""
        model = self.service.catalogue.get(name)
        (found,) = await unless_gone(request, self.service.answer(model, "describe", [""], {}))
        return {"name": model.name, "run": str(model.run), **found}

    async def corpus(self, request: HTTPRequest, body: CorpusRequest) -> Outputs:
        """Return rows with the output, the reference and their scores."""
        model = self.service.catalogue.get(body.model) if body.model else self._any()
        corpus = next((corpus for corpus in self.service.corpora if corpus["name"] == body.corpus), None)
        if corpus is None:
            raise RequestError(404, "There is no such corpus. Start the studio with --corpus INPUTS REFERENCES.")
        numbers = list(range(body.start, min(body.start + body.count, corpus["size"])))
        if not numbers:
            raise RequestError(400, f"The corpus has {corpus['size']:,} examples.")
        options = {"paths": corpus["paths"]}
        outputs = await unless_gone(request, self.service.answer(model, "corpus", numbers, options))
        return Outputs(model=model.name, outputs=outputs)

    async def export(self, body: ExportRequest) -> HTMLResponse:
        """Return a page that shows a state of the studio without a server."""
        from regard.serving.studio import studio_page

        models = list(self.service.catalogue.models.values())
        return HTMLResponse(
            studio_page(
                models,
                state=clean_data(body.state),
                recording=clean_data(body.recording),
                corpora=self.service.corpora,
            )
        )

    async def _study(
        self,
        request: HTTPRequest,
        body: Attached,
        task: str,
        options: dict[str, Any],
        show: Callable[[str], None] | None = None,
    ) -> Outputs:
        """Answer for a text, or for a file that exists on disk, under a name of ours, only during the request."""
        model = self.service.catalogue.get(body.model) if body.model else self._any()
        item = _cleaned(body.input)
        texts = [item] if isinstance(item, str) else item
        self.service.check_texts(texts)
        if sum(map(len, texts)) > MOST_STUDIED:
            raise RequestError(400, f"The text is too long to look into. Give at most {MOST_STUDIED:,} characters.")
        if body.file is None:
            _check_no_path(model, item)
            if not any(text.strip() for text in texts):
                raise RequestError(400, "The input is empty. Write something.")
            work = self.service.answer(model, task, [item], options, show)
            outputs = await (unless_gone(request, work) if show is None else work)
            return Outputs(model=model.name, outputs=outputs)
        _check_alone(model, texts, "input")
        with _uploaded(_decoded(body.file)) as path:
            given = [path, *texts] if texts != [""] else path
            work = self.service.answer(model, task, [given], options, show)
            outputs = await (unless_gone(request, work) if show is None else work)
        return Outputs(model=model.name, outputs=outputs)

    async def caption(
        self,
        request: HTTPRequest,
        file: UploadFile,
        model: Annotated[str | None, Form()] = None,
        beam: Annotated[int | None, Form(ge=1, le=100)] = None,
    ) -> Outputs:
        """Describe an image file."""
        return await self._answer_file(request, file, self._model(model, "caption"), beam)

    async def transcribe(
        self,
        request: HTTPRequest,
        file: UploadFile,
        model: Annotated[str | None, Form()] = None,
        beam: Annotated[int | None, Form(ge=1, le=100)] = None,
    ) -> Outputs:
        """Transcribe a sound file."""
        return await self._answer_file(request, file, self._model(model, "transcribe"), beam)

    async def _answer_file(
        self, request: HTTPRequest, file: UploadFile, model: ServedModel, beam: int | None
    ) -> Outputs:
        """Answer for an uploaded file."""
        form = await request.form()
        for name in form:
            if name not in ("file", "model", "beam"):
                raise RequestError(400, f"There is no field `{name[:40]}`. A form has `file`, `model` and `beam`.")
        if len(form.getlist("file")) > 1:
            raise RequestError(400, "A form has one `file`. Send several files in requests of their own.")
        content = await file.read(self.service.limits.body + 1)
        if len(content) > self.service.limits.body:
            raise RequestError(413, f"The file is larger than {self.service.limits.body:,} bytes. Send a smaller one.")
        with _uploaded(content) as path:
            options = {} if beam is None else {"beam": beam}
            outputs = await unless_gone(request, self.service.answer(model, "predict", [path], options))
        return Outputs(model=model.name, outputs=outputs)

    def _any(self) -> ServedModel:
        models = list(self.service.catalogue.models.values())
        if len(models) != 1:
            raise RequestError(400, f"Choose a model with `model`: {', '.join(self.service.catalogue.models)}.")
        return models[0]

    def _checked(self, texts: Sequence[str]) -> list[str]:
        self.service.check_texts(texts)
        return [clean(text) for text in texts]


@contextmanager
def _uploaded(content: bytes) -> Iterator[str]:
    """Write a file of a client to disk, under a name of ours, which errors do not show, only during the request."""
    with tempfile.TemporaryDirectory(prefix="regard-") as directory:
        path = Path(directory) / "upload"
        path.write_bytes(content)
        try:
            yield str(path)
        except RequestError as error:
            message = str(error).replace(str(path), "The file")
            raise RequestError(error.status, message, retry_after=error.retry_after) from None


def _decoded(file: str) -> bytes:
    try:
        return base64.b64decode(file, validate=True)
    except ValueError:
        raise RequestError(400, "`file` is not base64.") from None


def _as_text(model: ServedModel, item: str | dict[str, Any] | list[Any]) -> str:
    """Return a text as it is, and a record as JSON text."""
    if not isinstance(item, str) and not model.reads_records:
        raise RequestError(400, f"The model `{model.name}` reads texts. Send `texts` as a list of strings.")
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _cleaned(item: str | list[str]) -> str | list[str]:
    return clean(item) if isinstance(item, str) else [clean(part) for part in item]


def _as_response(found: Outputs) -> Response:
    """Return large outputs as they are: to check and copy them again, as is done with models, takes longer than all."""
    content = json.dumps({"model": found.model, "outputs": found.outputs}, ensure_ascii=False, separators=(",", ":"))
    return Response(content, media_type="application/json")


def _check_alone(model: ServedModel, texts: Sequence[str], field: str) -> None:
    """Refuse texts that come with a file for a model that reads the file alone."""
    if model.reads_files and not model.reads_text and any(texts):
        raise RequestError(400, f"The model `{model.name}` reads a file alone, without a text. Leave out `{field}`.")


def _check_no_path(model: ServedModel, item: str | list[str]) -> None:
    """Refuse a text for a model that reads files: it would be the path of a file of the server."""
    first = item if isinstance(item, str) else next(iter(item), "")
    if model.reads_files and not first.startswith(SCENE):
        raise RequestError(400, f"The model `{model.name}` reads a file. Send its content, as base64, as `file`.")
