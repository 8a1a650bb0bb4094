"""Training side by side: non-padding target tokens a second, peak memory, and the share of the machine's own limit."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.corpus import Corpus, at_hand
from benchmarks.options import Options
from benchmarks.places import say
from benchmarks.report import Figure
from benchmarks.rounds import Answer, Crowd
from benchmarks.worker import Worker

TOKENS = 4096
"""Padded tokens of a batch, on the longer side."""
DROPOUT = 0.1
WARMUP = 3
"""Updates before the first round: allocators, caches and threads find their places."""
UPDATES = 3
"""Of a round, at least."""


@dataclass(frozen=True)
class Architecture:
    """One model that all build alike."""

    title: str
    kind: str
    width: int
    layers: int = 1
    feed_forward: int = 0
    heads: int = 1
    recurrent: dict[str, Any] = field(default_factory=dict)
    """Join and attention of Regard's recurrent cell."""

    @property
    def model(self) -> dict[str, Any]:
        """Regard's settings."""
        if self.kind == "gru":
            rnn = {"kind": "rnn", "cell": "gru", "layers": 1}
            sides = {"encoder": {**rnn, "direction": "both"}, "decoder": rnn}
            return {"width": self.width, "dropout": DROPOUT, **sides, "embeddings": {"tie": "all"}, **self.recurrent}
        side = {"kind": "transformer", "layers": self.layers, "feed_forward": self.feed_forward}
        return {
            "width": self.width,
            "dropout": DROPOUT,
            "encoder": side,
            "decoder": side,
            "join": {"kind": "attention"},
            "attention": {"heads": self.heads},
            "embeddings": {"tie": "all"},
        }

    def settings(self, tokens: int = TOKENS, steps: int = 1_000_000) -> dict[str, Any]:
        """Regard's whole configuration but the data; nothing interrupts the training."""
        every = {"validate_every": 1_000_000, "checkpoint_every": 1_000_000, "log_every": 1_000}
        return {"model": self.model, "training": {"batch_tokens": tokens, "steps": steps, **every}}


AFTER = {
    "join": {"kind": "attention", "order": "after", "input_feeding": True},
    "attention": {"score": "bilinear", "heads": 1},
}
BEFORE = {"join": {"kind": "attention", "order": "before"}, "attention": {"score": "additive", "heads": 1}}
ARCHITECTURES = {
    "tiny": Architecture("tiny (4+4, d 128, ffn 256)", "transformer", 128, 4, 256, 4),
    "small": Architecture("small (3+3, d 256, ffn 1024)", "transformer", 256, 3, 1024, 4),
    "gru": Architecture("GRU 256, attention after, fed on", "gru", 256, recurrent=AFTER),
    "additive": Architecture("GRU 256, additive attention", "gru", 256, recurrent=BEFORE),
}
QUICK = {
    "tiny": Architecture("small smoke (1+1, d 32)", "transformer", 32, 1, 64, 2),
    "gru": Architecture("GRU smoke (32), attention after", "gru", 32, recurrent=AFTER),
    "additive": Architecture("GRU smoke (32), additive", "gru", 32, recurrent=BEFORE),
}
PEERS = {
    "Hugging Face Marian": ("huggingface", ("tiny", "small")),
    "Hugging Face Marian, inner dropout too": ("huggingface", ("tiny", "small")),
    "eole 0.6": ("eole", ("tiny", "small", "gru")),
    "OpenNMT-py 3.5": ("opennmt", ("tiny", "small", "gru")),
    "JoeyNMT 2.3": ("joeynmt", ("tiny", "small", "additive")),
}
"""Who trains what; every one of them also in Regard."""
OURS = "Regard"


def measure(options: Options) -> str:
    """Train everything, and write the tables."""
    corpus = at_hand(options.quick)
    facts: dict[str, Any] = {"machine": machine.facts(), "corpus": corpus.name, "rounds": options.rounds, "models": {}}
    facts["batch_tokens"] = 512 if options.quick else TOKENS
    known = QUICK if options.quick else ARCHITECTURES
    for name, architecture in known.items():
        if options.models and name not in options.models:
            continue
        say(f"Training, {architecture.title}:")
        facts["models"][name] = _model(options, corpus, name, architecture)
        _write(facts, known, options)  # after each: what is done is not lost
    return _write(facts, known, options)


def workers(options: Options, corpus: Corpus, name: str, architecture: Architecture) -> dict[str, Worker]:
    """Every program that trains this model, not yet started."""
    tokens = 512 if options.quick else TOKENS
    run = corpus.run(f"train-{name}", architecture.settings(tokens))
    found = {OURS: Worker(f"train {name} {OURS}", "regard", "train_regard", _ours(str(run)), options.threads)}
    for title, (peer, models) in PEERS.items():
        if name not in models or not options.wants(peer):
            continue
        settings = {
            "corpus": str(corpus.directory),
            "vocabulary": corpus.vocabulary,
            "kind": architecture.kind,
            "width": architecture.width,
            "layers": architecture.layers,
            "feed_forward": architecture.feed_forward,
            "heads": architecture.heads,
            "dropout": DROPOUT,
            "inner_dropout": DROPOUT if "inner" in title else 0.0,
            "tokens": tokens,
            "warmup": WARMUP,
        }
        found[title] = Worker(f"train {name} {title}", peer, f"train_{peer}", settings, options.threads)
    return found


def _ours(run: str) -> dict[str, Any]:
    return {"run": run, "warmup": WARMUP}


def _model(options: Options, corpus: Corpus, name: str, architecture: Architecture) -> dict[str, Any]:
    """Rates and peaks of everybody on one model."""
    programs = workers(options, corpus, name, architecture)
    rates = {title: Figure() for title in programs}

    def update(worker: Worker) -> Answer:
        return worker.ask(seconds=options.seconds, updates=UPDATES)

    with Crowd(programs, options.threads) as crowd:
        for number in range(options.rounds):
            crowd.measure_limit(options.seconds / 8)
            for title, answer in crowd.each(f"round {number + 1}", update).items():
                rates[title].rounds.append(answer["tokens"] / answer["seconds"])
        peaks = crowd.peaks()
    for title, why in crowd.failed.items():
        rates[title] = Figure(why_not=why)
    limit = crowd.limit.median or 1.0
    each = flops_per_token(corpus, architecture)
    shares = {title: rate.median * each / limit for title, rate in rates.items() if rate.median}
    return {
        "title": architecture.title,
        "tokens_per_second": rates,
        "peak_bytes": peaks,
        "flops_per_token": each,
        "sgemm_flops": crowd.limit,
        "share_of_sgemm": shares,
    }


def flops_per_token(corpus: Corpus, architecture: Architecture) -> float:
    """Model FLOPs of training for a target token and the source that comes with it."""
    import torch

    from regard.config.loading import from_mapping
    from regard.models import build
    from regard.planning import Lengths, flops_per_token

    config = from_mapping({**architecture.settings(), **corpus.settings})
    sizes = corpus.vocabulary, corpus.vocabulary
    with torch.device("meta"):
        model = build(config.model, *sizes)
    lengths = Lengths(corpus.facts["source_length"], corpus.facts["target_length"], "counted")
    return flops_per_token(config, model, sizes, lengths)


def _write(facts: dict[str, Any], known: dict[str, Architecture], options: Options) -> str:
    models = facts["models"]
    names = [OURS, *PEERS]
    rows = []
    for title in names:
        row = [f"**{title}**" if title == OURS else title]
        for found in models.values():
            rate = found["tokens_per_second"].get(title, Figure())
            share = found["share_of_sgemm"].get(title)
            row += [rate.shown(), f"{share:.0%}" if share else "–"]
        peak = next(iter(models.values()))["peak_bytes"].get(title)
        rows.append([*row, f"{peak / 1e9:.2f} GB" if peak else "–"])
    limit = ["*the machine: sgemm 1024³*"]
    compare = ["**Regard / fastest peer**"]
    for found in models.values():
        rates, flops = found["tokens_per_second"], found["sgemm_flops"].median
        limit += [f"{flops / found['flops_per_token']:,.0f}", f"{flops / 1e9:.0f} GFLOP/s"]
        peers = [title for title in rates if title != OURS]
        compare += [report.ratio(rates[OURS].median, report.best(rates, peers)), ""]
    head = [
        "non-padding target tokens/s",
        *(text for found in models.values() for text in (found["title"], "of sgemm")),
        f"peak memory, {next(iter(models))}",
    ]
    why = [line for found in models.values() for line in report.reasons(found["tokens_per_second"])]
    text = "\n".join(
        [
            "# Training",
            "",
            f"{facts['corpus']}, joint BPE, the same tokens for all, about {facts['batch_tokens']:,} padded tokens a "
            f"batch; medians of {facts['rounds']} interleaved rounds, ± half the spread. "
            f"{machine.in_words(facts['machine'])}",
            "",
            report.markdown(head, [*rows, [*compare, ""], [*limit, ""]]),
            "",
            "*of sgemm*: model FLOPs as a share of what two cores reach on 1024³ products in the same run; its row "
            "says the rate at which all of that would be used. The cell of JoeyNMT scores additively too, but after "
            "the step, and feeds the result on, as it has no other. Pre-norm and post-norm cost the same.",
            *(["", "Left out:", *why] if why else []),
        ]
    )
    bars = {
        found["title"]: {title: found["tokens_per_second"].get(title, Figure()).median for title in names}
        for found in models.values()
    }
    picture.bars(bars, "training: target tokens a second", "train", quick=options.quick)
    return report.write("train", text, facts, quick=options.quick)
