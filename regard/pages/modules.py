"""ES modules as one inline script.

Views are written as ES modules (`import { el } from "./kit.js"`, `export function show(root, data)`), so that a server
can serve them as they are. A page that opens from disk cannot load modules from other files, so `bundle` joins them:
each module becomes a function with its own scope, and imports become variables.

Only the simple forms are accepted, each at the start of a line: `import { a, b as c } from "./name.js";` and `export`
before `function`, `async function`, `class` or `const`. Anything else is an error, never a script that fails silently.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from regard.foundation.errors import RegardError

IMPORT = re.compile(r'^import\s*\{([^{}]*)\}\s*from\s*"\./([\w-]+)\.js";[^\S\n]*$', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+function|function|class|const)\s+([A-Za-z_$][\w$]*))", re.MULTILINE)
OTHER = re.compile(r"^[^\S\n]*(?:import|export)\b[^\n]*", re.MULTILINE)
NAME = re.compile(r"([A-Za-z_$][\w$]*)(?:\s+as\s+([A-Za-z_$][\w$]*))?")


@dataclass(frozen=True)
class View:
    """The source of a view: an ES module that exports `show(root, data)`, and its style sheet."""

    script: str
    style: str = ""


FindView = Callable[[str], View]
"""Returns the view of a name; unknown names raise `KeyError`."""


@cache
def shared_view(name: str) -> View:
    """Return a view or a shared module of this package (`views/NAME.js`, with `views/NAME.css` if there is one)."""
    folder = files("regard.pages") / "views"
    script, style = folder / f"{name}.js", folder / f"{name}.css"
    if not script.is_file():
        raise KeyError(name)
    return View(script.read_text(encoding="utf-8"), style.read_text(encoding="utf-8") if style.is_file() else "")


def read_style(name: str) -> str:
    """Return a style sheet of this package."""
    return (files("regard.pages") / "views" / f"{name}.css").read_text(encoding="utf-8")


def bundle(names: Sequence[str], find: FindView, start: str) -> tuple[str, str]:
    """Join modules and everything they import.

    Args:
        names: The modules that `start` uses.
        find: Returns the source of a module by its name, without `.js`.
        start: JavaScript that runs last; it finds the exports of module NAME as `modules["NAME"]`.

    Returns:
        One script and one style sheet.
    """
    scripts: dict[str, str] = {}
    styles: list[str] = []
    opened: list[str] = []

    def add(name: str) -> None:
        if name in scripts:
            return
        if name in opened:
            raise RegardError(f"The modules {' → '.join([*opened[opened.index(name) :], name])} import each other.")
        opened.append(name)
        try:
            source = find(name)
        except KeyError:
            raise RegardError(f"There is no view {name!r}: {name}.js does not exist.") from None
        for _, imported in IMPORT.findall(source.script):
            add(imported)
        scripts[name] = _scoped(name, source.script)
        styles.append(source.style)
        opened.pop()

    for name in names:
        add(name)
    script = "\n".join(["const modules = {};", *scripts.values(), start])
    style = "\n".join(filter(None, styles))
    for text, tag in ((script, "script"), (style, "style")):
        if re.search(rf"</{tag}|<!--|\r", text, re.IGNORECASE):
            raise RegardError(f"A {tag} must contain neither </{tag}, <!-- nor a carriage return.")
    return script, style


def _scoped(name: str, source: str) -> str:
    """Return a module as a function that is called once and returns its exports."""
    exports = EXPORT.findall(source)
    body = EXPORT.sub("", IMPORT.sub(lambda found: _variables(name, found[1], found[2]), source))
    if wrong := OTHER.search(body):
        line = body[: wrong.start()].count("\n") + 1
        raise RegardError(f"{name}.js, line {line}, cannot be part of a page: {wrong[0].strip()!r} is not supported.")
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exports)} }};\n}})();'


def _variables(module: str, imported: str, origin: str) -> str:
    """Return an import as the declaration of variables, on as many lines as it had."""
    names = []
    for part in filter(None, (part.strip() for part in imported.split(","))):
        found = NAME.fullmatch(part)
        if found is None:
            raise RegardError(f"{module}.js imports {part!r} from {origin}.js, which is not a name.")
        names.append(f"{found[1]}: {found[2]}" if found[2] else found[1])
    return f'const {{ {", ".join(names)} }} = modules["{origin}"];' + "\n" * imported.count("\n")
