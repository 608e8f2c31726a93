"""The GPUs of a rank: tensors that they have between them, put together and taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .actions import Tensor
from .crossings import Crossing, Inside
from .failures import Job
from .unit_shares import Ranges


class Inner:
    """`job` None: one process is the whole rank. `tensor_groups`: by the GPUs of a copy, the group of this copy's."""

    def __init__(self, job: Job | None, tensor_groups: Mapping[int, Any]) -> None:
        self.job, self.tensor_groups = job, tensor_groups
        self.inside = Inside(len(job.ranks), job.ranks.index(job.me)) if job else None
        self.gpu = self.inside.gpu if self.inside else 0

    def sent(self, tensor: Tensor, crossing: Crossing, output: torch.Tensor) -> torch.Tensor:
        """What this GPU hands over of its chunk's output."""
        cut = crossing.cuts[self.gpu if len(crossing.cuts) > 1 else 0]
        if crossing.parts > 1 and cut.local is not None:
            output = torch.cat(self._gathered(output, self.tensor_groups[crossing.tp], [len(output)] * crossing.tp))
        value = output if cut.local is None else _rows(tensor, output, cut.local)
        return self._part(crossing, value) if crossing.parts > 1 and cut.local is not None else value

    def returned(self, crossing: Crossing, gradient: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        """What of its output's gradient (of `shape`) this GPU gets with what comes back of what it sent."""
        cut = crossing.cuts[self.gpu if len(crossing.cuts) > 1 else 0]
        if cut.local is None:
            return gradient
        if crossing.parts == 1:
            return _spread(gradient, cut.local, shape)
        parts = self._gathered(gradient, self.tensor_groups[crossing.tp], [len(gradient)] * crossing.tp)
        whole = _spread(torch.cat(parts), cut.local, torch.Size((shape[0] * crossing.tp, *shape[1:])))
        first = (self.gpu % crossing.tp) * shape[0]
        return whole[first:first + shape[0]]

    def taken(self, crossing: Crossing, shard: torch.Tensor) -> torch.Tensor:
        """The whole tensor, of this GPU's part."""
        if not crossing.gathered:
            return shard
        assert self.job is not None
        found = self._gathered(shard, self.job.group, [cut.rows for cut in crossing.cuts])
        whole = shard.new_zeros(crossing.shape)
        for gpu in range(0, len(found), 1 if crossing.parts > 1 else crossing.tp):
            _place(whole, crossing.cuts[gpu].part, found[gpu])
        return whole

    def given_back(self, crossing: Crossing, gradient: torch.Tensor, counts: bool) -> torch.Tensor:
        """This GPU's part of the whole tensor's gradient; `counts`: whether it has one that others have not."""
        if crossing.summed:
            assert self.job is not None
            gradient = gradient.contiguous() if counts else torch.zeros_like(gradient)
            if gradient.numel():
                dist.all_reduce(gradient, group=self.job.group)
        if not crossing.gathered:
            return gradient
        cut = crossing.cuts[self.gpu]
        rows = [gradient[first:end] for first, end in cut.part]
        value = torch.cat(rows) if rows else gradient[:0]
        return _padded(value, cut.rows)

    def _part(self, crossing: Crossing, value: torch.Tensor) -> torch.Tensor:
        each = crossing.cuts[self.gpu].rows
        first = (self.gpu % crossing.tp) * each
        return _padded(value[first:first + each], each)

    def _gathered(self, value: torch.Tensor, group: Any, rows: Sequence[int]) -> list[torch.Tensor]:
        most = max(rows)
        found = [value.new_empty((most, *value.shape[1:])) for _ in rows]
        if most:
            dist.all_gather(found, _padded(value, most).contiguous(), group=group)
        return [one[:count] for one, count in zip(found, rows)]


def _padded(value: torch.Tensor, rows: int) -> torch.Tensor:
    missing = rows - value.shape[0]
    return torch.cat([value, value.new_zeros((missing, *value.shape[1:]))]) if missing > 0 else value


def _place(whole: torch.Tensor, ranges: Ranges, value: torch.Tensor) -> None:
    row = 0
    for first, end in ranges:
        whole[first:end] = value[row:row + end - first]
        row += end - first


def _rows(tensor: Tensor, output: torch.Tensor, ranges: Ranges) -> torch.Tensor:
    """What the tensor's consumer takes of its producer's output."""
    end = max((end for _, end in ranges), default=0)
    if output.dim() == 0 or output.shape[0] < end:
        raise PipeweaverError(f"tensor {tensor.tensor} of {tensor.source}: the plan takes rows up to {end}, the chunk "
                              f"gave {list(output.shape)}")
    rows = [output[first:end] for first, end in ranges]
    return torch.cat(rows) if rows else output[:0]


def _spread(part: torch.Tensor, ranges: Ranges, shape: torch.Size) -> torch.Tensor:
    """Gradient rows at their places in the whole output's; places may come twice."""
    whole, row = part.new_zeros(shape), 0
    for first, end in ranges:
        whole[first:end] += part[row:row + end - first]
        row += end - first
    return whole
