"""pipeweaver: plans the training steps of multimodal models.

    plan = pipeweaver.plan({"model": "dip-vlm-s", "cluster": "h100-sxm:16", "budget": 0.3}, batch)

The compiled part is loaded by the first name that needs it; data.convert and other modules do without.
"""

from typing import TYPE_CHECKING

from .errors import FileError, InputError, LimitError, PipeweaverError

if TYPE_CHECKING:
    from ._core import __version__
    from ._plan import Plan, Replica, batch_of, emulate, plan
    from .costs import CostDatabase
    from .online import PlanFuture, Planner
    from .problem import Problem, Solution, replay, solve
else:
    from ._lazy import lazily

    __getattr__, __dir__ = lazily(__name__, {
        "_core": ["__version__"],
        "_plan": ["Plan", "Replica", "batch_of", "emulate", "plan"],
        "costs": ["CostDatabase"],
        "online": ["PlanFuture", "Planner"],
        "problem": ["Problem", "Solution", "replay", "solve"],
    })

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
