"""Sends and receives of one step: posted in the plan's order, every handle kept until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .failures import Job, explain


class Transport:
    """Messages among the ranks of `job`'s group, numbered by their tensors. Where gloo carries those of GPUs, they go
    through the host's memory, and a send waits for the kernels before it. An error in a transfer becomes a
    PipeweaverError that names the rank at fault."""

    def __init__(self, job: Job, jobs: Sequence[Job], timeout: timedelta) -> None:
        self.job, self.jobs, self.timeout = job, jobs, timeout
        self.gloo = dist.get_backend(job.group) == "gloo"
        self.sends: dict[int, tuple[int, Any]] = {}
        self.receives: dict[int, tuple[int, Any, torch.Tensor]] = {}

    def send(self, tensor: int, value: torch.Tensor, peer: int, tag: int) -> None:
        """`value` must be contiguous; it may be dropped, but not written to, before finish()."""
        sent = value.to(self.job.wire)
        work = self._guarded(peer, lambda: dist.isend(sent, group=self.job.group, group_dst=peer, tag=tag))
        self.sends[tensor] = (peer, work)

    def receive(self, tensor: int, shape: tuple[int, ...], dtype: torch.dtype, peer: int, tag: int) -> None:
        buffer = torch.empty(shape, dtype=dtype, device=self.job.wire)
        work = self._guarded(peer, lambda: dist.irecv(buffer, group=self.job.group, group_src=peer, tag=tag))
        self.receives[tensor] = (peer, work, buffer)

    def wait(self, tensor: int) -> torch.Tensor:
        peer, work, buffer = self.receives.pop(tensor)
        self._guarded(peer, lambda: self._wait(work))
        return buffer.to(self.job.device)

    def release(self, tensor: int) -> None:
        """Lets go of a tensor whose receiver is known to have it."""
        if tensor in self.sends:
            peer, work = self.sends.pop(tensor)
            self._guarded(peer, lambda: self._wait(work))

    def finish(self) -> None:
        for tensor in list(self.sends):
            self.release(tensor)
        if self.receives:
            raise PipeweaverError(f"tensors {sorted(self.receives)} were received, but never waited for")

    def _guarded(self, peer: int, call: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return call()
        except RuntimeError as error:
            raise explain(self.jobs, self.job, self.job.ranks[peer], error, time.monotonic() - began,
                          self.timeout) from error

    def _wait(self, work: Any) -> None:
        if self.gloo:
            work.wait(self.timeout)
        else:
            work.wait()  # with a time-out NCCL would make the host wait, too


def wait_for(work: Any, job: Job, jobs: Sequence[Job], timeout: timedelta) -> None:
    """Waits for a collective of `job`'s group. Raises PipeweaverError naming who is missing."""
    began = time.monotonic()
    try:
        while not work.is_completed():
            if time.monotonic() > began + timeout.total_seconds():
                raise RuntimeError("timed out")
            time.sleep(0.0002)
        work.wait()
    except RuntimeError as error:
        raise explain(jobs, job, None, error, time.monotonic() - began, timeout) from error
