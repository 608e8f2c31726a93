"""A plan for every batch, made while the step before runs.

Threads   one thread of a Planner plans, batch after batch; it exists only while there is work, and begins anew in a
          forked child. It never needs the interpreter lock.
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from concurrent.futures import CancelledError
from typing import Any

from . import _core
from ._options import Batch, Config, Stop, as_asked, as_batch, as_priority
from .errors import PipeweaverError
from ._plan import Plan


class PlanFuture:
    """A plan that is being made."""

    def __init__(self, planned: _core.Planned, step: int, within: float | None) -> None:
        self._planned = planned
        self._process = os.getpid()
        self._due = None if within is None else time.monotonic() + within
        self.step = step

    def done(self) -> bool:
        """Whether the best plan is there, or planning has failed or was cancelled."""
        return self._planned.done()

    def cancelled(self) -> bool:
        return self._planned.cancelled()

    def cancel(self) -> bool:
        """Ends planning, within a round. False where the plan was there already."""
        self._require_same_process()
        return self._planned.cancel()

    def result(self, deadline: float | None = None) -> Plan:
        """The best plan found in `deadline` seconds from now; without one by the deadline of its submission, without
        that in the budget. The search is told to end a little earlier; what it has not ended with by then is the plan
        of the best known policy, which is there a few hundredths of a second after planning began. Only before that
        does a deadline pass."""
        self._require_same_process()
        if deadline is None and self._due is not None:
            deadline = max(0.0, self._due - time.monotonic())
        made = self._planned.result(deadline)
        if made is None:
            raise CancelledError("planning was cancelled")
        return Plan(made)

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise PipeweaverError("the plan was submitted in another process, where its result is")


class Planner:
    """Plans batch after batch for a job that runs: model, cluster, layout and partition are fixed once."""

    _queue: _core.Queue

    def __new__(cls, config: Config, sample: Batch | None = None, *, url: str | None = None, **others: Any) -> Any:
        """With `url` the session is a server's: a RemotePlanner, made with `others` (remote.py)."""
        if url is None:
            return super().__new__(cls)
        from .remote import RemotePlanner

        return RemotePlanner(config, sample, url=url, **others)

    def __init__(
        self, config: Config, sample: Batch | None = None, *, replica: int | None = None, stop: Stop = None
    ) -> None:
        """Plans a first batch (`sample`, or what `config` names) as plan() does; its layout and partition stay, and
        whether backwards are split. With `replica` that one alone is planned, of every batch: replicas share a batch
        out without talking to each other, so each can plan its own where it runs. The budget of `config` is that of
        every plan. `stop` is for the first plan alone. Raises as plan()."""
        self._job = _core.Job(as_asked(config, sample, replica), stop)
        self.first = Plan(self._job.first)
        self._next = 0
        self._begin()
        _planners.add(self)

    @property
    def partition(self) -> dict[str, Any]:
        """How the modules are cut: chains of stages, each with its rank and layers."""
        partition: dict[str, Any] = self.first.summary["partition"]
        return partition

    def submit(
        self, batch: Batch, *, step: int | None = None, deadline: float | None = None, priority: int = 0
    ) -> PlanFuture:
        """Plans the batch in the background: of what waits the highest `priority`, 0 to 100, first, of equal ones what
        was submitted first. Without `step` it is the next; `deadline` is what result() waits for, in seconds from now.
        """
        name, samples = as_batch(batch)
        assert name is not None
        number = self._next if step is None else step
        planned = self._queue.submit(name, samples, as_priority(priority))
        self._next = number + 1
        return PlanFuture(planned, number, deadline)

    def close(self) -> None:
        """Cancels what is not done."""
        self._queue.close()

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        # Also in a forked child, where the parent's queue has no thread.
        self._queue = _core.Queue(self._job)
        _queues.add(self._queue)


_planners: weakref.WeakSet[Planner] = weakref.WeakSet()
_queues: weakref.WeakSet[_core.Queue] = weakref.WeakSet()  # a future keeps its queue, its planner it does not


def _begin_all() -> None:
    for planner in list(_planners):
        planner._begin()


def _end_all() -> None:
    _core.end_queues(list(_queues))


os.register_at_fork(after_in_child=_begin_all)
atexit.register(_end_all)
