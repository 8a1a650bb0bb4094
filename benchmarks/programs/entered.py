"""Count the distinct functions of Regard entered between `main` and the first call of a model.

`python benchmarks/programs/entered.py RUN` prints the counts for `translate`, `train` and `inspect attribute`: how
much a reader has to follow from the command line to the mathematics. RUN is a trained translation run; nothing is
written to it. Class bodies, lambdas and comprehensions do not count.
"""

import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
data: {train: {generate: copy, size: 300, symbols: 5, max_length: 4}}
text: {tokenizer: {kind: words}}
model: {width: 16, encoder: {kind: rnn}, decoder: {kind: rnn}}
training: {steps: 1, batch_tokens: 256, device: cpu}
"""


class _ModelCalled(BaseException):
    """The first call of a model, where counting ends."""


def count(arguments: list[str]) -> int:
    """Run a command up to the first model call and return the number of distinct functions entered."""
    from torch import nn

    from regard.cli import main

    package = str(Path(sys.modules["regard"].__file__ or "").parent)
    entered: set[Any] = set()
    original = nn.Module.__call__

    def stop(self: Any, *_: Any, **__: Any) -> Any:
        sys.setprofile(None)
        raise _ModelCalled

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and function and code.co_filename.startswith(package):
            entered.add(code)

    nn.Module.__call__ = stop  # type: ignore[method-assign]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            sys.setprofile(note)
            with contextlib.suppress(_ModelCalled, SystemExit):
                main(arguments)
    finally:
        sys.setprofile(None)
        nn.Module.__call__ = original  # type: ignore[method-assign]
    return len(entered)


if __name__ == "__main__":
    run = Path(sys.argv[1]).resolve()
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "in.txt").write_text("a b c\n")
        (directory / "my.yaml").write_text(CONFIG)
        commands = {
            "translate": ["translate", str(run), str(directory / "in.txt")],
            "train": ["train", str(directory / "my.yaml"), "--run", str(directory / "run")],
            "inspect attribute": ["inspect", "attribute", str(run), "a b c"],
        }
        print(json.dumps({name: count(arguments) for name, arguments in commands.items()}, indent=2))
