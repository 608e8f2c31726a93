"""The groups of ranks that one executor works in: they begin, agree and end together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from ..errors import PipeweaverError
from .failures import OTHER_PLAN, Job, LostRankError, agree, one_line

_epochs: dict[str, int] = {}


class Jobs:
    """`all`: the groups, the pipeline's first. `broken`: why nothing more can be done, None while it can."""

    def __init__(self, jobs: Sequence[Job], timeout: timedelta) -> None:
        self.all = list(jobs)
        self.timeout = timeout
        self.broken: str | None = None

    def add(self, jobs: Sequence[Job]) -> None:
        """Groups that begin and end with the others."""
        self.all += jobs

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

    def agree(self, problem: str | None, same: Sequence[str],
              unlike: Mapping[int, str] = MappingProxyType({})) -> str | None:
        """What is wrong on some rank, on all; None: nothing. `same`: per group what must be equal on its ranks (where
        it is not, `unlike` has words by group); groups behind these have no say. A problem goes through one group after
        the other and once more through all but the last, so where the groups make a grid all ranks hear of it, and of
        the same one."""
        asked = self.all[:len(same)]
        try:
            for k, (job, equal) in enumerate(zip(asked, same, strict=True)):
                problem = agree(job, problem, self.timeout, equal, unlike.get(k, OTHER_PLAN))
            for k, job in enumerate(asked[:-1]):
                if any(len(other.ranks) > 1 for other in asked[k + 1:]):
                    _renew(job)
                    problem = agree(job, problem, self.timeout)
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
