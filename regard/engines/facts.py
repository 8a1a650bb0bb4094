"""What of a configuration the way from text to text needs: a few numbers, so that the rest need not be read."""

from typing import TYPE_CHECKING, NamedTuple

from regard.foundation.errors import RegardError
from regard.runs.run import Run

if TYPE_CHECKING:
    from regard.config.run import RunConfig


class Facts(NamedTuple):
    """The search of a run, and its limits."""

    beam: int
    length_penalty: float
    max_ratio: float
    longest: int
    """Most tokens of an output."""
    longest_source: int
    """Most tokens of a text that need not be split."""
    texts: int
    """How many texts a source is, with tabs between them."""

    def limit(self, length: int) -> int:
        """Return the most tokens that a source of this length may lead to."""
        return min(self.longest, int(self.max_ratio * length) + 10)


def facts_of(run: Run, config: "RunConfig") -> Facts:
    """Return the facts of a run under a configuration."""
    decoding, learned = config.decoding, config.model.learned_positions
    most = config.data.cleaning.max_length
    return Facts(
        decoding.beam,
        decoding.length_penalty,
        decoding.max_ratio,
        min(decoding.max_length, learned or decoding.max_length),
        min(trained_length(run) or most, most, decoding.batch_tokens - 1, most if learned is None else learned - 1),
        config.data.train.texts,
    )


def trained_length(run: Run) -> int | None:
    """Return longest source in tokens among a run's training data, if it is still there."""
    from regard.data.store import TokenStore

    try:
        return int(TokenStore(run.data / "train").lengths[0].max())
    except (OSError, ValueError, RegardError):
        return None
