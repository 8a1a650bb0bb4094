"""One direction of imports: the graph is computed from the source, imports inside functions included."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "regard"

LAYERS = (
    *("foundation", "config", "runs", "text", "pages", "metrics", "data", "nn", "models", "objectives", "search"),
    *("tasks", "formats", "engines", "training", "planning", "evaluation", "inspection", "recipes", "reply", "api"),
    *("extensions", "bulk", "serving", "cli"),
)
"""The packages (and single modules) of Regard: each may import those before it, and none behind it."""

FREE = {"", "__init__", "__main__"}
"""The package itself, with its version and `load`, and the module that starts the command line."""

EXTRAS = {
    "babel",
    "ctranslate2",
    "faiss",
    "matplotlib",
    "openpyxl",
    "PIL",
    "pyarrow",
    "ray",
    "sentencepiece",
    "tensorboard",
    "transformers",
}


@functools.cache
def imports(file: Path) -> set[str]:
    """The full names of all modules that a file imports, wherever in it."""
    found: set[str] = set()
    package = file.relative_to(HOUSE.parent).parent.parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join([*origin, *([node.module] if node.module else [])])
            # `from regard.text import specials` imports a module, `from regard.text.specials import PAD` a name.
            found |= {f"{module}.{alias.name}" for alias in node.names} if node.level or "." not in module else {module}
            found |= {f"{module}.{alias.name}" for alias in node.names if is_module(f"{module}.{alias.name}")}
    return found


def is_module(name: str) -> bool:
    place = HOUSE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def package_of(module: str) -> str:
    """The package that a module belongs to: `regard.nn.scores` to `nn`."""
    return module.removeprefix("regard").removeprefix(".").split(".")[0]


def edges() -> set[tuple[str, str, str]]:
    """Every import from one package into another: (importing file, its package, imported package)."""
    found = set()
    for file in sorted(HOUSE.rglob("*.py")):
        own = file.relative_to(HOUSE).with_suffix("").parts[0]
        for module in imports(file):
            other = package_of(module)
            if module.split(".")[0] == "regard" and other not in FREE and own not in FREE and own != other:
                found.add((str(file.relative_to(HOUSE.parent)), own, other))
    return found


def test_every_package_has_a_layer() -> None:
    there = {path.stem for path in HOUSE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - FREE == set(LAYERS)


def test_imports_point_one_way() -> None:
    order = {name: number for number, name in enumerate(LAYERS)}
    wrong = {f"{file} imports {other}" for file, own, other in edges() if order[other] > order[own]}
    assert not wrong


def test_the_graph_sees_imports_inside_functions() -> None:
    assert ("regard/runs/run.py", "runs", "config") in edges()  # inside `Run.load_config`


def files(package: str) -> list[Path]:
    return sorted((HOUSE / package).rglob("*.py"))


def test_nn_uses_torch_only() -> None:
    allowed = {"torch", "regard", *sys.stdlib_module_names}
    wrong = {
        f"{file.name}: {name}" for file in files("nn") for name in imports(file) if name.split(".")[0] not in allowed
    }
    assert not wrong


def test_config_needs_no_torch() -> None:
    wrong = {
        file.name for file in files("config") for name in imports(file) if name.split(".")[0] in {"torch", *EXTRAS}
    }
    assert not wrong


def test_nothing_is_ever_unpickled() -> None:
    wrong = {file.name for file in HOUSE.rglob("*.py") for name in imports(file) if name.split(".")[0] == "pickle"}
    assert not wrong


@pytest.mark.parametrize("module", ["regard", "regard.cli", "regard.config.loading"])
def test_importing_it_imports_neither_torch_nor_an_extra(module: str) -> None:
    heavy = sorted({"torch", "tokenizers", "sacrebleu", *EXTRAS})
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_every_file_is_one_noun_of_readable_length() -> None:
    vague = {"utils", "util", "helpers", "common", "misc"}
    assert not [file for file in HOUSE.rglob("*.py") if file.stem in vague]
    assert not {file.name: n for file in HOUSE.rglob("*.py") if (n := file.read_text().count("\n")) > 600}
