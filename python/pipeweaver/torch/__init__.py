"""Runs plans on PyTorch: `Executor` takes the action lists of a plan, one process per rank."""

from ..errors import PipeweaverError
from .actions import Actions, Place, Stage, actions_of, parse_actions, read_actions
from .executor import Executor, StepResult, Timing, Unit
from .passes import task_seed

__all__ = ["Actions", "Executor", "PipeweaverError", "Place", "Stage", "StepResult", "Timing", "Unit", "actions_of",
           "parse_actions", "read_actions", "task_seed"]
