"""Make the pictures of docs/studio.md: `python docs/studio_tour.py RUN` starts the studio and photographs its views.

RUN is a translation run from English to German; those in the docs were made with the recipe `multi30k/quick`. Needs
chromium, chromedriver and the extras `serve` and `test`.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from selenium import webdriver

IMAGES = Path(__file__).parent / "images"
TEXT = "A brown dog runs across the green grass while two children watch."
VIEWS = {
    "step": {"position": 3},
    "beam": {},
    "look": {"position": 3},
    "change": {"changes": [{"kind": "attend", "position": 2, "to": 8}]},
    "why": {"position": 3, "instead": "läuft"},
    "compare": {"against": "step"},
}


def main() -> None:
    """Photograph every view at 1280 by 800, and one on a phone."""
    run = sys.argv[1]
    command = [sys.executable, "-m", "regard", "studio", f"en-de={run}", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = re.search(r"http://\S+/", server.stderr.readline())
        assert found is not None
        photograph(found[0])
    finally:
        server.terminate()
        server.wait()


def photograph(address: str) -> None:
    """Open each view and write its picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))
    try:
        for name, more in VIEWS.items():
            take(browser, address, name, more, (1280, 800))
        take(browser, address, "step", VIEWS["step"], (390, 844), "phone")
    finally:
        browser.quit()


def take(
    browser: webdriver.Chrome, address: str, tab: str, more: dict[str, object], size: tuple[int, int], name: str = ""
) -> None:
    """Open a view, wait until it is complete, and write its picture with few colours."""
    browser.set_window_size(size[0], size[1] + 140)
    browser.get("about:blank")
    browser.get(f"{address}#{quote(json.dumps({'model': 'en-de', 'texts': [TEXT], 'tab': tab, **more}))}")
    until = time.monotonic() + 120
    done = "return document.body.dataset.answered && !document.querySelector('.waiting') && document.body.dataset.ready"
    while not browser.execute_script(done) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.5)  # small maps are drawn after the large one
    path = IMAGES / f"studio-{name or tab}.png"
    browser.save_screenshot(str(path))
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    print(path)


if __name__ == "__main__":
    main()
