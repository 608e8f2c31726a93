"""The data plan behind PyTorch's loaders: a batch sampler, and an iterable data set that gives loss weights as well.

Every process of a replica gets the same microbatches. Plans are made in the process that asks for them, from what it
has itself: nothing is sent but, once, a fingerprint, so that ranks that differ end before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional, Union

import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, Sampler, get_worker_info

from ..data import Microbatch
from ..data.steps import Steps
from ..errors import InputError

STATE = "pipeweaver-sampler/1"


class BalancedBatchSampler(Sampler[list[int]]):
    """Yields the microbatches of one replica, step behind step, as places in the data set: `batch_sampler` of a
    DataLoader.

        sampler = BalancedBatchSampler(lambda: EpochSteps(sizes, replicas, samples_per_step, budget=8192), replica)
        batches = iter(DataLoader(dataset, batch_sampler=sampler, num_workers=2))
        for step in sampler.steps():               # those of the epoch that are left
            for microbatch in step:
                batch = next(batches)              # its loss: mean over loss tokens * microbatch.loss_weight

    An iteration begins with the step that steps() has next when iter() is called. An epoch begins where
    load_state_dict() or set_epoch() says. `steps`: or a function that makes them. Raises InputError where ranks of
    `group` (default: all, where torch.distributed is initialised) have other samples, sizes or options, a replica has
    no rank, or a rank's function or `replica` is in error: all of them do, before the first step. Steps that are made
    before the call and raise there leave the other ranks waiting."""

    def __init__(
        self, steps: Union[Steps, Callable[[], Steps]], replica: int, *, group: Optional[dist.ProcessGroup] = None
    ) -> None:
        self._steps = _agreed(steps, replica, group)
        self.replica = replica
        self.epoch = 0
        self._next = 0  # the first step that was not handed out
        self._fingerprint = self._steps.fingerprint()
        self._begin = torch.zeros(3, dtype=torch.int64)  # how often said, epoch, step: workers see it
        self._begin.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins with the first step of this epoch."""
        self._begins(epoch, 0)

    def __iter__(self) -> Iterator[list[int]]:
        return (list(microbatch.samples) for microbatch in self._microbatches(self.epoch, self._next))

    def __len__(self) -> int:
        """Microbatches of this replica that are left of the epoch: all its steps are planned to tell."""
        return sum(len(self._step(self.epoch, step)) for step in range(self._next, len(self._steps)))

    def steps(self) -> Iterator[tuple[Microbatch, ...]]:
        """This replica's microbatches of each step that is left. A step that was handed out is behind the loop for
        state_dict(): save at the end of its turn."""
        while self._next < len(self._steps):
            step = self._next
            self._next += 1
            yield self._step(self.epoch, step)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is; JSON can say it. Of steps(): a loader's workers are ahead of it."""
        return {"format": STATE, "epoch": self.epoch, "step": self._next, "fingerprint": self._fingerprint}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on behind the step of state_dict(), also on other ranks of the same replica. Raises InputError where
        samples, sizes or options are others than they were."""
        if state.get("format") != STATE:
            raise InputError(f"sampler: format is {state.get('format')!r}, must be '{STATE}'")
        changed = _differences(state["fingerprint"], self._fingerprint)
        if changed:
            raise InputError(f"sampler: is not the one that was saved: {changed}")
        self._begins(int(state["epoch"]), int(state["step"]))

    def _begins(self, epoch: int, step: int) -> None:
        self.epoch, self._next = epoch, step
        self._begin.copy_(torch.tensor([int(self._begin[0]) + 1, epoch, step]))

    def _step(self, epoch: int, step: int) -> tuple[Microbatch, ...]:
        return self._steps.plan(epoch, step).replicas[self.replica]

    def _microbatches(self, epoch: int, first: int) -> Iterator[Microbatch]:
        for step in range(first, len(self._steps)):
            yield from self._step(epoch, step)


class BalancedStream(IterableDataset[Any]):
    """The same microbatches read: yields `collate([read(place), ...], microbatch)`, by default the list and the
    microbatch itself. For a DataLoader with `batch_size=None`, whose workers take turns, so that the order stays. With
    `persistent_workers=True` every iteration but the first needs a set_epoch() or load_state_dict() before it.

        stream = BalancedStream(sampler, dataset.__getitem__, collate)
        for batch in DataLoader(stream, batch_size=None, num_workers=2): ..."""

    def __init__(
        self,
        sampler: BalancedBatchSampler,
        read: Callable[[int], Any],
        collate: Callable[[list[Any], Microbatch], Any] = lambda samples, microbatch: (samples, microbatch),
    ) -> None:
        self._sampler, self._read, self._collate = sampler, read, collate
        self._seen: Optional[int] = None  # of the sampler's beginnings, at the iteration before: a worker that stays

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            return self._part(self._sampler.epoch, self._sampler._next, 0, 1)
        before, (self._seen, epoch, step) = self._seen, self._sampler._begin.tolist()
        if before is None:  # a worker of this iteration: its copy of the sampler is from when that began
            epoch, step = self._sampler.epoch, self._sampler._next
        return _unsaid() if before == self._seen else self._part(epoch, step, worker.id, worker.num_workers)

    def _part(self, epoch: int, first: int, mine: int, workers: int) -> Iterator[Any]:
        for number, microbatch in enumerate(self._sampler._microbatches(epoch, first)):
            if number % workers == mine:
                yield self._collate([self._read(place) for place in microbatch.samples], microbatch)


def _unsaid() -> Iterator[Any]:
    """Raises when it is asked: a worker hands on what its iterator raises, not what making it does."""
    raise InputError("sampler: with persistent_workers call set_epoch() or load_state_dict() before an epoch")
    yield


def _agreed(steps: Union[Steps, Callable[[], Steps]], replica: int, group: Optional[dist.ProcessGroup]) -> Steps:
    """The steps, where those of all ranks are equal. What a rank raises is told to the others first."""
    failed: Optional[Exception] = None
    fingerprint: Mapping[str, Any] = {}
    made: Any = steps
    try:
        made = steps() if callable(steps) else steps
        if not 0 <= replica < made.replicas:
            raise InputError(f"replica: is {replica}, must be 0 to {made.replicas - 1}")
        fingerprint = made.fingerprint()
    except Exception as error:
        failed = error
    found: list[Any] = []
    if dist.is_available() and dist.is_initialized():
        found = [None] * dist.get_world_size(group)
        text = None if failed is None else str(failed) or repr(failed)
        dist.all_gather_object(found, (dict(fingerprint), replica, text), group=group)
    if failed is not None:
        raise failed
    if found:
        _require_equal(found)
    agreed: Steps = made
    return agreed


def _require_equal(found: list[tuple[Mapping[str, Any], int, Optional[str]]]) -> None:
    """Fingerprint, replica and error of each rank."""
    for rank, (_, _, text) in enumerate(found):
        if text is not None:
            raise InputError(f"sampler: rank {rank} failed: {text}")
    for rank, (other, _, _) in enumerate(found):
        differences = _differences(found[0][0], other)
        if differences:
            raise InputError(f"sampler: rank {rank} differs from rank 0: {differences}; allowed are equal ones")
    replicas = int(found[0][0]["replicas"])
    missing = sorted(set(range(replicas)) - {number for _, number, _ in found})
    if missing:
        raise InputError(f"sampler: no rank is of replica {missing[0]}, and {replicas} share the samples")


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In words, the first of what differs; empty: nothing."""
    for key in sorted({*one, *other}, key=lambda key: (key not in ("samples", "steps", "replicas"), key)):
        mine, theirs = one.get(key), other.get(key)
        if mine != theirs:
            return f"{key} are others" if key in _HASHED else f"{key}: {theirs} in place of {mine}"
    return ""


_HASHED = ("sizes", "costs", "assignments")
