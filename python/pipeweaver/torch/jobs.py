"""The groups of ranks that one executor works in: they begin, agree and end together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ..errors import PipeweaverError
from .failures import Job, LostRankError, agree, one_line

_epochs: dict[str, int] = {}


class Jobs:
    """`all`: the groups, the pipeline's first. `broken`: why nothing more can be done, None while it can."""

    def __init__(self, jobs: Sequence[Job], timeout: timedelta) -> None:
        self.all = list(jobs)
        self.timeout = timeout
        self.broken: str | None = None

    @property
    def me(self) -> int:
        """This rank in the whole job."""
        return self.all[0].me

    def begin(self) -> None:
        """Every plan that is taken and every step has store keys of its own."""
        if self.broken:
            raise PipeweaverError(f"the executor cannot go on: {self.broken}")
        for job in self.all:
            _renew(job)

    def agree(self, problem: str | None, same: Sequence[str]) -> str | None:
        """What is wrong on some rank, on all; None: nothing. `same`: per group what must be equal on its ranks. A
        problem goes through one group after the other and once more through the first, so where the groups make a grid
        all ranks hear of it, and of the same one."""
        try:
            for job, equal in zip(self.all, same, strict=True):
                problem = agree(job, problem, self.timeout, equal)
            if any(len(job.ranks) > 1 for job in self.all[1:]):
                _renew(self.all[0])
                problem = agree(self.all[0], problem, self.timeout)
        except BaseException as error:
            self.fail(error)
            raise
        return problem

    def fail(self, error: BaseException) -> None:
        """Tells all groups why, and ends their transfers."""
        self.broken = one_line(error)
        reason = str(error) if isinstance(error, LostRankError) else f"rank {self.me}: {self.broken}"
        for job in self.all:
            job.give_reason(reason)
        for job in self.all:
            job.close()


def _renew(job: Job) -> None:
    job.step = _epochs[job.prefix] = _epochs.get(job.prefix, 0) + 1
