"""Runs a plan's action lists over torch.distributed: one process per rank of each replica, or per GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .actions import Actions, Place, RankActions
from .allocator import expand_segments
from .check import check
from .failures import Job, close_all, lost_in, one_line
from .fit import check_fit
from .groups import OTHER_SUMS, Groups, Tied, sums_of
from .inner import Inner
from .jobs import Jobs
from .program import Program, program_of
from .replicas import Sums
from .step import Step, Training, Unit
from .transport import Transport
from .walk import Timing, timings_by


@dataclass
class StepResult:
    """`loss` is the whole step's, on every rank: the sum over all replicas of losses times their weights; `losses` has
    those taken on this GPU, without weights. `most_alive` counts passes with activations at once."""

    loss: float
    losses: dict[Place, float]
    timings: list[Timing]
    seconds: float
    most_alive: int


class Executor:
    """Runs steps of plans whose stages on this rank are `chunks`.

    actions  a replica's lists, or this rank's own: then all ranks have theirs of the same plan.
    chunks   stage -> module. Called chunk(x): x is what `split` gives where the chain begins, else the output of the
             stage before. A stage that takes other modules' outputs is called chunk(x, {module: [output per item]}),
             one that begins a module inside a chain chunk(x, data=...), with x None where nothing comes before it.
             Gives one tensor, of the plan's shape where it is sent on. Recomputing a part of a chunk takes its
             `blocks`, or the children of a Sequential; another chunk is recomputed whole. With `inner` every chunk is
             called with share=Share(...), too, and is this GPU's part of its stage.
    split    split(batch, unit) -> a first stage's x, or a loss's target.
    loss     loss(output, target) -> scalar mean over the unit's loss tokens. The step's loss is the weighted sum.
    group    the ranks of this replica's pipeline; default: all.
    replicas the ranks with the same stages in all replicas; needed where the plan has several.
    inner    the GPUs of this rank of this replica, a process each, in their order: as many as the plan has for a rank.
             `group` and `replicas` are then those of this GPU's number. None: one process is the whole rank, and runs
             whole units whatever the plan has inside.
    tied     parameters that chunks of several ranks share, by a name that they have in common: gradients are summed
             over the ranks of `group` that hold one.
    dtype    of what is sent; default: the plan's.
    timeout  longest wait for another rank, in seconds.

    Every constructor, load() and step() is to be called by all ranks together. If one fails, all raise: that one its
    own error, the others a PipeweaverError that names it; the executor cannot be used again then."""

    def __init__(self, actions: Actions | RankActions, chunks: Mapping[int, torch.nn.Module],
                 split: Callable[[Any, Unit], Any], loss: Callable[[torch.Tensor, Any], torch.Tensor], *,
                 group: Any = None, replicas: Any = None, inner: Any = None,
                 tied: Mapping[str, torch.nn.Parameter] | None = None, device: torch.device | str = "cpu",
                 dtype: torch.dtype | None = None, timeout: float = 600.0) -> None:
        device = torch.device(device)
        expand_segments(device)
        self.training = Training(dict(chunks), split, loss, device, dtype)
        self.timeout = timedelta(seconds=timeout)
        self.pipeline = Job(group if group is not None else dist.group.WORLD, device)
        self.peers = Job(replicas, device) if replicas is not None else None
        self.gpus = Job(inner, device) if inner is not None else None
        self.asked = [job for job in (self.pipeline, self.gpus, self.peers) if job is not None]
        self.jobs = Jobs(self.asked, self.timeout)
        self.groups = Groups(self.pipeline, self.gpus, self.peers, self.timeout)
        self.tied = Tied(self.pipeline, dict(tied or {}), self.timeout)
        self.program: Program
        self._loaded = False
        self.load(actions)
        self.jobs.add(self.tied.prepare())

    def load(self, actions: Actions | RankActions | None,
             otherwise: Callable[[], Actions | RankActions] | None = None) -> bool:
        """Takes another plan for the steps to come: other orders, shapes and numbers of units, the same stages on the
        same ranks. Unless all ranks can run it, all raise the same PipeweaverError and keep the plan that they have.

        With `otherwise` no rank raises yet: all take what it gives instead, a plan that every rank can make for itself.
        A rank that could not get `actions` has None. Returns whether it was `actions` that all took."""
        try:
            self._load(actions)
            return True
        except PipeweaverError:
            if otherwise is None or self.jobs.broken:
                raise
        self._load(self._made(otherwise))
        return False

    def _made(self, otherwise: Callable[[], Actions | RankActions]) -> Actions | RankActions | PipeweaverError:
        try:
            return otherwise()
        except Exception as error:  # the others wait to hear of it
            return PipeweaverError(f"rank {self.pipeline.me}: {one_line(error)}")

    def _load(self, actions: Actions | RankActions | PipeweaverError | None) -> None:
        self.jobs.begin()
        if not self._loaded:
            self.tied.tell()
        program, problem = self._prepared(actions)
        same = [program.actions.lists_sha256 if program else ""] * (2 if self.gpus else 1)
        same += [sums_of(program) if program else ""] if self.peers else []
        problem = self.jobs.agree(problem, same, {len(same) - 1: OTHER_SUMS} if self.peers else {})
        if problem or program is None:
            raise PipeweaverError(problem)
        self.jobs.add(self.groups.prepare(program))
        self.program, self._loaded = program, True

    def _prepared(self, actions: Actions | RankActions | PipeweaverError | None) -> tuple[Program | None, str | None]:
        """The plan for this rank, or what is wrong with it; whatever that is, the other ranks wait to hear of it."""
        if actions is None or isinstance(actions, PipeweaverError):
            return None, str(actions or f"rank {self.pipeline.me} has no plan")
        try:
            self._check_groups(actions)
            check(actions)
            inside = Inner(self.gpus, {}).inside
            program = program_of(actions.of_rank(dist.get_rank(self.pipeline.group)), inside)
            check_fit(program, self.training.chunks)
            weights = [weight for chunk in self.training.chunks.values() for weight in chunk.parameters()]
            return program, None if self._loaded else self.tied.problem(weights)
        except PipeweaverError as error:
            return None, f"rank {self.pipeline.me}: {error}"
        except Exception as error:
            return None, f"rank {self.pipeline.me}: {one_line(error)}"

    def _check_groups(self, actions: Actions | RankActions) -> None:
        ranks, replicas = len(self.pipeline.ranks), len(self.peers.ranks) if self.peers else 1
        if actions.ranks != ranks:
            raise PipeweaverError(f"the plan is for {actions.ranks} ranks, the group has {ranks}")
        if actions.replicas != replicas:
            raise PipeweaverError(f"the plan is for {actions.replicas} replicas, there are {replicas}")
        if self.gpus and len(self.gpus.ranks) != actions.gpus:
            raise PipeweaverError(f"the plan has {actions.gpus} GPUs for a rank, the inner group has "
                                  f"{len(self.gpus.ranks)}")
        if self.peers and dist.get_rank(self.peers.group) != actions.replica:
            raise PipeweaverError(f"the plan is of replica {actions.replica}, this is replica "
                                  f"{dist.get_rank(self.peers.group)}")

    def step(self, batch: Any, seed: int = 0) -> StepResult:
        """Forward and backward of the whole plan. Gradients are added to the parameters' `grad`: those of the step's
        loss over all replicas. `seed` keys the random numbers that passes draw."""
        self.jobs.begin()
        transport = Transport(self.pipeline, self.jobs.all, self.timeout)
        sums = Sums(self.groups.sums, self.jobs.all, self.timeout)
        inner = Inner(self.gpus, self.groups.tensor)
        step = Step(self.program, self.training, batch, seed, transport, sums, inner)
        kept = self._set_gradients_aside()
        try:
            step.run()
            sums.finish({name: (self.tied.weights[name], job) for name, job in self.tied.jobs.items()})
            total = sums.total(step.weighted, self.training.device, self.asked)
            transport.finish()
        except BaseException as error:
            self._fail(error)
            raise
        for weight, gradient in kept:
            weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
        losses = {place: float(value) for place, value in step.losses.items()}
        return StepResult(total, losses, timings_by(step.clock), time.perf_counter() - step.began, step.most_alive)

    def _fail(self, error: BaseException) -> None:
        """Ends all ranks. What ends a collective of the GPUs of a rank, in chunks, too, is most likely one of them."""
        lost = lost_in(self.jobs.all, self.gpus, error, self.timeout) if self.gpus else None
        self.jobs.fail(lost or error)
        if self.gpus:
            close_all(self.training.device)
        if lost is not None:
            raise lost from error

    def _set_gradients_aside(self) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        """Sums over replicas must not count them once more."""
        kept = []
        for chunk in self.training.chunks.values():
            for weight in chunk.parameters():
                if weight.grad is not None:
                    kept.append((weight, weight.grad))
                    weight.grad = None
        return kept
