"""The description of the LibreTranslate endpoints for `/spec`, in the format Swagger 2.0."""

from typing import Any

import regard

Fields = dict[str, tuple[str, str, bool]]

TRANSLATE: Fields = {
    "q": ("string", "Text to translate; in JSON also a list of texts.", True),
    "source": ("string", "Code of the source language, or auto.", True),
    "target": ("string", "Code of the target language.", True),
    "format": ("string", "text or html.", False),
    "alternatives": ("integer", "Number of alternative translations.", False),
    "api_key": ("string", "API key.", False),
}
ENDPOINTS: dict[str, tuple[str, str, Fields]] = {
    "/translate": ("post", "Translate texts.", TRANSLATE),
    "/detect": (
        "post",
        "Identify the language of a text.",
        {"q": ("string", "Text.", True), "api_key": ("string", "API key.", False)},
    ),
    "/languages": ("get", "List the languages.", {}),
    "/suggest": (
        "post",
        "Suggest a translation.",
        {
            "q": ("string", "Text.", True),
            "s": ("string", "Its suggested translation.", True),
            "source": ("string", "Code of the source language.", True),
            "target": ("string", "Code of the target language.", True),
        },
    ),
    "/frontend/settings": ("get", "Settings for web clients.", {}),
    "/health": ("get", "Whether the server runs.", {}),
    "/translate_file": (
        "post",
        "Translate a document.",
        {
            "file": ("file", "Document.", True),
            "source": ("string", "Code of the source language, or auto.", True),
            "target": ("string", "Code of the target language.", True),
            "api_key": ("string", "API key.", False),
        },
    ),
}
ERRORS = {400: "Invalid request", 403: "Not allowed", 429: "Too many requests", 500: "Failure of the server"}


def swagger() -> dict[str, Any]:
    """Return the description."""
    return {
        "swagger": "2.0",
        "info": {"title": "Regard, LibreTranslate protocol", "version": regard.__version__},
        "paths": {path: {method: _operation(summary, fields)} for path, (method, summary, fields) in ENDPOINTS.items()},
        "definitions": {
            "error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
        },
    }


def _operation(summary: str, fields: Fields) -> dict[str, Any]:
    error = {"$ref": "#/definitions/error"}
    return {
        "summary": summary,
        "consumes": ["multipart/form-data" if "file" in fields else "application/x-www-form-urlencoded"],
        "produces": ["application/json"],
        "parameters": [
            {"in": "formData", "name": name, "type": kind, "description": description, "required": required}
            for name, (kind, description, required) in fields.items()
        ],
        "responses": {"200": {"description": "Done"}}
        | {str(status): {"description": text, "schema": error} for status, text in ERRORS.items()},
    }
