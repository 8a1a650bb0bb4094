"""Make the page of the Python API from the docstrings of the public names.

The source is parsed, not imported, so that signatures and comments under fields appear as they are written.
"""

import ast
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMES: dict[str, dict[str, list[str]]] = {
    "Functions": {"regard": ["load", "train", "prepare"]},
    "The model": {"regard.api.model": ["Model"], "regard.api.experiment": ["Experiment"]},
    "Results": {
        "regard.tasks.results": ["Result", "Text", "Label", "Number", "Tags", "FilledText", "Nothing"],
        "regard.evaluation.evaluation": ["Evaluation"],
        "regard.evaluation.judged": ["Judged"],
        "regard.inspection.result": ["Result"],
        "regard.tasks.trace": ["Trace"],
    },
    "Search": {
        "regard.search.options": ["Search"],
        "regard.search.constraints": ["Constraints"],
        "regard.search.hypothesis": ["Hypothesis"],
        "regard.search.greedy": ["greedy"],
        "regard.search.beam": ["beam"],
        "regard.search.sampling": ["sample"],
        "regard.search.steps": ["StepModel", "ModelSteps"],
        "regard.search.tree": ["SearchTree"],
    },
    "Errors": {"regard.foundation.errors": ["RegardError", "UsageError"], "regard.tasks.bad_inputs": ["BadInputs"]},
}
"""The public names by the heading and the module under which they are described."""

SHOWN_AS = {"regard.foundation.errors": "regard"} | dict.fromkeys(NAMES["Search"], "regard.search")
"""Modules whose names are imported from a shorter one."""

QUALIFIED = {f"regard.{name}": f"regard.{name}" for name in ("load", "train", "prepare", "RegardError", "UsageError")}
QUALIFIED["regard.inspection.result.Result"] = "inspection.Result"
"""Headings that are more than the name."""

INTRODUCTION = """\
The public names, from their docstrings. [Python](python.md) introduces them; [stability](stability.md) says what is
stable. Functions for extensions are described in [Extending Regard](extending.md), analyses in
[Inspection](inspection.md).
"""


def api_page(note: str) -> str:
    """Return the page; `note` says that it is generated."""
    parts = ["# Python API\n", note, INTRODUCTION]
    for heading, modules in NAMES.items():
        parts.append(f"## {heading}\n")
        for module, names in modules.items():
            found = {node.name: node for node in definitions(parse(module))}
            for name in names:
                parts += describe(SHOWN_AS.get(module, module), found[name])
    return "\n".join(parts)


def parse(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def definitions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Return the functions and classes of a module, or the methods of a class."""
    yield from (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))


def describe(module: str, node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    """Return the section of a function or a class, with the methods of the class."""
    yield f"### `{QUALIFIED.get(f'{module}.{node.name}', node.name)}`\n"
    if module != "regard":
        yield f"`from {module} import {node.name}`\n"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{signature(node)}\n```\n"
        yield docstring(node)
        return
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"```python\nclass {node.name}{f'({bases})' if bases else ''}: ...\n```\n"
    yield docstring(node)
    if rows := list(attributes(node)):
        yield "| attribute | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    for method in definitions(node):
        if (method.name == "__call__" or not method.name.startswith("_")) and not is_property(method):
            yield f"#### `{node.name}.{method.name}`\n"
            yield f"```python\n{signature(method)}\n```\n"
            yield docstring(method)


def is_property(node: ast.AST) -> bool:
    """Return whether a method is a property."""
    return any("property" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Return the definition of a function without its body, one parameter per line if it is long."""
    assert isinstance(node, ast.FunctionDef)
    shown = copy(node)
    shown.body, shown.decorator_list = [ast.Expr(ast.Constant(...))], []
    line = plain_types(ast.unparse(ast.fix_missing_locations(shown)).replace(":\n    ...", ": ..."))
    if len(line) <= 100:
        return line
    head, _, rest = line.partition("(")
    inside, _, tail = rest.rpartition(") ->")
    parameters = "".join(f"    {parameter},\n" for parameter in split_parameters(inside))
    return f"{head}(\n{parameters}) ->{tail}"


def split_parameters(text: str) -> Iterator[str]:
    """Split parameters at the commas that are not inside brackets."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def plain_types(text: str) -> str:
    """Return a signature without the quotes of forward references, and with spaces around defaults."""
    text = re.sub(r"= ?'([^']*)'", r'="\1"', text)
    text = re.sub(r"(?<=[:>\[|,] )'([\w |.\[\], ]+)'", r"\1", text)
    return re.sub(r"(: [^=()]*?[^=\s])=(?=[^=\s])", r"\1 = ", text)  # spaces and quotes as ruff writes them


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """Return a row for each field, attribute and property that has a comment under it, or a docstring."""
    bodies = [node.body]
    bodies += [method.body for method in definitions(node) if method.name == "__init__"]
    for body in bodies:
        for place, one in enumerate(body):
            if isinstance(one, ast.AnnAssign) and not ast.unparse(one.annotation).startswith("ClassVar"):
                name, kind = ast.unparse(one.target), ast.unparse(one.annotation)
            elif isinstance(one, ast.Assign) and ast.unparse(one.targets[0]).startswith("self."):
                name, kind = ast.unparse(one.targets[0]).removeprefix("self."), ""
            elif isinstance(one, ast.FunctionDef) and is_property(one) and not one.name.startswith("_"):
                name, kind = one.name, ast.unparse(one.returns) if one.returns else ""
                yield row(name, kind, ast.get_docstring(one) or "")
                continue
            else:
                continue
            comment = body[place + 1] if place + 1 < len(body) else None
            text = ""
            if isinstance(comment, ast.Expr) and isinstance(comment.value, ast.Constant):
                text = str(comment.value.value)
            if (text or kind) and not name.startswith("_"):
                default = one.value if isinstance(one, ast.AnnAssign) else None
                if isinstance(default, ast.Constant):
                    text += f" Default: `{ast.unparse(default)}`."
                yield row(name, kind, text)


def row(name: str, kind: str, text: str) -> str:
    """Return the row of a table for one attribute."""
    kind = kind.replace('"', "").replace("'", "")
    cells = [f"`{name}`", f"`{kind}`" if kind else "", re.sub(r"\s+", " ", text).strip()]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def docstring(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return a docstring in Markdown, with sections such as `Args` as lists."""
    text = ast.get_docstring(node) or ""
    assert text, f"{node.name} has no docstring"
    parts = re.split(r"^(Args|Returns|Raises):\n", text, flags=re.M)
    found = [paragraphs(parts[0])]
    for title, content in zip(parts[1::2], parts[2::2], strict=True):
        entries = re.sub(r"\n\s{5,}", " ", content.rstrip()).splitlines()
        if title == "Returns":
            found.append(f"Returns: {' '.join(line.strip() for line in entries)}")
        else:
            heading = {"Args": "Arguments", "Raises": "Raises"}[title]
            items = (re.sub(r"^\s*(\w+): ", r"- `\1`: ", line) for line in entries if line.strip())
            found.append(f"{heading}:\n\n" + "\n".join(items))
    return "\n\n".join(found) + "\n"


def paragraphs(text: str) -> str:
    """Return text with each paragraph on one line; indented lines stay as they are."""
    return "\n\n".join(
        part if part.startswith(" ") else re.sub(r"\s*\n\s*", " ", part) for part in text.strip().split("\n\n")
    )
