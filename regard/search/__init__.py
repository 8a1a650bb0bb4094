"""Search: generates hypotheses with a step model."""

from regard.search.beam import beam
from regard.search.constraints import Constraints
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.sampling import sample
from regard.search.steps import ModelSteps, StepModel
from regard.search.tree import SearchTree

__all__ = [
    "Constraints",
    "Hypothesis",
    "ModelSteps",
    "Search",
    "SearchTree",
    "StepModel",
    "beam",
    "greedy",
    "sample",
]
