"""`regard runs`: the runs in a directory, one line each; `--verify` checks their files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.runs.run import Run

EXAMPLES = """
\b
Examples:
  regard runs                                 all runs in runs/
  regard runs runs/mine --verify              compare every file with its checksum
  regard runs runs/mine --accept-changes      after editing the run's config.yaml
"""


def runs(
    directory: Annotated[Path, typer.Argument(help="Directory of the runs.", metavar="[DIR]")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of a table.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file of the runs with its checksum; exits 1 if one differs.")
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes", help="Accept files of one run that you changed on purpose, such as its config.yaml."
        ),
    ] = False,
) -> None:
    """List runs with their model, size, step, status and best score."""
    from regard.runs.run import runs_under

    if accept_changes:
        _accept(directory)
        return
    if verify:
        _verify(directory, as_json=as_json)
        return
    found = [_facts(run) for run in runs_under(directory)]
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif not found:
        print(f"There are no runs in {directory}. Train one with: regard train recipes/dates.yaml")
    else:
        _table(found)


def _accept(directory: Path) -> None:
    from regard.foundation.errors import UsageError
    from regard.runs.run import Run

    if not (directory / "run.json").is_file():
        raise UsageError(
            f"{directory} is not a run. Name the run whose changes you accept: regard runs RUN --accept-changes"
        )
    changed = Run(directory).accept_changes()
    print(f"Accepted in {directory}: {', '.join(changed) if changed else 'nothing had changed'}.")


def _verify(directory: Path, *, as_json: bool) -> None:
    """Check runs one by one and report what is wrong with each."""
    from regard.foundation.display import bar
    from regard.foundation.errors import RegardError, UsageError
    from regard.runs.run import runs_under
    from regard.tasks.preparation import verify_stores

    runs, results = runs_under(directory), []
    if not runs:
        raise UsageError(f"There is no run in {directory}. Name a run, or a directory of runs.")
    with bar() as progress:
        for number, run in enumerate(runs, start=1):
            if progress:
                progress("verifying", number, len(runs))
            try:
                run.verify()
                verify_stores(run.directory)
                results.append({"directory": str(run.directory), "whole": True, "format": run.info["format"]})
            except (RegardError, OSError) as error:
                results.append({"directory": str(run.directory), "whole": False, "problem": str(error)})
    if as_json:
        print(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        for result in results:
            known = "all files are unchanged."
            if result.get("format") == 1:
                known = "checkpoints and token stores are unchanged; run format 1 has no other checksums."
            print(f"{result['directory']}: {result.get('problem', known)}")
    if not all(result["whole"] for result in results):
        raise typer.Exit(1)


def _facts(run: "Run") -> dict[str, Any]:
    from regard.foundation.errors import RegardError
    from regard.runs.run import age

    try:
        info = run.info
        facts = {
            "name": run.name,
            "directory": str(run.directory),
            "cell": info.get("cell"),
            "parameters": info.get("parameters"),
            "step": info.get("step", 0),
            "steps": info.get("steps"),
            "status": run.status,
            "best": info.get("best"),
            "test": (info.get("result") or {}).get("test"),
            "age_seconds": round(age(info["created"])),
        }
        _row(facts)
        return facts
    except (RegardError, KeyError, ValueError, TypeError, AttributeError):  # a damaged file
        return {"name": run.name, "directory": str(run.directory), "status": "damaged"}


def _table(found: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=250, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("run", "cell", "parameters", "step", "status", "best", "age"):
        table.add_column(title, justify="right" if title in ("parameters", "step", "best", "age") else "left")
    colours = {"running": "cyan", "finished": "green", "stopped": "yellow", "damaged": "red"}
    for facts in found:
        table.add_row(*(Text(value, style=colours.get(value, "")) for value in _row(facts)))
    console.print(table)


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    """Return a run as a row of the table."""
    return (
        str(facts["name"]),
        str(facts.get("cell") or ""),
        _count(facts.get("parameters")),
        f"{facts['step']:,d}/{facts['steps']:,d}" if facts.get("steps") else "",
        str(facts["status"]),
        _best(facts.get("best")),
        _age(facts.get("age_seconds")),
    )


def _count(number: int | None) -> str:
    if number is None:
        return ""
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k" if number >= 1e3 else str(number)


def _best(best: dict[str, Any] | None) -> str:
    if not best:
        return ""
    digits = 3 if best["metric"] in ("loss", "squared_error") else 1
    return f"{best['metric']} {best['value']:.{digits}f}"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
