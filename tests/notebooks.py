"""The notebooks of the documentation: executed in an empty directory, with outputs that are small enough to store.

`python -m tests.notebooks` executes all of them and stores their outputs.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST_OUTPUT = 20_000
"""Characters of one form of an output; larger ones, such as whole pages, are not stored."""


def execute(path: Path, directory: Path) -> Any:
    """Execute a notebook in a directory, with the program `regard` of this Python, and return it with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    program = directory.parent / f"{directory.name}-bin" / "regard"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m regard "$@"\n')
    program.chmod(0o755)
    book = nbformat.read(path, as_version=4)
    variables = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "REGARD_QUIET": "1",
    }
    client = NotebookClient(
        book,
        timeout=600,
        startup_timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(directory)}},
    )
    client.execute(env=variables)
    return book


def shrink(book: Any) -> None:
    """Remove forms of outputs that are too large to store, and all that changes from run to run."""
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.metadata = {}
            for output in cell.outputs:
                data = output.get("data", {})
                for form in [form for form, content in data.items() if len(str(content)) > LARGEST_OUTPUT]:
                    del data[form]
    book.metadata = {"kernelspec": book.metadata.kernelspec, "language_info": {"name": "python"}}


def refresh() -> None:
    """Execute every notebook and store its outputs."""
    import nbformat

    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as directory:
            work = Path(directory) / "work"
            work.mkdir()
            book = execute(path, work)
        shrink(book)
        nbformat.write(book, path)
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    refresh()
