"""Default search settings of a run."""

from pydantic import Field

from regard.config.section import Section

CTC_IN_SEARCH = 0.3
"""The default weight of CTC in search, for models with a CTC layer."""


class Decoding(Section):
    """The default search settings of a run."""

    beam: int = Field(default=5, ge=1, le=1000)
    """Beam size; 1 is greedy search."""
    length_penalty: float = Field(default=1.0, ge=0.0, le=10.0)
    """Scores are divided by length to this power: 0 favours short output, 1 is the mean log-probability."""
    max_length: int = Field(default=256, ge=1, le=100_000)
    """Longest output in tokens."""
    max_ratio: float = Field(default=3.0, gt=0.0, le=1000.0)
    """Longest output as a multiple of the source length (plus ten tokens), which stops endless repetition."""
    complete: bool = False
    """Records: prefer hypotheses of the beam that mention more values of the record; for texts that say all of it."""
    ctc: float | None = Field(default=None, ge=0.0, lt=1.0)
    """Speech recognition with `task.ctc`: weight of CTC in the scores of search (Watanabe et al., 2017), by default
    0.3; 0 is off."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Source tokens per batch."""
