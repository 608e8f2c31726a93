"""One step on one rank: its list, action by action, and what lies between two passes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch

from ..errors import PipeweaverError
from .actions import Compute, Message, Reduce, Tensor
from .clocks import Clock
from .program import Program
from .transport import Transport


class Timing(NamedTuple):
    """When an action ran, in seconds from the list's start; `action` is its place in the rank's list. By the host's
    clock on the CPU. On a GPU by its stream: from the end of what came before to the end of the action's kernels, with
    what they waited for in between."""

    action: int
    start: float
    end: float


def timings_by(clock: Clock) -> list[Timing]:
    """Of the actions that a walk has marked, in their order. On a GPU waits until they have ended there, too."""
    marks = clock.seconds()
    return [Timing(number, *ends) for number, ends in enumerate(zip(marks, marks[1:]))]


def range_name(action: Compute) -> str:
    """What a pass is called in a profiler's trace: as PyTorch's pipeline runtime calls it, with the item behind it."""
    stage, microbatch, item = action.place
    return f"PP:{stage}{action.op}{microbatch}" + (f".{item}" if item else "")


class Walk(ABC):
    """Goes through the rank's list once. Messages are moved here; what a pass is, is said by who inherits."""

    def __init__(self, program: Program, transport: Transport, clock: Clock) -> None:
        self.program, self.transport, self.clock = program, transport, clock
        self.began = time.perf_counter()
        self.ready: dict[int, torch.Tensor] = {}  # by tensor: made or received, and not yet taken

    @abstractmethod
    def compute(self, action: Compute) -> None:
        """Runs a pass's F, B, I or W."""

    @abstractmethod
    def reduce(self, action: Reduce) -> None:
        """All backwards of the action's stages have ended."""

    @abstractmethod
    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        """In which `tensor` is sent."""

    def run(self) -> None:
        self.clock.mark()
        for action in self.program.actions.actions:
            if isinstance(action, Compute):
                with torch.profiler.record_function(range_name(action)):
                    self.compute(action)
            elif isinstance(action, Reduce):
                self.reduce(action)
            else:
                self._message(action)
            self.clock.mark()

    def _message(self, action: Message) -> None:
        if action.op == "send":
            self.transport.send(action.tensor, self.ready.pop(action.tensor), action.peer, action.tag)
        elif action.op == "receive":
            tensor = self.program.actions.tensors[action.tensor]
            assert tensor.shape is not None
            self.transport.receive(action.tensor, tensor.shape, self.dtype_of(tensor), action.peer, action.tag)
        else:
            self.ready[action.tensor] = self.transport.wait(action.tensor)
            for known in action.freed:
                self.transport.release(known)

    def hand_over(self, tensor: Tensor, value: torch.Tensor) -> None:
        """Refuses what is not as planned before it can be sent."""
        if tuple(value.shape) != tensor.shape or value.dtype != self.dtype_of(tensor):
            planned = f"{list(tensor.shape or ())} {_name(self.dtype_of(tensor))}"
            raise PipeweaverError(f"{tensor.kind} {tensor.tensor} of {tensor.source}: the plan has {planned}, the "
                                  f"chunk gave {list(value.shape)} {_name(value.dtype)}")
        self.ready[tensor.tensor] = value.contiguous()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
