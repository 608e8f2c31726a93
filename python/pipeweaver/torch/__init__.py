"""Runs plans on PyTorch: `Executor` takes the action lists of a plan, one process per rank; `load_schedule` gives
PyTorch's own pipeline runtime a plan's order."""

try:
    # Its functions have the default group for a default argument: loaded while there is a group, as by
    # torch.distributed.pipelining, they would keep it, and its threads abort the process at its end if one then still
    # holds a tensor (pytorch/pytorch issue 190489).
    import torch.distributed.nn.functional as _functional  # noqa: F401
except ModuleNotFoundError:
    raise ImportError("pipeweaver.torch needs PyTorch: pip install 'pipeweaver[torch]'") from None

from ..errors import PipeweaverError
from . import parallel
from .actions import Actions, Place, RankActions, Stage, actions_of, parse_actions, read_actions
from .executor import Executor, StepResult
from .passes import task_seed
from .pipelining import load_schedule
from .step import Share, Unit
from .timings import Timings
from .unit_shares import Piece, UnitShare
from .walk import Timing
from .watch import Watch

__all__ = ["Actions", "Executor", "Piece", "PipeweaverError", "Place", "RankActions", "Share", "Stage", "StepResult",
           "Timing", "Timings", "Unit", "UnitShare", "Watch", "actions_of", "load_schedule", "parallel",
           "parse_actions", "read_actions", "task_seed"]
