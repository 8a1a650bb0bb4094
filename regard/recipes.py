"""The recipes that come with Regard, wherever it is installed."""

from pathlib import Path

from regard.foundation.errors import UsageError

PLACES = (Path(__file__).parent / "recipes", Path(__file__).parent.parent / "recipes")
"""In an installed package beside this file, in a checkout beside the package."""


def recipe(name: str) -> Path:
    """The file of the recipe called `name`."""
    for place in PLACES:
        if (place / f"{name}.yaml").is_file():
            return place / f"{name}.yaml"
    raise UsageError(f"This installation of Regard comes without the recipe {name}.yaml: install it anew.")
