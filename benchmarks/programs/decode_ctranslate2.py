"""A hand-tuned CTranslate2 script on the exported run: two workers with one thread each, text to text."""

import json
import sys
from pathlib import Path

import ctranslate2
from serve import serve
from tokenizers import Tokenizer

settings = json.loads(sys.argv[1])
tokenizer = Tokenizer.from_file(settings["tokenizer"])
workers = settings["workers"]
translator = ctranslate2.Translator(
    settings["model"], compute_type=settings["type"], inter_threads=workers, intra_threads=2 // workers
)


def translate(texts, beam, batch):
    tokens = [encoded.tokens for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    found = translator.translate_batch(
        tokens, beam_size=beam, max_batch_size=batch, max_decoding_length=256, length_penalty=settings["penalty"]
    )
    ids = [[tokenizer.token_to_id(token) for token in one.hypotheses[0]] for one in found]
    return tokenizer.decode_batch(ids)


serve(translate, Path(settings["sources"]).read_text(encoding="utf-8").splitlines())
