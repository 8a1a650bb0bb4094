"""A plain translation server: FastAPI and CTranslate2, one translation per request, no batching.

`python serve_fastapi.py '{"model": …, "tokenizer": …, "penalty": 1.0, "beam": 5, "port": 5000}'`. Endpoints that are
plain functions run in FastAPI's thread pool; CTranslate2 releases the GIL and has two workers with one thread each.
"""

import json
import sys

import ctranslate2
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from tokenizers import Tokenizer

settings = json.loads(sys.argv[1])
tokenizer = Tokenizer.from_file(settings["tokenizer"])
translator = ctranslate2.Translator(settings["model"], compute_type="float32", inter_threads=2, intra_threads=1)
app = FastAPI()


class Body(BaseModel):
    """A request of the LibreTranslate protocol."""

    q: str
    source: str
    target: str


@app.get("/health")
def health() -> dict:
    return {"status": "ok"}


@app.post("/translate")
def translate(body: Body) -> dict:
    tokens = tokenizer.encode(body.q, add_special_tokens=False).tokens
    found = translator.translate_batch(
        [tokens], beam_size=settings["beam"], length_penalty=settings["penalty"], max_decoding_length=256
    )
    return {"translatedText": tokenizer.decode([tokenizer.token_to_id(token) for token in found[0].hypotheses[0]])}


uvicorn.run(app, host="127.0.0.1", port=settings["port"], log_level="warning")
