"""Steps beside their plan while they run, over all ranks of a replica."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import torch.distributed as dist

from ..drift import Drift, Finding, PlannedTasks
from ..errors import InputError, PipeweaverError
from .actions import Compute
from .executor import Executor, StepResult

log = logging.getLogger("pipeweaver")


class Watch:
    """Notices a slow rank, and modules whose times have drifted from the plan:

        watch = Watch(executor, "plan/replica-000")
        for batch in batches:
            watch.step(executor.step(batch))

    planned  the replica's folder, with problem and solution, or its times already read.
    tell     is given each finding, on every rank; default: a line to the log "pipeweaver" on rank 0.

    Every step exchanges a few numbers of each rank: the constructor, load() and step() are to be called by all ranks
    together. Where a rank cannot load the times, all raise, and keep those that they have. On a GPU the times are those
    of events around the passes: what a pass waits for between its own kernels counts for it."""

    def __init__(self, executor: Executor, planned: str | os.PathLike[str] | PlannedTasks,
                 tell: Callable[[Finding], object] | None = None, drift: Drift | None = None) -> None:
        self._executor = executor
        self._tell = tell
        self._drift = drift if drift is not None else Drift()
        self.load(planned)

    def load(self, planned: str | os.PathLike[str] | PlannedTasks) -> None:
        """The executor has loaded another plan: its times."""
        error: Exception | None = None
        try:
            read = self._read(planned)
        except Exception as found:  # the others wait to hear of it
            error = found
        self._agree(error)
        self._planned = read
        self._drift.forget()

    def _read(self, planned: str | os.PathLike[str] | PlannedTasks) -> PlannedTasks:
        """Raises where the times are not those of what the executor runs."""
        read = planned if isinstance(planned, PlannedTasks) else PlannedTasks.read(planned)
        own = self._executor.program.actions
        passes = ((one.task, one.op, one.place.stage) for one in own.actions if isinstance(one, Compute))
        if why := read.why_not_run(own.problem, passes):
            raise InputError(why)
        return read

    def _agree(self, error: Exception | None) -> None:
        """Raises on all ranks where one has an error: there that, elsewhere one that names the rank."""
        group = self._executor.pipeline.group
        why = None if error is None else str(error)
        of_rank = [why] * dist.get_world_size(group)
        dist.all_gather_object(of_rank, why, group=group)
        if error is not None:
            raise error
        for rank, one in enumerate(of_rank):
            if one is not None:
                raise PipeweaverError(f"rank {rank}: {one}")

    def step(self, result: StepResult) -> list[Finding]:
        """Takes the step that was just run. Returns what it told, the same on every rank."""
        actions = self._executor.program.actions.actions
        ran = ((action.task, round((one.end - one.start) * 1e9)) for one in result.timings
               if isinstance(action := actions[one.action], Compute))
        own = self._planned.sums(ran)
        group = self._executor.pipeline.group
        of_rank = [own] * dist.get_world_size(group)
        dist.all_gather_object(of_rank, own, group=group)
        findings = self._drift.add(dict(enumerate(of_rank)))
        for finding in findings:
            if self._tell is not None:
                self._tell(finding)
            elif dist.get_rank(group) == 0:
                log.warning("%s", finding)
        return findings
