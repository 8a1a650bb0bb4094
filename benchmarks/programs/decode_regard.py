"""Regard, native or on its fast engine: what `regard translate` calls, without the start of the process."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from serve import serve

from regard.engines.choice import open_engine, open_plain_text

settings = json.loads(sys.argv[1])
engine, run = settings["engine"], Path(settings["run"])
plain = open_plain_text(engine, run, ())


@cache
def native(batch_tokens: int) -> Any:
    return open_engine(engine, [run], [f"decoding.batch_tokens={batch_tokens}"] if batch_tokens > 1 else [])


def translate(texts: list[str], beam: int, batch: int) -> list[str]:
    if plain is not None:
        said = plain.translate(texts, beam, None)
        assert said is not None, "a test sentence is too long for the fast engine"
        return said
    return native(settings["usual"] if batch <= 8 else batch).translate(texts, beam=beam)  # type: ignore[no-any-return]


serve(translate, Path(settings["sources"]).read_text(encoding="utf-8").splitlines())
