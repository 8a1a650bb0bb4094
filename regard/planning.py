"""Estimates of the cost of a run before training: parameters, FLOPs, memory and time.

A matrix costs two FLOPs per parameter and token in the forward pass and four in the backward pass, so training costs 6
per parameter (Kaplan et al., 2020), plus attention. Axes: S source and T target positions.
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

from regard.config.cell import resolved
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
"""Default share of a GPU's peak that training reaches; with it, the estimates for the Transformer base and big models
are within 20 % of the published costs (3.3e18 and 2.3e19, counted as time × peak)."""
SECONDS = 10.0
"""Duration of the measurement on this machine."""
USUAL_LENGTH = 25
"""Assumed tokens per sentence if the corpus is not available."""
CHARACTERS_A_TOKEN = 4.0
"""Typical for subword vocabularies in European languages."""
SAMPLE = 1000
FEW = 1024
"""Tokens of the first timed batch, since a whole one may take minutes."""
MOST_UPDATES = 100
NUMBER = 4
"""Bytes of a 32-bit number."""


@dataclass(frozen=True)
class Hardware:
    """A device to train on."""

    teraflops: float
    """Peak rate in the precision that training would use."""
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
"""Dense peak rates according to the manufacturers."""


@dataclass(frozen=True)
class Lengths:
    """Mean tokens per sentence, including the end symbol."""

    source: float
    target: float
    origin: str
    each: list[tuple[float, float]] = field(default_factory=list, repr=False)
    """Source and target lengths of the sampled pairs."""
    too_long: list[int] = field(default_factory=list, repr=False)
    """Indices of the pairs with more tokens than `data.cleaning.max_length`."""


@dataclass(frozen=True)
class Measured:
    """Measurement of updates on this machine."""

    seconds: float
    """Mean seconds per update of the configuration."""
    updates: int
    """Number of timed updates."""
    tokens: int
    """Padded target tokens per update; if fewer than the configuration's, the time was scaled up."""
    activations: float
    """Bytes of activations for the backward pass of one batch."""
    program: float
    """Peak bytes of Python, torch and everything else; 0 if unknown."""


@dataclass(frozen=True)
class Elsewhere:
    """The same training on named hardware."""

    name: str
    devices: int
    hardware: Hardware
    utilisation: float
    seconds: float
    spent: float
    """FLOPs as capacity × time, as papers report them."""


@dataclass(frozen=True)
class Plan:
    """The estimated cost of a run."""

    cell: str
    vocabulary: tuple[int, int]
    lengths: Lengths
    parameters: dict[str, int]
    tokens: int
    """Largest number of target tokens per update."""
    updates: int
    flops_per_token: float
    """Training FLOPs per target token, including its source tokens."""
    flops: float
    """FLOPs of the whole training."""
    memory: dict[str, float]
    """Bytes by part."""
    here: Measured | None
    why_not_here: str
    elsewhere: list[Elsewhere]
    warnings: list[str] = field(default_factory=list)
    """Problems that would stop the training, estimated from the first pairs."""

    def memory_on(self, devices: int) -> float:
        """Return the bytes per device if each batch is divided among the devices."""
        shared = self.memory.get("activations", 0.0) * (1 - 1 / devices)
        return sum(self.memory.values()) - shared - self.memory.get("program", 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return asdict(replace(self, lengths=replace(self.lengths, each=[], too_long=[])))


def plan(
    config: RunConfig,
    devices: Sequence[str] = (),
    utilisation: float = UTILISATION,
    *,
    measure: bool = True,
    progress: Progress | None = None,
) -> Plan:
    """Estimate the cost of a run; `measure` trains on random text for ten seconds."""
    if config.task.kind != "translation":
        raise UsageError(
            f"Planning supports only sequence-to-sequence models, but this is a run of task `{config.task.kind}`. "
            "Train "
            "it for a minute, and extrapolate from its rate."
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
        here, why = measure_training(config, model, vocabulary, lengths, progress)
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
    """Return the number and the name of devices such as `8xA100` or `A100`."""
    match = re.fullmatch(r"(?:(\d{1,5})\s*[x×*]\s*)?([\w-]+)", text.strip(), re.IGNORECASE)
    known = {name.lower(): name for name in HARDWARE}
    name = known.get(match[2].replace("-", "").lower()) if match else None
    if match is None or name is None or not int(match[1] or 1):
        raise UsageError(
            f"`{text}` is not known hardware. Use, for example, 8xA100, with one of {', '.join(HARDWARE)}."
        )
    return int(match[1] or 1), name


def vocabularies(config: RunConfig, pairs: Sequence[Pair]) -> tuple[int, int]:
    """Return the vocabulary sizes of source and target: as configured, or estimated from the first pairs.

    If the run starts from another, they are the sizes of its tokenizers.
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

        return len(read_vocabulary(Path(tokenizer.model))) + 1  # `[SEP]` is two of our tokens
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
    """Return the first pairs of the corpus; empty if it is not available."""
    try:
        return list(islice(read(config.data.train), SAMPLE))
    except RegardError:
        return []


def cleaning_warnings(config: RunConfig, pairs: Sequence[Pair], lengths: Lengths) -> list[str]:
    """Return warnings about filters that would drop so many pairs that training stops, judged by the first pairs."""
    if not pairs:
        return []
    fates, report = survey(pairs, config.data.cleaning, held_out=0, seed=0)
    too_long = [number for number in lengths.too_long if fates[number] == Fate.TRAIN]
    if too_long:
        report.drop(Fate.TOO_LONG, too_long[0] + 1, len(too_long))
    return [
        f"{warning} This is an estimate from the first {len(pairs):,} pairs; training stops if it is true of the "
        "whole corpus."
        for warning in large_losses(config.data.cleaning, report, "pairs")
    ]


def lengths_of(config: RunConfig, pairs: Sequence[Pair]) -> Lengths:
    """Return mean lengths in tokens, from the first pairs of the corpus."""
    if not pairs:
        return Lengths(USUAL_LENGTH, USUAL_LENGTH, "assumed: the corpus is not available")
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
    """Return the training FLOPs per target token, including its source tokens."""
    cell = config.model
    ratio = lengths.source / lengths.target
    looked_up = ("embedding", "places", "distances", "_output", "output_bias")
    matrices = {"encoder": 0, "decoder": 0}
    for name, parameter in model.named_parameters():
        side = name.split(".")[0]
        if side in matrices and parameter.dim() > 1 and not any(part in name for part in looked_up):
            matrices[side] += parameter.numel()
    output = vocabulary[1] * resolved(cell.embeddings.width)
    forward = 2 * (ratio * matrices["encoder"] + matrices["decoder"] + output)
    encoder, decoder, join = cell.encoder, cell.decoder, cell.join
    assert encoder is not None and decoder is not None and join is not None  # `plan` raises for other tasks
    if isinstance(encoder, TransformerEncoder):
        forward += ratio * 4 * encoder.layers * resolved(encoder.width) * lengths.source
    if isinstance(decoder, TransformerDecoder):
        forward += 4 * decoder.layers * resolved(decoder.width) * lengths.target / 2
    if join.kind == "attention":
        layers = decoder.layers if isinstance(decoder, TransformerDecoder | ConvDecoder) else 1
        forward += 4 * layers * resolved(decoder.width) * lengths.source
    return 3 * forward


def memory(config: RunConfig, model: nn.Module, here: Measured | None) -> dict[str, float]:
    """Return peak bytes by part, in float32; activations only if they were measured."""
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


def measure_training(
    config: RunConfig,
    model: nn.Module,
    vocabulary: tuple[int, int],
    lengths: Lengths,
    progress: Progress | None = None,
) -> tuple[Measured | None, str]:
    """Train on random text for ten seconds; return the measurement, or `None` and the reason."""
    training = config.training
    device = choose_device(training.device)
    keep_freed()
    needed = 4 * NUMBER * sum(parameter.numel() for parameter in model.parameters())
    if device.type == "cpu" and needed > 0.6 * _free_memory():
        return None, f"it needs more than {needed / 1e9:.1f} GB, which are not free"
    config = config.model_copy(update={"training": training.model_copy(update={"accumulate": 1})})
    start = time.monotonic()
    tokens = min(training.batch_tokens, FEW)
    trainer = _trainer(config, vocabulary, lengths, tokens, device)
    _time_updates(trainer, 1)  # warm-up
    once = _time_updates(trainer, 1)
    if tokens < training.batch_tokens and once * training.batch_tokens / tokens < SECONDS / 4:
        trainer.close()
        trainer = _trainer(config, vocabulary, lengths, training.batch_tokens, device)
        _time_updates(trainer, 1)
        once = _time_updates(trainer, 1)
    left = SECONDS - (time.monotonic() - start)
    count = max(1, min(MOST_UPDATES, int(left / max(once, 1e-6))))
    seconds = _time_updates(trainer, count, progress)
    peak = _peak_memory()
    kept = _kept_bytes(trainer)  # last, since it runs in one thread, which changes the memory use
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


def _time_updates(trainer: Trainer, updates: int, progress: Progress | None = None) -> float:
    """Return the mean seconds per update."""
    start = time.monotonic()
    for done in range(updates):
        if progress is not None:
            progress("measuring this machine", done, updates)
        trainer.update()
    return (time.monotonic() - start) / updates


def _kept_bytes(trainer: Trainer) -> float:
    """Return the bytes that autograd saves for one batch, without parameters, each storage counted once."""
    own = {parameter.untyped_storage().data_ptr() for parameter in trainer.model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = max(kept.get(storage.data_ptr(), 0), storage.nbytes())
        return tensor

    threads, trainer.threads = trainer.threads, GradientThreads(1)  # tensors saved by other threads would be missed
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trainer.update()
    trainer.threads = threads
    return float(sum(kept.values()))


def _peak_memory() -> float:
    """Return the peak memory of this process in bytes; 0 if the system does not report it."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _free_memory() -> float:
    """Return the free memory in bytes; infinity if it is unknown."""
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def format_memory(memory: Mapping[str, float]) -> str:
    """Format bytes by part, in the unit that fits the total."""
    total = sum(memory.values())
    size, unit = (1e9, "GB") if total >= 1e9 else (1e6, "MB")
    parts = ", ".join(f"{name} {value / size:.3g}" for name, value in memory.items())
    return f"{total / size:.3g} {unit} ({parts})"
