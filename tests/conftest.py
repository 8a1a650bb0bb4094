"""What several tests share: one thread for each process, seeded cases, a small trained run, and a browser."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from regard.foundation import durable
from regard.training import curves

settings.register_profile("seeded", derandomize=True)  # the same cases every time
settings.load_profile("seeded")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test processes on two cores
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Some virtual machines announce AMX and end the process at its first instruction, in products of bfloat16 matrices.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("REGARD_DATA", str(SHARED))  # where recipes find their corpora

draw_curves, drawn_curves = curves.draw_curves, []


AXE = "4.10.3"
"""The version of axe-core."""


def draw_curves_once(lines: Any, path: Path, title: str, **named: Any) -> None:
    """Draw the curves of the first training of this process; later trainings, of a few steps, get the same picture.

    To draw takes as long as to train for a few steps. `test_curves.py` tests the function itself.
    """
    if not drawn_curves:
        draw_curves(lines, path, title, **named)
        drawn_curves.append(path.read_bytes())
    durable.build(path, lambda aside: aside.write_bytes(drawn_curves[0]))


curves.draw_curves = draw_curves_once


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let the tests of a file run in one process (`--dist loadfile`): what they share is made once."""
    from tests.distribution import FileScheduling

    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # the order of `pytest_collection_modifyitems`
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files."""
    from tests.distribution import rank

    items.sort(key=lambda item: rank(item.nodeid))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many examples of the documentation were executed, and how many are not, with a reason."""
    from tests.documentation import EXAMPLES

    passed = terminalreporter.stats.get("passed", [])
    executed = sum(value for report in passed for name, value in report.user_properties if name == EXAMPLES)
    if executed:
        from tests.test_docs_run import counts

        found = counts()
        marked = found.total() - found["executed"]
        terminalreporter.write_line(f"documentation: {executed} examples executed, {marked} marked with a reason")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A directory that the first of all test processes makes; the others wait for it. Each gets a copy of its own."""
    together = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    place = together / f"made-{name}"
    with (together / f"made-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            shutil.rmtree(together / f"half-{name}", ignore_errors=True)
            make(together / f"half-{name}")
            (together / f"half-{name}").rename(place)
    return Path(shutil.copytree(place, factory.mktemp("runs") / name))


@pytest.fixture(scope="session")
def copy_run(tmp_path_factory) -> Path:
    """A run that has learnt to say rows of letters again: an RNN with attention, trained in seconds."""
    cell = {"width": 48, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}
    return made_once(tmp_path_factory, "copy", lambda directory: learnt_to_copy(directory, cell, longest=5))


@pytest.fixture(autouse=True, scope="module")
def forget_extensions() -> Iterator[None]:
    """Forget the extensions that the tests of a file have loaded: worker processes of later tests would load them."""
    from regard.config import plugins

    before = set(plugins._loaded)
    yield
    plugins._loaded.intersection_update(before)


@pytest.fixture(scope="session")
def transformer_run(tmp_path_factory) -> Path:
    """A run that has learnt to say rows of letters again: a Transformer of two layers and two heads a side."""
    side = {"kind": "transformer", "layers": 2, "feed_forward": 64}
    cell = {"width": 32, "encoder": side, "decoder": side, "attention": {"heads": 2}}
    return made_once(tmp_path_factory, "transformer", lambda directory: learnt_to_copy(directory, cell, longest=8))


def learnt_to_copy(directory: Path, cell: dict[str, Any], *, longest: int, steps: int = 500) -> None:
    """Train a cell to say rows of up to so many letters again."""
    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    settings = {
        "data": {"train": {"generate": "copy", "size": 4000, "symbols": 6, "max_length": longest}, "held_out": 100},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"dropout": 0.0, **cell},
        "training": {
            "steps": steps,
            "batch_tokens": 512,
            "label_smoothing": 0.0,
            "optimizer": {"learning_rate": 0.005},
            "schedule": {"kind": "cosine"},
        },
    }
    train(from_mapping(settings), directory, view=View())


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator:
    """A Chromium without a window, driven by selenium; it starts empty, stays offline and saves into `downloads`.

    One for all tests: open a page by `browser.get(path.as_uri())`, and set a window size before anything depends on it.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--force-prefers-reduced-motion",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})  # so that a test can ask what the console says
    for attempt in range(3):  # on a busy machine Chromium may not be up when the driver looks for it
        options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
        try:
            opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
            break
        except WebDriverException:
            if attempt == 2:
                raise
    opened.set_script_timeout(300)
    opened.set_page_load_timeout(300)
    opened.downloads = tmp_path_factory.mktemp("downloads")
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(opened.downloads)})
    opened.set_window_size(1200, 900)
    yield opened
    opened.quit()


@pytest.fixture(autouse=True)
def empty_console(request: pytest.FixtureRequest) -> None:
    """Clear the console of the browser before each test that uses it: what it says there is of this test."""
    if "browser" in request.fixturenames:
        request.getfixturevalue("browser").get_log("browser")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from npm: it is used by tests only, and kept in the user's cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard-tests" / f"axe-core-{AXE}"
    path = home / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        if shutil.which("npm") is None:
            pytest.skip("needs npm to install axe-core")
        command = ["npm", "install", "--prefix", str(home), "--no-save", "--ignore-scripts", f"axe-core@{AXE}"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if not path.exists():
            pytest.skip("npm cannot install axe-core here")
    return path.read_text(encoding="utf-8")
