"""What a benchmark was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The choices of the command line."""

    rounds: int = 3
    quick: bool = False
    peers: Sequence[str] = ()
    """Whom to measure; nobody named is everybody."""
    models: Sequence[str] = ()
    run: Path | None = None
    """Whose weights decode; by default one that is at hand, or trained for it."""
    threads: int = 2

    @property
    def seconds(self) -> float:
        """Least length of a round of training."""
        return 0.5 if self.quick else 7.0

    def wants(self, peer: str) -> bool:
        """Whether a peer is to be measured."""
        return not self.peers or peer in self.peers
