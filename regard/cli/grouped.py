"""Help that shows the options of a command in groups, in plain text."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer.core

Groups = Mapping[str, Sequence[str]]
"""Names of parameters by the heading that they stand under."""


def grouped(groups: Groups) -> type[typer.core.TyperCommand]:
    """A kind of command whose help has these groups, then what is in none of them."""
    titles = {name: title for title, names in groups.items() for name in names}

    class Grouped(typer.core.TyperCommand):
        def format_options(self, ctx: Any, formatter: Any) -> None:
            records: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{title: [] for title in groups}}
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is not None:
                    ordinary = "Arguments" if parameter.param_type_name == "argument" else "Options"
                    records.setdefault(titles.get(parameter.name or "", ordinary), []).append(record)
            for title, some in records.items():
                if some:
                    with formatter.section(title):
                        formatter.write_dl(some)

    return Grouped
