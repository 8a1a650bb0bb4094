"""Resolve a model: fill in the settings that depend on others, and reject combinations that cannot work."""

from collections.abc import Sequence
from typing import TypeVar

from regard.config.choices import ADDED_POSITIONS
from regard.config.model import (
    Attention,
    AttentionJoin,
    ConvDecoder,
    ConvEncoder,
    Decoder,
    Embeddings,
    Encoder,
    FixedJoin,
    ImageEncoder,
    Join,
    Model,
    Positions,
    RnnDecoder,
    RnnEncoder,
    SideSettings,
    SoundEncoder,
    TransformerDecoder,
    TransformerEncoder,
)
from regard.foundation.errors import UsageError

Value = TypeVar("Value")
Side = TypeVar("Side", bound=SideSettings)


def resolve(
    model: Model,
    *,
    shared_vocabulary: bool,
    encoder_wanted: bool = True,
    decoder_wanted: bool = True,
    picture_wanted: bool = False,
    added_attentions: Sequence[str] = (),
) -> Model:
    """Return the model with every `None` filled in; raises `UsageError` for a combination that cannot work.

    An encoder or decoder that the task does not use is removed, and with it the join. `added_attentions` are the names
    of attentions that a task adds.
    """
    encoder = _with_width(model.encoder or TransformerEncoder(), model.width) if encoder_wanted else None
    decoder = _with_width(model.decoder or TransformerDecoder(), model.width) if decoder_wanted else None
    picture = _with_width(model.picture or ImageEncoder(), model.width) if picture_wanted else None
    join = _join(model.join or AttentionJoin(), encoder, decoder) if encoder and decoder else None
    attention = _attention(model.attention, join, encoder, decoder)
    positions = _positions(model.positions, attention, encoder, decoder)
    embeddings = _embeddings(model.embeddings, model.width, shared_vocabulary)
    _check_copying(model, join, shared_vocabulary)
    _check_pruned(model, attention, [*model.attentions, *added_attentions])
    return model.model_copy(
        update={
            "encoder": encoder,
            "picture": picture,
            "decoder": decoder,
            "join": join,
            "attention": attention,
            "positions": positions,
            "embeddings": embeddings,
        }
    )


def resolved(value: Value | None) -> Value:
    """Return a setting of a resolved model, which is never `None`."""
    if value is None:
        raise ValueError("this configuration has not been resolved: call RunConfig.resolved() first")
    return value


def width_of(side: Encoder | Decoder | None) -> int:
    """Return the width of the encoder or decoder of a resolved model."""
    if side is None:
        raise ValueError("this cell has no such side")
    return resolved(side.width)


def _with_width(part: Side, width: int) -> Side:
    """Return a side with its widths filled in and checked."""
    if isinstance(part, SoundEncoder):
        return part.model_copy(update=_with_body(part, width))
    update: dict[str, int] = {"width": part.width or width}
    if isinstance(part, TransformerEncoder | TransformerDecoder):
        update["feed_forward"] = part.feed_forward or 4 * update["width"]
    if isinstance(part, RnnEncoder) and part.direction == "both" and update["width"] % 2:
        raise UsageError(
            f"model.encoder.width is {update['width']}, but with direction `both` each direction takes half of it. "
            "Make it even."
        )
    if isinstance(part, ConvEncoder) and part.kernel % 2 == 0:
        raise UsageError(f"model.encoder.kernel is {part.kernel}, but the encoder's window is centred. Make it odd.")
    if isinstance(part, ImageEncoder):
        _check_image(part)
    return part.model_copy(update=update)


def _with_body(part: SoundEncoder, width: int) -> dict[str, object]:
    """Return the body of a sound encoder with its widths filled in, and its width, which is that of the whole."""
    if part.width and part.body.width and part.width != part.body.width:
        raise UsageError(
            f"model.encoder.width is {part.width}, but model.encoder.body.width is {part.body.width}. Set only "
            "one of them."
        )
    if part.rate % 100:
        raise UsageError(
            f"model.encoder.rate is {part.rate}, but frames are 10 ms apart. Use a multiple of 100, such as 16000."
        )
    body = _with_width(part.body, part.width or width)
    return {"body": body, "width": body.width}


def _check_image(part: ImageEncoder) -> None:
    """Raise if the grid does not cover the image."""
    if part.size % part.patch:
        raise UsageError(
            f"model.encoder.size is {part.size} pixels, which patches of {part.patch} do not fill. Make it a multiple "
            f"of {part.patch}, such as {part.patch * max(1, round(part.size / part.patch))}."
        )
    if part.form == "conv" and part.patch & (part.patch - 1):
        raise UsageError(
            f"model.encoder.patch is {part.patch}, but form `conv` halves the image repeatedly. Use a power of "
            "two, such as 4 or 8."
        )


def _join(join: Join, encoder: Encoder, decoder: Decoder) -> Join:
    recurrent = isinstance(decoder, RnnDecoder)
    if isinstance(join, FixedJoin):
        form = join.form or ("transformed" if recurrent else "every-step")
        if form == "initial" and encoder.width != decoder.width:
            raise UsageError(
                f"model.join.form `initial` passes the encoder's vector ({encoder.width} wide) on as the decoder's "
                f"first state ({decoder.width} wide). Make the widths equal, or use form `transformed`."
            )
        if form != "every-step" and isinstance(decoder, ConvDecoder):
            raise UsageError(
                f"model.join.form `{form}` gives a conv decoder the source only once, so it is lost after "
                f"{decoder.layers * (decoder.kernel - 1)} positions. Use form `every-step`."
            )
        return join.model_copy(update={"form": form})
    if not recurrent and (join.order or join.input_feeding):
        raise UsageError(
            "model.join.order and input_feeding concern the recurrence of an rnn decoder; "
            f"a {decoder.kind} decoder attends on every layer. Leave them out, or set them to null."
        )
    if not recurrent:
        return join.model_copy(update={"order": None, "input_feeding": None})
    order = join.order or "after"
    if order == "before" and join.input_feeding:
        raise UsageError(
            "model.join.input_feeding feeds the result of attention into the next step, but with order `before` "
            "the step already contains it. Use order `after`, or leave input_feeding out."
        )
    return join.model_copy(update={"order": order, "input_feeding": bool(join.input_feeding)})


def _attention(attention: Attention, join: Join | None, encoder: Encoder | None, decoder: Decoder | None) -> Attention:
    sides = {"encoder": encoder, "decoder": decoder}
    transformer = any(side and side.attends for side in sides.values())
    order = join.order if isinstance(join, AttentionJoin) else None
    by_order = {"before": "additive", "after": "bilinear", None: "scaled-dot"}
    score = attention.score or ("scaled-dot" if transformer else by_order[order])
    heads = attention.heads or (4 if transformer else 1)
    project = attention.project
    if project is None:
        project = transformer or (decoder is not None and decoder.kind == "conv") or heads > 1
    joined = join is not None and join.kind == "attention"
    attending = [
        (f"model.{side_name}.width", side.width)
        for side_name, side in sides.items()
        if side and (side.attends or joined)
    ]
    for setting, width in attending:
        if width is not None and width % heads:
            raise UsageError(
                f"{setting} is {width}, which is not divisible by {heads} attention heads. Change one of them."
            )
    differ = joined and encoder is not None and decoder is not None and encoder.width != decoder.width
    if differ and not project and score in ("dot", "scaled-dot"):
        assert encoder is not None
        assert decoder is not None
        raise UsageError(
            f"model.attention.score `{score}` compares encoder states ({encoder.width} wide) with decoder states "
            f"({decoder.width} wide) directly. Make the widths equal, or set model.attention.project=true."
        )
    if not project and attention.keys_values == "shared":
        raise UsageError(
            "model.attention.keys_values `shared` has no effect: model.attention.project is off, so keys "
            "and values are the encoder's states without projections. Remove the setting."
        )
    return attention.model_copy(update={"score": score, "heads": heads, "project": project})


def _positions(
    positions: Positions | None, attention: Attention, encoder: Encoder | None, decoder: Decoder | None
) -> Positions:
    sides = {name: side for name, side in (("encoder", encoder), ("decoder", decoder)) if side}
    used = any(side.uses_positions for side in sides.values())
    if positions is None:
        return Positions(kind="sinusoidal" if used else "none")
    if positions.kind == "none":
        return positions
    if not used:
        raise UsageError(
            f"model.positions.kind `{positions.kind}` has no effect: rnn, bag and image encoders use no positions. "
            "Remove the setting or set it to `none`."
        )
    if positions.kind not in ADDED_POSITIONS and not any(
        side.attends and side.uses_positions for side in sides.values()
    ):
        raise UsageError(
            f"model.positions.kind `{positions.kind}` acts inside self-attention, which neither side has. "
            "Use `sinusoidal` or `learned`."
        )
    if positions.kind == "rotary":
        for name, side in sides.items():
            if side.attends and side.uses_positions and ((side.width or 0) // (attention.heads or 1)) % 2:
                raise UsageError(
                    f"model.positions.kind `rotary` rotates pairs of numbers, but model.{name}.width {side.width} "
                    "gives "
                    f"{attention.heads} heads an odd width each. Make it even."
                )
    return positions


def _check_copying(model: Model, join: Join | None, shared_vocabulary: bool) -> None:
    """Raise if source tokens cannot be copied."""
    if not model.copying:
        return
    if join is None or join.kind != "attention":
        raise UsageError(
            "model.copying needs a decoder with attention to the source, which this model does not have. Set "
            "model.join.kind=attention, or remove model.copying."
        )
    if not shared_vocabulary:
        raise UsageError(
            "model.copying copies source tokens to the target, so both need one vocabulary. Set text.joint=true and "
            "leave out text.target, or remove model.copying."
        )


def _check_pruned(model: Model, attention: Attention, there: Sequence[str]) -> None:
    """Raise if `model.pruned` names heads that the model does not have."""
    heads = resolved(attention.heads)
    for name, kept in (model.pruned or {}).items():
        if not attention.project:
            raise UsageError(
                "model.pruned removes the projections of heads, but model.attention.project is off, so there are "
                "none. Remove the setting."
            )
        if name not in there:
            known = ", ".join(there[:3]) or "none"
            raise UsageError(f"model.pruned names {name}, which this model does not have. It has {known} …")
        if kept != sorted(set(kept)) or any(head >= heads for head in kept):
            raise UsageError(
                f"model.pruned.{name} is {kept}, but it must list different heads in ascending order, each below "
                f"{heads}."
            )


def _embeddings(embeddings: Embeddings, width: int, shared_vocabulary: bool) -> Embeddings:
    tie = embeddings.tie or ("all" if shared_vocabulary else "target")
    if tie == "all" and not shared_vocabulary:
        raise UsageError(
            "model.embeddings.tie `all` needs one vocabulary for both sides. Set text.joint=true, or tie `target`."
        )
    return embeddings.model_copy(update={"width": embeddings.width or width, "tie": tie})
