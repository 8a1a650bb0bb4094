"""The check of the built site finds what is wrong, and nothing else."""

from pathlib import Path

from tests.site_links import check_site

GOOD = '<link href="a.css"><img src="data:image/png;base64,x"><a href="sub/b.html#there">b</a><a href="https://x.org">x</a>'
B = '<h1 id="there">B</h1><a href="../a.html">a</a><a href="#there">up</a>'


def write(site: Path, a: str) -> Path:
    (site / "sub").mkdir()
    (site / "a.html").write_text(a)
    (site / "a.css").write_text("")
    (site / "sub" / "b.html").write_text(B)
    return site


def test_a_good_site_has_no_problem(tmp_path: Path) -> None:
    report = check_site(write(tmp_path, GOOD))
    assert report.problems == []
    assert report.links == 6


def test_every_kind_of_problem_is_found(tmp_path: Path) -> None:
    bad = '<a href="c.html">1</a><a href="sub/b.html#nowhere">2</a><img src="no.png"><script src="https://x.org/x.js"></script>'
    report = check_site(write(tmp_path, bad))
    assert report.problems == [
        "a.html: c.html does not exist",
        "a.html: sub/b.html#nowhere names no heading of the page",
        "a.html: no.png does not exist",
        "a.html: https://x.org/x.js is loaded from the network",
    ]
