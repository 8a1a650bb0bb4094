"""Check a built site: every link and anchor leads somewhere, and no page loads anything from the network.

`python -m tests.site_links build/site` does it at the end of `make docs`.
"""

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links, resources and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {found[name] or "" for name in ("id", "name") if name in found}
        address = found.get("href") or found.get("src")
        if address and tag == "a":
            self.links.append(address)
        elif address and tag in ("link", "script", "img", "iframe", "source"):
            self.resources.append(address)


@dataclass
class Report:
    """What was found on a site."""

    links: int = 0
    problems: list[str] = field(default_factory=list)


def check_site(site: Path) -> Report:
    """Return the number of links, and every link and resource that is wrong."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    report = Report()
    for path, page in pages.items():
        for address in [*page.links, *page.resources]:
            report.links += 1
            if problem := find_problem(site, path, address, pages, loaded=address in page.resources):
                report.problems.append(f"{path.relative_to(site)}: {address} {problem}")
    return report


def find_problem(site: Path, path: Path, address: str, pages: dict[Path, Page], *, loaded: bool) -> str:
    """Return what is wrong with an address, or an empty string."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return "is loaded from the network" if loaded and parts.scheme != "data" else ""
    base = site if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return "does not exist"
    known = pages.get(target)
    if known and parts.fragment and unquote(parts.fragment) not in known.anchors:
        return "names no heading of the page"
    return ""


def main(site: Path) -> int:
    """Print the report, and return the exit code."""
    report = check_site(site.resolve())
    print(*report.problems, sep="\n", end="\n" if report.problems else "")
    print(f"{report.links:,} links checked, {len(report.problems)} problems.")
    return 1 if report.problems or not report.links else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
