"""The few settings that plain translation needs, so that the configuration need not be read."""

from typing import TYPE_CHECKING, NamedTuple

from regard.foundation.errors import RegardError
from regard.runs.run import Run

if TYPE_CHECKING:
    from regard.config.run import RunConfig


class Facts(NamedTuple):
    """Search settings and limits of a run."""

    beam: int
    length_penalty: float
    max_ratio: float
    longest: int
    """Longest output in tokens."""
    longest_source: int
    """Longest text in tokens that is not split."""
    longest_piece: int
    """Longest piece in tokens of a text that is split."""
    texts: int
    """Number of texts of a source, separated by tabs."""

    def limit(self, length: int) -> int:
        """Return the largest number of output tokens for a source of this length."""
        return min(self.longest, int(self.max_ratio * length) + 10)


def facts_of(run: Run, config: "RunConfig") -> Facts:
    """Return the facts of a run under a configuration."""
    decoding, learned = config.decoding, config.model.learned_positions
    most = config.data.cleaning.max_length
    longest_piece = min(most, decoding.batch_tokens - 1, most if learned is None else learned - 1)
    return Facts(
        decoding.beam,
        decoding.length_penalty,
        decoding.max_ratio,
        min(decoding.max_length, learned or decoding.max_length),
        min(trained_length(run) or most, longest_piece),
        longest_piece,
        config.data.train.texts,
    )


def trained_length(run: Run) -> int | None:
    """Return the length in tokens of the longest training source, or `None` if the data is gone."""
    from regard.data.store import TokenStore

    try:
        return int(TokenStore(run.data / "train").lengths[0].max())
    except (OSError, ValueError, RegardError):
        return None
