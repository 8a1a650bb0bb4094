"""The first hour: the tutorial from its first line to its last, from a built wheel, in an empty directory."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation import EXAMPLES, ROOT, Block, blocks
from tests.documentation import commands as commands_of
from tests.installed_wheel import install_wheel

SHORT = {
    "train": "training.steps=6 training.validate_every=6 training.validation_sample=5 decoding.max_length=9",
    "demo": "data.train.size=600 training.steps=4 training.validate_every=4 training.validation_sample=5",
}
"""Settings that make the two trainings of the tutorial take seconds: what is learnt is not judged here."""

SHORTENED = """
regard() {{
    case "$1" in
        train) set -- "$@" {train} ;;
        demo) set -- "$@" {demo} ;;
    esac
    command regard "$@"
}}
""".format(**SHORT)

NOT_INSTALLED = ("matplotlib", "PIL", "sklearn", "ctranslate2", "pytest")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="needs hatchling to build a wheel")
    return install_wheel(tmp_path_factory.mktemp("wheel"))


def steps() -> Iterator[tuple[Block, Block | None]]:
    """Return the blocks of the tutorial that are executed, each with the output that the page shows after it."""
    page = list(blocks(ROOT / "docs" / "tutorial-csv.md"))
    for block, after in zip(page, [*page[1:], None], strict=True):
        if block.language in ("bash", "python"):
            yield block, after if after is not None and after.language == "text" else None


def run(script: str, environment: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the programs of the environment, without REGARD_DATA and PYTHONPATH."""
    removed = ("REGARD_DATA", "PYTHONPATH", "PYTHONHOME")
    variables = {key: value for key, value in os.environ.items() if key not in removed}
    variables |= {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(environment)}
    variables["XDG_CACHE_HOME"] = str(directory.parent / "cache")
    return subprocess.run(
        ["bash", "-c", f"set -e\n{script}"],
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )


def test_the_environment_has_the_wheel_and_its_core_dependencies_only(environment: Path, tmp_path: Path) -> None:
    script = "import regard, torch; print(regard.__file__); print(regard.__version__)"
    done = run(f"python -c '{script}'", environment, tmp_path)
    assert done.stdout.startswith(str(environment)), done.stderr
    for name in NOT_INSTALLED:
        done = run(f"python -c 'import {name}'", environment, tmp_path)
        assert "ModuleNotFoundError" in done.stderr, name


def test_the_tutorial_runs_from_the_wheel(environment: Path, tmp_path: Path, record_property) -> None:
    """Demo, new, train, translate, evaluate, inspect: what the page shows of untrained steps is what they print."""
    work = tmp_path / "empty"
    work.mkdir()
    printed, commands, compared = "", "", 0
    record_property(EXAMPLES, sum(1 if b.language == "python" else len(list(commands_of(b))) for b, _ in steps()))
    for block, shown in steps():
        if block.language == "python":
            (work / block.title).write_text(block.text, encoding="utf-8")
            script = f"python {block.title}" if block.title == "use_codes.py" else "true"
        else:
            script = block.text
        commands += script
        done = run(f"{SHORTENED}\n{script}", environment, work)
        assert done.returncode == 0, f"{block}: {done.stderr}"
        assert "Traceback" not in done.stderr
        printed += done.stdout
        if shown is not None and "regard train" not in commands and "regard demo" not in script:
            assert done.stdout == shown.text, f"{shown} shows something else"
            compared += 1
    for verb in ("demo", "new codes.csv", "train codes.yaml", 'translate runs/codes "', "evaluate runs/codes"):
        assert f"regard {verb}" in commands
    assert compared == 2
    assert "held-out date" in printed and (work / "runs" / "demo" / "attention.html").is_file()
    assert "360 sentences" in printed
    assert (work / "attention.html").is_file()
