"""How tests are distributed over processes: a file stays together, so that what its tests share is made once.

pytest-xdist groups by marks with `--dist loadgroup`, but not with pytest 9.2, where it silently distributes tests one
by one (pytest-dev/pytest-xdist issue 1386). `--dist loadfile` groups by file; this scheduler also divides a few files.
"""

from xdist.scheduler.loadscope import LoadScopeScheduling

DIVIDED = ("docs", "grid", "learning")
"""Files whose tests share nothing that is expensive: every test function is distributed for itself."""

TOGETHER = {"browser_results": "inspect_results"}
"""Files that run in the process of another, right after it, as they use what it has computed."""

LONGEST = ("resume", "tutorial", "serving_faults", "inspect_results", "learning", "answering", "captions")
"""Files that are begun first, since a process that begins one of them last lets the other wait."""


def stem(nodeid: str) -> str:
    """Return the name of a test's file, without `test_` and suffix."""
    return nodeid.partition("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")


def rank(nodeid: str) -> int:
    """Return the place of a test's file in the order of tests."""
    name = TOGETHER.get(stem(nodeid), stem(nodeid))
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


class FileScheduling(LoadScopeScheduling):
    """Gives whole files to processes, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        name = stem(nodeid)
        return nodeid.partition("[")[0] if name in DIVIDED else TOGETHER.get(name, name)
