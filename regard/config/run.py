"""The whole configuration of a run."""

from typing import Self

from regard.config.cell import resolve
from regard.config.data import Data
from regard.config.decoding import Decoding
from regard.config.model import Model
from regard.config.section import Section
from regard.config.text import Text
from regard.config.training import Training


class RunConfig(Section):
    """One file describes one run: what it learns from, what it is, how it learns, how it speaks."""

    data: Data
    """Corpora and cleaning."""
    text: Text = Text()
    """Tokenizers."""
    model: Model = Model()
    """The cell of the grid."""
    training: Training = Training()
    """The course of training."""
    decoding: Decoding = Decoding()
    """The default search."""

    def resolved(self) -> Self:
        """The same configuration with every default that depends on others filled in; refuses what cannot work."""
        model = resolve(self.model, shared_vocabulary=self.text.shared)
        training = self.training
        if training.optimizer.learning_rate is None:
            rate = 0.5 if training.optimizer.kind == "sgd" else min(0.002, 0.002 * (256 / model.width) ** 0.5)
            optimizer = training.optimizer.model_copy(update={"learning_rate": rate})
            training = training.model_copy(update={"optimizer": optimizer})
        return self.model_copy(update={"model": model, "training": training})
