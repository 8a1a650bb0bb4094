"""`direct`: which block wrote each output word into the residual stream."""

from typing import TYPE_CHECKING, Annotated

from regard.inspection.options import Option
from regard.inspection.registry import Analysis

if TYPE_CHECKING:
    from regard.inspection.analyses.direct.result import DirectAttribution
    from regard.tasks.loaded import LoadedRun
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect direct runs/mine "A dog runs."
regard inspect direct runs/mine "A dog runs." --heads -o page.html      every attention head by itself
"""


def direct(
    trace: "Trace",
    heads: Annotated[bool, Option("Split attention into its heads.")] = False,
) -> "DirectAttribution":
    """Show how much each block of the decoder adds to the logit of an output word over that of the runner-up.

    The blocks of a pre-norm Transformer add their outputs to one residual stream, so the logit difference is the sum of
    what they wrote (direct logit attribution; Elhage et al., 2021).
    """
    from regard.inspection.analyses.direct import compute

    return compute.direct(trace, heads=heads)


def pre_norm_decoder(run: "LoadedRun") -> str | None:
    """Require a Transformer decoder whose blocks add to one residual stream, and no copying beside it."""
    from regard.models.transformer_decoder import TransformerDecoder

    decoder = getattr(run.model, "decoder", None)
    if not isinstance(decoder, TransformerDecoder):
        return f"Direct logit attribution is for Transformer decoders, and this model is {run.config.cell}."
    if not decoder.layers[0].pre:
        return (
            "The blocks of a post-norm Transformer do not add up: the stream is normalised after each of them. "
            "regard inspect lens and contributions apply."
        )
    if run.config.model.copying:
        return (
            "The blocks of a decoder add up to the logits of generation, but this model also copies source words. "
            "regard inspect attribute and contributions apply."
        )
    return None


ANALYSIS = Analysis(
    inspect=direct,
    order=45,
    question="which block wrote each word?",
    works_on="pre-norm Transformer decoders without copying",
    applies=pre_norm_decoder,
    examples=EXAMPLES,
)
