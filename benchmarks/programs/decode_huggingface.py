"""Hugging Face's `generate` on the exported run: sorted batches in one process, or in two with a thread each."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from serve import by_length, serve

settings = json.loads(sys.argv[1])


def load():
    """The model and its tokenizer as one function of texts; torch is imported in the process that uses it."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(settings["threads"])
    tokenizer = AutoTokenizer.from_pretrained(settings["model"])
    model = AutoModelForSeq2SeqLM.from_pretrained(settings["model"]).eval()

    def translate(texts, beam, batch):
        lengths = list(map(len, tokenizer(texts).input_ids))
        said = [""] * len(texts)
        for places in by_length(texts, lengths, batch):
            inputs = tokenizer([texts[place] for place in places], return_tensors="pt", padding=True)
            most = 3 * max(lengths[place] for place in places) + 10
            with torch.inference_mode():
                found = model.generate(
                    input_ids=inputs.input_ids,
                    attention_mask=inputs.attention_mask,
                    num_beams=beam,
                    max_length=min(256, most),
                )
            for place, text in zip(places, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
                said[place] = text
        return said

    return translate


def beside():
    """A second process that answers with its half."""
    from multiprocessing import get_context

    ours, theirs = get_context("fork").Pipe()
    if os.fork() == 0:
        ours.close()
        translate = load()
        with suppress(EOFError):
            while True:
                theirs.send(translate(*theirs.recv()))
        os._exit(0)
    theirs.close()
    return ours


if settings["processes"] == 2:
    other = beside()
    half = load()

    def translate(texts, beam, batch):
        """Every second text of the sorted row to the other process."""
        if len(texts) == 1:
            return half(texts, beam, batch)
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        mine, its = order[::2], order[1::2]
        other.send(([texts[place] for place in its], beam, batch))
        said = dict(zip(mine, half([texts[place] for place in mine], beam, batch), strict=True))
        said |= dict(zip(its, other.recv(), strict=True))
        return [said[place] for place in range(len(texts))]
else:
    translate = load()

serve(translate, Path(settings["sources"]).read_text(encoding="utf-8").splitlines())
