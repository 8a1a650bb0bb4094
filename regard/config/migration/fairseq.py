"""fairseq: the command line of `fairseq-train` in a shell script, or the YAML of `fairseq-hydra-train`."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from regard.config.document import noun, one_line
from regard.config.migration.draft import Draft, Options, put_batch, put_patience, put_vocabulary
from regard.config.migration.shell import ShellCommand, shell_commands
from regard.foundation.errors import UsageError

TOOL = "fairseq"
HYDRA_SECTIONS = ("common", "checkpoint", "task", "dataset", "criterion", "optimization", "optimizer", "lr_scheduler")

_BASE = {"encoder": 6, "decoder": 6, "width": 512, "feed_forward": 2048, "heads": 8, "dropout": 0.1}
_BIG = {**_BASE, "width": 1024, "feed_forward": 4096, "heads": 16, "dropout": 0.3}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "transformer": _BASE,
    "transformer_tiny": {**_BASE, "encoder": 2, "decoder": 2, "width": 64, "feed_forward": 64, "heads": 2},
    "transformer_iwslt_de_en": {**_BASE, "feed_forward": 1024, "heads": 4},
    "transformer_wmt_en_de": _BASE,
    "transformer_vaswani_wmt_en_de_big": _BIG,
    "transformer_vaswani_wmt_en_fr_big": {**_BIG, "dropout": 0.1},
    "transformer_wmt_en_de_big": {**_BIG, "attention_dropout": 0.1},
    "transformer_wmt_en_de_big_t2t": {**_BIG, "attention_dropout": 0.1, "norm_place": "pre"},
}
LSTMS: dict[str, dict[str, Any]] = {
    "lstm": {"embedding": 512, "width": 512, "layers": 1},
    "lstm_wiseman_iwslt_de_en": {"embedding": 256, "width": 256, "layers": 1},
    "lstm_luong_wmt_en_de": {"embedding": 1000, "width": 1000, "layers": 4},
}
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "fconv_iwslt_de_en": {"embedding": 256, "encoder": "[(256, 3)] * 4", "decoder": "[(256, 3)] * 3"},
    "fconv": {"embedding": 512, "encoder": "[(512, 3)] * 20", "decoder": "[(512, 3)] * 20"},
}

_SHORT = {"-a": "arch", "-s": "source-lang", "-t": "target-lang"}
_ALIASES = {"max-sentences": "batch-size", "relu-dropout": "activation-dropout", "min-lr": "stop-min-lr"}
_LISTS = {"lr", "update-freq"}
_FLAGS = {
    *("share-all-embeddings", "share-decoder-input-output-embed", "encoder-normalize-before"),
    *(
        "decoder-normalize-before",
        "encoder-learned-pos",
        "decoder-learned-pos",
        "encoder-bidirectional",
        "fp16",
        "bf16",
    ),
    *("memory-efficient-fp16", "no-epoch-checkpoints", "no-progress-bar", "eval-bleu", "eval-bleu-print-samples"),
    *("maximize-best-checkpoint-metric", "reset-optimizer", "reset-dataloader", "reset-meters", "reset-lr-scheduler"),
    *("no-save", "no-last-checkpoints", "no-save-optimizer-state", "no-scale-embedding", "layernorm-embedding", "cpu"),
    *("no-token-positional-embeddings", "disable-validation", "sentence-avg", "find-unused-parameters"),
    *("joined-dictionary", "skip-invalid-size-inputs-valid-test", "left-pad-source", "truncate-source", "no-shuffle"),
    *("quiet", "print-alignment", "report-accuracy", "use-old-adam", "adaptive-input", "no-cross-attention"),
    *("cross-self-attention", "checkpoint-activations", "offload-activations", "tpu", "load-alignments", "store-ema"),
}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu", "gelu_fast": "gelu", "swish": "silu"}
_METRICS = {"loss": "loss", "nll_loss": "loss", "ppl": "loss", "bleu": "bleu"}
_CONV_LAYERS = re.compile(r"\s*\[\s*\(\s*(\d{1,6})\s*,\s*(\d{1,3})\s*\)\s*\]\s*\*\s*(\d{1,3})\s*")

_SAVED = "the run directory holds it; `regard train --run DIR` names it"
REASONS = {
    "adam-eps": "the epsilon of Adam is fixed",
    "activation-dropout": "there is no dropout inside feed-forward blocks",
    "warmup-init-lr": "warm-up starts at zero",
    "stop-min-lr": "training stops by steps and early stopping",
    "max-epoch": "training is counted in steps; set training.steps",
    "save-dir": _SAVED,
    "no-epoch-checkpoints": "checkpoints are counted in steps, not epochs",
    "save-interval": "checkpoints are counted in steps; set training.checkpoint_every",
    "validate-interval": "validations are counted in steps; set training.validate_every",
    "eval-bleu": "BLEU is part of every validation",
    "eval-bleu-args": "validation decodes greedily; decoding.beam is for use and the final test",
    "eval-bleu-detok": "texts are not tokenised, so there is nothing to undo",
    "eval-bleu-remove-bpe": "the tokenizer of a run undoes its own segmentation",
    "maximize-best-checkpoint-metric": "Regard knows which metrics are better when larger",
    "ddp-backend": "use torchrun for several processes",
    "distributed-world-size": "use torchrun for several processes",
    "num-workers": "data is read from memory-mapped files",
    "fp16-init-scale": "loss scaling is automatic",
    "user-dir": "write an extension (docs/extending.md)",
    "task": "the task is translation",
    "criterion": "cross-entropy is the only criterion",
    "workers": "one process prepares the data",
    "destdir": "prepared data is part of the run directory",
    "skip-invalid-size-inputs-valid-test": "data.cleaning drops training pairs only",
    "log-format": "the display is chosen by the terminal",
    "no-progress-bar": "use `regard --quiet`",
}


def is_fairseq_script(text: str) -> bool:
    """Return whether a text is a script that calls fairseq-train."""
    return bool(re.search(r"fairseq-train\b|fairseq_cli[/.]train\b|\btrain\.py\b[^\n]*(\\\n[^\n]*)*--?a(rch)?\b", text))


def is_hydra(values: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a configuration of fairseq-hydra-train."""
    model = values.get("model")
    return isinstance(model, Mapping) and "_name" in model and any(name in values for name in HYDRA_SECTIONS)


def convert_script(text: str, name: str) -> Draft:
    """Convert a script with a call of `fairseq-train`, and of `fairseq-preprocess` and `fairseq-generate` if there."""
    commands = shell_commands(text, name)
    trainings = [command for command in commands if _program(command) == "train"]
    if not trainings:
        raise UsageError(f"{name} mentions fairseq, but has no command `fairseq-train …` that could be converted.")
    values, places = _options(trainings[0], name)
    written = {_ALIASES[key]: key for key in values if key in _ALIASES}
    values = {_ALIASES.get(key, key): value for key, value in values.items()}
    draft = Draft(Options(name, TOOL, values, prefix="--", written=written))
    for other in trainings[1:]:
        draft.notes.append(f"Only the first fairseq-train is converted; line {other.line} has another.")
    for command in commands:
        program = _program(command)
        if program in ("preprocess", "generate"):
            for key, value in _options(command, name)[0].items():
                if program == "preprocess" or key in ("beam", "lenpen"):
                    values.setdefault(key, value)
                else:
                    shown = Options(name, TOOL, {key: value}, prefix="--").shown(key)
                    draft.left.append((f"fairseq-generate {shown}", "`regard translate` has options of its own"))
    _convert(draft, places)
    for key, value in values.items():
        if isinstance(value, str) and "$" in value:
            draft.notes.append(f"--{key} has a shell variable that the script does not set: {one_line(value)[:80]}")
    return draft


def convert_hydra(values: Mapping[str, Any], name: str) -> Draft:
    """Convert the YAML of `fairseq-hydra-train`, whose sections hold the options of the command line."""
    options: dict[str, Any] = {}
    places: list[str] = []
    names = {"model": "arch", "lr_scheduler": "lr-scheduler"}
    for section, content in values.items():
        inner = content if isinstance(content, Mapping) else {section: content}
        for key, value in inner.items():
            if key == "_name":
                options[names.get(section, section)] = value
            elif section == "task" and key == "data" and isinstance(value, str):
                places.append(value)
            elif value is not None:
                plain = key.replace("_", "-")
                options[_ALIASES.get(plain, plain)] = str(dict(value)) if isinstance(value, Mapping) else value
    draft = Draft(Options(name, TOOL, options))
    _convert(draft, places)
    return draft


def _program(command: ShellCommand) -> str:
    """Return `train`, `preprocess` or `generate` if a command runs this program of fairseq."""
    for number, word in enumerate(command.words[:12]):
        if match := re.fullmatch(r"(?:.*/)?(?:fairseq-|fairseq_cli[./])(train|preprocess|generate)(?:\.py)?", word):
            return match[1]
        if PurePath(word).name in ("train.py", "preprocess.py", "generate.py") and number:
            return PurePath(word).stem
    return ""


def _options(command: ShellCommand, name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a command, and its positional arguments."""
    words = list(command.words)
    start = next(number for number, word in enumerate(words) if re.search(r"(train|preprocess|generate)(\.py)?$", word))
    values: dict[str, Any] = {}
    positional: list[str] = []
    rest = words[start + 1 :]
    while rest:
        word = rest.pop(0)
        if not (word.startswith("--") or word in _SHORT):
            positional.append(word)
            continue
        key, equals, value = word.partition("=")
        key = _SHORT.get(key, key.removeprefix("--").replace("_", "-"))
        given: list[str] = [value] if equals else []
        while not equals and rest and _is_value(rest[0]) and key not in _FLAGS and (not given or key in _LISTS):
            given.append(rest.pop(0))
        if not re.fullmatch(r"[\w.-]+", key):
            raise UsageError(f"{name}:{command.line}: {noun(word)} is not an option of fairseq.")
        values[key] = True if not given else given if len(given) > 1 else given[0]
    return values, positional


def _is_value(word: str) -> bool:
    return not word.startswith("-") or bool(re.match(r"-\.?\d", word))


def _convert(draft: Draft, places: list[str]) -> None:
    options = draft.options
    task = options.word("task") or "translation"
    if task not in ("translation", "translation_multi_simple_epoch"):
        raise UsageError(f"{options.file}: the task {noun(task)} of fairseq cannot be converted, only translation.")
    if options.has("task"):
        draft.left.append((options.shown("task"), "translation is the default task"))
    _convert_data(draft, places)
    _convert_model(draft)
    _convert_training(draft)
    draft.move("decoding.beam", "beam", read=options.integer)
    draft.move("decoding.length_penalty", "lenpen", read=options.number)
    draft.leave_rest(REASONS)


def _convert_data(draft: Draft, places: list[str]) -> None:
    options = draft.options
    source, target = options.word("source-lang") or "src", options.word("target-lang") or "tgt"
    languages = options.shown("source-lang", "target-lang")
    for part, option in (("train", "trainpref"), ("validation", "validpref"), ("test", "testpref")):
        prefix = options.word(option)
        if prefix is None and part == "test":
            continue
        first = (prefix or {"train": "train", "validation": "valid"}[part]).split(",")[0]
        comment = options.shown(option) if prefix else "change this: fairseq-train names binarised data only"
        draft.put(f"data.{part}.source", f"{first}.{source}", " ".join(filter(None, (comment, languages))))
        draft.put(f"data.{part}.target", f"{first}.{target}")
    if places:
        where = one_line(places[0])[:100]
        draft.notes.append(f"fairseq-train read binarised data from {where}. Regard reads the text files themselves.")
    draft.notes.append(
        "Give Regard plain text, without BPE (`@@`) and tokenisation: a run trains and stores its own tokenizer."
    )
    shared = options.flag("share-all-embeddings")
    joint = options.flag("joined-dictionary") or shared
    draft.put(
        "text.joint", bool(joint), options.shown("joined-dictionary", "share-all-embeddings") or "default of fairseq"
    )
    for side, path in (("src", "text.tokenizer"), ("tgt", "text.target")):
        size = options.integer(f"nwords{side}")
        if side == "src" or not joint:
            put_vocabulary(draft, path, f"nwords{side}", size)
    draft.move("text.tokenizer.min_frequency", "thresholdsrc", "thresholdtgt", read=options.integer)
    tie = "all" if shared else "target" if options.flag("share-decoder-input-output-embed") else "none"
    draft.put(
        "model.embeddings.tie",
        tie,
        options.shown("share-all-embeddings", "share-decoder-input-output-embed") or "default of fairseq",
    )
    longest = [options.integer(f"max-{side}-positions") for side in ("source", "target")]
    if any(longest):
        shown = options.shown("max-source-positions", "max-target-positions")
        draft.put("data.cleaning.max_length", max(length for length in longest if length), shown)


def _convert_model(draft: Draft) -> None:
    options = draft.options
    arch = options.word("arch") or "transformer"
    shown = options.shown("arch") or "default of fairseq"
    if arch in LSTMS:
        _convert_lstm(draft, LSTMS[arch], shown)
    elif arch in CONVOLUTIONS:
        _convert_convolutions(draft, CONVOLUTIONS[arch], shown)
    elif arch in TRANSFORMERS or arch.startswith("transformer"):
        if arch not in TRANSFORMERS:
            draft.notes.append(
                f"The sizes of the architecture {one_line(arch)[:60]} are not known here: those of `transformer` are "
                "used where no option sets them."
            )
        _convert_transformer(draft, TRANSFORMERS.get(arch, _BASE), shown)
    else:
        raise UsageError(
            f"{options.file}: the architecture {noun(arch)} of fairseq has no counterpart in Regard. Transformer, lstm "
            "and fconv models can be converted."
        )
    draft.move("model.attention.dropout", "attention-dropout", read=options.number)


def _convert_transformer(draft: Draft, sizes: Mapping[str, Any], arch: str) -> None:
    options = draft.options
    put_default = {"comment": arch}
    for side in ("encoder", "decoder"):
        draft.put(f"model.{side}.kind", "transformer", arch)
    width = options.integer("encoder-embed-dim") or sizes["width"]
    decoder_width = options.integer("decoder-embed-dim") or width
    draft.put("model.width", width, options.shown("encoder-embed-dim") or arch)
    if options.has("decoder-embed-dim"):
        draft.put("model.decoder.width", decoder_width, options.shown("decoder-embed-dim"))
    feed_forward = options.integer("encoder-ffn-embed-dim") or sizes["feed_forward"]
    inner = {"encoder": feed_forward, "decoder": options.integer("decoder-ffn-embed-dim") or feed_forward}
    for side in ("encoder", "decoder"):
        layers = options.integer(f"{side}-layers")
        draft.put(f"model.{side}.layers", layers or sizes[side], options.shown(f"{side}-layers") or arch)
        shown = options.shown(f"{side}-ffn-embed-dim") or arch
        draft.put(f"model.{side}.feed_forward", inner[side], shown)
        given = options.flag(f"{side}-normalize-before")
        place = sizes.get("norm_place", "post") if given is None else "pre" if given else "post"
        draft.put(f"model.{side}.norm_place", place, options.shown(f"{side}-normalize-before") or arch)
    heads = options.integer("encoder-attention-heads") or sizes["heads"]
    draft.put("model.attention.heads", heads, options.shown("encoder-attention-heads") or arch)
    if options.has("decoder-attention-heads"):
        same = options.integer("decoder-attention-heads") == heads
        draft.leave(
            "decoder-attention-heads", "the same as in the encoder" if same else "all attention has as many heads"
        )
    draft.put("model.dropout", *_dropout(options, sizes["dropout"], arch))
    if "attention_dropout" in sizes and not options.has("attention-dropout"):
        draft.put("model.attention.dropout", sizes["attention_dropout"], **put_default)
    if (activation := options.word("activation-fn")) is not None:
        if activation not in _ACTIVATIONS:
            draft.leave("activation-fn", "not an activation of Regard; relu is used")
        else:
            for side in ("encoder", "decoder"):
                draft.put(f"model.{side}.activation", _ACTIVATIONS[activation], options.shown("activation-fn"))
    learned = [bool(options.flag(f"{side}-learned-pos")) for side in ("encoder", "decoder")]
    shown = options.shown("encoder-learned-pos", "decoder-learned-pos")
    draft.put("model.positions.kind", "learned" if any(learned) else "sinusoidal", shown or arch)
    if options.flag("no-scale-embedding"):
        draft.put("model.embeddings.scale", False, options.shown("no-scale-embedding"))
    if options.flag("layernorm-embedding"):
        draft.put("model.embeddings.norm", True, options.shown("layernorm-embedding"))


def _convert_lstm(draft: Draft, sizes: Mapping[str, Any], arch: str) -> None:
    options = draft.options
    both = bool(options.flag("encoder-bidirectional"))
    hidden = options.integer("encoder-hidden-size") or sizes["width"]
    decoder = options.integer("decoder-hidden-size") or sizes["width"]
    draft.put("model.width", decoder, options.shown("decoder-hidden-size") or arch)
    draft.put("model.encoder.kind", "rnn", arch)
    draft.put("model.encoder.cell", "lstm", arch)
    shown = options.shown("encoder-hidden-size", "encoder-bidirectional") or arch
    draft.put(
        "model.encoder.width", hidden * (2 if both else 1), shown + ("; both directions together" if both else "")
    )
    draft.put("model.encoder.direction", "both" if both else "forward", options.shown("encoder-bidirectional") or arch)
    draft.put("model.decoder.kind", "rnn", arch)
    draft.put("model.decoder.cell", "lstm", arch)
    for side in ("encoder", "decoder"):
        layers = options.integer(f"{side}-layers")
        draft.put(f"model.{side}.layers", layers or sizes["layers"], options.shown(f"{side}-layers") or arch)
    draft.put("model.join.kind", "attention", options.shown("decoder-attention") or arch)
    options.take("decoder-attention")
    draft.put("model.join.order", "after", arch)
    embedding = options.integer("encoder-embed-dim") or sizes["embedding"]
    draft.put("model.embeddings.width", embedding, options.shown("encoder-embed-dim") or arch)
    draft.leave("decoder-embed-dim", "both sides have embeddings of the same width")
    draft.put("model.dropout", *_dropout(options, 0.1, arch))


def _convert_convolutions(draft: Draft, sizes: Mapping[str, Any], arch: str) -> None:
    options = draft.options
    for side in ("encoder", "decoder"):
        given = options.word(f"{side}-layers") or sizes[side]
        match = _CONV_LAYERS.fullmatch(given)
        if match is None:
            raise UsageError(
                f"{options.file}: --{side}-layers is {noun(given)}, and only layers of one size, such as "
                '"[(256, 3)] * 4", can be converted.'
            )
        width, kernel, layers = map(int, match.groups())
        shown = options.shown(f"{side}-layers") or arch
        draft.put(f"model.{side}.kind", "conv", arch)
        draft.put(f"model.{side}.layers", layers, shown)
        draft.put(f"model.{side}.kernel", kernel, shown)
        draft.put("model.width", width, shown)
    embedding = options.integer("encoder-embed-dim") or sizes["embedding"]
    draft.put("model.embeddings.width", embedding, options.shown("encoder-embed-dim") or arch)
    draft.leave("decoder-embed-dim", "both sides have embeddings of the same width")
    draft.leave("decoder-out-embed-dim", "the output layer has the width of the embeddings")
    draft.put("model.positions.kind", "learned", arch)
    draft.put("model.dropout", *_dropout(options, 0.1, arch))


def _dropout(options: Options, default: float, arch: str) -> tuple[float, str]:
    value = options.number("dropout")
    return (default, arch) if value is None else (value, options.shown("dropout"))


def _convert_training(draft: Draft) -> None:
    options = draft.options
    draft.move("training.steps", "max-update", read=options.integer)
    if not options.has("max-update"):
        draft.put("training.steps", 50_000, "no --max-update: choose the number of steps")
    put_batch(draft, options.integer("max-tokens"), "tokens", options.shown("max-tokens"))
    if options.has("max-tokens"):
        draft.leave("batch-size", "--max-tokens is used")
    else:
        put_batch(draft, options.integer("batch-size"), "sentences", options.shown("batch-size"))
    draft.move("training.accumulate", "update-freq", read=options.integer)
    draft.move("training.clip", "clip-norm", read=options.number, default=0.0)
    _convert_optimizer(draft)
    _convert_schedule(draft)
    smoothed = "label_smoothed" in (options.word("criterion") or "")
    smoothing = options.number("label-smoothing") or 0.0
    shown = options.shown("criterion", "label-smoothing") or "default of fairseq"
    draft.put("training.label_smoothing", smoothing if smoothed else 0.0, shown)
    put_patience(draft, options.integer("patience"), options.shown("patience"))
    metric = options.word("best-checkpoint-metric")
    if metric is not None and metric in _METRICS:
        draft.put("training.early_stopping.metric", _METRICS[metric], options.shown("best-checkpoint-metric"))
    elif metric is not None:
        draft.leave("best-checkpoint-metric", "not a metric of Regard; the loss is used")
    draft.move("training.validate_every", "validate-interval-updates", read=options.integer)
    draft.move("training.checkpoint_every", "save-interval-updates", read=options.integer)
    draft.move("training.keep_last", "keep-interval-updates", "keep-last-epochs", read=options.integer)
    draft.move("training.keep_best", "keep-best-checkpoints", read=options.integer)
    draft.move("training.log_every", "log-interval", read=options.integer)
    draft.move("training.seed", "seed", read=options.integer)
    draft.move("training.ema", "ema-decay", read=options.number)
    for name, precision in (("fp16", "float16"), ("memory-efficient-fp16", "float16"), ("bf16", "bfloat16")):
        if options.flag(name):
            draft.put("training.precision", precision, options.shown(name))
    if options.flag("cpu"):
        draft.put("training.device", "cpu", options.shown("cpu"))
    if options.word("tensorboard-logdir") is not None:
        draft.put(
            "training.tensorboard", True, f"{options.shown('tensorboard-logdir')}; events are in the run directory"
        )
    if options.word("wandb-project") is not None:
        draft.put("training.trackers", ["wandb"], options.shown("wandb-project"))


def _convert_optimizer(draft: Draft) -> None:
    options = draft.options
    kind = options.word("optimizer")
    known = {"adam": "adamw", "sgd": "sgd", "nag": "sgd"}
    if kind is not None and kind in known:
        note = {
            "adam": "; its weight decay is decoupled, as in AdamW",
            "nag": "; Nesterov's momentum becomes a plain one",
        }
        draft.put("training.optimizer.kind", known[kind], options.shown("optimizer") + note.get(kind, ""))
    elif kind is not None:
        draft.leave("optimizer", "not an optimizer of Regard; adamw is used")
    if (betas := options.take("adam-betas")) is not None:
        numbers = re.findall(r"\d*\.?\d+(?:[eE][-+]?\d+)?", str(betas))
        if len(numbers) != 2:
            raise UsageError(
                f"{options.file}: --adam-betas must be two numbers such as '(0.9, 0.98)', not {noun(betas)}."
            )
        for number, value in enumerate(numbers, start=1):
            draft.put(f"training.optimizer.beta{number}", float(value), options.shown("adam-betas"))
    elif known.get(kind or "") == "adamw":
        draft.put("training.optimizer.beta2", 0.999, "default of fairseq")
    draft.move("training.optimizer.learning_rate", "lr", read=options.number)
    draft.move("training.optimizer.weight_decay", "weight-decay", read=options.number)
    draft.move("training.optimizer.momentum", "momentum", read=options.number)


def _convert_schedule(draft: Draft) -> None:
    options = draft.options
    kind = options.word("lr-scheduler") or "fixed"
    known = {"inverse_sqrt": "inverse-sqrt", "cosine": "cosine", "fixed": "constant", "reduce_lr_on_plateau": "plateau"}
    shown = options.shown("lr-scheduler") or "default of fairseq"
    if kind in known:
        draft.put("training.schedule.kind", known[kind], shown)
    else:
        draft.put("training.schedule.kind", "cosine", f"{shown}; the nearest schedule that falls to the end")
    default = 4000 if kind == "inverse_sqrt" else 0
    draft.move("training.schedule.warmup", "warmup-updates", read=options.integer)
    if not options.has("warmup-updates"):
        draft.put("training.schedule.warmup", default, "default of fairseq")
    if kind == "reduce_lr_on_plateau":
        draft.move("training.schedule.factor", "lr-shrink", read=options.number, default=0.1)
        patience = options.integer("lr-patience") or 0
        shown = options.shown("lr-patience") or "default of fairseq"
        draft.put("training.schedule.patience", patience + 1, f"{shown}; Regard counts the first one too")
