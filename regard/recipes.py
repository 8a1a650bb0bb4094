"""The recipes that come with Regard, wherever it is installed."""

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from regard.foundation.errors import UsageError

PLACES = (Path(__file__).parent / "recipes", Path(__file__).parent.parent / "recipes")
"""In an installed package next to this file, in a checkout next to the package."""


@dataclass(frozen=True)
class Recipe:
    """A configuration that comes with Regard, and what was measured with it."""

    name: str
    path: Path
    task: str
    what: str
    """What it learns, in a few words."""
    time: str | None = None
    """How long training took, as in the README of the recipes; `None` where it was not measured."""
    result: str | None = None
    """How good the model was, likewise."""


def recipe(name: str) -> Path:
    """Return the file of the recipe called `name`."""
    path = _find(name)
    if path is None:
        raise UsageError(f"This installation of Regard has no recipe {name}. Install Regard again.")
    return path


def configuration_file(name: str) -> Path:
    """Return the file that a user means: an existing file, or else a recipe by its name.

    `multi30k/quick`, `multi30k/quick.yaml` and `recipes/multi30k/quick.yaml` all name the same recipe.
    """
    path = Path(name)
    try:
        if path.is_file() or (path.exists() and not path.is_dir()):
            return path
    except (OSError, ValueError):  # such as a name that is too long
        return path
    short = name.removeprefix("recipes/").removesuffix(".yaml")
    found = _find(short)
    if found is not None:
        return found
    if not path.exists() and not _similar_file(path):
        near = difflib.get_close_matches(short[:60], recipe_names(), n=1, cutoff=0.7)
        if near:
            raise UsageError(f"{name[:200]} is neither a file nor a recipe; did you mean {near[0]}?")
        if path.suffix not in (".yaml", ".yml"):
            raise UsageError(
                f"{name[:200]} is neither a file nor a recipe. `regard recipes` lists the recipes, and "
                "`regard new FILE` writes a configuration for your own data."
            )
    return path


def recipe_names() -> list[str]:
    """Return the names of all recipes."""
    directory = _directory()
    return sorted(path.relative_to(directory).with_suffix("").as_posix() for path in directory.rglob("*.yaml"))


def list_recipes() -> list[Recipe]:
    """Return every recipe with its task and what was measured, in the order of the index."""
    from regard.config.document import read

    directory = _directory()
    index = tomllib.loads((directory / "index.toml").read_text(encoding="utf-8"))
    found = []
    for name, facts in index.items():
        path = directory / f"{name}.yaml"
        task = read(path.read_text(encoding="utf-8"), name).values.get("task", {})
        found.append(Recipe(name, path, task.get("kind", "translation"), **facts))
    return found


def _directory() -> Path:
    for place in PLACES:
        if (place / "index.toml").is_file():
            return place
    raise UsageError("This installation of Regard comes without its recipes. Install Regard again.")


def _find(name: str) -> Path | None:
    parts = Path(name).parts
    if not parts or ".." in parts or Path(name).is_absolute() or "\0" in name:
        return None
    for place in PLACES:
        path = place / f"{name}.yaml"
        try:
            if path.is_file():
                return path
        except OSError:
            return None
    return None


def _similar_file(path: Path) -> bool:
    """Whether a file of nearly this name is there, which the user more probably means."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except (OSError, ValueError):
        return False
    return bool(difflib.get_close_matches(path.name, names, n=1, cutoff=0.7))
