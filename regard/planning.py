"""What a run will cost, before any of it is trained: parameters, FLOPs, memory, time here and elsewhere.

A matrix costs two FLOPs for each of its numbers and each token that passes it, and twice as many again on the way back:
training costs 6 a number (Kaplan et al., 2020). Attention comes on top. Axes: S source and T target positions.
"""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.cell import settled
from regard.config.model import ConvDecoder, TransformerDecoder, TransformerEncoder
from regard.config.run import RunConfig
from regard.config.text import Tokenizer
from regard.data.cleaning import Fate, large_losses, survey
from regard.data.corpus import Pair, read
from regard.data.random_text import RandomText
from regard.foundation.device import choose_device, keep_freed
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.models import build
from regard.objectives.objective import CHUNK_ELEMENTS
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import Vocabularies, known_tokenizers
from regard.text.learning import DEFAULT_VOCABULARY
from regard.text.specials import SPECIALS
from regard.training.gradient_threads import GradientThreads
from regard.training.optimizer import matrices
from regard.training.summary import parameters_by_part
from regard.training.trainer import Trainer

UTILISATION = 0.35
"""Share of a GPU's peak that training reaches, unless told otherwise; at this, the published costs of the Transformer
base and big models (3.3e18 and 2.3e19, counted as time × peak) come out within a fifth."""
SECONDS = 10.0
"""Time for the measurement of this machine."""
USUAL_LENGTH = 25
"""Tokens of a sentence, where there is no corpus to look at."""
CHARACTERS_A_TOKEN = 4.0
"""Of subword vocabularies, in European languages."""
SAMPLE = 1000
FEW = 1024
"""Tokens of the first batch that is timed: a whole one may take minutes."""
MOST_UPDATES = 100
NUMBER = 4
"""Bytes of a 32-bit number."""


@dataclass(frozen=True)
class Hardware:
    """A device to train on."""

    teraflops: float
    """Peak, in the precision that training would use there."""
    gigabytes: float
    precision: str


HARDWARE = {
    "P100": Hardware(9.5, 16, "float32, as Vaswani et al. (2017) count it"),
    "V100": Hardware(125, 32, "float16"),
    "T4": Hardware(65, 16, "float16"),
    "A10": Hardware(125, 24, "bfloat16"),
    "L4": Hardware(121, 24, "bfloat16"),
    "A100": Hardware(312, 80, "bfloat16"),
    "H100": Hardware(989, 80, "bfloat16"),
    "RTX3090": Hardware(71, 24, "bfloat16"),
    "RTX4090": Hardware(165, 24, "bfloat16"),
}
"""Dense peak rates as their makers give them."""


@dataclass(frozen=True)
class Lengths:
    """Tokens of a sentence, its end symbol counted."""

    source: float
    target: float
    origin: str
    each: list[tuple[float, float]] = field(default_factory=list, repr=False)
    """Of the pairs that were looked at, source and target."""
    too_long: list[int] = field(default_factory=list, repr=False)
    """Those of them, counted from 0, that have more tokens than `data.cleaning.max_length`."""


@dataclass(frozen=True)
class Measured:
    """Updates made on this machine."""

    seconds: float
    """Of one update of the configuration, in the mean."""
    updates: int
    """How many were timed."""
    tokens: int
    """Padded target tokens of each; where fewer than the configuration's, time was scaled up."""
    activations: float
    """Bytes kept for the way back, of one batch of the configuration."""
    program: float
    """Bytes that Python, torch and everything not named otherwise took at the peak; 0 where nobody can tell."""


@dataclass(frozen=True)
class Elsewhere:
    """The same training on named hardware."""

    name: str
    devices: int
    hardware: Hardware
    utilisation: float
    seconds: float
    spent: float
    """FLOPs as capacity × time, the way papers count them."""


@dataclass(frozen=True)
class Plan:
    """What a run costs."""

    cell: str
    vocabulary: tuple[int, int]
    lengths: Lengths
    parameters: dict[str, int]
    tokens: int
    """Target tokens of an update, at most."""
    updates: int
    flops_per_token: float
    """Of training, for a target token and the source token beside it."""
    flops: float
    """Of the whole training."""
    memory: dict[str, float]
    """Bytes by part."""
    here: Measured | None
    why_not_here: str
    elsewhere: list[Elsewhere]
    warnings: list[str] = field(default_factory=list)
    """What will stop the training, as far as the first pairs show."""

    def memory_on(self, devices: int) -> float:
        """Return bytes on each of some devices that share out every batch."""
        shared = self.memory.get("activations", 0.0) * (1 - 1 / devices)
        return sum(self.memory.values()) - shared - self.memory.get("program", 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return all of it, for machines."""
        return asdict(replace(self, lengths=replace(self.lengths, each=[], too_long=[])))


def plan(
    config: RunConfig,
    devices: Sequence[str] = (),
    utilisation: float = UTILISATION,
    *,
    measure: bool = True,
    progress: Progress | None = None,
) -> Plan:
    """Return what the run of a configuration will cost; `measure` trains on random text for ten seconds."""
    if config.task.kind != "translation":
        raise UsageError(
            f"Planning knows sequence-to-sequence models, and this is a run of task `{config.task.kind}`. Train it "
            "for a minute, and its rate tells the rest."
        )
    named = [parse_devices(each) for each in devices]
    pairs = first_pairs(config)
    vocabulary = vocabularies(config, pairs)
    with torch.device("meta"):
        model = build(config.model, *vocabulary)
    lengths = lengths_of(config, pairs)
    training = config.training
    tokens = training.batch_tokens * training.accumulate
    each = flops_per_token(config, model, vocabulary, lengths)
    total = each * tokens * training.steps
    here, why = (None, "not asked for")
    if measure:
        here, why = measured(config, model, vocabulary, lengths, progress)
    return Plan(
        cell=config.model.cell,
        vocabulary=vocabulary,
        lengths=lengths,
        parameters=parameters_by_part(model),
        tokens=tokens,
        updates=training.steps,
        flops_per_token=each,
        flops=total,
        memory=memory(config, model, here),
        here=here,
        why_not_here=why,
        elsewhere=[
            Elsewhere(
                name=f"{count}x{name}",
                devices=count,
                hardware=HARDWARE[name],
                utilisation=utilisation,
                seconds=total / (count * HARDWARE[name].teraflops * 1e12 * utilisation),
                spent=total / utilisation,
            )
            for count, name in named
        ],
        warnings=cleaning_warnings(config, pairs, lengths),
    )


def parse_devices(text: str) -> tuple[int, str]:
    """`8xA100` or `A100` as a number and a name that is known."""
    match = re.fullmatch(r"(?:(\d{1,5})\s*[x×*]\s*)?([\w-]+)", text.strip(), re.IGNORECASE)
    known = {name.lower(): name for name in HARDWARE}
    name = known.get(match[2].replace("-", "").lower()) if match else None
    if match is None or name is None or not int(match[1] or 1):
        raise UsageError(f"`{text}` is no hardware that is known here, such as 8xA100: {', '.join(HARDWARE)}.")
    return int(match[1] or 1), name


def vocabularies(config: RunConfig, pairs: Sequence[Pair]) -> tuple[int, int]:
    """Return tokens of source and target: as the configuration says, or as many as the first pairs let expect.

    Where the run starts from another, they are those of the tokenizers that it takes over.
    """
    text, known = config.text, known_tokenizers(config)
    both = (text.tokenizer, text.target or text.tokenizer)
    sides = [[pair.source for pair in pairs], [pair.target for pair in pairs]]
    sides = [sides[0] + sides[1]] * 2 if text.shared else sides
    source, target = (
        taken.size if taken else _vocabulary(tokenizer, side)
        for taken, tokenizer, side in zip(known, both, sides, strict=True)
    )
    return source, target


def _vocabulary(tokenizer: Tokenizer, texts: Sequence[str]) -> int:
    if tokenizer.kind == "wordpiece" and tokenizer.model is not None:
        from regard.text.wordpiece import read_vocabulary

        return len(read_vocabulary(Path(tokenizer.model))) + 1  # one symbol is two of ours
    if tokenizer.kind == "sentencepiece" and tokenizer.model is not None:
        from regard.text.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer.of_model(Path(tokenizer.model)).size
    if tokenizer.vocabulary is not None:
        return tokenizer.vocabulary
    if not texts or tokenizer.kind in ("bpe", "unigram"):
        return DEFAULT_VOCABULARY
    units = {unit for text in texts for unit in (text.split() if tokenizer.kind == "words" else text)}
    spelt = len(SPECIALS) + (256 if tokenizer.kind == "characters" else 0)
    return min(spelt + len(units), DEFAULT_VOCABULARY)


def first_pairs(config: RunConfig) -> list[Pair]:
    """Return the first pairs of the corpus, where it is here."""
    try:
        return list(islice(read(config.data.train), SAMPLE))
    except RegardError:
        return []


def cleaning_warnings(config: RunConfig, pairs: Sequence[Pair], lengths: Lengths) -> list[str]:
    """Say which filter would drop so much of the corpus that training stops and asks, judged by the first pairs."""
    if not pairs:
        return []
    fates, report = survey(pairs, config.data.cleaning, held_out=0, seed=0)
    too_long = [number for number in lengths.too_long if fates[number] == Fate.TRAIN]
    if too_long:
        report.drop(Fate.TOO_LONG, too_long[0] + 1, len(too_long))
    return [
        f"{warning} This is an estimate from the first {len(pairs):,} pairs; training stops if it holds for the corpus."
        for warning in large_losses(config.data.cleaning, report, "pairs")
    ]


def lengths_of(config: RunConfig, pairs: Sequence[Pair]) -> Lengths:
    """Return mean lengths in tokens, from the first pairs of the corpus."""
    if not pairs:
        return Lengths(USUAL_LENGTH, USUAL_LENGTH, "assumed: the corpus is not here")
    sides = (config.text.tokenizer, config.text.target or config.text.tokenizer)
    most = config.data.cleaning.max_length
    counts = []
    for number, (taken, settings) in enumerate(zip(known_tokenizers(config), sides, strict=True)):
        texts = [pair[number] for pair in pairs]
        cut = [float(len(ids)) for ids in taken.encode_batch(texts)] if taken else None
        counts.append(cut or [_tokens(text, settings) for text in texts])
    both = list(zip(*counts, strict=True))
    too_long = [number for number, sides in enumerate(both) if max(sides) > most]
    each = [(min(source, most) + 1, min(target, most) + 1) for source, target in both]
    source, target = (sum(pair[side] for pair in each) / len(each) for side in (0, 1))
    return Lengths(source, target, f"estimated from {len(pairs):,} pairs", each, too_long)


def _tokens(text: str, tokenizer: Tokenizer) -> float:
    if tokenizer.kind == "characters":
        return len(text)
    return len(text.split()) if tokenizer.kind == "words" else max(len(text.split()), len(text) / CHARACTERS_A_TOKEN)


def flops_per_token(config: RunConfig, model: nn.Module, vocabulary: tuple[int, int], lengths: Lengths) -> float:
    """FLOPs of training for each target token, with the source tokens that come with it."""
    cell = config.model
    ratio = lengths.source / lengths.target
    looked_up = ("embedding", "places", "distances", "_output", "output_bias")
    matrices = {"encoder": 0, "decoder": 0}
    for name, parameter in model.named_parameters():
        side = name.split(".")[0]
        if side in matrices and parameter.dim() > 1 and not any(part in name for part in looked_up):
            matrices[side] += parameter.numel()
    output = vocabulary[1] * settled(cell.embeddings.width)
    forward = 2 * (ratio * matrices["encoder"] + matrices["decoder"] + output)
    encoder, decoder, join = cell.encoder, cell.decoder, cell.join
    assert encoder is not None and decoder is not None and join is not None  # `plan` refuses other tasks
    if isinstance(encoder, TransformerEncoder):
        forward += ratio * 4 * encoder.layers * settled(encoder.width) * lengths.source
    if isinstance(decoder, TransformerDecoder):
        forward += 4 * decoder.layers * settled(decoder.width) * lengths.target / 2
    if join.kind == "attention":
        layers = decoder.layers if isinstance(decoder, TransformerDecoder | ConvDecoder) else 1
        forward += 4 * layers * settled(decoder.width) * lengths.source
    return 3 * forward


def memory(config: RunConfig, model: nn.Module, here: Measured | None) -> dict[str, float]:
    """Return bytes by part at the peak of an update, in 32 bits; activations only where they were measured."""
    size = sum(parameter.numel() for parameter in model.parameters()) * NUMBER
    optimizer = config.training.optimizer
    moments = 2 if optimizer.kind != "sgd" else int(optimizer.momentum > 0)
    spared = sum(matrix.numel() for matrix in matrices(model)) * NUMBER if optimizer.kind == "muon" else 0
    parts: dict[str, float] = {"weights": size, "gradients": size, "optimiser": moments * size - spared}
    if config.training.ema:
        parts["average"] = size
    vocabulary = len(model.get_parameter("output_bias"))
    shares = GradientThreads().size if choose_device(config.training.device).type == "cpu" else 1
    logits = config.training.batch_tokens * vocabulary // shares
    parts["logits"] = 2 * shares * min(CHUNK_ELEMENTS, logits) * NUMBER
    if here is not None:
        parts |= {"activations": here.activations, "program": here.program}
    return parts


def measured(
    config: RunConfig,
    model: nn.Module,
    vocabulary: tuple[int, int],
    lengths: Lengths,
    progress: Progress | None = None,
) -> tuple[Measured | None, str]:
    """Train on random text for ten seconds; or why not."""
    training = config.training
    device = choose_device(training.device)
    keep_freed()
    needed = 4 * NUMBER * sum(parameter.numel() for parameter in model.parameters())
    if device.type == "cpu" and needed > 0.6 * _free_memory():
        return None, f"it needs {needed / 1e9:.1f} GB and more, which are not free here"
    config = config.model_copy(update={"training": training.model_copy(update={"accumulate": 1})})
    start = time.monotonic()
    tokens = min(training.batch_tokens, FEW)
    trainer = _trainer(config, vocabulary, lengths, tokens, device)
    _timed(trainer, 1)  # warms up
    once = _timed(trainer, 1)
    if tokens < training.batch_tokens and once * training.batch_tokens / tokens < SECONDS / 4:
        trainer.close()
        trainer = _trainer(config, vocabulary, lengths, training.batch_tokens, device)
        _timed(trainer, 1)
        once = _timed(trainer, 1)
    left = SECONDS - (time.monotonic() - start)
    count = max(1, min(MOST_UPDATES, int(left / max(once, 1e-6))))
    seconds = _timed(trainer, count, progress)
    peak = _peak_memory()
    kept = _kept_bytes(trainer)  # last: it learns in one thread, which needs memory where the others do not
    trainer.close()
    tokens = trainer.batches.tokens
    scale = training.batch_tokens / tokens
    program = max(peak - sum(memory(config, model, None).values()) - kept, 0.0) if device.type == "cpu" else 0.0
    return Measured(seconds * scale * training.accumulate, count, tokens, kept * scale, program), ""


def _trainer(
    config: RunConfig, vocabulary: tuple[int, int], lengths: Lengths, tokens: int, device: torch.device
) -> Trainer:
    batches: Any = RandomText(vocabulary, lengths.each or [(lengths.source, lengths.target)], tokens)
    source, target = (SimpleNamespace(size=size) for size in vocabulary)
    known: Any = {"source": source, "target": target}
    return Trainer(config, Task(TaskKind.of(config), Vocabularies(**known)), batches, device=device)


def _timed(trainer: Trainer, updates: int, progress: Progress | None = None) -> float:
    """Return seconds of an update, in the mean."""
    start = time.monotonic()
    for done in range(updates):
        if progress is not None:
            progress("measuring this machine", done, updates)
        trainer.update()
    return (time.monotonic() - start) / updates


def _kept_bytes(trainer: Trainer) -> float:
    """Return bytes that one batch keeps for the way back, parameters apart, each storage counted once."""
    own = {parameter.untyped_storage().data_ptr() for parameter in trainer.model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = max(kept.get(storage.data_ptr(), 0), storage.nbytes())
        return tensor

    threads, trainer.threads = trainer.threads, GradientThreads(1)  # what other threads keep would not be seen
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trainer.update()
    trainer.threads = threads
    return float(sum(kept.values()))


def _peak_memory() -> float:
    """Return the most bytes that this process has held; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _free_memory() -> float:
    """Return bytes that are free here; without a way to know, as good as endless."""
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def in_words(memory: Mapping[str, float]) -> str:
    """Return bytes by part, in the unit that fits the whole."""
    total = sum(memory.values())
    size, unit = (1e9, "GB") if total >= 1e9 else (1e6, "MB")
    parts = ", ".join(f"{name} {value / size:.3g}" for name, value in memory.items())
    return f"{total / size:.3g} {unit} ({parts})"
