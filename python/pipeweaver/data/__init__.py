"""The data plan alone: which samples share a microbatch, which replica takes it, and in which order.

    costs = coefficients({"model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "pp": 4}, batch)
    assignment = balance(sizes, replicas=4, budget=8192, costs=costs)

Needs NumPy alone; `coefficients` asks the planner once, `convert` not even NumPy. Safe in forked workers of a loader.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .assignment import Assignment, Microbatch
    from .balancing import METHODS, balance
    from .costs import BY_TOKENS, Costs, Quadratic, StageCosts
    from .fit import coefficients
    from .sizes import Sizes
    from .steps import AssignedSteps, EpochSteps
else:
    from .._lazy import lazily

    __getattr__, __dir__ = lazily(__name__, {
        "assignment": ["Assignment", "Microbatch"],
        "balancing": ["METHODS", "balance"],
        "costs": ["BY_TOKENS", "Costs", "Quadratic", "StageCosts"],
        "fit": ["coefficients"],
        "sizes": ["Sizes"],
        "steps": ["AssignedSteps", "EpochSteps"],
    })

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
