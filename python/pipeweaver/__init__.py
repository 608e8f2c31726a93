"""pipeweaver: plans the training steps of multimodal models.

    plan = pipeweaver.plan({"model": "dip-vlm-s", "cluster": "h100-sxm:16", "budget": 0.3}, batch)
"""

from ._core import __version__
from .costs import CostDatabase
from .errors import FileError, InputError, LimitError, PipeweaverError
from .online import PlanFuture, Planner
from ._plan import Plan, Replica, batch_of, emulate, plan
from .problem import Problem, Solution, replay, solve

__all__ = [
    "CostDatabase",
    "FileError",
    "InputError",
    "LimitError",
    "PipeweaverError",
    "Plan",
    "PlanFuture",
    "Planner",
    "Problem",
    "Replica",
    "Solution",
    "__version__",
    "batch_of",
    "emulate",
    "plan",
    "replay",
    "solve",
]
