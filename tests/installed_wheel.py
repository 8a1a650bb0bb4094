"""A virtual environment with Regard's wheel and its core dependencies, and nothing else.

`pip install` of the wheel would download PyTorch for every run of the tests. Instead the wheel alone is installed, and
the packages that its metadata requires without any extra, directly or through one another, are linked from the
environment of the tests. Everything else (matplotlib, pillow, …) cannot be imported, exactly as after
`pip install regard.whl`, and `pip check` confirms that the versions fit the requirements.
"""

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def install_wheel(directory: Path) -> Path:
    """Build the wheel, install it into a new virtual environment in `directory`, and return the environment."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (directory / "dist").glob("*.whl")
    environment = directory / "venv"
    venv.create(environment, with_pip=False, system_site_packages=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    (site,) = (environment / "lib").glob("python3*/site-packages")
    (metadata,) = site.glob("regard-*.dist-info")
    for package in core_dependencies(Distribution.at(metadata)):
        link_package(package, site)
    checked = subprocess.run([*pip, "check"], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    return environment


def core_dependencies(package: Distribution) -> list[Distribution]:
    """Return the packages that a package requires without extras, directly or through others."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[Distribution, frozenset[str]]] = [(package, frozenset())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        current, extras = waiting.pop()
        for requirement in requirements(current, extras):
            wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if wanted in seen:
                continue
            seen.add(wanted)
            try:
                found[wanted[0]] = distribution(wanted[0])
            except PackageNotFoundError:
                raise AssertionError(f"{current.name} requires {requirement}, which is not installed here.") from None
            waiting.append((found[wanted[0]], wanted[1]))
    return list(found.values())


def requirements(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Return the requirements of a package, with those of some extras, on this platform."""
    for line in package.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def link_package(package: Distribution, site: Path) -> None:
    """Link all top-level modules, folders and metadata of an installed package into a site-packages directory."""
    tops = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
    for name in tops:
        link = site / name
        if not link.exists():
            link.symlink_to(Path(str(package.locate_file(name))))
