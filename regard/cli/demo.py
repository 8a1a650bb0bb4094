"""`regard demo`: train a date normaliser, use it, and show its attention."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from regard.data.corpus import Pair
    from regard.inspection.analyses.attention.result import Attention
    from regard.tasks.loaded import LoadedRun

SHOWN = 8
PICTURED = 3
ASIDE = "  "
EXAMPLES = """
\b
Examples:
  regard demo
  regard demo --run runs/short training.steps=100    a shorter training, and a worse model
"""


def demo(
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="Settings of a new run, as key.path=value.", metavar="[KEY=VALUE]..."),
    ] = None,
    run: Annotated[
        Path, typer.Option("--run", help="Directory of the run; an existing one is resumed or shown again.")
    ] = Path("runs/demo"),
) -> None:
    """Train a date normaliser on generated data, use it, and show its attention (about two minutes)."""
    from rich.console import Console

    from regard.inspection.analyses.attention.compute import attention
    from regard.inspection.analyses.attention.result import draw_alignments
    from regard.tasks.loaded import load_run
    from regard.tasks.preparation import prepare
    from regard.training.curves import can_draw

    console = Console(highlight=False)
    _train(run, settings or [], console)
    translator = load_run(run)
    pairs = prepare(translator.config, run).validation_pairs
    _show_dates(console, translator, pairs)
    chosen = _drawable(pairs)
    maps = [attention(translator.trace(pair.source)) for pair in chosen[:PICTURED]]
    _show_map(console, maps[0])
    page, picture = run / "attention.html", run / "attention.png"
    maps[0].named(run).save(page)
    console.print()
    console.print(f"{ASIDE}The same as a page for the browser:  [bold]{page}[/]")
    if can_draw():
        draw_alignments(maps, "Attention for each output character").savefig(picture, dpi=160)
        console.print(f"{ASIDE}The same as an image, for {len(maps)} dates:  [bold]{picture}[/]")
    console.print(f"{ASIDE}Description of the run and its training:  [bold]{run / 'README.md'}[/]")
    console.print(f'{ASIDE}Try your own:  [bold]{_program()} translate {run} "9. Mai 2018"[/]')


def _program() -> str:
    """Return the command that started this program, as a user can type it again."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{Path(sys.executable).name} -m regard"
    return str(started) if len(started.parts) > 1 else "regard"


def _train(run: Path, settings: list[str], console: "Console") -> None:
    """Train the run, resume it, or keep it if it is finished."""
    from regard.config.loading import load
    from regard.foundation.errors import UsageError
    from regard.recipes import recipe
    from regard.runs.run import Run
    from regard.training.loop import train

    there = (run / "run.json").is_file()
    if there and getattr(Run.open(run).config.data.train, "generate", None) != "dates":
        raise UsageError(f"{run} is a run of another task. Choose another directory with --run.")
    if there and settings:
        raise UsageError(
            f"{run} exists, and {settings[0]} is a setting of a new run. Choose another directory with --run."
        )
    if there and Run.open(run).info.get("status") == "finished":
        console.print(f"{ASIDE}{run} is already trained (delete it to train it again).")
        return
    console.print(f"{ASIDE}[bold]{'Resuming' if there else 'Training'}:[/] text in 31 languages → ISO 8601")
    config = Run.open(run).config if there else load(recipe("dates"), settings)
    train(config, run, resume=there)


def _show_dates(console: "Console", translator: "LoadedRun", pairs: "list[Pair]") -> None:
    """Print some held-out dates with their outputs, and the accuracy on all of them."""
    from rich.table import Table
    from rich.text import Text

    outputs = translator.translate([pair.source for pair in pairs])
    right = sum(output == pair.target for output, pair in zip(outputs, pairs, strict=True))
    table = Table(box=None, pad_edge=False, padding=(0, 3), title_justify="left", title_style="bold")
    for title in (f"{ASIDE}held-out date", "normal form", ""):
        table.add_column(title, style="default", header_style="dim")
    for output, pair in list(zip(outputs, pairs, strict=True))[:SHOWN]:
        mark = Text("✓", "green") if output == pair.target else Text(f"✗ {pair.target}", "red")
        table.add_row(Text(ASIDE + pair.source), Text(output), mark)
    console.print()
    console.print(table)
    console.print()
    console.print(f"{ASIDE}Exactly right: [bold]{100 * right / len(pairs):.1f} %[/] of {len(pairs):,} held-out dates.")


def _drawable(pairs: "list[Pair]") -> "list[Pair]":
    """Return dates of different lengths in letters that every font has, longest first."""
    latin = [pair for pair in pairs if pair.source.isprintable() and max(map(ord, pair.source)) < 0x250]
    worded = [pair for pair in latin if sum(map(str.isalpha, pair.source)) > 5 and len(pair.source) <= 32]
    return sorted(worded[:SHOWN], key=lambda pair: -len(pair.source)) or pairs


def _show_map(console: "Console", found: "Attention") -> None:
    """Print one attention map, in colour if the terminal has colours, otherwise in shades of grey."""
    from rich.text import Text

    console.print()
    console.print(f"{ASIDE}Attention (one row per output character):")
    console.print()
    console.print(Text(ASIDE + " " * 5 + "".join(f"{_label(token)} " for token in found.source.tokens)))
    for token, row in zip(found.target.tokens, found.mean.tolist(), strict=True):
        line = Text(f"{ASIDE}{_label(token):<4} ")
        for weight in row:
            line.append_text(_shade(weight, console))
        console.print(line)


def _label(token: str) -> str:
    """Return the first character of a token, and the end symbol whole: it is the last column, so it has room."""
    from regard.text.specials import EOS, SPECIALS

    return token if token == SPECIALS[EOS] else token[:1]


def _shade(weight: float, console: "Console") -> "Text":
    """Return a weight between 0 and 1 as two columns of a terminal."""
    from rich.text import Text

    if console.color_system in ("truecolor", "256"):
        light = [round(246 + (dark - 246) * weight) for dark in (22, 48, 95)]
        return Text("  ", style=f"on rgb({light[0]},{light[1]},{light[2]})")
    return Text(" ░▒▓█"[min(4, round(weight * 4))] * 2)
