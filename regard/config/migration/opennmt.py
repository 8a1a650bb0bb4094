"""OpenNMT-py: the YAML file of `onmt_train -config FILE`."""

from collections.abc import Mapping
from typing import Any

from regard.config.document import noun, one_line
from regard.config.migration.draft import Draft, Options, put_batch, put_noam, put_patience, put_vocabulary
from regard.foundation.errors import UsageError

TOOL = "OpenNMT-py"
KEYS = {
    *(
        "encoder_type",
        "decoder_type",
        "train_steps",
        "valid_steps",
        "save_model",
        "save_data",
        "rnn_size",
        "hidden_size",
    ),
    *("word_vec_size", "src_vocab", "tgt_vocab", "transformer_ff", "decay_method", "batch_type", "accum_count"),
    *(
        "src_vocab_size",
        "share_vocab",
        "world_size",
        "gpu_ranks",
        "rnn_type",
        "global_attention",
        "enc_layers",
        "optim",
    ),
}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "fast_gelu": "gelu", "silu": "silu", "gated-silu": "swiglu"}
_SCORES = {"general": "bilinear", "dot": "dot", "mlp": "additive"}
_CELLS = {"lstm": "lstm", "gru": "gru"}
_RUN = "the run directory holds it; `regard train --run DIR` names it"
_TOKENIZER = "the tokenizer under `text` decides"
REASONS = {
    "save_model": _RUN,
    "save_data": _RUN,
    "src_vocab": "the tokenizer of a run makes its own vocabulary",
    "tgt_vocab": "the tokenizer of a run makes its own vocabulary",
    "src_vocab_size": _TOKENIZER,
    "tgt_vocab_size": _TOKENIZER,
    "tgt_subword_model": _TOKENIZER,
    "tgt_subword_type": _TOKENIZER,
    "n_sample": "`regard config show` and the data summary of `regard train` replace it",
    "overwrite": "a run is never overwritten",
    "world_size": "use torchrun for several processes",
    "gpu_ranks": "use torchrun for several processes",
    "num_workers": "data is read from memory-mapped files",
    "bucket_size": "batches are built from all sentences of similar length",
    "queue_size": "data is read from memory-mapped files",
    "pool_factor": "batches are built from all sentences of similar length",
    "normalization": "the loss is a mean over tokens",
    "param_init": "every layer has the initialisation of its paper",
    "param_init_glorot": "every layer has the initialisation of its paper",
    "max_generator_batches": "the loss is computed without storing all scores",
    "position_encoding": "a Transformer always has positions; see model.positions",
    "skip_empty_level": "empty lines are dropped and counted",
    "valid_batch_size": "validation uses the batch size of training",
    "train_from": "use `regard train --resume RUN`, or model.start_from",
    "tensorboard_log_dir": "events are in the run directory",
    "copy_attn": "there is no copy mechanism",
    "bridge": "the first state of the decoder follows from model.join",
    "transforms": "see text.tokenizer and data.cleaning",
    "src_subword_nbest": "use text.bpe_dropout",
    "tgt_subword_nbest": "use text.bpe_dropout",
    "accum_steps": "the number of accumulated batches is constant",
}


def is_opennmt(values: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a configuration of OpenNMT-py."""
    data = values.get("data")
    corpora = data.values() if isinstance(data, Mapping) else ()
    named = any(isinstance(corpus, Mapping) and "path_src" in corpus for corpus in corpora)
    return named or len(KEYS & values.keys()) >= 2


def convert(values: Mapping[str, Any], name: str) -> Draft:
    """Convert the settings of OpenNMT-py."""
    plain = {key: value for key, value in values.items() if key != "data" and value is not None}
    draft = Draft(Options(name, TOOL, plain))
    _convert_data(draft, values.get("data"))
    _convert_text(draft)
    _convert_model(draft)
    _convert_training(draft)
    draft.leave_rest(REASONS)
    return draft


def _convert_data(draft: Draft, data: Any) -> None:
    options = draft.options
    if not isinstance(data, Mapping):
        draft.put("data.train.source", "train.src", f"change this: {options.file} names no text files")
        draft.put("data.train.target", "train.tgt")
        if data is not None:
            draft.left.append((f"data: {one_line(str(data))[:100]}", "preprocessed data; Regard reads the text files"))
        return
    corpora = {corpus: parts for corpus, parts in data.items() if isinstance(parts, Mapping)}
    training = [corpus for corpus in corpora if corpus != "valid"]
    if not training:
        raise UsageError(f"{options.file}: data has no training corpus with path_src and path_tgt.")
    for side, key in (("source", "path_src"), ("target", "path_tgt")):
        paths = [_path(options, corpus, corpora[corpus], key) for corpus in training]
        comment = ", ".join(f"data.{corpus}.{key}" for corpus in training)
        draft.put(f"data.train.{side}", paths[0] if len(paths) == 1 else paths, comment[:160])
        if "valid" in corpora:
            draft.put(f"data.validation.{side}", _path(options, "valid", corpora["valid"], key), f"data.valid.{key}")
    reasons = {"weight": "all corpora are read once per epoch", "transforms": REASONS["transforms"]}
    for corpus, parts in data.items():
        if corpus not in corpora:
            draft.left.append((f"data.{one_line(corpus)}: {one_line(str(parts))[:100]}", "not a corpus"))
            continue
        for key, value in parts.items():
            if key not in ("path_src", "path_tgt"):
                shown = one_line(f"data.{corpus}.{key}: {value}")[:160]
                draft.left.append((shown, reasons.get(key, "no counterpart")))
    if any("onmt_tokenize" in str(parts.get("transforms")) for parts in corpora.values()):
        draft.notes.append("Give Regard plain text: a run trains and stores its own tokenizer.")


def _path(options: Options, corpus: str, parts: Mapping[str, Any], key: str) -> str:
    value = parts.get(key)
    if not isinstance(value, str):
        raise UsageError(f"{options.file}: data.{one_line(corpus)}.{key} must be a file name, not {noun(value)}.")
    return value


def _convert_text(draft: Draft) -> None:
    options = draft.options
    joint = bool(options.flag("share_vocab"))
    draft.put("text.joint", joint, options.shown("share_vocab") or "default of OpenNMT-py")
    for side, path in (("src", "text.tokenizer"), ("tgt", "text.target")):
        model, kind = options.word(f"{side}_subword_model"), options.word(f"{side}_subword_type")
        size = options.integer(f"{side}_vocab_size")
        if path == "text.target" and joint:
            continue
        shown = options.shown(f"{side}_subword_model", f"{side}_subword_type")
        if model is not None and (kind == "sentencepiece" or (kind in (None, "none") and model.endswith(".model"))):
            draft.put(f"{path}.kind", "sentencepiece", shown)
            draft.put(f"{path}.model", model, options.shown(f"{side}_subword_model"))
            continue
        note = "; trained again on the training data" if model is not None else ""
        draft.put(f"{path}.kind", "bpe", (shown or "OpenNMT-py reads words; plain text needs a tokenizer") + note)
        put_vocabulary(draft, path, f"{side}_vocab_size", size)
        draft.move(f"{path}.min_frequency", f"{side}_words_min_frequency", read=options.integer)
    longest = [options.integer(f"{side}_seq_length") for side in ("src", "tgt")]
    if any(longest):
        shown = options.shown("src_seq_length", "tgt_seq_length")
        draft.put("data.cleaning.max_length", max(length for length in longest if length), shown)


def _convert_model(draft: Draft) -> None:
    options = draft.options
    encoder, decoder = options.word("encoder_type") or "rnn", options.word("decoder_type") or "rnn"
    known = ({"rnn", "brnn", "transformer", "cnn", "mean"}, {"rnn", "ifrnn", "transformer", "cnn"})
    for side, kind, kinds in (("encoder", encoder, known[0]), ("decoder", decoder, known[1])):
        if kind not in kinds:
            raise UsageError(
                f"{options.file}: {side}_type {noun(kind)} of OpenNMT-py has no counterpart in Regard. These can be "
                f"converted: {', '.join(sorted(kinds))}."
            )
    width = draft.move("model.width", "hidden_size", "rnn_size", read=options.integer, default=500)
    if {encoder, decoder} & {"rnn", "brnn", "ifrnn"}:
        _convert_recurrence(draft, encoder, decoder)
    if "transformer" in (encoder, decoder):
        draft.move("model.attention.heads", "heads", read=options.integer, default=8)
    for side, kind, short in (("encoder", encoder, "enc"), ("decoder", decoder, "dec")):
        shown = options.shown(f"{side}_type") or "default of OpenNMT-py"
        names = {"brnn": "rnn", "ifrnn": "rnn", "cnn": "conv", "mean": "bag"}
        draft.put(f"model.{side}.kind", names.get(kind, kind), shown)
        draft.move(f"model.{side}.width", f"{short}_hid_size", f"{short}_rnn_size", read=options.integer)
        if kind != "mean":
            _put_layers(draft, side, short)
        if kind == "transformer":
            _convert_transformer(draft, side)
        elif kind == "cnn":
            draft.move(f"model.{side}.kernel", "cnn_kernel_width", read=options.integer, default=3)
    dropout = options.number("dropout")
    draft.put("model.dropout", 0.3 if dropout is None else dropout, options.shown("dropout") or "default of OpenNMT-py")
    if (weights := options.number("attention_dropout")) is not None:
        draft.put("model.attention.dropout", weights, options.shown("attention_dropout"))
    _convert_embeddings(draft, width, has_transformer="transformer" in (encoder, decoder))


def _convert_embeddings(draft: Draft, width: int, *, has_transformer: bool) -> None:
    options = draft.options
    embedding = options.integer("word_vec_size") or options.integer("src_word_vec_size")
    draft.leave("tgt_word_vec_size", "both sides have embeddings of the same width")
    shown = options.shown("word_vec_size") or options.shown("src_word_vec_size")
    if embedding is not None and embedding != width:
        draft.put("model.embeddings.width", embedding, shown)
    elif embedding is not None:
        draft.comments["model.width"] += f", {shown}"
    elif width != 500 and not has_transformer:
        draft.put("model.embeddings.width", 500, "default of OpenNMT-py")
    tied, shared = options.flag("share_decoder_embeddings"), options.flag("share_embeddings")
    shown = options.shown("share_decoder_embeddings", "share_embeddings") or "default of OpenNMT-py"
    draft.put("model.embeddings.tie", "all" if tied and shared else "target" if tied else "none", shown)
    if shared and not tied:
        draft.notes.append(
            "Source and target embeddings alone cannot be shared: tie `all` shares the output layer, too."
        )


def _put_layers(draft: Draft, side: str, short: str) -> None:
    options = draft.options
    layers, both = options.integer(f"{short}_layers"), options.integer("layers")
    shown = options.shown(f"{short}_layers") or options.shown("layers") or "default of OpenNMT-py"
    draft.put(f"model.{side}.layers", layers or both or 2, shown)


def _convert_transformer(draft: Draft, side: str) -> None:
    options = draft.options
    draft.move(f"model.{side}.feed_forward", "transformer_ff", read=options.integer, default=2048)
    draft.put(f"model.{side}.norm_place", "pre", "default of OpenNMT-py")
    activation = options.word("pos_ffn_activation_fn")
    if activation is not None and activation in _ACTIVATIONS:
        draft.put(f"model.{side}.activation", _ACTIVATIONS[activation], options.shown("pos_ffn_activation_fn"))
    if (norm := options.word("layer_norm")) is not None:
        draft.put(f"model.{side}.norm", "rms" if norm == "rms" else "layer", options.shown("layer_norm"))
    distance = options.integer("max_relative_positions") or 0
    shown = options.shown("max_relative_positions", "position_encoding") or "OpenNMT-py's Transformer"
    if distance > 0:
        draft.put("model.positions.kind", "relative", shown)
        draft.put("model.positions.max_distance", distance, options.shown("max_relative_positions"))
    else:
        kind = {-1: "rotary", -2: "alibi"}.get(distance, "sinusoidal")
        draft.put("model.positions.kind", kind, shown)


def _convert_recurrence(draft: Draft, encoder: str, decoder: str) -> None:
    options = draft.options
    cell = (options.word("rnn_type") or "LSTM").lower()
    shown = options.shown("rnn_type") or "default of OpenNMT-py"
    if cell not in _CELLS:
        draft.leave("rnn_type", "not a cell of Regard; lstm is used")
        cell = "lstm"
    if encoder in ("rnn", "brnn"):
        draft.put("model.encoder.cell", cell, shown)
        direction = "both" if encoder == "brnn" else "forward"
        draft.put("model.encoder.direction", direction, options.shown("encoder_type") or "default of OpenNMT-py")
    if decoder not in ("rnn", "ifrnn"):
        return
    draft.put("model.decoder.cell", cell, shown)
    score = options.word("global_attention") or "general"
    shown = options.shown("global_attention") or "default of OpenNMT-py"
    if score == "none":
        draft.put("model.join.kind", "fixed", shown)
        return
    draft.put("model.join.kind", "attention", shown)
    draft.put("model.join.order", "after", "OpenNMT-py attends after the recurrence")
    draft.put("model.attention.score", _SCORES.get(score, "bilinear"), shown)
    feed = options.flag("input_feed")
    draft.put("model.join.input_feeding", feed is not False, options.shown("input_feed") or "default of OpenNMT-py")


def _convert_training(draft: Draft) -> None:
    options = draft.options
    draft.move("training.steps", "train_steps", read=options.integer, default=100_000)
    draft.move("training.validate_every", "valid_steps", read=options.integer)
    draft.move("training.checkpoint_every", "save_checkpoint_steps", read=options.integer)
    keep = options.integer("keep_checkpoint")
    if keep is not None and keep > 0:
        draft.put("training.keep_last", keep, options.shown("keep_checkpoint"))
    draft.move("training.log_every", "report_every", read=options.integer)
    size, kind = options.integer("batch_size"), options.word("batch_type") or "sents"
    put_batch(draft, size or 64, kind, options.shown("batch_size", "batch_type") or "default of OpenNMT-py")
    draft.move("training.accumulate", "accum_count", read=options.integer)
    draft.move("training.clip", "max_grad_norm", read=options.number, default=5.0)
    draft.move("training.label_smoothing", "label_smoothing", read=options.number, default=0.0)
    draft.move("training.ema", "average_decay", read=lambda name: _average(options, name))
    seed = options.integer("seed")
    if seed is not None and seed >= 0:
        draft.put("training.seed", seed, options.shown("seed"))
    precision = options.word("model_dtype")
    if precision is not None and precision in ("fp32", "fp16", "bf16"):
        names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
        draft.put("training.precision", names[precision], options.shown("model_dtype"))
    if options.flag("tensorboard"):
        draft.put("training.tensorboard", True, options.shown("tensorboard"))
    put_patience(draft, options.integer("early_stopping"), options.shown("early_stopping"))
    _convert_optimizer(draft)


def _average(options: Options, name: str) -> float | None:
    """Return the decay of the moving average: OpenNMT-py gives the share of the new weights."""
    share = options.number(name)
    return 1 - share if share else None


def _convert_optimizer(draft: Draft) -> None:
    options = draft.options
    kind = options.word("optim") or "sgd"
    known = {"sgd": "sgd", "adam": "adam", "fusedadam": "adam", "adamw": "adamw"}
    shown = options.shown("optim") or "default of OpenNMT-py"
    if kind in known:
        draft.put("training.optimizer.kind", known[kind], shown)
    else:
        draft.leave("optim", "not an optimizer of Regard; adamw is used")
    if known.get(kind, "adamw") != "sgd":
        draft.move("training.optimizer.beta1", "adam_beta1", read=options.number, default=0.9)
        draft.move("training.optimizer.beta2", "adam_beta2", read=options.number, default=0.999)
    draft.move("training.optimizer.weight_decay", "weight_decay", read=options.number)
    method, rate = options.word("decay_method") or "none", options.number("learning_rate") or 1.0
    warmup, width = options.integer("warmup_steps"), int(draft.settings["model.width"])
    shown = options.shown("decay_method", "learning_rate")
    if method in ("noam", "noamwd"):
        put_noam(draft, rate, width, warmup or 4000, shown)
    else:
        draft.put("training.optimizer.learning_rate", rate, options.shown("learning_rate") or "default of OpenNMT-py")
        kinds = {"none": "constant", "rsqrt": "inverse-sqrt"}
        kind = kinds.get(method, "constant")
        note = "" if method in kinds else "; this decay has no counterpart"
        draft.put("training.schedule.kind", kind, (shown or "default of OpenNMT-py") + note)
    steps = 0 if method == "none" and warmup is None else warmup if warmup is not None else 4000
    draft.put("training.schedule.warmup", steps, options.shown("warmup_steps") or "default of OpenNMT-py")
