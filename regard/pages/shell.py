"""The frame of every page: one file that fetches nothing.

Templates escape whatever they are given. Scripts and style sheets are allowed by their hashes, so that nothing else in
a page can run, even if a text were ever inserted without escaping.
"""

import base64
import hashlib
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from regard.pages.modules import read_style

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """Return the templates of this package, with automatic escaping; an undefined variable is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("regard.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_template(name: str, **values: Any) -> str:
    """Return a template filled with values; all texts are escaped."""
    return environment().get_template(name).render(**values)


def render_page(
    template: str, *, script: str = "", style: str = "", data: Any = None, connects: bool = False, **values: Any
) -> str:
    """Return a whole page.

    Args:
        template: A template that extends `shell.html`.
        script: An inline module script.
        style: A style sheet, in addition to that of all pages.
        data: Plain data for the script, which it finds as JSON in the element with the id `data`.
        connects: Whether the script may call the server that the page comes from.
        values: What the template needs, `title` among them.
    """
    from markupsafe import Markup

    style = f"\n{read_style('base')}{style}"
    script = f"\n{script}\n" if script else ""
    allowed = _hash(script) if script else "'none'"
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'" + ("; connect-src 'self'" if connects else "")
    )
    return render_template(
        template,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        data=None if data is None else Markup(json_block(data)),
        **values,
    )


def json_block(data: Any) -> str:
    """Return JSON that can stand inside a script element: no text in it can end the element."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # NaN and infinity are no JSON: views show an empty value
        text = json.dumps(finite(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def finite(data: Any) -> Any:
    """Return plain data with None in the place of NaN and infinity, which are no JSON."""
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
