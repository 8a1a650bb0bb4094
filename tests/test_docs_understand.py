"""The pages of docs/understand: every Python example runs and prints exactly what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.documentation import ROOT, Block, blocks, headings, inline_code

PAGES = sorted((ROOT / "docs" / "understand").glob("*.md"))
LENGTH = range(300, 751)
"""Words of a page, without code and output."""


def examples(page: Path) -> list[tuple[Block, Block]]:
    """Return the Python blocks of a page, each with the output that follows it."""
    found = list(blocks(page))
    return [(one, after) for one, after in zip(found, [*found[1:], found[-1]], strict=True) if one.language == "python"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert examples(page)
    names: dict[str, object] = {}
    for block, output in examples(page):
        assert output.language == "text", f"{block} has no output"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, str(block), "exec"), names)
        assert printed.getvalue() == output.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_its_parts(page: Path) -> None:
    """The idea with an equation, where the code is, an example, what was measured, and the papers."""
    assert {"In the code", "Try it", "Measured", "Papers"} <= set(headings(page))
    assert any(block.language == "math" for block in blocks(page))
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(prose.split()) in LENGTH


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_classes_that_a_page_names_exist(page: Path) -> None:
    table = page.read_text(encoding="utf-8").partition("## In the code")[2].partition("\n## ")[0]
    named = {text for _, text in inline_code(page) if f"`{text}`" in table}
    paths = {text for text in named if text.startswith("regard/")}
    assert paths
    assert all((ROOT / path).exists() for path in paths)
    folders = {path if (ROOT / path).is_dir() else str(Path(path).parent) for path in paths}
    for text in named - paths:
        if text.endswith(".py"):
            assert any((ROOT / folder / text).is_file() for folder in folders), text
    code = "\n".join(file.read_text() for folder in folders for file in (ROOT / folder).rglob("*.py"))
    for text in named:
        if re.fullmatch(r"[A-Za-z_]+", text):
            assert re.search(rf"^\s*(class|def) {text}\b|^{text}\b.* = ", code, re.M), text
