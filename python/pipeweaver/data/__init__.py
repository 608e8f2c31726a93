"""The data plan alone: which samples share a microbatch, which replica takes it, and in which order.

    costs = coefficients({"model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "pp": 4}, batch)
    assignment = balance(sizes, replicas=4, budget=8192, costs=costs)

Needs NumPy alone; `coefficients` asks the planner once. Safe in forked workers of a data loader.
"""

from .assignment import Assignment, Microbatch
from .balance import METHODS, balance
from .costs import BY_TOKENS, Costs, Quadratic, StageCosts
from .fit import coefficients
from .sizes import Sizes
from .steps import AssignedSteps, EpochSteps

__all__ = [
    "AssignedSteps",
    "Assignment",
    "BY_TOKENS",
    "Costs",
    "EpochSteps",
    "METHODS",
    "Microbatch",
    "Quadratic",
    "Sizes",
    "StageCosts",
    "balance",
    "coefficients",
]
