"""Render the equations of the documentation as MathML, which browsers display without scripts or a network.

A fenced block `math` holds TeX. GitHub displays it; `zensical.toml` names `render` for the site.
"""

import re
from typing import Any

from latex2mathml.converter import convert


def render(source: str, language: str, css_class: str, options: Any, md: Any, **_: Any) -> str:
    """Return the lines of a block as display equations; the signature is that of a superfences formatter."""
    equations = (spaced(convert(line, display="block")) for line in source.splitlines() if line.strip())
    return f'<div class="{css_class}" role="math">{"".join(equations)}</div>'


def spaced(mathml: str) -> str:
    """Return an equation with a thin space between a function such as log and an argument without brackets."""
    return re.sub(r"(<mi>(?:log|exp|sin|cos|tanh)</mi>)(?!<mo)", r'\1<mspace width="0.17em"/>', mathml)
