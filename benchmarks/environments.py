"""An environment for each peer: its own packages in front of Regard's, so that all share one torch.

A peer is installed without its dependencies; the few that it cannot do without are named beside it in `peers/`. What
fails to install is reported by the tables.
"""

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from benchmarks.places import ENVIRONMENTS, REQUIREMENTS, say

VERSIONS = {
    "huggingface": "Hugging Face Transformers 5.22",
    "ctranslate2": "CTranslate2 4.8",
    "joeynmt": "JoeyNMT 2.3",
    "eole": "eole 0.6",
    "opennmt": "OpenNMT-py 3.5",
    "libretranslate": "LibreTranslate 1.9",
    "litserve": "LitServe 0.2",
}
"""Every peer, by the name of its environment."""


class Unavailable(Exception):
    """A peer that cannot be measured here, with the reason."""


def interpreter(peer: str) -> Path:
    """Python of a peer's environment, which is made if it is not there."""
    if peer == "regard":
        return Path(sys.executable)
    if peer not in VERSIONS:
        raise Unavailable(f"no peer is called {peer}: {', '.join(VERSIONS)}")
    place = ENVIRONMENTS / peer
    python = place / "bin" / "python"
    wanted = (REQUIREMENTS / f"{peer}.txt").read_text(encoding="utf-8")
    mark, sign = place / "installed", hashlib.sha256(f"{wanted}{sys.prefix}".encode()).hexdigest()
    if mark.exists() and mark.read_text() == sign and python.exists():
        return python
    say(f"Installing {VERSIONS[peer]} …")
    shutil.rmtree(place, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(place)], "no environment can be made")
    site = next((place / "lib").glob("python*")) / "site-packages"
    (site / "zz_regard.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # last: Regard's packages serve all
    requirements = str(REQUIREMENTS / f"{peer}.txt")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-deps", "-r", requirements], "it cannot be installed")
    mark.write_text(sign)
    return python


def _run(command: list[str], complaint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise Unavailable(f"{complaint}: {told[-1] if told else 'without a word'}")
