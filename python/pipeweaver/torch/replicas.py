"""Sums over replicas: gradients as soon as a rank has its last, and the step's loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .failures import Job, explain
from .transport import wait_for


class Sums:
    """One step's sums on this rank. `peers`: the ranks with the same stages in all replicas, None: there is one."""

    def __init__(self, peers: Job | None, jobs: Sequence[Job], timeout: timedelta) -> None:
        self.peers, self.jobs, self.timeout = peers, jobs, timeout
        self.under_way: list[tuple[Any, torch.Tensor, list[torch.nn.Parameter]]] = []

    def start(self, chunks: Iterable[torch.nn.Module]) -> None:
        """Starts to sum the chunks' gradients, all of a type in one tensor: replicas run their passes in different
        orders, but come to this in the same."""
        if self.peers is None or len(self.peers.ranks) == 1:
            return
        by_type: dict[torch.dtype, dict[int, torch.nn.Parameter]] = {}
        for chunk in chunks:
            for weight in chunk.parameters():
                if weight.requires_grad:
                    by_type.setdefault(weight.dtype, {})[id(weight)] = weight
        for _, found in sorted(by_type.items(), key=lambda entry: str(entry[0])):
            weights = list(found.values())
            flat = torch.cat([(torch.zeros_like(w) if w.grad is None else w.grad).reshape(-1) for w in weights])
            self.under_way.append((self._all_reduce(self.peers, flat), flat, weights))

    def finish(self) -> None:
        """Waits for the sums; the parameters' gradients are then those of all replicas."""
        for work, flat, weights in self.under_way:
            assert self.peers is not None
            wait_for(work, self.peers, self.jobs, self.timeout)
            for weight, gradient in zip(weights, torch.split(flat, [weight.numel() for weight in weights])):
                weight.grad = gradient.view_as(weight)

    def total(self, values: Sequence[torch.Tensor], device: torch.device) -> float:
        """The sum of the values of all ranks of all replicas."""
        total = torch.zeros((), dtype=torch.float64, device=device)
        for value in values:
            total += value.to(torch.float64)
        for job in self.jobs:
            if len(job.ranks) > 1:
                wait_for(self._all_reduce(job, total), job, self.jobs, self.timeout)
        return float(total)

    def _all_reduce(self, job: Job, value: torch.Tensor) -> Any:
        try:
            return dist.all_reduce(value, group=job.group, async_op=True)
        except RuntimeError as error:
            raise explain(self.jobs, job, None, error, 0.0, self.timeout) from error
