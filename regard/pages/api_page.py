"""The page `/docs` of a server: its models and endpoints."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from regard.pages.shell import render_page

STYLE = "code{overflow-wrap:anywhere} h2{font-size:1.25rem} h3{font-size:1rem;margin-bottom:.2em} h3+p{margin-top:0}"


class Endpoint(NamedTuple):
    """One endpoint."""

    method: str
    path: str
    summary: str
    fields: list[tuple[str, str]]
    """Name and description of each parameter."""


def render(models: Sequence[str], documents: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the page.

    Args:
        models: A line for each model.
        documents: Headings with their descriptions in the format OpenAPI or Swagger.
    """
    sections = [(heading, _endpoints(document)) for heading, document in documents]
    return render_page("api.html", style=STYLE, title="Regard server", run="", models=models, sections=sections)


def _endpoints(document: Mapping[str, Any]) -> list[Endpoint]:
    return [
        Endpoint(method.upper(), path, operation.get("summary", ""), _fields(operation, document))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parameters of an operation, and the fields of its body."""
    fields = [(field["name"], field.get("description", "")) for field in operation.get("parameters", ())]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content.get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        schema = document.get("components", {}).get("schemas", {}).get(name, schema)
        fields += [(key, value.get("description", "")) for key, value in schema.get("properties", {}).items()]
    return fields
