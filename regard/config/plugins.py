"""Extension modules: which are loaded, and which may be loaded.

A configuration that a user writes may name modules under `plugins`, and they are imported. A run directory may come
from someone else, so a run never causes an import: the user loads its extensions with `--plugin`, the environment
variable REGARD_PLUGINS or `regard.extensions.load`, or has installed them as entry points of the group `regard`.
"""

import importlib
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from regard.foundation.errors import RegardError, UsageError

GROUP = "regard"
"""The group of entry points that name installed extensions."""
VARIABLE = "REGARD_PLUGINS"
"""Environment variable: names of extension modules, separated by commas."""

_loaded: set[str] = set()
"""The loaded extensions, by module name."""
_loading: list[str] = []
"""The extensions that are being loaded, the innermost last."""


def load(module: str) -> None:
    """Import an extension module; it registers its components with the functions of `regard.extensions`."""
    if module in _loaded:
        return
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"The extension {module!r} is not the name of a Python module. Write my_module, without .py.")
    _loading.append(module)
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            raise UsageError(
                f"The extension {module} was not found. Install it, or run regard in the directory of {module}.py."
            ) from None
        raise UsageError(f"The extension {module} cannot be imported: {error}.") from error
    except RegardError:
        raise
    except Exception as error:
        raise UsageError(f"The extension {module} cannot be imported: {type(error).__name__}: {error}.") from error
    finally:
        _loading.pop()
        if added:
            sys.path.remove(here)
    _loaded.add(module)


def register(module: str | None) -> str:
    """Record that a module registers a component, and return the extension name that runs record.

    That is the extension being loaded, which may consist of several modules; a module that a script imports directly
    is its own extension. Code that is executed from a text has no module and counts as part of the script.
    """
    if _loading:
        return _loading[-1]
    module = module or "__main__"
    _loaded.add(module)
    return module


def extension_of(error: BaseException) -> tuple[str, str] | None:
    """Return the extension in whose code an error was raised, innermost, with the file and line; `None` if in none."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        owner = next((name for name in _loaded if module == name or module.startswith(f"{name}.")), None)
        if owner is not None:
            found = owner, f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


@cache
def load_installed() -> None:
    """Load every installed extension, once."""
    for point in entry_points(group=GROUP):
        load(point.module)


def load_requested() -> None:
    """Load the extensions named in the environment variable."""
    for name in filter(None, (part.strip() for part in os.environ.get(VARIABLE, "").split(","))):
        load(name)


def loaded() -> tuple[str, ...]:
    """Return the names of the loaded extensions, for processes that must load them too."""
    return tuple(sorted(_loaded))


def require(names: Iterable[str], origin: str) -> None:
    """Raise if an extension that a run needs is not loaded; a run never loads extensions itself."""
    load_requested()
    missing = [name for name in names if name not in _loaded]
    if missing:
        load_installed()
    for name in missing:
        if name not in _loaded:
            raise UsageError(
                f"{origin} needs the extension {name}, which is not loaded. If you trust it, load it: "
                f"regard --plugin {name} …, or in Python regard.extensions.load({name!r})."
            )
