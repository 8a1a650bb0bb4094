"""JoeyNMT: the YAML file of `python -m joeynmt train FILE`, of version 1 and 2."""

import re
from collections.abc import Mapping
from typing import Any

from regard.config.document import noun
from regard.config.migration.draft import Draft, Options, put_batch, put_noam, put_patience, put_vocabulary
from regard.foundation.errors import UsageError

TOOL = "JoeyNMT"
_LEVELS = {"word": "words", "bpe": "bpe", "char": "characters"}
_METRICS = {"loss": "loss", "ppl": "loss", "bleu": "bleu", "chrf": "chrf"}
_RUN = "the run directory holds it; `regard train --run DIR` names it"
REASONS = {
    "name": "the run is named by its directory",
    "model_dir": _RUN,
    "training.model_dir": _RUN,
    "training.overwrite": "a run is never overwritten",
    "training.shuffle": "training data is always shuffled",
    "training.epochs": "training is counted in steps; set training.steps",
    "training.normalization": "the loss is a mean over tokens",
    "training.loss": "cross-entropy is the only loss",
    "training.eval_metric": "every validation has BLEU and chrF",
    "training.learning_rate_min": "training stops by steps and early stopping",
    "training.print_valid_sents": "validation shows a sample, and the card several",
    "training.use_cuda": "training.device takes the GPU if there is one",
    "use_cuda": "training.device takes the GPU if there is one",
    "training.num_workers": "data is read from memory-mapped files",
    "testing.eval_metrics": "`regard evaluate` prints all metrics of the task",
    "testing.sacrebleu_cfg": "BLEU is sacreBLEU's, with its signature",
    "testing.batch_size": "see decoding.batch_tokens",
    "data.dataset_type": "the ending of a file and the settings name the format",
    "model.initializer": "every layer has the initialisation of its paper",
    "model.bias_initializer": "every layer has the initialisation of its paper",
    "model.init_gain": "every layer has the initialisation of its paper",
    "model.embed_initializer": "every layer has the initialisation of its paper",
    "model.embed_init_gain": "every layer has the initialisation of its paper",
    "model.embed_init_weight": "every layer has the initialisation of its paper",
    "data.src.tokenizer_type": "the tokenizer under `text` decides",
    "data.trg.tokenizer_type": "the tokenizer under `text` decides",
    "joeynmt_version": "a version of JoeyNMT",
}


def is_joeynmt(values: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a configuration of JoeyNMT."""
    data, model = values.get("data"), values.get("model")
    named = isinstance(data, Mapping) and "trg" in data and "src" in data
    encoder = model.get("encoder") if isinstance(model, Mapping) else None
    sized = isinstance(encoder, Mapping) and ("num_layers" in encoder or "embeddings" in encoder or "type" in encoder)
    return named or (sized and "training" in values)


def convert(values: Mapping[str, Any], name: str) -> Draft:
    """Convert the settings of JoeyNMT; raises `UsageError` for a section that is not a mapping."""
    model = values.get("model")
    inner = model if isinstance(model, Mapping) else {}
    sections = [(section, values.get(section)) for section in ("data", "model", "training", "testing")]
    sections += [(f"model.{side}", inner.get(side)) for side in ("encoder", "decoder")]
    for section, content in sections:
        if content is not None and not isinstance(content, Mapping):
            raise UsageError(f"{name}: `{section}` must have settings below it, but it is {str(content)[:40]!r}.")
    draft = Draft(Options(name, TOOL, _flat(values, "")))
    _convert_data(draft)
    _convert_model(draft)
    _convert_training(draft)
    _convert_testing(draft)
    draft.leave_rest(REASONS)
    return draft


def _flat(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return nested settings by dotted path."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value
    return found


def _convert_data(draft: Draft) -> None:
    options = draft.options
    languages = []
    for side in ("src", "trg"):
        short = options.word(f"data.{side}")
        languages.append(options.word(f"data.{side}.lang") or short or side)
    shown = options.shown("data.src", "data.trg") or options.shown("data.src.lang", "data.trg.lang")
    for part, key in (("train", "train"), ("validation", "dev"), ("test", "test")):
        prefix = options.word(f"data.{key}")
        if prefix is None and part != "train":
            continue
        comment = ", ".join(filter(None, (options.shown(f"data.{key}"), shown)))
        draft.put(f"data.{part}.source", f"{prefix or 'train'}.{languages[0]}", comment or "change this")
        draft.put(f"data.{part}.target", f"{prefix or 'train'}.{languages[1]}")
    lengths = [options.integer(name) for name in _both("max_length", "max_sent_length")]
    if any(lengths):
        shown = options.shown(*_both("max_length", "max_sent_length"))
        draft.put("data.cleaning.max_length", max(length for length in lengths if length), shown)
    _convert_text(draft)


def _both(key: str, old: str) -> list[str]:
    """Return the names of a setting of both sides: those of version 2, then that of version 1."""
    return [f"data.src.{key}", f"data.trg.{key}", f"data.{old}"]


def _convert_text(draft: Draft) -> None:
    options = draft.options
    tied = bool(options.flag("model.tied_embeddings"))
    files = [options.word(f"data.{side}.voc_file") or options.word(f"data.{side}_vocab") for side in ("src", "trg")]
    joint = tied or (files[0] is not None and files[0] == files[1])
    shown = options.shown("model.tied_embeddings", "data.src.voc_file", "data.trg.voc_file", "data.src_vocab")
    draft.put("text.joint", joint, shown or "default of JoeyNMT")
    for side, path in (("src", "text.tokenizer"), ("trg", "text.target")):
        if path == "text.target" and joint:
            continue
        own, old = f"data.{side}.", "data."
        level = options.word(f"{own}level") or options.word(f"{old}level") or "word"
        if level not in _LEVELS:
            raise UsageError(f"{options.file}: the level {noun(level)} is none of word, bpe and char.")
        shown = options.shown(f"{own}level") or options.shown(f"{old}level") or "default of JoeyNMT"
        kind = options.word(f"{own}tokenizer_type")
        model = options.word(f"{own}tokenizer_cfg.model_file")
        if kind == "sentencepiece" and model is not None:
            draft.put(f"{path}.kind", "sentencepiece", options.shown(f"{own}level", f"{own}tokenizer_type"))
            draft.put(f"{path}.model", model, options.shown(f"{own}tokenizer_cfg.model_file"))
        else:
            again = "; trained again on the training data" if level == "bpe" else ""
            draft.put(f"{path}.kind", _LEVELS[level], shown + again)
            for limit in (f"{own}voc_limit", f"{old}{side}_voc_limit"):
                put_vocabulary(draft, path, limit, options.integer(limit))
            draft.move(
                f"{path}.min_frequency", f"{own}voc_min_freq", f"{old}{side}_voc_min_freq", read=_positive(options)
            )
        lower = options.flag(f"{own}lowercase")
        lower = options.flag(f"{old}lowercase") if lower is None else lower
        if lower:
            draft.put(f"{path}.lower", True, options.shown(f"{own}lowercase") or options.shown(f"{old}lowercase"))
    if any(options.values.get(name) == "bpe" for name in ("data.level", "data.src.level", "data.trg.level")):
        draft.notes.append("Give Regard plain text, without BPE (`@@`): a run trains and stores its own tokenizer.")


def _positive(options: Options) -> Any:
    """Return a reader of whole numbers that takes 0 and less, which mean no limit, as not set."""

    def read(name: str) -> int | None:
        value = options.integer(name)
        return value if value is not None and value > 0 else None

    return read


def _convert_model(draft: Draft) -> None:
    options = draft.options
    kinds = {side: options.word(f"model.{side}.type") or "recurrent" for side in ("encoder", "decoder")}
    for side, kind in kinds.items():
        if kind not in ("transformer", "recurrent"):
            raise UsageError(f"{options.file}: model.{side}.type {noun(kind)} is neither transformer nor recurrent.")
    width = draft.move("model.width", "model.decoder.hidden_size", read=options.integer, default=512)
    for side, kind in kinds.items():
        shown = options.shown(f"model.{side}.type") or "default of JoeyNMT"
        draft.put(f"model.{side}.kind", "transformer" if kind == "transformer" else "rnn", shown)
        default = 6 if kind == "transformer" else 1
        draft.move(f"model.{side}.layers", f"model.{side}.num_layers", read=options.integer, default=default)
        if kind == "transformer":
            _convert_transformer(draft, side, width)
    if kinds["encoder"] == "recurrent":
        _convert_recurrent_encoder(draft)
    if kinds["decoder"] == "recurrent":
        _convert_recurrent_decoder(draft)
    if "transformer" in kinds.values():
        heads = [options.integer(f"model.{side}.num_heads") for side in ("encoder", "decoder")]
        shown = options.shown("model.encoder.num_heads", "model.decoder.num_heads") or "default of JoeyNMT"
        if None not in heads and heads[0] != heads[1]:
            shown += "; all attention has as many heads"
        draft.put("model.attention.heads", heads[0] or heads[1] or 8, shown)
        draft.put("model.positions.kind", "sinusoidal", "JoeyNMT's Transformer")
    dropouts = [options.number(f"model.{side}.dropout") for side in ("encoder", "decoder")]
    shown = options.shown("model.encoder.dropout", "model.decoder.dropout") or "default of JoeyNMT"
    if None not in dropouts and dropouts[0] != dropouts[1]:
        shown += "; both sides have the same dropout"
    given = [value for value in dropouts if value is not None]
    draft.put("model.dropout", given[0] if given else 0.1, shown)
    _convert_embeddings(draft, width)


def _convert_transformer(draft: Draft, side: str, width: int) -> None:
    options = draft.options
    own = options.integer(f"model.{side}.hidden_size")
    if own is not None and own != width:
        draft.put(f"model.{side}.width", own, options.shown(f"model.{side}.hidden_size"))
    elif own is not None and side == "encoder":
        draft.comments["model.width"] += f", {options.shown('model.encoder.hidden_size')}"
    draft.move(f"model.{side}.feed_forward", f"model.{side}.ff_size", read=options.integer, default=2048)
    place = options.word(f"model.{side}.layer_norm") or "pre"
    if place not in ("pre", "post"):
        raise UsageError(f"{options.file}: model.{side}.layer_norm {noun(place)} is neither pre nor post.")
    shown = options.shown(f"model.{side}.layer_norm") or "default of JoeyNMT"
    draft.put(f"model.{side}.norm_place", place, shown)
    activation = options.word(f"model.{side}.activation")
    known = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
    if activation in known:
        draft.put(f"model.{side}.activation", known[activation], options.shown(f"model.{side}.activation"))
    elif activation is not None:
        draft.leave(f"model.{side}.activation", "not an activation of Regard; relu is used")


def _convert_recurrent_encoder(draft: Draft) -> None:
    options = draft.options
    hidden = options.integer("model.encoder.hidden_size") or 1
    both = options.flag("model.encoder.bidirectional") is not False
    shown = options.shown("model.encoder.hidden_size", "model.encoder.bidirectional")
    draft.put(
        "model.encoder.width",
        hidden * (2 if both else 1),
        (shown or "default of JoeyNMT") + ("; both directions together" if both else ""),
    )
    direction = "both" if both else "forward"
    draft.put(
        "model.encoder.direction", direction, options.shown("model.encoder.bidirectional") or "default of JoeyNMT"
    )
    _put_cell(draft, "encoder")


def _convert_recurrent_decoder(draft: Draft) -> None:
    options = draft.options
    _put_cell(draft, "decoder")
    attention = options.word("model.decoder.attention") or "bahdanau"
    shown = options.shown("model.decoder.attention") or "default of JoeyNMT"
    scores = {"bahdanau": "additive", "luong": "bilinear"}
    if attention not in scores:
        raise UsageError(f"{options.file}: model.decoder.attention {noun(attention)} is neither bahdanau nor luong.")
    draft.put("model.join.kind", "attention", shown)
    draft.put("model.join.order", "after", "JoeyNMT attends after the recurrence")
    draft.put("model.attention.score", scores[attention], shown)
    feeding = options.flag("model.decoder.input_feeding")
    shown = options.shown("model.decoder.input_feeding") or "default of JoeyNMT"
    draft.put("model.join.input_feeding", feeding is not False, shown)


def _put_cell(draft: Draft, side: str) -> None:
    options = draft.options
    cell = options.word(f"model.{side}.rnn_type") or "gru"
    if cell not in ("gru", "lstm"):
        raise UsageError(f"{options.file}: model.{side}.rnn_type {noun(cell)} is neither gru nor lstm.")
    draft.put(f"model.{side}.cell", cell, options.shown(f"model.{side}.rnn_type") or "default of JoeyNMT")


def _convert_embeddings(draft: Draft, width: int) -> None:
    options = draft.options
    names = [f"model.{side}.embeddings.embedding_dim" for side in ("encoder", "decoder")]
    sizes = [size for name in names if (size := options.integer(name)) is not None]
    if sizes and (sizes[0] != width or sizes[-1] != width):
        both = "; both sides have the same width" if sizes[0] != sizes[-1] else ""
        draft.put("model.embeddings.width", sizes[-1], options.shown(*names) + both)
    elif sizes:
        draft.comments["model.width"] += f", {options.shown(*names)}"
    scales = [f"model.{side}.embeddings.scale" for side in ("encoder", "decoder")]
    scaled = [flag for name in scales if (flag := options.flag(name)) is not None]
    draft.put("model.embeddings.scale", bool(scaled and scaled[0]), options.shown(*scales) or "default of JoeyNMT")
    tied, output = options.flag("model.tied_embeddings"), options.flag("model.tied_softmax")
    shown = options.shown("model.tied_embeddings", "model.tied_softmax") or "default of JoeyNMT"
    draft.put("model.embeddings.tie", "all" if tied and output else "target" if output else "none", shown)
    if tied and not output:
        draft.notes.append(
            "Source and target embeddings alone cannot be shared: tie `all` shares the output layer, too."
        )


def _convert_training(draft: Draft) -> None:
    options = draft.options
    draft.move("training.steps", "training.updates", read=options.integer)
    if not options.has("training.updates"):
        draft.put("training.steps", 50_000, "JoeyNMT counts epochs: choose the number of steps")
    size, kind = options.integer("training.batch_size"), options.word("training.batch_type") or "sentence"
    put_batch(draft, size, kind, options.shown("training.batch_size", "training.batch_type"))
    draft.move("training.accumulate", "training.batch_multiplier", read=options.integer)
    draft.move("training.clip", "training.clip_grad_norm", read=options.number, default=0.0)
    draft.move("training.label_smoothing", "training.label_smoothing", read=options.number, default=0.0)
    draft.move("training.validate_every", "training.validation_freq", read=options.integer)
    draft.move("training.log_every", "training.logging_freq", read=options.integer)
    draft.move("training.keep_best", "training.keep_best_ckpts", read=_positive(options))
    draft.move("training.keep_last", "training.keep_last_ckpts", read=_positive(options))
    draft.move("training.seed", "training.random_seed", "random_seed", read=options.integer)
    metric = options.word("training.early_stopping_metric")
    if metric is not None and metric.lower() in _METRICS:
        shown = options.shown("training.early_stopping_metric")
        draft.put("training.early_stopping.metric", _METRICS[metric.lower()], shown)
    if options.flag("training.fp16") or options.flag("fp16"):
        draft.put("training.precision", "float16", options.shown("training.fp16") or options.shown("fp16"))
    put_patience(draft, None, "")
    _convert_optimizer(draft)


def _convert_optimizer(draft: Draft) -> None:
    options = draft.options
    kind = (options.word("training.optimizer") or "sgd").lower()
    known = {"adam": "adam", "adamw": "adamw", "sgd": "sgd"}
    if kind in known:
        shown = options.shown("training.optimizer") or "default of JoeyNMT"
        draft.put("training.optimizer.kind", known[kind], shown)
    else:
        draft.leave("training.optimizer", "not an optimizer of Regard; adamw is used")
    betas = options.take("training.adam_betas")
    if betas is not None and kind != "sgd":
        numbers = betas if isinstance(betas, list) else re.findall(r"\d*\.?\d+", str(betas))
        if len(numbers) != 2 or not all(isinstance(value, int | float) for value in numbers):
            raise UsageError(f"{options.file}: training.adam_betas must be two numbers such as [0.9, 0.98].")
        for number, value in enumerate(numbers, start=1):
            draft.put(f"training.optimizer.beta{number}", value, options.shown("training.adam_betas"))
    elif known.get(kind, "adamw") != "sgd":
        draft.put("training.optimizer.beta2", 0.999, "default of JoeyNMT")
    draft.move("training.optimizer.weight_decay", "training.weight_decay", read=options.number)
    _convert_schedule(draft)


def _convert_schedule(draft: Draft) -> None:
    options = draft.options
    kind = (options.word("training.scheduling") or "none").lower()
    shown = options.shown("training.scheduling") or "default of JoeyNMT"
    warmup = options.integer("training.learning_rate_warmup")
    steps = (4000 if kind == "noam" else 0) if warmup is None else warmup
    if kind == "noam":
        factor = options.number("training.learning_rate_factor") or 1.0
        width = int(draft.settings["model.width"])
        put_noam(draft, factor, width, steps, options.shown("training.scheduling", "training.learning_rate_factor"))
        draft.leave("training.learning_rate", "the schedule noam has its own rate")
    else:
        draft.move("training.optimizer.learning_rate", "training.learning_rate", read=options.number)
        known = {"plateau": "plateau", "warmupinversesquareroot": "inverse-sqrt", "none": "constant"}
        note = "" if kind in known else "; this decay has no counterpart"
        draft.put("training.schedule.kind", known.get(kind, "constant"), shown + note)
        steps = steps if kind == "warmupinversesquareroot" else 0
    draft.put("training.schedule.warmup", steps, options.shown("training.learning_rate_warmup") or "default of JoeyNMT")
    if kind == "plateau":
        draft.move("training.schedule.factor", "training.decrease_factor", read=options.number, default=0.1)
        patience = options.integer("training.patience")
        shown = options.shown("training.patience") or "default of JoeyNMT"
        draft.put("training.schedule.patience", (10 if patience is None else patience) + 1, shown)


def _convert_testing(draft: Draft) -> None:
    options = draft.options
    draft.move("decoding.beam", "testing.beam_size", read=options.integer)
    names = ("testing.beam_alpha", "testing.alpha")
    for name in names:
        penalty = options.number(name)
        if penalty is not None and penalty >= 0:
            draft.put("decoding.length_penalty", penalty, f"{options.shown(name)}; a power of the length itself")
    names = ("testing.max_output_length", "training.max_output_length")
    draft.move("decoding.max_length", *names, read=_positive(options))
