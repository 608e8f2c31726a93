"""Sums over copies and replicas: gradients as soon as a stage has its last, and the step's loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .failures import Job, explain
from .transport import wait_for

Weights = list[torch.nn.Parameter]


class Sums:
    """One step's sums on this process. `groups`: by key, who sums what; None: nobody else has the same weights."""

    def __init__(self, groups: Mapping[int, Job | None], jobs: Sequence[Job], timeout: timedelta) -> None:
        self.groups, self.jobs, self.timeout = groups, jobs, timeout
        self.under_way: list[tuple[Any, Job, torch.Tensor, Weights]] = []

    def start(self, by_key: Mapping[int, Iterable[torch.nn.Parameter]]) -> None:
        """Starts to sum the weights' gradients, all of a group and type in one tensor: replicas run their passes in
        different orders, but come to this in the same."""
        for key in sorted(by_key):
            job = self.groups[key]
            if job is not None and len(job.ranks) > 1:
                self._start(job, by_key[key])

    def _start(self, job: Job, all_weights: Iterable[torch.nn.Parameter]) -> None:
        by_type: dict[torch.dtype, dict[int, torch.nn.Parameter]] = {}
        for weight in all_weights:
            by_type.setdefault(weight.dtype, {})[id(weight)] = weight
        for _, found in sorted(by_type.items(), key=lambda entry: str(entry[0])):
            weights = list(found.values())
            flat = torch.cat([_gradient(weight).reshape(-1) for weight in weights]).to(job.wire)
            self.under_way.append((self._all_reduce(job, flat), job, flat, weights))

    def finish(self, tied: Mapping[str, tuple[torch.nn.Parameter, Job]]) -> None:
        """Waits for the sums; the parameters' gradients are then those of all replicas, of those that are `tied` of
        all ranks that hold them, too."""
        for work, job, flat, weights in self.under_way:
            wait_for(work, job, self.jobs, self.timeout)
            for weight, gradient in zip(weights, torch.split(flat, [weight.numel() for weight in weights])):
                weight.grad = gradient.view_as(weight).to(weight.device)
        for _, (weight, job) in sorted(tied.items()):
            if weight.requires_grad:
                total = _gradient(weight).contiguous().to(job.wire)
                wait_for(self._all_reduce(job, total), job, self.jobs, self.timeout)
                weight.grad = total.to(weight.device)

    def total(self, values: Sequence[torch.Tensor], device: torch.device, over: Sequence[Job]) -> float:
        """The sum of the values of all processes."""
        total = torch.zeros((), dtype=torch.float64, device=device)
        for value in values:
            total += value.to(torch.float64)
        for job in over:
            if len(job.ranks) > 1:
                total = total.to(job.wire)
                wait_for(self._all_reduce(job, total), job, self.jobs, self.timeout)
        return float(total)

    def _all_reduce(self, job: Job, value: torch.Tensor) -> Any:
        try:
            return dist.all_reduce(value, group=job.group, async_op=True)
        except RuntimeError as error:
            raise explain(self.jobs, job, None, error, 0.0, self.timeout) from error


def _gradient(weight: torch.nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(weight) if weight.grad is None else weight.grad
