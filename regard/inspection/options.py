"""Options of an analysis, declared once in the signature of its function.

    def lens(trace: "Trace", words: Annotated[int, Option("Words shown for each layer.", minimum=1)] = 5) -> "Lens": ...

From this declaration come the option `--words` of `regard inspect lens`, the keyword `words` of `model.explain`, and
the JSON that describes the analysis to other programs (`Parameter.to_json`).
"""

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin


@dataclass(frozen=True, eq=False, repr=False)
class Option:
    """Annotation of a parameter that becomes an option of the command line."""

    help: str = ""
    flag: str | None = None
    """What it is called on the command line; by default `--` and its name, with hyphens."""
    metavar: str | None = None
    """What stands for its value in help."""
    minimum: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Argument:
    """Annotation of a parameter that is given by its position on the command line."""

    help: str = ""
    metavar: str | None = None


SUPPLIED = ("progress", "brief", "traced")
"""Parameters that the caller of an analysis supplies, not the user; so is the first, a trace or a run."""

NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "file"}
"""Types of options, and what JSON calls them."""


@dataclass(frozen=True, eq=False, repr=False)
class Parameter:
    """One option or argument of an analysis."""

    name: str
    type: Any
    default: Any
    """`inspect.Parameter.empty` where a value is required."""
    declared: Option | Argument

    @property
    def flag(self) -> str:
        """The name of an option on the command line."""
        given = self.declared.flag if isinstance(self.declared, Option) else None
        return given or f"--{self.name.replace('_', '-')}"

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    def to_json(self) -> dict[str, Any]:
        """Describe the parameter as plain data."""
        kind = _without_none(self.type)
        several = get_origin(kind) is list
        kind = get_args(kind)[0] if several else kind
        choices = list(get_args(kind)) if get_origin(kind) is Literal else None
        return {
            "name": self.name,
            "flag": self.flag if isinstance(self.declared, Option) else None,
            "type": NAMES[type(choices[0]) if choices else kind],
            "several": several,
            "choices": choices,
            "required": self.required,
            "default": None if self.required else self.default,
            "minimum": self.declared.minimum if isinstance(self.declared, Option) else None,
            "help": self.declared.help,
        }


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the options and arguments that a function declares, in order.

    A parameter without `Option` or `Argument` becomes an option without help, if its type is one that a command line
    can read; otherwise it is a keyword for Python only and is left out.
    """
    found = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.name in SUPPLIED or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        kind, declared = _annotation(parameter, function)
        if declared is not None and is_readable(kind):
            found.append(Parameter(parameter.name, kind, parameter.default, declared))
    return found


def keywords_of(function: Callable[..., Any]) -> list[str] | None:
    """Return the keywords that a function takes after its first parameter; None if it takes any."""
    known = list(inspect.signature(function).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return None
    return [parameter.name for parameter in known if parameter.name not in ("brief", "traced")]


def _annotation(parameter: inspect.Parameter, function: Callable[..., Any]) -> tuple[Any, Option | Argument | None]:
    """Return the type of a parameter and what is declared about it."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, getattr(function, "__globals__", {}))
        except Exception:
            return annotation, None
    if annotation is inspect.Parameter.empty:
        usable = parameter.default is not None and parameter.default is not inspect.Parameter.empty
        return (type(parameter.default), Option()) if usable else (None, None)
    if get_origin(annotation) is Annotated:
        kind, *more = get_args(annotation)
        declared = next((item for item in more if isinstance(item, Option | Argument)), None)
        return kind, declared or Option()
    return annotation, Option()


def is_readable(kind: Any) -> bool:
    """Return whether a command line can read values of a type."""
    kind = _without_none(kind)
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return all(isinstance(argument, str) for argument in get_args(kind))
    return kind in NAMES


def _without_none(kind: Any) -> Any:
    """Return T of a type `T | None`."""
    if get_origin(kind) in (Union, types.UnionType):
        rest = [argument for argument in get_args(kind) if argument is not type(None)]
        return rest[0] if len(rest) == 1 else kind
    return kind
