"""How ranks end together when one of them cannot go on.

A rank that fails writes why into the job's store, then closes its connections. Whoever waits for it gets an error at
once, reads why, and does the same; so the news travels without a thread that watches. A rank that was killed writes
nothing: its peers see the connection end without a reason, and name it. A rank that hangs ends nothing: who first has
waited for the time-out names whom it waited for, which may itself be waiting for another.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError

GRACE_S = 1.0
OTHER_PLAN = "rank {} has the lists of another plan than rank {}"
TRANSFER = re.compile(r"gloo|NCCL|[Cc]onnection")


class LostRankError(PipeweaverError):
    """Another rank failed; the message is what all ranks say."""


def one_line(error: BaseException) -> str:
    """'ValueError: what it says', on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Job:
    """The store under the keys of one group of ranks and one step. Global ranks throughout."""

    def __init__(self, group: Any, device: torch.device) -> None:
        self.group, self.device = group, device
        self.ranks: list[int] = dist.get_process_group_ranks(group)
        self.me = dist.get_rank()
        self.store = dist.distributed_c10d._get_default_store()
        gloo = dist.get_backend(group) == "gloo"
        self.wire = torch.device("cpu") if gloo else device  # where tensors lie that its transfers move
        self.prefix = f"pipeweaver/{dist.distributed_c10d._get_process_group_name(group)}"
        self.step = 0
        self.verdict_before = f"{self.prefix}/none"

    def key(self, name: str) -> str:
        return f"{self.prefix}/{self.step}/{name}"

    def read(self, name: str) -> str | None:
        """The key's value, None if it is not set or the store does not answer."""
        with contextlib.suppress(RuntimeError):
            if self.store.check([self.key(name)]):
                return str(self.store.get(self.key(name)).decode())
        return None

    def write(self, name: str, value: str) -> None:
        with contextlib.suppress(RuntimeError):
            self.store.set(self.key(name), value)

    def give_reason(self, reason: str) -> str:
        """Unless somebody was first; the reason that all will read."""
        with contextlib.suppress(RuntimeError):
            return str(self.store.compare_set(self.key("reason"), "", reason).decode())
        return reason

    def reason(self) -> str | None:
        return self.read("reason")

    def close(self) -> None:
        """Ends every transfer of this process in the group, under way or to come: its peers see the connection end."""
        if len(self.ranks) == 1:
            return
        with contextlib.suppress(RuntimeError, ValueError):
            if dist.get_backend(self.group) != "gloo":
                dist.distributed_c10d._abort_process_group(self.group)
                return
            # gloo has no abort, but closes all connections of a process of which one transfer took too long. One that
            # is closed already fails at once and closes no others.
            for other in self.ranks:
                if other != self.me:
                    self._wait_in_vain(other)

    def _wait_in_vain(self, other: int) -> None:
        with contextlib.suppress(RuntimeError):
            never = dist.irecv(torch.empty(1), src=other, group=self.group, tag=(1 << 31) - 1)
            if never is not None:
                never.wait(timedelta(milliseconds=1))


def explain(jobs: Sequence[Job], job: Job, awaited: int | None, error: BaseException, waited: float,
            timeout: timedelta) -> LostRankError:
    """What ended a transfer of `job` after `waited` seconds, in which rank `awaited` was waited for (None: all of its
    ranks). Gives those who know up to GRACE_S to say; tells all `jobs`."""
    job.write(f"failed/{job.me}", "-")
    timed_out = waited >= timeout.total_seconds()
    deadline = time.monotonic() + (0 if timed_out else GRACE_S)
    while (reason := next((found for one in jobs if (found := one.reason())), None)) is None:
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    if reason is None:
        others = [rank for rank in job.ranks if rank != job.me]
        silent = [rank for rank in others if job.read(f"failed/{rank}") is None]
        who = "rank " + " or ".join(map(str, silent or others)) if awaited is None else f"rank {awaited}"
        ended = re.sub(r"^\[[^]]*\] |\. This is typically.*", "", " ".join(str(error).split()))
        what = (f"gave no answer within {timeout.total_seconds():g} s: it, or a rank that it waits for, hangs"
                if timed_out else f"was lost: {ended}")
        reason = f"{who} {what}"
    for one in jobs:
        reason = one.give_reason(reason)
    return LostRankError(reason)


def lost_in(jobs: Sequence[Job], job: Job, error: BaseException, timeout: timedelta) -> LostRankError | None:
    """What ended a collective of others' code, most likely of `job`'s group; None: `error` is this rank's own."""
    if isinstance(error, PipeweaverError) or not isinstance(error, RuntimeError):
        return None
    if not isinstance(error, dist.DistError) and not TRANSFER.search(str(error)):
        return None
    groups = [one for one in (job, *jobs) if len(one.ranks) > 1]
    return explain(jobs, groups[0], None, error, 0.0, timeout) if groups else None


def close_all(device: torch.device) -> None:
    """Ends the transfers of every group that this process is in."""
    for group in list(dist.distributed_c10d._world.pg_map):
        Job(group, device).close()


def agree(job: Job, problem: str | None, timeout: timedelta, same: str = "", unlike: str = OTHER_PLAN) -> str | None:
    """Every rank of the group says what is wrong (None: nothing); all get the first that has something to say, or who
    said nothing in time, or has another `same` than the first (`unlike` says so of two ranks). Raises PipeweaverError
    where the store is lost."""
    if len(job.ranks) == 1:
        return problem
    leader = job.ranks[0]
    try:
        if job.me == leader:
            return _collect(job, problem, timeout, same, unlike)
        job.store.set(job.key(f"says/{job.me}"), problem or f"={same}")
        verdict = awaited(job, "verdict", timeout + timedelta(seconds=GRACE_S))  # the leader's patience ends first
        return _late([leader], timeout) if verdict is None else verdict.removeprefix("-") or None
    except RuntimeError as error:
        raise PipeweaverError(f"the job's store is lost: {one_line(error)}") from error


def _collect(job: Job, problem: str | None, timeout: timedelta, same: str, unlike: str) -> str | None:
    """The leader's part."""
    deadline = time.monotonic() + timeout.total_seconds()
    answers, late = [problem or ""], []
    for rank in job.ranks[1:]:
        said = awaited(job, f"says/{rank}", timedelta(seconds=max(0.01, deadline - time.monotonic())))
        if said is None:
            late.append(rank)
        else:
            other = unlike.format(rank, job.me)
            answers.append(said if not said.startswith("=") else "" if said == f"={same}" else other)
            job.store.delete_key(job.key(f"says/{rank}"))
    verdict = _late(late, timeout) if late else next((answer for answer in answers if answer), "")
    job.store.delete_key(job.verdict_before)  # who has come here has read it
    job.store.set(job.key("verdict"), verdict or "-")
    job.verdict_before = job.key("verdict")
    return verdict or None


def _late(ranks: Sequence[int], timeout: timedelta) -> str:
    return f"rank {' and '.join(map(str, ranks))} did not load its plan within {timeout.total_seconds():g} s"


def awaited(job: Job, name: str, timeout: timedelta) -> str | None:
    """The key's value as soon as it is set; None: not in time."""
    began = time.monotonic()
    try:
        job.store.wait([job.key(name)], timeout)
    except RuntimeError:
        if time.monotonic() - began < 0.9 * timeout.total_seconds():
            raise
        return None
    return str(job.store.get(job.key(name)).decode())
