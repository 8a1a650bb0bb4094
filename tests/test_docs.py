"""The documentation: links resolve, commands parse, code compiles, and every verb and setting is described."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import regard
from regard import search
from regard.api.model import Model
from regard.cli.verbs import Verbs, app
from regard.config.schema import json_schema
from regard.config.task import TASKS
from regard.recipes import recipe_names
from regard.tasks.results import Result
from tests.documentation import (
    PAGES,
    ROOT,
    Block,
    Command,
    all_blocks,
    commands,
    github_anchors,
    inline_code,
    links,
    site_anchors,
)

LANGUAGES = {"bash", "python", "yaml", "json", "toml", "text", "math"}
"""`text` is output, or a listing: there is nothing in it to check. `math` is an equation in TeX."""

OVERRIDE = re.compile(r"^([a-z_]+(?:\.[a-z_]+)+)=(.*)$", re.S)
PROGRAM_OPTIONS = {
    "--plugin": 1,
    "--quiet": 0,
    "--version": 0,
    "-V": 0,
    "--install-completion": 0,
    "--show-completion": 0,
}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shell_commands() -> list[Command]:
    return [command for block in all_blocks("bash") if not block.reason for command in commands(block)]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_and_anchor_resolves(page: Path) -> None:
    broken = []
    for line, address in links(page):
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT):
            broken.append(f"{line}: {address}")
        elif anchor and not (anchor in github_anchors(target) and anchor in site_anchors(target)):
            broken.append(f"{line}: {address} (no such heading)")
    assert not broken


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = {
        page
        for section in config["project"]["nav"]
        for several in section.values()
        for one in several
        for page in one.values()
    }
    expected = {named(page) for page in PAGES} - {"README.md"} | {"index.md"}
    assert listed == expected


@pytest.mark.parametrize(
    "block", [block for block in all_blocks() if block.page.name != "README.md" or block.page.parent == ROOT], ids=str
)
def test_every_block_names_its_language(block: Block) -> None:
    assert block.language in LANGUAGES


def command_of(words: tuple[str, ...]) -> tuple[Any, list[str]]:
    """Return the click command that `regard WORDS…` runs, and its arguments."""
    rest = list(words)
    while rest and rest[0] in PROGRAM_OPTIONS:
        del rest[: 1 + PROGRAM_OPTIONS[rest[0]]]
    if rest[:1] == ["help"]:
        rest = [*rest[1:], "--help"]
    if not rest:
        return None, []
    assert rest[0] in Verbs.names, f"regard has no verb {rest[0]}"
    command = Verbs()[rest.pop(0)]
    while subcommands(command) and rest and not rest[0].startswith("-"):
        if "--plugin" in words and rest[0] not in subcommands(command):
            return None, []  # an analysis of the extension
        assert rest[0] in subcommands(command), f"{command.name} has no command {rest[0]}"
        command = subcommands(command)[rest.pop(0)]
    return command, rest


def subcommands(command: Any) -> dict[str, Any]:
    """Return the commands of a group by name; a single command has none."""
    if not hasattr(command, "list_commands"):
        return {}
    context = typer.Context(command, info_name="regard")
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def check_command(words: tuple[str, ...]) -> None:
    """Fail if a verb, option, setting or recipe does not exist, or if a required option is missing."""
    command, rest = command_of(words)
    if command is None or "--help" in rest:
        return
    context = typer.Context(command, info_name="regard")
    parsed, _, _ = command.make_parser(context).parse_args(list(rest))
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert not parameter.required or parsed.get(parameter.name) is not None, f"{parameter.opts[0]} is required"
    for word in rest:
        if match := OVERRIDE.match(word):
            assert match[1] in setting_paths(), f"{match[1]} is not a setting"
        if word.startswith("recipes/"):
            assert (ROOT / word).is_file(), f"there is no {word}"


@pytest.mark.parametrize("command", shell_commands(), ids=str)
def test_every_command_of_a_shell_block_exists(command: Command) -> None:
    program, *words = command.words
    if program == "torchrun":
        program, *words = words[words.index("-m") + 1 :]
    if program == "regard":
        check_command(tuple(words))
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert all(word in targets or re.match(r"[A-Z]+=", word) for word in words)
    elif program in ("python", "python3") and words[0] != "-m":
        assert words[0] in {block.title for block in all_blocks("python")} or (ROOT / words[0]).is_file()
    else:
        assert program in {
            "git",
            "cd",
            "pip",
            "python",
            "python3",
            "source",
            "echo",
            "printf",
            "head",
            "for",
            "do",
            "done",
            "paste",
            "curl",
            "export",
        }


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_in_a_sentence_exists(page: Path) -> None:
    """Inside sentences commands are often abbreviated: their verbs and the names of their options must exist."""
    for line, text in inline_code(page):
        words = re.sub(r"[|<>].*", "", text).split()
        if words[:1] != ["regard"] or len(words) < 2 or page.name == "CHANGELOG.md":
            continue
        place = f"{named(page)}:{line}: {text}"
        if not re.fullmatch(r"[a-z]+", words[1]) or words[1] == "help":
            assert words[1].isupper() or words[1] in {"help", *PROGRAM_OPTIONS} or words[1].startswith("--"), place
            continue
        assert words[1] in Verbs.names, place
        known = set(option_names(Verbs()[words[1]])) | PROGRAM_OPTIONS.keys()
        assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= known, place


def option_names(command: Any) -> Iterator[str]:
    """Return the names of all options of a command and its subcommands."""
    yield "--help"
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in subcommands(command).values():
        yield from option_names(inner)


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_every_python_block_compiles(block: Block) -> None:
    if not block.reason:
        ast.parse(block.text.replace("[…]", "[...]"))


@pytest.mark.parametrize("block", all_blocks("math"), ids=str)
def test_every_equation_becomes_mathml(block: Block) -> None:
    """The browser shows an unknown command as red text or in letters: no backslash may be left."""
    html = load_module("equations").render(block.text, "math", "equation", {}, None)
    assert html.count("<math") == len(block.text.splitlines())
    assert "\\" not in html
    assert not re.search(r"<mtext>\s*</mtext>|<merror", html)


@pytest.mark.parametrize("block", all_blocks("yaml", "json", "toml"), ids=str)
def test_every_data_block_parses_and_names_settings_that_exist(block: Block) -> None:
    if block.reason:
        return
    if block.language == "json":
        assert all(json.loads(line) for line in block.text.splitlines())
    elif block.language == "toml":
        assert tomllib.loads(block.text)
    elif block.page.name == "serving.md":
        from regard.serving.settings import settings_from

        assert settings_from(yaml.safe_load(block.text), "serving.md").models
    else:
        unknown = sorted(path for path in leaf_paths(yaml.safe_load(block.text)) if path not in setting_paths())
        extensions = block.page.name == "extending.md"  # their settings exist once the extension is loaded
        assert extensions or not unknown


def leaf_paths(value: Any, path: str = "") -> Iterator[str]:
    """Return the dotted paths of all settings of a configuration."""
    if path:
        yield path
    if isinstance(value, dict) and not path.endswith(".options"):
        for key, inner in value.items():
            yield from leaf_paths(inner, f"{path}.{key}".strip("."))


def load_module(name: str) -> Any:
    """Return a module of docs, such as docs/generate.py."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_paths: set[str] = set()


def setting_paths() -> set[str]:
    """Return the dotted paths of all settings and sections, over all kinds."""
    if not _paths:
        schema, references = json_schema(), load_module("generate").references

        def walk(section: Any, path: str, depth: int) -> None:
            for key, field in section.get("properties", {}).items():
                inner = f"{path}.{key}".strip(".")
                _paths.add(inner)
                for name in references(field) if depth < 5 else ():
                    walk(schema["$defs"][name], inner, depth + 1)

        walk(schema, "", 0)
    return _paths


def test_settings_of_every_path_are_found() -> None:
    """The paths that other tests rely on are complete, and contain nothing else."""
    assert {
        "model.encoder.kind",
        "training.exposure.corruption.swap",
        "data.train.tsv",
        "task.looks",
    } <= setting_paths()
    assert "model.encoder.laiers" not in setting_paths()


def test_generated_pages_are_up_to_date(tmp_path: Path) -> None:
    """In a process of its own: the help of a group depends on which of its commands were imported before."""
    subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", tmp_path],
        check=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
    )
    for name in ("settings.md", "commands.md", "api.md"):
        current = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert current == (tmp_path / name).read_text(encoding="utf-8"), "run `python docs/generate.py`"


def test_every_public_name_is_documented() -> None:
    """`regard.__all__`, and what its functions return: results, search options and errors."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    results = {one.__name__ for one in [Result, *Result.__subclasses__()] if one.__module__ == Result.__module__}
    for name in {*regard.__all__, *results, *search.__all__}:
        assert re.search(rf"^### `(?:regard\.)?{name}`$", text, re.M), name
    assert not re.search(r"^\|.*\|\s*(Default: .*)?\|$", text, re.M), "an attribute has no docstring"
    for name in vars(Model):
        if not name.startswith("_"):
            assert f"\n#### `Model.{name}`\n" in text or f"\n| `{name}` |" in text, name


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    # In a process of its own: other tests load extensions, whose settings the schema then contains.
    program = "import json; from regard.config.schema import json_schema; print(json.dumps(json_schema()))"
    schema = json.loads(subprocess.check_output([sys.executable, "-c", program], cwd=ROOT))
    for section in [schema, *schema["$defs"].values()]:
        for key in section.get("properties", {}):
            assert f"\n| `{key}` |" in text
    described = text.count("\n| `")
    assert described == sum(len(one.get("properties", {})) for one in [schema, *schema["$defs"].values()])


@pytest.mark.parametrize("verb", Verbs.names)
def test_every_verb_is_documented_outside_the_reference(verb: str) -> None:
    pages = [page for page in PAGES if page.parent.name == "docs" and page.name != "commands.md"]
    assert any(re.search(rf"\bregard {verb}\b", page.read_text(encoding="utf-8")) for page in pages)
    assert f"\n### `regard {verb}`\n" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def test_every_verb_and_every_task_has_a_how_to() -> None:
    """Each has a row in docs/how-to.md that links to the section which explains it."""
    text = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and "](" in line]
    tasks = [kind for kind in TASKS if TASKS[kind].__module__ == "regard.config.task"]  # without those of extensions
    for name in [*(f"regard {verb}" for verb in Verbs.names), *tasks]:
        assert any(f"`{name}`" in row for row in rows), name


def test_every_extra_is_documented() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [extra for extra in extras if f"`{extra}`" not in text] == []


def test_the_checks_find_what_is_wrong() -> None:
    for words in (
        "trian my.yaml",
        "translate runs/mine --beem 4",
        "train my.yaml model.widht=3",
        "train recipes/no.yaml",
        "data fetch x",
    ):
        with pytest.raises(Exception, match=r"no verb|No such option|not a setting|there is no|no command"):
            check_command(tuple(words.split()))
    assert recipe_names() and app
