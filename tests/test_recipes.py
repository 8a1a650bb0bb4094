"""Recipes by name: from a checkout, from an installed wheel, and listed with what was measured."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from regard.cli import main
from regard.foundation.errors import UsageError
from regard.recipes import configuration_file, list_recipes, recipe_names

ROOT = Path(__file__).parent.parent


def test_every_recipe_is_in_the_index() -> None:
    assert sorted(recipe.name for recipe in list_recipes()) == recipe_names()
    assert len(recipe_names()) > 20


@pytest.mark.parametrize("recipe", [one for one in list_recipes() if one.result], ids=lambda one: one.name)
def test_the_figures_are_those_of_the_readme(recipe) -> None:
    readme = (ROOT / "recipes" / "README.md").read_text(encoding="utf-8").replace("**", "")
    (row,) = [line for line in readme.splitlines() if line.startswith(f"| [{recipe.name}.yaml]({recipe.name}.yaml) |")]
    *_, time, result, _ = re.split(r"(?<!\\)\|", row)
    assert recipe.time in time
    assert recipe.result in result


@pytest.mark.parametrize("name", ["copy", "copy.yaml", "recipes/copy.yaml", "multi30k/quick", "recipes/wmt14/base"])
def test_a_recipe_is_found_by_name_from_anywhere(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert configuration_file(name).is_file()


def test_a_file_of_that_name_is_preferred(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy.yaml").write_text("data: {train: {generate: sort}}\n")
    assert configuration_file("copy.yaml") == Path("copy.yaml")
    assert configuration_file("copy") != Path("copy")


def test_a_mistyped_name_is_answered_with_the_right_one(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "multi30k/quik"]) == 2
    assert "did you mean multi30k/quick?" in capsys.readouterr().err
    (tmp_path / "sorts.yaml").write_text("")
    assert main(["train", "sortz.yaml"]) == 2
    assert "did you mean sorts.yaml?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../pyproject", "/etc/passwd.yaml", "x" * 5000, "nul\0", "", "no/such thing", "."])
def test_what_is_no_recipe_is_refused(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config", "show", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "bug in Regard" not in said


def test_recipes_are_listed_and_printed(capsys) -> None:
    assert main(["recipes"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"multi30k/quick +translation +.*BLEU 36\.4.*5 min 31 s", said)
    assert main(["recipes", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(recipe_names())
    assert main(["recipes", "multi30k/quick"]) == 0
    assert "corpus: multi30k/en-de" in capsys.readouterr().out
    assert main(["recipes", "multi30k/quik"]) == 2


def test_a_wheel_has_the_recipes_and_the_registry(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="needs hatchling to build a wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_CACHE_HOME": str(empty)}
    environment.pop("REGARD_DATA", None)

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "regard", *arguments]
        settings = {"cwd": empty, "env": environment, "capture_output": True, "text": True}
        return subprocess.run(command, check=False, timeout=120, **settings)

    code = "import regard; print(regard.__file__)"
    where = subprocess.check_output([sys.executable, "-c", code], cwd=empty, env=environment, text=True)
    assert where.startswith(str(tmp_path / "site"))
    assert "multi30k/quick" in typed("recipes").stdout
    assert "generate: copy" in typed("config", "show", "copy").stdout
    assert "multi30k" in typed("data", "list").stdout
    assert "regard data get multi30k/en-de" in typed("train", "multi30k/quick").stderr


def test_an_installation_without_recipes_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("regard.recipes.PLACES", (tmp_path,))
    with pytest.raises(UsageError, match="without its recipes"):
        list_recipes()
