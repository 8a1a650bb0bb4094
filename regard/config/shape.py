"""What goes into a model and what comes out: the shapes of sequence model, one section each.

A shape is the grid's blocks with one end left off or replaced. What it needs of the rest of a configuration is said
here too: which ends of the cell it has, which scores it is judged by, and which settings have no place in it.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.config.section import Section


class Translation(Section):
    """n → m: a text is read, another is written; the source may be several texts, such as a context and a question."""

    arrow: ClassVar[str] = "n → m"
    encoder: ClassVar[bool] = True
    decoder: ClassVar[bool] = True
    scores: ClassVar[tuple[str, ...]] = ("bleu", "chrf", "exact", "f1")
    absent: ClassVar[tuple[str, ...]] = ()

    kind: Literal["translation"] = "translation"

    @property
    def head(self) -> str:
        """What comes out, in a word."""
        return "text"


Shape = Annotated[Translation, Field()]
"""Every shape there is, told apart by its `kind`."""
