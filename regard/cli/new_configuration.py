"""The configurations that `regard new` writes."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.data.manifest_recognition import Manifest
    from regard.data.recognition import Examples

SHORT = 40
"""Texts of at most this many characters on average are tokenised into characters."""
POSITIONS = 25
"""Positions of a sound encoder per second."""
ROOM = 1.25
"""How much longer than the longest sound that was inspected a sound may be."""
RATES, RATE_STEP = (1000, 192_000), 100
"""Lowest and highest sample rate of a sound encoder, and what its rate must be a multiple of."""


def configuration(
    examples: "Examples", chosen: tuple[str, str], task: str, place: Path, manifest: "Manifest | None" = None
) -> str:
    """Return a configuration for a file of examples, as YAML with a comment on every choice."""
    sources, targets = (examples.column(name) for name in chosen)
    held = max(1, min(500, examples.count // 10)) if examples.kind != "conllu" else 500
    tested = max(1, min(500, (examples.count - held) // 10)) if examples.kind != "conllu" else 500  # of the others
    parts = [
        f"# Written by `regard new {' '.join(examples.files)}`. Change what you like;",
        f"# `regard config show {place}` prints every other setting with its value.",
        "#",
        f"#   regard train {place}",
        "",
        f"task: {{kind: {task}}}",
        "",
        "data:",
        f"  train: {{{_media_corpus(examples, chosen, manifest) if manifest else _corpus(examples, chosen)}}}",
        f"  held_out: {held:<12}# examples held out to choose the best step",
        f"  held_out_test: {tested:<7}# examples held out to score once, at the end",
        "",
    ]
    if manifest and manifest.medium.noun == "sound":
        parts.append(_sound_settings(task, manifest, short=_is_short(targets)))
    elif manifest:
        parts.append(_CAPTIONS if task == manifest.medium.text_task else _PICTURE_LABELS)
    elif task == "translation" and _is_short(sources) and _is_short(targets):
        parts.append(_LETTERS)
    else:
        parts.append({"translation": _SENTENCES, "tagging": _TAGGING}.get(task, _POOLED))
    return "\n".join(parts)


def _is_short(texts: list[str]) -> bool:
    return sum(map(len, texts)) <= SHORT * len(texts)


_LETTERS = """\
text:
  tokenizer: {kind: characters}     # short texts are split into characters

model:
  width: 128
  dropout: 0.1
  encoder: {kind: rnn, cell: gru, direction: both}
  decoder: {kind: rnn, cell: gru}
  join: {kind: attention, order: after}

training:
  steps: 1000                       # more if the validation loss still falls at the end
  batch_tokens: 2048
  label_smoothing: 0.0              # there is only one right answer
  schedule: {kind: cosine, warmup: 100}
  optimizer: {learning_rate: 0.004}
  validate_every: 100
"""

_SENTENCES = """\
preset: transformer-tiny            # `regard config presets` lists others

training:
  steps: 3000                       # more if the validation loss still falls at the end
"""

_POOLED = """\
text:
  tokenizer: {kind: words, lower: true}

model:
  width: 128
  dropout: 0.3                      # more for fewer examples
  encoder: {kind: rnn, cell: gru, direction: both}

training:
  steps: 600
  batch_tokens: 1024
  schedule: {kind: cosine, warmup: 50}
  validate_every: 100
"""

_TAGGING = """\
model:
  width: 128
  dropout: 0.3
  encoder: {kind: rnn, cell: gru, direction: both}

training:
  steps: 1000
  batch_tokens: 2048
  label_smoothing: 0.0
  schedule: {kind: cosine, warmup: 100}
  validate_every: 250
"""


def _corpus(examples: "Examples", chosen: tuple[str, str]) -> str:
    files = [_scalar(file) for file in examples.files]
    source, target = map(_scalar, chosen)
    if examples.kind == "paired":
        return f"source: {files[0]}, target: {files[1]}"
    if examples.kind == "conllu":
        return f"conllu: {files[0]}"
    if examples.kind == "jsonl":
        return f"jsonl: {files[0]}, source_field: {source}, target_field: {target}"
    return f"table: {files[0]}, source: {source}, target: {target}" + ("" if examples.header else ", header: false")


def _media_corpus(examples: "Examples", chosen: tuple[str, str], manifest: "Manifest") -> str:
    medium = manifest.medium
    corpus = f"{medium.folder}: {_scalar(manifest.folder)}, {medium.rows}: {_scalar(examples.files[0])}"
    if examples.kind == "jsonl":
        fields = zip((medium.name, medium.text), map(_scalar, chosen), strict=True)
        return corpus + "".join(f", {setting}_field: {field}" for setting, field in fields)
    columns = zip((medium.name, medium.text), (examples.names.index(name) + 1 for name in chosen), strict=True)
    header = ", header: true" if examples.header else ""
    return corpus + header + "".join(f", {setting}_column: {column}" for setting, column in columns)


def _scalar(text: str) -> str:
    """Return a text as YAML, in quotes unless it is a plain word."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text) and text.lower() not in ("true", "false", "null")
    return text if plain else json.dumps(text, ensure_ascii=False)


def _sound_settings(task: str, manifest: "Manifest", *, short: bool) -> str:
    """Return settings for sounds with the sample rate of the files, and with room for the longest of them."""
    from regard.config.model import SoundEncoder
    from regard.data.sounds import read_header

    headers = [read_header(file) for file in manifest.files]
    rates = Counter(rate for rate, _ in headers)
    commonest = rates.most_common(1)[0][0]
    rate = min(max(commonest // RATE_STEP * RATE_STEP, RATES[0]), RATES[1])
    reason = "that of the files" if rate == commonest else f"the files have {commonest:,}, to be resampled"
    if len(rates) > 1:
        reason = f"most files have {commonest:,}; others are resampled"
    longest = ROOM * max(seconds for _, seconds in headers)
    defaults = SoundEncoder()
    lines = [
        f"rate: {rate:<24}# {reason}",
        f"bands: {40 if rate < defaults.rate else defaults.bands}",
    ]
    if longest > defaults.max_seconds:
        lines.append(f"max_seconds: {math.ceil(longest):<17}# longer sounds are refused")
    template, batch = (_SPEECH, 1600) if task == manifest.medium.text_task else (_SOUND_LABELS, 800)
    return template.format(
        encoder="\n    ".join(lines),
        batch=max(batch, math.ceil(POSITIONS * longest)),
        tokenizer="{kind: characters}  # short texts are split into characters" if short else "{kind: bpe}",
        steps=1500 if short else 3000,
    )


_SPEECH = """\
text:
  tokenizer: {tokenizer}

model:
  width: 128
  dropout: 0.1
  encoder:
    kind: sound
    {encoder}
    channels: 16
    normalise: true               # removes most of the difference between microphones
    body: {{kind: conv, layers: 4}}
  decoder: {{kind: rnn}}
  join: {{kind: attention, order: before}}

training:
  steps: {steps:<23}# more if the validation loss still falls at the end
  batch_tokens: {batch:<16}# positions of 40 ms
  schedule: {{kind: cosine, warmup: 100}}
  optimizer: {{kind: muon}}
  validate_every: 300
  validation_sample: 50         # examples that are transcribed at each validation

decoding:
  beam: 4
"""

_SOUND_LABELS = """\
model:
  width: 96
  dropout: 0.2                  # more for fewer examples
  encoder:
    kind: sound
    {encoder}
    body: {{kind: rnn, layers: 1}}

training:
  steps: 600
  batch_tokens: {batch:<16}# positions of 40 ms
  label_smoothing: 0.1
  schedule: {{kind: cosine, warmup: 50}}
  optimizer: {{kind: adamw, learning_rate: 0.002}}
  validate_every: 200
"""

_CAPTIONS = """\
text:
  tokenizer: {kind: words}

model:
  width: 128
  dropout: 0.1
  encoder: {kind: image, form: conv, size: 96, patch: 8}
  decoder: {kind: transformer, layers: 2}

training:
  steps: 2000                       # more if the validation loss still falls at the end
  batch_tokens: 400
  schedule: {kind: cosine, warmup: 200}
  validate_every: 250
"""

_PICTURE_LABELS = """\
model:
  width: 64
  dropout: 0.1                      # more for fewer examples
  encoder: {kind: image, form: conv, size: 48, patch: 8}

training:
  steps: 1000
  batch_tokens: 1600
  schedule: {kind: cosine, warmup: 50}
  optimizer: {kind: muon}
  validate_every: 200
"""
