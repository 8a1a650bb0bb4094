"""Help in plain text: options in groups, placeholders such as N and FILE, and no type names of Python."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer.core

Groups = Mapping[str, Sequence[str]]
"""Parameter names by group heading."""

BRACKETS = re.compile(r"^\{(.*)\}(?:\.\.\.)?$|^\[(\[.*)\](?:\.\.\.)?$")
PLACEHOLDERS = {
    "<int range>": "N",
    "<int>": "N",
    "<float range>": "X",
    "<float>": "X",
    "<path>": "PATH",
    "<str>": "TEXT",
}


def grouped(groups: Groups) -> type[typer.core.TyperCommand]:
    """Return a command class whose help shows these groups first, then the options that are in none of them."""
    titles = {name: title for title, names in groups.items() for name in names}

    class Grouped(typer.core.TyperCommand):
        def collect_usage_pieces(self, ctx: Any) -> list[str]:
            """Return the placeholders of the arguments, without the brackets that Typer puts around them."""
            return [BRACKETS.sub(r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]

        def format_options(self, ctx: Any, formatter: Any) -> None:
            records: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{title: [] for title in groups}}
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is not None:
                    ordinary = "Arguments" if parameter.param_type_name == "argument" else "Options"
                    title = titles.get(parameter.name or "", ordinary)
                    records.setdefault(title, []).append((_placeholder(record[0]), record[1]))
            for title, some in records.items():
                if some:
                    with formatter.section(title):
                        formatter.write_dl(some)

    return Grouped


class PlainGroup(typer.core.TyperGroup):
    """A group whose help lists its commands with whole sentences, under one heading or several."""

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the commands by heading."""
        return {"Commands": list(self.commands)}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section, each with the first paragraph of its help."""
        width = max(map(len, self.commands))
        for section, names in self.sections().items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), _first_paragraph(self.commands[name].help)) for name in names])


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().split("\n\n")[0].split())


def _placeholder(declaration: str) -> str:
    """Replace the type that Typer names in a declaration."""
    words, _, kind = re.sub(r" (<.*>)$", r"\n\1", declaration).partition("\n")
    kind = re.sub(r"^<list\[(.*)\]>$", r"<\1>", kind)
    return f"{words} {PLACEHOLDERS[kind]}" if kind in PLACEHOLDERS and words.startswith("-") else words
