"""The notebooks run from their first cell to their last, and what they show is stored."""

from itertools import groupby
from pathlib import Path

import pytest

from tests.documentation import EXAMPLES
from tests.notebooks import LARGEST_OUTPUT, NOTEBOOKS, execute

nbformat = pytest.importorskip("nbformat", reason="needs the extra notebooks")


def kinds(cell) -> list[str]:
    """Return the kinds of the outputs of a cell; warnings of training, which are displayed, may differ.

    Jupyter delivers the text of a command in one piece or in several, depending on timing: adjacent pieces are one.
    """
    shown = [output.output_type for output in cell.outputs if output.get("name") != "stderr"]
    return [kind for kind, _ in groupby(kind for kind in shown if kind in ("stream", "execute_result"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stores(path: Path, tmp_path: Path, record_property) -> None:
    work = tmp_path / "work"
    work.mkdir()
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    executed = execute(path, work)
    cells = [pair for pair in zip(stored.cells, executed.cells, strict=True) if pair[0].cell_type == "code"]
    record_property(EXAMPLES, len(cells))
    for before, after in cells:
        assert kinds(before) == kinds(after), before.source
        assert not any(output.output_type == "error" for output in before.outputs)
    assert any(kinds(before) for before, _ in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_small(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert all(len(str(form)) <= LARGEST_OUTPUT for output in outputs for form in output.get("data", {}).values())
    assert path.stat().st_size < 50_000


def test_the_last_notebook_shows_a_page() -> None:
    """The page itself is too large to store; the test above executes the cell that shows it."""
    assert [path.stem for path in NOTEBOOKS] == ["classifier", "inside", "normaliser"]
