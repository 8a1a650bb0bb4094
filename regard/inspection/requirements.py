"""Which runs an analysis applies to: functions from a run to the reason why it does not apply, or None if it does.

A reason is one whole sentence.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedRun

Requirement = Callable[["LoadedRun"], str | None]

SEE_ALL = "regard inspect all shows what applies to it."
"""What follows a reason that names no other command, except in a report of all analyses."""


def any_run(run: "LoadedRun") -> str | None:
    """Every run will do."""
    return None


def translation(what: str) -> Requirement:
    """Require a run that translates text; `what` begins the reason: "Alignment compares"."""

    def reason(run: "LoadedRun") -> str | None:
        if run.translates_text:
            return None
        return f"{what} a source text with its translation, and this run does not translate text ({_arrow(run)})."

    return reason


def words(run: "LoadedRun") -> str | None:
    """Require a run that translates text, word by word."""
    if run.config.task.input_kind().record:
        return f"Alignment links the words of two texts, and this run reads records ({_arrow(run)})."
    return translation("Alignment compares")(run)


def source_text(what: str) -> Requirement:
    """Require a run that answers a source text; `what` begins the reason: "Patching compares the answers"."""

    def reason(run: "LoadedRun") -> str | None:
        if run.input.is_text and run.config.task.input_kind().encoder:
            return None
        return f"{what} to two source texts, and this run has no source text ({_arrow(run)})."

    return reason


def text(what: str) -> Requirement:
    """Require a run that reads text; `what` begins the reason: "Words of a text are blanked one by one"."""

    def reason(run: "LoadedRun") -> str | None:
        if run.input.is_text:
            return None
        return f"{what}, and this run reads {run.config.task.input_kind().reads} ({_arrow(run)})."

    return reason


def corpus(run: "LoadedRun") -> str | None:
    """Require a run that reads the texts of a corpus."""
    from regard.inspection.states import end_of_text

    if end_of_text(run.model) is not None:
        return None
    return f"A corpus is read as text, and this run reads {run.config.task.input_kind().reads} ({_arrow(run)})."


def tokens_or_attention(run: "LoadedRun") -> str | None:
    """Require a model that reads text, or has attention heads."""
    return None if run.input.is_text else heads("compare")(run)


def attention(run: "LoadedRun") -> str | None:
    """Require a model with attention of any kind."""
    from regard.models import Model
    from regard.nn import taps

    if any(name.endswith(".weights") for name in taps.names(run.model)):
        return None
    if isinstance(run.model, Model):
        return NO_JOIN
    return NO_ATTENTION if run.input.is_text else NO_ATTENTION_INSIDE


def heads(what: str) -> Requirement:
    """Require a model with attention heads; `what` is what would be done with them: "describe"."""

    def reason(run: "LoadedRun") -> str | None:
        from regard.inspection.interventions import attentions

        if any(attention.heads for attention in attentions(run.model).values()):
            return None
        remedy = ": regard inspect attribute and probe apply to every model" if run.input.is_text else ""
        return f"This model ({run.config.cell}) has no attention, so it has no heads to {what}{remedy}."

    return reason


NO_JOIN = (
    "This model has no attention to show: its join is a fixed vector, and neither its encoder nor its decoder attends "
    "to itself."
)
NO_ATTENTION_INSIDE = "This model has no attention to show: its encoder does not attend to itself."
NO_ATTENTION = (
    "This model has no attention to show: its encoder does not attend to itself, and task.pool is not attention. "
    "regard inspect attribute shows for every model which words made its answer."
)


def _arrow(run: "LoadedRun") -> str:
    return str(run.config.task.arrow)
