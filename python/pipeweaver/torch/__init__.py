"""Runs plans on PyTorch: `Executor` takes the action lists of a plan, one process per rank."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise ImportError("pipeweaver.torch needs PyTorch: pip install 'pipeweaver[torch]'") from None

from ..errors import PipeweaverError
from .actions import Actions, Place, RankActions, Stage, actions_of, parse_actions, read_actions
from .executor import Executor, StepResult
from .passes import task_seed
from .step import Timing, Unit

__all__ = ["Actions", "Executor", "PipeweaverError", "Place", "RankActions", "Stage", "StepResult", "Timing", "Unit",
           "actions_of", "parse_actions", "read_actions", "task_seed"]
