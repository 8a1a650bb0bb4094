"""From a step model to hypotheses."""

from regard.search.beam import beam
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.sampling import sample
from regard.search.steps import ModelSteps, StepModel

__all__ = ["Hypothesis", "ModelSteps", "StepModel", "beam", "greedy", "sample"]
