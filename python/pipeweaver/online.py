"""A plan for every batch, made while the step before runs.

Threads   one thread of a Planner plans, batch after batch; it exists only while there is work, and begins anew in a
          forked child. Searches give the interpreter lock back.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import CancelledError
from typing import Any

from . import _core
from ._options import Batch, Config, Stop, as_asked, as_batch
from .errors import PipeweaverError
from ._plan import Plan

# A search ends within a round (10 ms at most) of being told to; then the plan is put together.
_seconds_to_finish = 0.03


class PlanFuture:
    """A plan that is being made."""

    def __init__(self, name: str, samples: str | None) -> None:
        self._name = name
        self._samples = samples
        self._process = os.getpid()
        self._control = _core.Control()
        self._changed = threading.Condition()
        self._draft: _core.Plan | None = None
        self._plan: _core.Plan | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def done(self) -> bool:
        """Whether the best plan is there, or planning has failed or was cancelled."""
        return self._plan is not None or self._error is not None or self._cancelled

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> bool:
        """Ends planning, within a round. False where the plan was there already."""
        self._require_same_process()
        with self._changed:
            if self._plan is not None or self._error is not None:
                return False
            self._cancelled = True
            self._control.stop()
            self._changed.notify_all()
            return True

    def result(self, deadline: float | None = None) -> Plan:
        """The best plan found in `deadline` seconds from now; without a deadline, in the budget. The search is told to
        end a little earlier; what it has not ended with by then is the plan of the best known policy, which is there
        a few hundredths of a second after planning began. Only before that does a deadline pass."""
        self._require_same_process()
        begun = time.monotonic()

        def left(before: float = 0.0) -> float | None:
            return None if deadline is None else max(0.0, deadline - before - (time.monotonic() - begun))

        with self._changed:
            if not self._changed.wait_for(self.done, left(_seconds_to_finish)):
                self._control.stop()
                if not self._changed.wait_for(self.done, left()):
                    self._changed.wait_for(lambda: self.done() or self._draft is not None)
            if self._cancelled:
                raise CancelledError("planning was cancelled")
            if self._error is not None:
                raise self._error
            made = self._plan if self._plan is not None else self._draft
            assert made is not None
            return Plan(made)

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise PipeweaverError("the plan was submitted in another process, where its result is")

    def _hand_over(self, draft: _core.Plan) -> None:
        with self._changed:
            self._draft = draft
            self._changed.notify_all()

    def _run(self, job: _core.Job) -> None:
        plan: _core.Plan | None = None
        error: BaseException | None = None
        try:
            if not self._cancelled:
                plan = job.plan(self._name, self._samples, self._control, _is_ending, self._hand_over)
        except BaseException as thrown:  # whatever it is, result() raises it where someone sees it
            error = thrown
        with self._changed:
            self._plan, self._error = plan, error
            self._changed.notify_all()


class Planner:
    """Plans batch after batch for a job that runs: model, cluster, layout and partition are fixed once."""

    _lock: threading.Lock
    _waiting: deque[PlanFuture]
    _running: PlanFuture | None
    _thread: threading.Thread | None

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
        whether backwards are split. With `replica` that one alone is planned, of every batch: replicas share a batch out
        without talking to each other, so each can plan its own where it runs. The budget of `config` is that of every plan. `stop` is for the first plan alone.
        Raises as plan()."""
        self._job = _core.Job(as_asked(config, sample, replica), stop)
        self.first = Plan(self._job.first)
        self._forget()
        _planners.add(self)

    @property
    def partition(self) -> dict[str, Any]:
        """How the modules are cut: chains of stages, each with its rank and layers."""
        partition: dict[str, Any] = self.first.summary["partition"]
        return partition

    def submit(self, batch: Batch) -> PlanFuture:
        """Plans the batch in the background, after those that were submitted before."""
        name, samples = as_batch(batch)
        assert name is not None
        future = PlanFuture(name, samples)
        with self._lock:
            self._waiting.append(future)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="pipeweaver-planner")
                self._thread.start()
        return future

    def close(self) -> None:
        """Cancels what is not done."""
        with self._lock:
            open_ = [*self._waiting] + ([self._running] if self._running is not None else [])
        for future in open_:
            future.cancel()

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        # Also in a forked child, where the thread is not and the lock may be held for ever.
        self._lock = threading.Lock()
        self._waiting = deque()
        self._running = None
        self._thread = None

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or _is_ending():
                    self._running = self._thread = None
                    return
                self._running = self._waiting.popleft()
            self._running._run(self._job)


def _is_ending() -> bool:
    """Whether the program waits for its last threads."""
    return not threading.main_thread().is_alive()


_planners: weakref.WeakSet[Planner] = weakref.WeakSet()


def _forget_all() -> None:
    for planner in list(_planners):
        planner._forget()


os.register_at_fork(after_in_child=_forget_all)
