"""Decoding side by side: the same weights in every program, text to text, each at its best batch size."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.corpus import Corpus, at_hand
from benchmarks.options import Options
from benchmarks.places import CACHE, MULTI30K, ROOT, say
from benchmarks.report import Figure
from benchmarks.rounds import Answer, Crowd
from benchmarks.training import ARCHITECTURES, QUICK
from benchmarks.worker import Worker

NATIVE, FAST, FAST_INT8 = "Regard, native", "Regard, engine ctranslate2", "Regard, engine ctranslate2-int8"
MODES = {"greedy": 1, "beam 5": 5}
SAMPLE = 3
"""To find the best batch size, every third sentence is translated; the slowest peer gets no more later either."""
SLOW = ("JoeyNMT 2.3",)
LATENCY = 20
"""Every twentieth sentence alone."""
ENOUGH_STEPS = 700
"""Updates of a model that is trained only to be measured: its outputs have about the right length."""


@dataclass(frozen=True)
class Program:
    """One way to decode, and the batch sizes to try."""

    peer: str
    file: str
    settings: dict[str, Any]
    batches: dict[int, tuple[int, ...]]
    """By the width of the beam; in the program's own unit."""


def measure(options: Options) -> str:
    """Decode the test sentences with everything, and write the tables."""
    corpus = at_hand(options.quick)
    run, told = trained(options, corpus)
    known = programs(options, corpus, run)
    facts: dict[str, Any] = {
        "machine": machine.facts(),
        "corpus": corpus.name,
        "rounds": options.rounds,
        "weights": told,
        "batch": {},
        "figures": {},
    }
    say("Decoding:")
    with Crowd(_workers(known, options), options.threads) as crowd:
        chosen = {mode: _best_batches(crowd, known, beam, mode) for mode, beam in MODES.items()}
        rates = {mode: {name: Figure() for name in known} for mode in MODES}
        latency = {name: Figure() for name in known}
        count = _counter(run)
        for number in range(options.rounds):
            crowd.measure_limit(options.seconds / 8)
            for mode, beam in MODES.items():

                def decode(worker: Worker, beam: int = beam, mode: str = mode) -> Answer:
                    name = _name(worker)
                    return _decode(worker, beam, chosen[mode][name], SAMPLE if name in SLOW else 1)

                for name, answer in crowd.each(f"round {number + 1}, {mode}", decode).items():
                    rates[mode][name].rounds.append(count(answer["said"]) / answer["seconds"])
                    facts["figures"].setdefault(f"said, {mode}", {})[name] = answer["said"]
            for name, answer in crowd.each(
                f"round {number + 1}, one by one", lambda worker: worker.ask(do="latency", beam=1, every=LATENCY)
            ).items():
                latency[name].rounds.append(answer["seconds"] * 1000)
        facts["peak_bytes"] = crowd.peaks()
    for name, why in crowd.failed.items():
        latency[name] = Figure(why_not=why)
        for mode in MODES:
            rates[mode][name] = Figure(why_not=why)
    said = {mode: facts["figures"].pop(f"said, {mode}", {}) for mode in MODES}
    facts |= {"batch": chosen, "tokens_per_second": rates, "latency_ms": latency, "sgemm_flops": crowd.limit}
    facts["agreement"] = {mode: _agreement(said[mode], corpus) for mode in MODES}
    return _write(facts, list(known), options)


def trained(options: Options, corpus: Corpus) -> tuple[Path, str]:
    """The run whose weights everybody uses: the one asked for, one at hand, or one that is trained now."""
    if options.run is not None:
        return options.run, f"the weights of {options.run.name}"
    at_home = ROOT / "runs" / "tiny"
    if not options.quick and MULTI30K.is_dir() and (at_home / "model.safetensors").exists():
        return at_home, "tiny (4+4, d 128, ffn 256): the weights of runs/tiny"
    import torch

    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    place = corpus.directory / "runs" / "decode"
    steps = 60 if options.quick else ENOUGH_STEPS
    architecture = (QUICK if options.quick else ARCHITECTURES)["tiny"]
    if not (place / "model.safetensors").exists():
        say(f"Training a model to decode with, {steps} updates …")
        settings = architecture.settings(tokens=1024, steps=steps)
        place = corpus.run("decode", settings)
        torch.set_num_threads(options.threads)
        train(from_mapping({**settings, **corpus.settings}), place, resume=True, view=View())
    return place, f"{architecture.title}: weights of {steps} updates, trained for this alone"


def programs(options: Options, corpus: Corpus, run: Path) -> dict[str, Program]:
    """Everything that can decode a run, with the run exported for it."""
    from regard.formats.to_ctranslate2 import export_ctranslate2
    from regard.formats.to_huggingface import export_huggingface
    from regard.runs.run import Run

    opened = Run.open(run)
    place = CACHE / "exported"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    export_huggingface(opened, place / "huggingface")
    export_ctranslate2(opened, place / "float32", None)
    export_ctranslate2(opened, place / "int8", "int8")
    config = opened.config
    penalty = config.decoding.length_penalty
    shared = {"sources": corpus.facts["data"]["test"]["source"], "penalty": penalty}
    tokenizer = {"tokenizer": str(run / "tokenizers" / "shared.json")}
    encoder: Any = config.model.encoder
    joey = {
        "weights": str(run / "model.safetensors"),
        "layers": encoder.layers,
        "heads": config.model.attention.heads if config.model.attention else 1,
        "feed_forward": encoder.feed_forward,
    }
    ours = {"run": str(run), "usual": config.decoding.batch_tokens}
    fixed = {1: (0,), 5: (0,)}
    sizes = {1: (32, 64, 128), 5: (16, 32, 64)}
    found = {
        NATIVE: Program(
            "regard", "decode_regard", {**ours, "engine": "native"}, {1: (2048, 4096, 8192), 5: (2048, 4096, 8192)}
        ),
        FAST: Program("regard", "decode_regard", {**ours, "engine": "ctranslate2"}, fixed),
        FAST_INT8: Program("regard", "decode_regard", {**ours, "engine": "ctranslate2-int8"}, fixed),
    }
    for kind in ("float32", "int8"):
        found[f"CTranslate2 4.8 {kind}, 2 workers × 1 thread"] = Program(
            "ctranslate2",
            "decode_ctranslate2",
            {**tokenizer, "model": str(place / kind), "type": kind, "workers": 2},
            {1: (32, 64, 128), 5: (8, 16, 32)},
        )
    huggingface = {"model": str(place / "huggingface")}
    found |= {
        "Hugging Face generate, 2 threads": Program(
            "huggingface", "decode_huggingface", {**huggingface, "processes": 1, "threads": options.threads}, sizes
        ),
        "Hugging Face generate, 2 processes": Program(
            "huggingface", "decode_huggingface", {**huggingface, "processes": 2, "threads": 1}, sizes
        ),
        "JoeyNMT 2.3": Program("joeynmt", "decode_joeynmt", {**tokenizer, **joey}, {1: (64, 128), 5: (32, 64)}),
    }
    return {
        name: Program(one.peer, one.file, {**shared, **one.settings}, one.batches)
        for name, one in found.items()
        if one.peer == "regard" or options.wants(one.peer)
    }


def _workers(known: dict[str, Program], options: Options) -> dict[str, Worker]:
    return {
        name: Worker(f"decode {name}", one.peer, one.file, one.settings, options.threads) for name, one in known.items()
    }


def _name(worker: Worker) -> str:
    return worker.name.removeprefix("decode ")


def _decode(worker: Worker, beam: int, batch: int, every: int) -> Answer:
    output = CACHE / "said" / f"{worker.log.stem}-{beam}.txt"
    output.parent.mkdir(parents=True, exist_ok=True)
    answer = worker.ask(do="decode", beam=beam, batch=batch, every=every, output=str(output))
    return {**answer, "said": output.read_text(encoding="utf-8").splitlines()}


def _best_batches(crowd: Crowd, known: dict[str, Program], beam: int, mode: str) -> dict[str, int]:
    """The batch size at which each program is fastest, on every third sentence."""
    chosen = {}

    def tried(worker: Worker) -> Answer:
        sizes = known[_name(worker)].batches[beam]
        times = {size: _decode(worker, beam, size, SAMPLE)["seconds"] for size in sizes if len(sizes) > 1}
        return {"batch": min(times, key=lambda size: times[size]) if times else sizes[0]}

    for name, answer in crowd.each(f"best batch, {mode}", tried).items():
        chosen[name] = answer["batch"]
    return chosen


def _counter(run: Path) -> Any:
    """Target tokens of texts by the run's own tokenizer, end symbols counted: the same for everybody."""
    from regard.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(run / "tokenizers" / "shared.json")
    return lambda texts: sum(len(ids) + 1 for ids in tokenizer.encode_batch(texts))


def _agreement(said: dict[str, list[str]], corpus: Corpus) -> dict[str, dict[str, float]]:
    """BLEU of each, and how much of it is what native Regard says."""
    from sacrebleu import corpus_bleu

    references, native = corpus.references, said.get(NATIVE, [])
    found = {}
    for name, texts in said.items():
        every = SAMPLE if name in SLOW else 1
        same = sum(one == other for one, other in zip(texts, native[::every], strict=False))
        score = corpus_bleu(texts, [references[::every]], force=True).score
        found[name] = {"bleu": score, "same": same / max(1, len(texts))}
    return found


def _write(facts: dict[str, Any], names: list[str], options: Options) -> str:
    rates, latency = facts["tokens_per_second"], facts["latency_ms"]
    rows = []
    for name in names:
        row = [f"**{name}**" if name.startswith("Regard") else name]
        for mode in MODES:
            row.append(rates[mode][name].shown())
        row.append(latency[name].shown(".1f", " ms"))
        peak = facts["peak_bytes"].get(name)
        agreed = [facts["agreement"][mode].get(name) for mode in MODES]
        row += [f"{one['same']:.1%}" if one else "–" for one in agreed]
        row.append(f"{agreed[1]['bleu']:.1f}" if agreed[1] else "–")
        rows.append([*row, f"{peak / 1e9:.2f} GB" if peak else "–"])
    others = {
        "native / Hugging Face": (NATIVE, "Hugging Face"),
        "native / JoeyNMT": (NATIVE, "JoeyNMT"),
        "engine / CTranslate2 float32": (FAST, "CTranslate2 4.8 float32"),
        "engine int8 / CTranslate2 int8": (FAST_INT8, "CTranslate2 4.8 int8"),
    }
    ratios = []
    for title, (mine, begins) in others.items():
        row, theirs = [title], [name for name in names if name.startswith(begins)]
        for mode in MODES:
            row.append(report.ratio(rates[mode][mine].median, report.best(rates[mode], theirs)))
        quickest = report.best(latency, theirs, lowest=True)
        ratios.append([*row, report.ratio(latency[mine].median, quickest)])
    same = [f"as native, {mode}" for mode in MODES]
    head = ["target tokens/s", *MODES, "batch 1, p50", *same, "BLEU, beam", "peak memory"]
    why = report.reasons(latency)
    text = "\n".join(
        [
            "# Decoding",
            "",
            f"{facts['corpus']}, test sentences, {facts['weights']}, text to text, each at its best batch size; "
            f"medians of {facts['rounds']} interleaved rounds, ± half the spread. {machine.in_words(facts['machine'])}",
            "",
            report.markdown(head, rows),
            "",
            report.markdown(["Regard's rate over the best of theirs", *MODES, "latency, of theirs"], ratios),
            "",
            "Tokens are counted alike for all, by tokenising what was said. *As native*: sentences that are word for "
            "word what Regard's native engine says. JoeyNMT has Regard's weights too, and translates every third "
            "sentence, as it is slow.",
            *(["", "Left out:", *why] if why else []),
        ]
    )
    bars = {mode: {name: rates[mode][name].median for name in names} for mode in MODES}
    picture.bars(bars, "decoding: target tokens a second", "decode", quick=options.quick)
    return report.write("decode", text, facts, quick=options.quick)
