"""Import of a Hugging Face directory as a run: the same weights under our names, with our special tokens first.

Axes: V vocabulary, E embedding width.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.config.data import Cleaning, Data, Elsewhere
from regard.config.decoding import Decoding
from regard.config.model import Model
from regard.config.run import RunConfig
from regard.config.text import Text
from regard.config.text import Tokenizer as TokenizerSettings
from regard.formats.checkpoint import Checkpoint, read_json
from regard.formats.foreign import describe_foreign
from regard.formats.hub_settings import HubSettings
from regard.formats.marian import ACTIVATIONS, cell_of, tensor_names
from regard.formats.special_names import has_special_names, restore_names
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import put_weights, weights_of
from regard.models import build
from regard.nn.positions import sinusoids
from regard.runs.run import Run
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.specials import BOS, EOS, MASK, PAD, SEP, SPECIALS, UNK

NEVER = -100.0
"""Bias of tokens that Marian lacks: their probability is 0 in float32, but a smoothed loss stays finite."""

EMBEDDINGS = {
    "model.shared.weight": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "model.decoder.embed_tokens.weight": ("lm_head.weight",),
    "model.encoder.embed_tokens.weight": (),
    "lm_head.weight": (),
}
"""Tensors with a row per token, and the names of those tied to them."""


@dataclass(frozen=True)
class Renumbering:
    """A Marian vocabulary in our order: the special tokens, then all others in their order."""

    tokens: list[str]
    """All tokens in the new order."""
    rows: Tensor
    """The old id of each, V; for `<sep>` and `<mask>`, which Marian lacks, that of padding."""
    size: int
    """Number of tokens of the Marian vocabulary."""
    added: tuple[int, ...] = ()
    """The special tokens that the vocabulary lacks."""

    @property
    def bias(self) -> Tensor:
        """Added to the output bias V, so that tokens that Marian lacks are never generated."""
        bias = torch.zeros(len(self.tokens))
        bias[list(self.added)] = NEVER
        return bias


COPIES = (
    "model.shared.weight",
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "final_logits_bias",
)
"""Tensors that a file may contain in addition to those of the model: copies of the embeddings."""


def import_run(directory: Path, run_directory: Path) -> Run:
    """Create a run from a Hugging Face directory of a Marian model or of BERT."""
    is_converted = (directory / "model.bin").is_file() and not any(directory.glob("*.safetensors"))
    if (is_converted or not (directory / "config.json").is_file()) and (foreign := describe_foreign(directory)):
        raise UsageError(foreign)
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory. Name one with config.json, weights and a vocabulary.")
    Run.refuse_occupied(run_directory)
    settings = HubSettings.read(directory / "config.json")
    if settings.word("model_type", "unknown") == "bert":
        from regard.formats.from_bert import import_bert

        return import_bert(directory, run_directory, settings)
    cell = cell_of(settings)
    _check_activation(cell, directory)
    checkpoint = Checkpoint(directory)
    shared = cell.embeddings.tie == "all"
    source = renumbering(directory / "vocab.json", settings, settings.integer("vocab_size", least=1))
    target = source
    if not shared:
        size = settings.integer("decoder_vocab_size", settings.integer("vocab_size", least=1), least=1)
        place = directory / "target_vocab.json"
        target = renumbering(place if place.is_file() else directory / "vocab.json", settings, size)
    tokenizers = {
        side: SentencePieceTokenizer(
            _bytes(directory / f"{side}.spm"), tokenizer.tokens, origin=str(directory / f"{side}.spm")
        )
        for side, tokenizer in (("source", source), ("target", target))
    }
    config = _config(cell, directory, settings, shared=shared)
    weights = _weights(cell, checkpoint, source, target)
    _check_positions(cell, checkpoint)
    left_out = [name for name in checkpoint.unused if name not in COPIES]
    model = build(cell, len(source.tokens), len(target.tokens))
    put_weights(model, weights, origin=f"The weights in {checkpoint.path}")
    run = Run.create(run_directory, config)
    run.tokenizers.mkdir(exist_ok=True)
    if tokenizers["source"].fingerprint == tokenizers["target"].fingerprint:
        tokenizers["source"].save(run.tokenizers / "shared.json")
    else:
        for side, tokenizer in tokenizers.items():
            tokenizer.save(run.tokenizers / f"{side}.json")
    run.note(
        left_out=left_out or None,
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


def renumbering(path: Path, settings: HubSettings, size: int) -> Renumbering:
    """Read a Marian vocabulary of `size` tokens and put it into our order.

    An export of Regard already begins with our special tokens; it is kept unchanged, so that a model can be exported
    and imported any number of times.
    """
    content = read_json(path)
    numbers = {token: number for token, number in content.items() if type(number) is int}
    by_number = {number: token for token, number in numbers.items()}
    if len(by_number) != len(content) or sorted(by_number) != list(range(len(by_number))):
        raise RegardError(f"{path} does not number its tokens from 0 without gaps.")
    if len(by_number) != size:
        raise RegardError(
            f"{path} has {len(by_number):,} tokens, but config.json declares {size:,}. They belong to different models."
        )
    marks = {
        PAD: settings.token("pad_token_id", numbers.get("<pad>"), size),
        BOS: settings.token("decoder_start_token_id", numbers.get("<pad>"), size),
        EOS: settings.token("eos_token_id", numbers.get("</s>"), size),
        UNK: _unknown(path, numbers),
    }
    tokens = [by_number[number] for number in range(size)]
    if marks == {mark: mark for mark in marks} and has_special_names(tokens):
        return Renumbering(restore_names(tokens), torch.arange(size), size)
    taken = {PAD: "padding", EOS: "end", UNK: "unknown"}
    for name, other in ((PAD, EOS), (PAD, UNK), (EOS, UNK)):
        if marks[name] == marks[other]:
            raise RegardError(
                f"{settings.place} and {path.name} have one token, number {marks[name]} (`{tokens[marks[name]]}`), for "
                f"{taken[name]} and {taken[other]}, but a model needs one for each. Correct pad_token_id and "
                "eos_token_id."
            )
    first = [marks.get(special, marks[PAD]) for special in range(len(SPECIALS))]
    rest = [number for number in range(size) if number not in {marks[mark] for mark in taken}]
    rows = torch.tensor([*first, *rest])
    return Renumbering([*SPECIALS, *(tokens[number] for number in rest)], rows, size, added=(BOS, SEP, MASK))


def _unknown(path: Path, numbers: Mapping[str, int]) -> int:
    if "<unk>" not in numbers:
        raise RegardError(f"{path} has no token <unk>. It is not a Marian vocabulary.")
    return numbers["<unk>"]


def _weights(cell: Model, checkpoint: Checkpoint, source: Renumbering, target: Renumbering) -> dict[str, Tensor]:
    """Return all tensors under our names, vocabulary rows in our order."""
    for side in ("encoder", "decoder"):
        layers = getattr(cell, side).layers
        checkpoint.refuse_layers(f"model.{side}.layers.", layers, f"{side}_layers")
    with torch.device("meta"):
        shapes = {name: tuple(tensor.shape) for name, tensor in _sketch(cell, source, target).items()}
    weights: dict[str, Tensor] = {}
    for ours, theirs in tensor_names(cell).items():
        order = source if ours == "_source_embedding.weight" else target
        if ours == "output_bias":
            old = checkpoint.get(theirs, shape=(1, order.size))[0] if theirs in checkpoint else torch.zeros(order.size)
            weights[ours] = old[order.rows] + order.bias  # V
        elif theirs in EMBEDDINGS:
            names = EMBEDDINGS[theirs] if cell.embeddings.tie != "none" else ()
            others = [name for name in names if name in checkpoint]
            found = checkpoint.get(theirs, *others, shape=(order.size, shapes[ours][1]))
            for other in others:
                if not torch.equal(checkpoint.get(other, shape=(order.size, shapes[ours][1])), found):
                    raise RegardError(
                        f"{checkpoint.path}: {other} differs from {theirs}, but config.json declares that they are "
                        "tied. "
                        "Correct share_encoder_decoder_embeddings or tie_word_embeddings in config.json."
                    )
            weights[ours] = found[order.rows]  # V×E
        else:
            weights[ours] = checkpoint.get(theirs, shape=shapes[ours])
    return weights


def _sketch(cell: Model, source: Renumbering, target: Renumbering) -> dict[str, Tensor]:
    return build(cell, len(source.tokens), len(target.tokens)).state_dict()


def _check_positions(cell: Model, checkpoint: Checkpoint) -> None:
    """Raise if the file has position vectors other than sinusoids."""
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        if name in checkpoint:
            there = checkpoint.any_shape(name)
            if not torch.allclose(there, sinusoids(len(there), there.shape[1]), atol=1e-4):
                raise RegardError(
                    f"{checkpoint.path}: {name} does not contain sinusoids, which Marian's positions are."
                )


def _check_activation(cell: Model, directory: Path) -> None:
    """Raise if the activation differs from marian-nmt's own settings, if these are in the directory."""
    assert cell.decoder is not None
    own = getattr(cell.decoder, "activation", None)
    for path in sorted(directory.glob("*.yml")):
        with suppress(OSError, UnicodeDecodeError):
            found = re.search(r"^\s*transformer-ffn-activation:\s*[\"']?(\w+)", path.read_text("utf-8"), re.MULTILINE)
            if found and ACTIVATIONS.get(found[1]) != own:
                raise RegardError(
                    f"{path} states that the model was trained with the activation `{found[1]}`, but config.json has "
                    f"`{own}`. Correct activation_function in config.json."
                )


def _config(cell: Model, directory: Path, settings: HubSettings, *, shared: bool) -> RunConfig:
    """Return the configuration of the run, with the search settings of the original."""
    place, values = settings.place, dict(settings.values)
    if (directory / "generation_config.json").is_file():
        own = HubSettings.read(directory / "generation_config.json")
        place, values = own.place, values | {name: value for name, value in own.values.items() if value is not None}
    generation = HubSettings(values, place)
    longest = settings.integer("max_position_embeddings", 512, least=2, most=100_000)
    tokenizer = TokenizerSettings(kind="sentencepiece", model=str(directory / "source.spm"))
    target = TokenizerSettings(kind="sentencepiece", model=str(directory / "target.spm"))
    return RunConfig(
        data=Data(train=Elsewhere(imported=str(directory)), cleaning=Cleaning(max_length=longest - 1)),
        text=Text(tokenizer=tokenizer, target=None if shared else target, joint=shared),
        model=cell,
        decoding=Decoding(
            beam=generation.integer("num_beams", 1, least=1, most=1000),
            length_penalty=generation.number("length_penalty", 1.0, least=0.0, most=10.0),
            max_length=min(generation.integer("max_length", longest, least=1), longest),
        ),
    ).resolved()


def _card(run: Run, config: RunConfig, directory: Path) -> str:
    """Return the card of an imported run."""
    parameters = run.info["parameters"]
    return f"""# {run.name}

A sequence-to-sequence model: {config.model.cell}. {parameters:,} parameters, trained elsewhere with Marian and imported
from {directory}. Its quality has not been measured; use `regard evaluate`.

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
