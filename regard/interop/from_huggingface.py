"""A Hugging Face Marian directory becomes a run: same numbers, our names, our special tokens first.

Axes: V vocabulary, E embedding width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import durable
from regard.config.data import Cleaning, Data, Elsewhere
from regard.config.decoding import Decoding
from regard.config.model import Model
from regard.config.run import RunConfig
from regard.config.text import Text
from regard.config.text import Tokenizer as TokenizerSettings
from regard.errors import RegardError, UsageError
from regard.interop.checkpoint import Checkpoint, read_json
from regard.interop.marian import cell_of, tensor_names
from regard.models import build
from regard.nn.positions import sinusoids
from regard.run import Run
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.specials import BOS, EOS, MASK, PAD, SEP, SPECIALS, UNK
from regard.weights import put_weights, weights_of

NEVER = -100.0
"""Bias of the tokens that Marian lacks: their probability is nought in 32 bits, and a smoothed loss stays finite."""

EMBEDDINGS = {
    "model.shared.weight": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "model.decoder.embed_tokens.weight": ("lm_head.weight",),
    "model.encoder.embed_tokens.weight": (),
    "lm_head.weight": (),
}
"""Tensors with a row for each token, and the other names of tied ones."""


@dataclass(frozen=True)
class Renumbering:
    """A Marian vocabulary in our order: the special tokens, then all others as they came."""

    tokens: list[str]
    """Every token at its new place."""
    rows: Tensor
    """The old number of each, V; of `<sep>` and `<mask>`, which Marian lacks, that of padding."""
    size: int
    """How many tokens there were."""

    @property
    def bias(self) -> Tensor:
        """What is added to the output bias V, so that nothing that Marian lacks is ever likely."""
        bias = torch.zeros(len(self.tokens))
        bias[[BOS, SEP, MASK]] = NEVER
        return bias


def import_run(directory: Path, run_directory: Path) -> Run:
    """A complete run from a directory with config.json, weights and a vocabulary: of a Marian model, or of BERT."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: name one with config.json, weights and a vocabulary.")
    Run.refuse_occupied(run_directory)
    settings = read_json(directory / "config.json")
    if settings.get("model_type") == "bert":
        from regard.interop.from_bert import import_bert

        return import_bert(directory, run_directory, settings)
    cell = cell_of(settings, str(directory / "config.json"))
    checkpoint = Checkpoint(directory)
    shared = cell.embeddings.tie == "all"
    source = renumbering(directory / "vocab.json", settings, int(settings.get("vocab_size") or 0))
    target = source
    if not shared:
        size = int(settings.get("decoder_vocab_size") or settings.get("vocab_size") or 0)
        place = directory / "target_vocab.json"
        target = renumbering(place if place.is_file() else directory / "vocab.json", settings, size)
    tokenizers = {
        side: SentencePieceTokenizer(
            _bytes(directory / f"{side}.spm"), each.tokens, origin=str(directory / f"{side}.spm")
        )
        for side, each in (("source", source), ("target", target))
    }
    weights = _weights(cell, checkpoint, source, target)
    _check_positions(cell, checkpoint)
    model = build(cell, len(source.tokens), len(target.tokens))
    put_weights(model, weights, origin=f"The weights in {checkpoint.path}")
    config = _config(cell, directory, settings, shared=shared)
    run = Run.create(run_directory, config)
    run.tokenizers.mkdir(exist_ok=True)
    if tokenizers["source"].fingerprint == tokenizers["target"].fingerprint:
        tokenizers["source"].save(run.tokenizers / "shared.json")
    else:
        for side, tokenizer in tokenizers.items():
            tokenizer.save(run.tokenizers / f"{side}.json")
    run.note(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokenizers={
            side: {"fingerprint": tokenizer.fingerprint, "vocabulary": tokenizer.size}
            for side, tokenizer in tokenizers.items()
        },
        imported=str(directory),
    )
    run.save_weights(weights_of(model))
    durable.write(run.card, _card(run, config, directory))
    run.note(status="finished", steps=0)
    return run


def renumbering(path: Path, settings: Mapping[str, Any], size: int) -> Renumbering:
    """Read a Marian vocabulary of `size` tokens and put it into our order."""
    content = read_json(path)
    numbers = {str(token): number for token, number in content.items() if isinstance(number, int)}
    by_number = {number: token for token, number in numbers.items()}
    if len(by_number) != len(content) or sorted(by_number) != list(range(len(by_number))):
        raise RegardError(f"{path} does not number its tokens from 0 without gaps.")
    if len(by_number) != size:
        raise RegardError(
            f"{path} has {len(by_number):,} tokens, but config.json speaks of {size:,}: they are not of one model."
        )
    marks = {
        PAD: _special(settings, "pad_token_id", size, numbers.get("<pad>")),
        BOS: _special(settings, "decoder_start_token_id", size, numbers.get("<pad>")),
        EOS: _special(settings, "eos_token_id", size, numbers.get("</s>")),
        UNK: _special({}, "unk_token_id", size, numbers.get("<unk>")),
    }
    first = [marks.get(special, marks[PAD]) for special in range(len(SPECIALS))]
    taken = {marks[PAD], marks[EOS], marks[UNK]}
    rest = [number for number in range(size) if number not in taken]
    return Renumbering([*SPECIALS, *(by_number[number] for number in rest)], torch.tensor([*first, *rest]), size)


def _special(settings: Mapping[str, Any], name: str, size: int, otherwise: int | None) -> int:
    number = settings.get(name, otherwise)
    number = number[0] if isinstance(number, list) and number else number
    if not isinstance(number, int) or not 0 <= number < size:
        raise RegardError(f"The vocabulary has no token for {name} ({number}): it does not match config.json.")
    return number


def _weights(cell: Model, checkpoint: Checkpoint, source: Renumbering, target: Renumbering) -> dict[str, Tensor]:
    """All tensors under our names, vocabulary rows in our order."""
    with torch.device("meta"):
        shapes = {name: tuple(each.shape) for name, each in _sketch(cell, source, target).items()}
    weights: dict[str, Tensor] = {}
    for ours, theirs in tensor_names(cell).items():
        order = source if ours == "_source_embedding.weight" else target
        if ours == "output_bias":
            old = checkpoint.get(theirs, shape=(1, order.size))[0] if theirs in checkpoint else torch.zeros(order.size)
            weights[ours] = old[order.rows] + order.bias  # V
        elif theirs in EMBEDDINGS:
            others = [name for name in EMBEDDINGS[theirs] if name in checkpoint]
            weights[ours] = checkpoint.get(theirs, *others, shape=(order.size, shapes[ours][1]))[order.rows]  # V×E
        else:
            weights[ours] = checkpoint.get(theirs, shape=shapes[ours])
    return weights


def _sketch(cell: Model, source: Renumbering, target: Renumbering) -> dict[str, Tensor]:
    return build(cell, len(source.tokens), len(target.tokens)).state_dict()


def _check_positions(cell: Model, checkpoint: Checkpoint) -> None:
    """Refuse position vectors other than sinusoids, where the file has any."""
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        if name in checkpoint:
            there = checkpoint.any_shape(name)
            if not torch.allclose(there, sinusoids(len(there), there.shape[1]), atol=1e-4):
                raise RegardError(f"{checkpoint.path}: {name} holds no sinusoids, which the positions of Marian are.")


def _config(cell: Model, directory: Path, settings: Mapping[str, Any], *, shared: bool) -> RunConfig:
    """The configuration of the run, with the search that the model came with."""
    generation = dict(settings)
    if (directory / "generation_config.json").is_file():
        generation |= read_json(directory / "generation_config.json")
    longest = max(int(settings.get("max_position_embeddings") or 512), 2)
    tokenizer = TokenizerSettings(kind="sentencepiece", model=str(directory / "source.spm"))
    target = TokenizerSettings(kind="sentencepiece", model=str(directory / "target.spm"))
    return RunConfig(
        data=Data(train=Elsewhere(imported=str(directory)), cleaning=Cleaning(max_length=longest - 1)),
        text=Text(tokenizer=tokenizer, target=None if shared else target, joint=shared),
        model=cell,
        decoding=Decoding(
            beam=int(generation.get("num_beams") or 1),
            length_penalty=float(generation.get("length_penalty", 1.0)),
            max_length=min(int(generation.get("max_length") or longest), longest),
        ),
    ).resolved()


def _card(run: Run, config: RunConfig, directory: Path) -> str:
    """The page of an imported run: what it is, where it comes from, how to use it."""
    parameters = run.info["parameters"]
    return f"""# {run.name}

A sequence-to-sequence model: {config.model.cell}. {parameters:,} parameters, trained elsewhere with Marian and imported
from {directory}. Its quality has not been measured here: `regard evaluate` does that.

```
regard translate {run.directory} < in.txt
```

All settings are in [config.yaml](config.yaml). The licence of the original applies.
"""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RegardError(f"The SentencePiece model {path} cannot be read: {error.strerror or error}.") from error
