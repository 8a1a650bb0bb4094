"""The arrows of the house: which room may use which, read from the imports themselves."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "regard"
UP_TO_MODELS = {"config", "text", "data", "nn", "models", "run", "runs", "weights", "device"}
UP_TO_TRANSLATOR = UP_TO_MODELS | {
    "search",
    "evaluation",
    "shapes",
    "training",
    "inspection",
    "translator",
    "writer",
    "captioner",
    "predictor",
    "trace",
}
MAY_USE: dict[str, set[str]] = {
    "config": set(),
    "text": {"config"},
    "data": {"config", "text", "runs"},
    "nn": set(),
    "models": {"nn", "config", "text.specials"},
    "weights": set(),
    "run": {"config", "runs", "weights"},
    "runs": {"weights"},
    "shapes": UP_TO_MODELS
    | {"search", "evaluation", "trace", "translator", "writer", "captioner", "training.objective", "training.exposure"},
    "training": UP_TO_TRANSLATOR,
    "search": UP_TO_MODELS,
    "trace": UP_TO_MODELS,
    "translator": UP_TO_MODELS | {"search", "trace"},
    "captioner": UP_TO_MODELS | {"search", "translator", "trace"},
    "writer": UP_TO_MODELS | {"search", "trace", "translator"},
    "predictor": UP_TO_MODELS | {"search", "evaluation", "shapes", "trace", "translator"},
    "device": set(),
    "evaluation": UP_TO_TRANSLATOR,
    "inspection": UP_TO_TRANSLATOR,
    "ensemble": UP_TO_MODELS | {"search", "translator"},
    "interop": UP_TO_MODELS | {"search", "translator", "ensemble"},
}
"""What each room (or single file) may use of the others; those not named (cli, serving, …) may use everything."""

GROUND = {"", "errors", "durable"}
"""What every room stands on: the package's name and version, its errors, files that survive a crash."""

EXTRAS = {"babel", "ctranslate2", "matplotlib", "PIL", "sentencepiece", "tensorboard", "transformers"}


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


def files(room: str) -> list[Path]:
    single = HOUSE / f"{room}.py"
    return [single] if single.exists() else sorted((HOUSE / room).rglob("*.py"))


def is_allowed(module: str, room: str) -> bool:
    inside = module.removeprefix("regard").removeprefix(".")
    allowed = {room} | MAY_USE[room]
    return inside in GROUND or any(f"{inside}.".startswith(f"{each}.") for each in allowed)


@pytest.mark.parametrize("room", MAY_USE)
def test_arrows_point_one_way(room: str) -> None:
    wrong = {
        f"{file.relative_to(HOUSE.parent)} imports {module}"
        for file in files(room)
        for module in imports(file)
        if module.split(".")[0] == "regard" and not is_allowed(module, room)
    }
    assert not wrong


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
