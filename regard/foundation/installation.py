"""The command that installs an optional package, for any kind of installation of Regard."""

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra, such as `plots`.

    It names the packages themselves, since Regard may have been installed from a checkout or a file, which a package
    index does not have, and the Python that runs Regard, which may not be the first one on the path.
    """
    python = "python" if Path(sys.prefix) / "bin" == Path(sys.executable).parent and _is_active() else sys.executable
    packages = " ".join(shlex.quote(package) for package in packages_of(extra))
    return f"{shlex.quote(python)} -m pip install {packages}"


def packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra, as in `pyproject.toml`."""
    try:
        listed = requires("regard") or []
    except PackageNotFoundError:
        return _packages_of_source_tree(extra) or [f"regard[{extra}]"]
    marker = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    found = [line.partition(";")[0].strip() for line in listed if marker.search(line)]
    return found or [f"regard[{extra}]"]


def _packages_of_source_tree(extra: str) -> list[str]:
    """Return the requirements of an extra from the `pyproject.toml` of a checkout that is used without installation."""
    import tomllib

    try:
        text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
        found = tomllib.loads(text)["project"]["optional-dependencies"][extra]
    except (OSError, ValueError, KeyError):
        return []
    return [str(requirement) for requirement in found]


def _is_active() -> bool:
    """Return whether `python` on the command line is this Python: its virtual environment is active."""
    import os

    return os.environ.get("VIRTUAL_ENV") == sys.prefix
