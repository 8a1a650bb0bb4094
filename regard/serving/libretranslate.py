"""The LibreTranslate protocol, as its clients use it: parameters, answers, errors and status codes."""

from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from regard.foundation.errors import RegardError
from regard.serving.errors import RequestError
from regard.serving.requests import clean, read_parameters, text_parameter, unless_gone
from regard.serving.service import Service, Translated
from regard.text.documents import FORMATS, Document
from regard.text.languages import language_name
from regard.text.markup import plain_text


class LibreTranslate:
    """The endpoints of the protocol, which web pages of any origin may use."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def routes(self) -> list[Route]:
        """Return the routes of all endpoints."""
        endpoints = {
            "/translate": (self.translate, "POST"),
            "/detect": (self.detect, "POST"),
            "/languages": (self.languages, "GET"),
            "/translate_file": (self.translate_file, "POST"),
            "/download_file/{name}": (self.download_file, "GET"),
            "/suggest": (self.suggest, "POST"),
            "/frontend/settings": (self.frontend_settings, "GET"),
            "/health": (self.health, "GET"),
            "/spec": (self.spec, "GET"),
        }
        return [Route(path, function, methods=[method]) for path, (function, method) in endpoints.items()]

    async def _parameters(self, request: Request) -> dict[str, Any]:
        parameters = await read_parameters(request, self.service.limits)
        self.service.keys.check(parameters.get("api_key") or None, request.client.host if request.client else "")
        return parameters

    async def translate(self, request: Request) -> Response:
        """Translate a text or a list of texts."""
        parameters = await self._parameters(request)
        texts, is_list = _texts(parameters)
        source_name, target_name = text_parameter(parameters, "source"), text_parameter(parameters, "target")
        style = parameters.get("format") or "text"
        if style not in ("text", "html"):
            raise RequestError(400, f"{str(style)[:40]} format is not supported")
        alternatives = self._alternatives(parameters.get("alternatives"))
        self.service.check_texts(texts)
        catalogue = self.service.catalogue
        target = catalogue.language(target_name)
        detected = [self._detected(text, style) for text in texts] if source_name.lower() == "auto" else None
        sources = [found["language"] for found in detected] if detected else [catalogue.language(source_name)]
        by_source: dict[str, list[int]] = {}
        for index in range(len(texts)):
            by_source.setdefault(sources[index] if detected else sources[0], []).append(index)
        routes = {source: catalogue.route(source, target) for source in by_source}

        async def translate_all() -> list[Translated]:
            translations: dict[int, Translated] = {}
            for source, indices in by_source.items():
                some = [texts[index] for index in indices]
                translate = self.service.translate_html if style == "html" else self.service.translate
                found = await translate(some, routes[source], alternatives=alternatives)
                translations |= dict(zip(indices, found, strict=True))
            return [translations[index] for index in range(len(texts))]

        ordered = await unless_gone(request, translate_all())
        answer: dict[str, Any] = {
            "translatedText": [translated.text for translated in ordered] if is_list else ordered[0].text
        }
        if detected is not None:
            answer["detectedLanguage"] = detected if is_list else detected[0]
        if alternatives:
            others = [list(translated.alternatives) for translated in ordered]
            answer["alternatives"] = others if is_list else others[0]
        return JSONResponse(answer)

    def _alternatives(self, value: Any) -> int:
        """Return the number of alternatives asked for; `null` and nothing mean none."""
        if value is None or value == "":
            return 0
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            raise RequestError(400, "Invalid request: alternatives must be a number") from None
        most = self.service.limits.alternatives
        if number > most:
            raise RequestError(400, f"Invalid request: alternatives parameter must be <= {most}")
        return max(number, 0)

    def _detected(self, text: str, style: str = "text") -> dict[str, Any]:
        """Return the language of a text; the first one served, without confidence, if it cannot be told."""
        guesses = self.service.detect(text if style == "text" else plain_text(text))
        if not guesses:
            sources = self.service.catalogue.sources
            if not sources:
                raise RequestError(400, "auto is not supported")
            return {"confidence": 0.0, "language": "en" if "en" in sources else sources[0]}
        return {"confidence": round(100 * guesses[0].confidence, 1), "language": guesses[0].language}

    async def detect(self, request: Request) -> Response:
        """Return the languages that a text may be in."""
        parameters = await self._parameters(request)
        text = text_parameter(parameters, "q")
        self.service.check_texts([text])
        guesses = self.service.detect(text)
        found = [{"confidence": round(100 * guess.confidence, 1), "language": guess.language} for guess in guesses]
        return JSONResponse([one for one in found if one["confidence"]] or [{"confidence": 0.0, "language": "en"}])

    async def translate_file(self, request: Request) -> Response:
        """Translate a document, which can then be downloaded."""
        parameters = await self._parameters(request)
        file = parameters.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise RequestError(400, "Invalid request: missing file parameter")
        source_name, target_name = text_parameter(parameters, "source"), text_parameter(parameters, "target")
        catalogue, content, name = self.service.catalogue, await file.read(), file.filename
        try:
            document = Document.decode(name, content)
        except RegardError as error:
            raise RequestError(400, str(error)) from None
        target = catalogue.language(target_name)
        if source_name.lower() == "auto":
            source = self._detected(" ".join(segment.text for segment in document.segments[:50]))["language"]
        else:
            source = catalogue.language(source_name)
        route = catalogue.route(source, target)
        translated = await unless_gone(request, self.service.translate_document(name, content, route))
        key = self.service.files.add(name, translated)
        return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{key}"})

    async def download_file(self, request: Request) -> Response:
        """Return a translated document."""
        name, content = self.service.files.get(request.path_params["name"])
        headers = {"Content-Disposition": f'attachment; filename="{name}"'.encode("ascii", "replace").decode()}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def languages(self, request: Request) -> Response:
        """Return the languages, each with those it can be translated to."""
        catalogue = self.service.catalogue
        return JSONResponse(
            [
                {"code": code, "name": language_name(code), "targets": catalogue.targets(code)}
                for code in catalogue.codes
            ]
        )

    async def suggest(self, request: Request) -> Response:
        """Accept a suggested translation: it is checked, and not stored."""
        parameters = await self._parameters(request)
        for name in ("q", "s", "source", "target"):
            text_parameter(parameters, name)
        return JSONResponse({"success": True})

    async def frontend_settings(self, request: Request) -> Response:
        """Return what web clients of LibreTranslate ask for first."""
        catalogue, service = self.service.catalogue, self.service
        pair = next(iter(catalogue.pairs), ("en", "en"))
        return JSONResponse(
            {
                "charLimit": service.limits.characters,
                "frontendTimeout": 500,
                "apiKeys": service.keys.exist,
                "keyRequired": service.keys.keys_only,
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": list(FORMATS),
                "language": {
                    side: {"code": code, "name": language_name(code)}
                    for side, code in zip(("source", "target"), pair, strict=True)
                },
            }
        )

    async def health(self, request: Request) -> Response:
        """Return whether the server runs."""
        return JSONResponse({"status": "ok"})

    async def spec(self, request: Request) -> Response:
        """Return the description of these endpoints in the format Swagger 2.0."""
        from regard.serving.specification import swagger

        return JSONResponse(swagger())


def _texts(parameters: dict[str, Any]) -> tuple[list[str], bool]:
    """Return the texts of `q`, and whether it is a list."""
    given = parameters.get("q")
    if given is None or given in ("", []):
        raise RequestError(400, "Invalid request: missing q parameter")
    if isinstance(given, UploadFile):
        raise RequestError(400, "Invalid request: q must be a string")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError(400, "Invalid request: q must be a string or a list of strings")
    return [clean(text) for text in texts], isinstance(given, list)
