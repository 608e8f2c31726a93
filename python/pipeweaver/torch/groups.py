"""Process groups that follow from a plan: whose gradients are summed, and a copy's GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .actions import Reduce
from .crossings import tp_of
from .failures import Job, awaited
from .program import Program

OTHER_SUMS = "rank {} sums other stages' gradients, or in another order, than rank {}"
PHASE = 0  # the key of what is summed over all GPUs of all replicas


class Groups:
    """Where this process stands: `pipeline` in its replica, `inner` in its rank, `peers` among the replicas. Groups of
    others are made when a plan first needs them, by those that are in them."""

    def __init__(self, pipeline: Job, inner: Job | None, peers: Job | None, timeout: timedelta) -> None:
        self.pipeline, self.inner, self.peers, self.timeout = pipeline, inner, peers, timeout
        self.gpu = inner.ranks.index(inner.me) if inner else 0
        self.sums: dict[int, Job | None] = {}
        self.tensor: dict[int, Any] = {}
        self._told = False

    def prepare(self, program: Program) -> list[Job]:
        """Makes what the plan needs more; the new ones. Called by all ranks together."""
        made = [self._sum_group(key) for key in sorted(keys_of(program) - self.sums.keys())]
        made += [self._tensor_group(tp) for tp in sorted(_parted(program) - self.tensor.keys())]
        return [job for job in made if job is not None]

    def _sum_group(self, key: int) -> Job | None:
        if key != PHASE and self.inner is None:
            self.sums[key] = self.peers
            return None
        if not self._told:
            self._tell()
        ranks = self._members(key)
        if self.peers and ranks == sorted(self.peers.ranks):
            self.sums[key] = self.peers
            return None
        job = self.sums[key] = made_group(ranks, self.pipeline)
        return job

    def _tensor_group(self, tp: int) -> Job | None:
        assert self.inner is not None
        first = self.gpu - self.gpu % tp
        ranks = self.inner.ranks[first:first + tp]
        job = None if ranks == self.inner.ranks else made_group(ranks, self.pipeline)
        self.tensor[tp] = job.group if job else self.inner.group
        return job

    def _tell(self) -> None:
        """What others need to find all that this process is joined with."""
        mine = {name: job.ranks for name, job in self._jobs().items()}
        for job in self._jobs().values():
            job.store.set(f"{job.prefix}/grid/{job.me}", json.dumps([mine, self._prefixes()]))
        self._told = True

    def _jobs(self) -> dict[str, Job]:
        found = {"pipeline": self.pipeline, "inner": self.inner, "peers": self.peers}
        return {name: job for name, job in found.items() if job is not None}

    def _prefixes(self) -> dict[str, str]:
        return {name: job.prefix for name, job in self._jobs().items()}

    def _members(self, key: int) -> list[int]:
        """Processes with the same weights: of a stage whose copies have `key` GPUs, or PHASE."""
        known: dict[int, Any] = {}
        ways = ("pipeline", "inner", "peers") if key == PHASE else ("inner", "peers")
        me = self.pipeline.me
        known[me] = [{name: job.ranks for name, job in self._jobs().items()}, self._prefixes()]
        seen, left = {me}, [me]
        while left:
            ranks, prefixes = known[left.pop()]
            for name in ways:
                for other in ranks.get(name, []):
                    if other not in known:
                        known[other] = self._read(f"{prefixes[name]}/grid/{other}", other)
                    if other not in seen:
                        seen.add(other)
                        left.append(other)
        if key == PHASE:
            return sorted(seen)
        return sorted(rank for rank in seen if _gpu(rank, known[rank][0]) % key == self.gpu % key)

    def _read(self, key: str, rank: int) -> Any:
        try:
            self.pipeline.store.wait([key], self.timeout)
            return json.loads(self.pipeline.store.get(key))
        except RuntimeError as error:
            raise PipeweaverError(f"rank {rank} did not say which groups it is in: {error}") from error


def _gpu(rank: int, ranks: dict[str, list[int]]) -> int:
    return ranks["inner"].index(rank) if "inner" in ranks else 0


def made_group(ranks: list[int], like: Job) -> Job | None:
    """A group of these ranks, called by them alone; None: there is one."""
    if len(ranks) == 1:
        return None
    group = dist.new_group(ranks, backend=dist.get_backend(like.group), use_local_synchronization=True)
    return Job(group, like.device)


def key_of(program: Program, stage: int, weight: torch.nn.Parameter) -> int:
    """Over whom the weight's gradient is summed: GPUs of the same number modulo the key, and replicas."""
    actions, own = program.actions, program.stages[stage]
    if own.phase:
        return PHASE
    if program.inside is None:
        return 1
    gpus = program.inside.gpus
    tp = tp_of(own, gpus)
    return 1 if actions.sequence_parallel and getattr(weight, "sequence_parallel", False) else tp


def sums_of(program: Program) -> str:
    """What replicas must have alike: which stages' gradients they sum, in which order, over which GPUs."""
    rows = [action.stages for action in program.actions.actions if isinstance(action, Reduce)]
    return json.dumps([rows, sorted(keys_of(program))])


def keys_of(program: Program) -> set[int]:
    """All that weights of the rank's stages can have."""
    gpus = program.inside.gpus if program.inside else 1
    keys = {PHASE if stage.phase else tp_of(stage, gpus) for stage in program.stages.values() if stage.trainable}
    return keys | ({1} if program.actions.sequence_parallel or program.inside is None else set())


def _parted(program: Program) -> set[int]:
    """GPUs of a copy, of stages of which a copy's GPUs have parts of the rows."""
    if program.inside is None or not program.actions.sequence_parallel:
        return set()
    found = {tp_of(stage, program.inside.gpus) for stage in program.stages.values()}
    return {tp for tp in found if tp > 1}


class Tied:
    """Parameters that chunks of several ranks share, by name: gradients are summed over the ranks that hold one."""

    def __init__(self, pipeline: Job, weights: dict[str, torch.nn.Parameter], timeout: timedelta) -> None:
        self.pipeline, self.weights, self.timeout = pipeline, weights, timeout
        self.jobs: dict[str, Job] = {}
        self._holders: dict[str, list[int]] = {}

    def tell(self) -> None:
        """Called by all ranks of the pipeline, before they ask for the problem."""
        mine = {name: [list(weight.shape), str(weight.dtype)] for name, weight in self.weights.items()}
        self.pipeline.write(f"tied/{self.pipeline.me}", json.dumps(mine))

    def problem(self, held: Iterable[torch.nn.Parameter]) -> str | None:
        """What ranks do not agree on."""
        of_chunks = {id(weight) for weight in held}
        for name, weight in self.weights.items():
            if id(weight) not in of_chunks:
                return f"tied['{name}'] is no parameter of a chunk of rank {self.pipeline.me}"
        said: dict[str, dict[int, Any]] = {}
        for rank in self.pipeline.ranks:
            found = awaited(self.pipeline, f"tied/{rank}", self.timeout)
            if found is None:
                return f"rank {rank} did not say which parameters it shares"
            for name, what in json.loads(found).items():
                said.setdefault(name, {})[rank] = what
        self._holders = {name: sorted(by_rank) for name, by_rank in sorted(said.items())}
        return next((text for name, by_rank in sorted(said.items()) if (text := _unlike(name, by_rank))), None)

    def prepare(self) -> list[Job]:
        """Makes the groups of those that hold one. Called by all ranks together."""
        made: dict[tuple[int, ...], Job] = {}
        for name, ranks in self._holders.items():
            if name in self.weights:
                if tuple(ranks) not in made:
                    job = made_group(ranks, self.pipeline)
                    assert job is not None
                    made[tuple(ranks)] = job
                self.jobs[name] = made[tuple(ranks)]
        return list(made.values())


def _unlike(name: str, by_rank: dict[int, Any]) -> str | None:
    (first, one), *others = sorted(by_rank.items())
    if not others:
        return f"tied['{name}'] is held by rank {first} alone"
    other = next((rank for rank, what in others if what != one), None)
    return None if other is None else (f"tied['{name}'] is {one[0]} {one[1]} on rank {first}, {by_rank[other][0]} "
                                       f"{by_rank[other][1]} on rank {other}")


