"""`regard recipes`: the configurations that come with Regard, with their measured results."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard recipes                       all of them
  regard recipes multi30k/quick        print one, to copy and change
  regard train multi30k/quick          train it, from any directory
"""


def recipes(
    name: Annotated[str | None, typer.Argument(help="Print this one.", metavar="[NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of a table.")] = False,
) -> None:
    """List the recipes with their tasks, training times and measured results."""
    from regard.foundation.display import columns
    from regard.foundation.errors import UsageError
    from regard.recipes import configuration_file, list_recipes, recipe_names

    found = list_recipes()
    if name is not None:
        short = name.removeprefix("recipes/").removesuffix(".yaml")
        if short not in recipe_names():
            configuration_file(short)  # raises an error with a suggestion
            raise UsageError(f"{name[:200]} is not a recipe. `regard recipes` lists them.")
        found = [recipe for recipe in found if recipe.name == short]
        if not as_json:
            print(found[0].path.read_text(encoding="utf-8").rstrip("\n"))
            return
    if as_json:
        facts = [{**asdict(recipe), "path": str(recipe.path)} for recipe in found]
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    rows = [["recipe", "task", "what it learns", "measured", "time"]]
    rows += [[recipe.name, recipe.task, recipe.what, recipe.result or "-", recipe.time or "-"] for recipe in found]
    print(columns(rows))
    print("\nTrain one with `regard train NAME`; commands and conditions of the figures: recipes/README.md.")
