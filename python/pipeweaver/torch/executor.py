"""Runs a plan's action lists over torch.distributed: one process per rank of each replica."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .actions import Actions, Compute, Message, Place, Reduce, Tensor
from .check import check
from .failures import Job, LostRankError, agree, explain, one_line
from .passes import Pass, random_state, task_seed
from .program import DTYPES, Links, Program, check_chunks, check_shapes, program_of
from .transport import Transport, wait_for


class Unit(NamedTuple):
    """What `split` is asked for: the data of one pass through a chain. `purpose` is "input" where a module begins and
    "target" where a loss is taken."""

    module: str
    microbatch: int
    item: int
    stage: int
    replica: int
    purpose: str


class Timing(NamedTuple):
    """When an action ran, in seconds from the step's start; `action` is its place in the rank's list."""

    action: int
    start: float
    end: float


@dataclass
class StepResult:
    """`loss` is the whole step's, on every rank: the sum over all replicas of losses times their weights; `losses` has
    those taken on this rank, without weights. `most_alive` counts passes with activations at once."""

    loss: float
    losses: dict[Place, float]
    timings: list[Timing]
    seconds: float
    most_alive: int


Splitter = Callable[[Any, Unit], Any]
Loss = Callable[[torch.Tensor, Any], torch.Tensor]


@dataclass
class _Step:
    """What is alive during one step."""

    batch: Any
    seed: int
    transport: Transport
    began: float
    passes: dict[Place, Pass] = field(default_factory=dict)
    ready: dict[int, torch.Tensor] = field(default_factory=dict)
    shapes: dict[Place, torch.Size] = field(default_factory=dict)
    losses: dict[Place, torch.Tensor] = field(default_factory=dict)
    weighted: list[torch.Tensor] = field(default_factory=list)
    reductions: list[tuple[Any, torch.Tensor, list[torch.nn.Parameter]]] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    alive: int = 0
    most_alive: int = 0


_epochs: dict[str, int] = {}


class Executor:
    """Runs steps of plans whose stages on this rank are `chunks`.

    chunks   stage -> module. Called chunk(x): x is what `split` gives where the chain begins, else the output of the
             stage before. A stage that takes other modules' outputs is called chunk(x, {module: [output per item]}),
             one that begins a module inside a chain chunk(x, data=...), with x None where nothing comes before it.
             Gives one tensor, of the plan's shape where it is sent on. Recomputing half a chunk takes its `blocks`,
             or the children of a Sequential; another chunk is recomputed whole.
    split    split(batch, unit) -> a first stage's x, or a loss's target.
    loss     loss(output, target) -> scalar mean over the unit's loss tokens. The step's loss is the weighted sum.
    group    the ranks of this replica's pipeline; default: all.
    replicas the ranks with the same stages in all replicas; needed where the plan has several.
    dtype    of what is sent; default: the plan's.
    timeout  longest wait for another rank, in seconds.

    Every constructor, load() and step() is to be called by all ranks together. If one fails, all raise: that one its
    own error, the others a PipeweaverError that names it; the executor cannot be used again then."""

    def __init__(self, actions: Actions, chunks: Mapping[int, torch.nn.Module], split: Splitter, loss: Loss, *,
                 group: Any = None, replicas: Any = None, device: torch.device | str = "cpu",
                 dtype: torch.dtype | None = None, timeout: float = 600.0) -> None:
        self.chunks, self.split, self.loss = dict(chunks), split, loss
        self.device, self.dtype = torch.device(device), dtype
        self.timeout = timedelta(seconds=timeout)
        self.pipeline = Job(group if group is not None else dist.group.WORLD, self.device)
        self.peers = Job(replicas, self.device) if replicas is not None else None
        self.jobs = [self.pipeline] + ([self.peers] if self.peers else [])
        self.broken: str | None = None
        self.program: Program
        self.load(actions)

    def load(self, actions: Actions) -> None:
        """Takes another plan for the steps to come: other orders, shapes and numbers of units, the same stages on the
        same ranks. Raises the same PipeweaverError on every rank unless all of them can run it."""
        if self.broken:
            raise PipeweaverError(f"the executor cannot go on: {self.broken}")
        self._next_epoch()
        problem = self._prepare(actions)
        for job in self.jobs:
            problem = agree(job, problem, self.timeout)
        if problem:
            raise PipeweaverError(problem)

    def _prepare(self, actions: Actions) -> str | None:
        """What is wrong with the plan on this rank; None: nothing, and it is taken."""
        try:
            self._check_groups(actions)
            check(actions)
            program = program_of(actions, dist.get_rank(self.pipeline.group))
            check_torch(program)
            check_chunks(program, self.chunks)
            check_shapes(program)
            self.program = program
        except PipeweaverError as error:
            return f"rank {self.pipeline.me}: {error}"
        return None

    def _check_groups(self, actions: Actions) -> None:
        ranks, replicas = len(self.pipeline.ranks), len(self.peers.ranks) if self.peers else 1
        if actions.ranks != ranks:
            raise PipeweaverError(f"the plan is for {actions.ranks} ranks, the group has {ranks}")
        if actions.replicas != replicas:
            raise PipeweaverError(f"the plan is for {actions.replicas} replicas, there are {replicas}")
        if self.peers and dist.get_rank(self.peers.group) != actions.replica:
            raise PipeweaverError(f"the plan is of replica {actions.replica}, this is replica "
                                  f"{dist.get_rank(self.peers.group)}")

    def _next_epoch(self) -> None:
        for job in self.jobs:
            job.step = _epochs[job.prefix] = _epochs.get(job.prefix, 0) + 1

    def step(self, batch: Any, seed: int = 0) -> StepResult:
        """Forward and backward of the whole plan. Gradients are added to the parameters' `grad`: those of the step's
        loss over all replicas. `seed` keys the random numbers that passes draw."""
        if self.broken:
            raise PipeweaverError(f"the executor cannot go on: {self.broken}")
        self._next_epoch()
        step = _Step(batch, seed, Transport(self.pipeline, self.jobs, self.timeout), time.perf_counter())
        kept = self._set_gradients_aside()
        try:
            self._run(step)
            total = self._finish(step)
        except BaseException as error:
            self._fail(error)
            raise
        for weight, gradient in kept:
            weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
        losses = {place: float(value) for place, value in step.losses.items()}
        return StepResult(total, losses, step.timings, time.perf_counter() - step.began, step.most_alive)

    def _set_gradients_aside(self) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        kept = []
        for chunk in self.chunks.values():
            for weight in chunk.parameters():
                if weight.grad is not None:
                    kept.append((weight, weight.grad))
                    weight.grad = None
        return kept

    def _fail(self, error: BaseException) -> None:
        self.broken = one_line(error)
        reason = str(error) if isinstance(error, LostRankError) else f"rank {self.pipeline.me}: {self.broken}"
        for job in self.jobs:
            job.give_reason(reason)
        for job in self.jobs:
            job.close()

    def _run(self, step: _Step) -> None:
        for number, action in enumerate(self.program.actions.lists[self.program.rank]):
            start = time.perf_counter()
            if isinstance(action, Compute):
                self._compute(step, action)
            elif isinstance(action, Reduce):
                self._reduce(step, action)
            else:
                self._message(step, action)
            step.timings.append(Timing(number, start - step.began, time.perf_counter() - step.began))

    def _finish(self, step: _Step) -> float:
        """Waits for what is under way; the step's loss."""
        for work, flat, weights in step.reductions:
            assert self.peers is not None
            wait_for(work, self.peers, self.jobs, self.timeout)
            for weight, gradient in zip(weights, torch.split(flat, [weight.numel() for weight in weights])):
                weight.grad = gradient.view_as(weight)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for value in step.weighted:
            total += value.to(torch.float64)
        for job in self.jobs:
            if len(job.ranks) > 1:
                wait_for(self._all_reduce(job, total), job, self.jobs, self.timeout)
        step.transport.finish()
        return float(total)

    def _all_reduce(self, job: Job, value: torch.Tensor) -> Any:
        try:
            return dist.all_reduce(value, group=job.group, async_op=True)
        except RuntimeError as error:
            raise explain(self.jobs, job, None, error, 0.0, self.timeout) from error

    def _reduce(self, step: _Step, action: Reduce) -> None:
        """Starts the sum of gradients over the replicas, all of the rank's in one tensor a type: replicas run their
        passes in different orders, but come to this in the same."""
        if self.peers is None or len(self.peers.ranks) == 1:
            return
        by_type: dict[torch.dtype, dict[int, torch.nn.Parameter]] = {}
        for stage in action.stages:
            for weight in self.chunks[stage].parameters():
                if weight.requires_grad:
                    by_type.setdefault(weight.dtype, {})[id(weight)] = weight
        for _, found in sorted(by_type.items(), key=lambda entry: str(entry[0])):
            weights = list(found.values())
            flat = torch.cat([(torch.zeros_like(w) if w.grad is None else w.grad).reshape(-1) for w in weights])
            step.reductions.append((self._all_reduce(self.peers, flat), flat, weights))

    def _message(self, step: _Step, action: Message) -> None:
        tensor = self.program.actions.tensors[action.tensor]
        if action.op == "send":
            step.transport.send(action.tensor, step.ready.pop(action.tensor), action.peer, action.tag)
        elif action.op == "receive":
            assert tensor.shape is not None
            step.transport.receive(action.tensor, tensor.shape, self._dtype(tensor), action.peer, action.tag)
        else:
            step.ready[action.tensor] = step.transport.wait(action.tensor)
            for known in self.program.releases.get(action.tensor, ()):
                step.transport.release(known)

    def _dtype(self, tensor: Tensor) -> torch.dtype:
        return self.dtype or DTYPES[tensor.dtype]

    def _compute(self, step: _Step, action: Compute) -> None:
        links = self.program.links[action.place]
        if action.op == "F":
            one = self._forward(step, action, links)
            if links.backward:
                step.passes[action.place] = one
                step.alive += one.alive
        elif action.op == "W":
            one = step.passes.pop(action.place)
            was = one.alive
            one.weight_gradient()
            step.alive -= was
        else:
            self._backward(step, action, links)
        step.most_alive = max(step.most_alive, step.alive)

    def _forward(self, step: _Step, action: Compute, links: Links) -> Pass:
        leaves = [self._leaf(step, tensor) for tensor in links.inputs]
        run = self._run_of(step, action, links, leaves)
        one = Pass(self.chunks[action.place.stage], run, leaves, action.recompute, links.split, links.backward)
        output = one.forward()
        if action.loss_weight is not None:
            step.weighted.append(output)
        step.shapes[action.place] = output.shape
        for tensor in links.out:
            self._hand_over(step, tensor, self._slice(tensor, output))
        return one

    def _leaf(self, step: _Step, tensor: Tensor) -> torch.Tensor:
        leaf = step.ready.pop(tensor.tensor).detach()
        return leaf.requires_grad_() if tensor.gradient is not None else leaf

    def _run_of(self, step: _Step, action: Compute, links: Links,
                leaves: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
        """The forward as it is run now and, where it is recomputed, once more."""
        place, stage = action.place, self.program.stages[action.place.stage]
        replica, chunk = self.program.actions.replica, self.chunks[action.place.stage]

        def unit(purpose: str) -> Unit:
            return Unit(stage.chain, place.microbatch, place.item, place.stage, replica, purpose)

        arguments, named = _arguments(links, leaves, stage.inputs, self.program)
        if stage.reads_batch:
            data = self.split(step.batch, unit("input"))
            if place.stage in self.program.chain_starts:
                arguments[0] = data
            else:
                named["data"] = data
        target = self.split(step.batch, unit("target")) if action.loss_weight is not None else None
        seed, weight, losses, device, loss = (task_seed(step.seed, replica, place), action.loss_weight, step.losses,
                                              self.device, self.loss)

        def run() -> torch.Tensor:
            with random_state(seed, device):
                output = _tensor(chunk(*arguments, **named), place)
                if weight is None:
                    return output
                value = _scalar(loss(output, target), place)
            losses[place] = value.detach()
            return value * weight

        return run

    def _slice(self, tensor: Tensor, output: torch.Tensor) -> torch.Tensor:
        if not tensor.slices:
            return output
        if output.shape[0] < max(end for _, end in tensor.slices):
            raise PipeweaverError(f"tensor {tensor.tensor} of {tensor.source}: the plan takes rows up to "
                                  f"{max(end for _, end in tensor.slices)}, the chunk gave {list(output.shape)}")
        return torch.cat([output[first:end] for first, end in tensor.slices])

    def _hand_over(self, step: _Step, tensor: Tensor, value: torch.Tensor) -> None:
        """Refuses what is not as planned before it can be sent."""
        if tuple(value.shape) != tensor.shape or value.dtype != self._dtype(tensor):
            planned = f"{list(tensor.shape or ())} {str(self._dtype(tensor)).removeprefix('torch.')}"
            raise PipeweaverError(f"{tensor.kind} {tensor.tensor} of {tensor.source}: the plan has {planned}, the chunk "
                                  f"gave {list(value.shape)} {str(value.dtype).removeprefix('torch.')}")
        step.ready[tensor.tensor] = value.contiguous()

    def _gradient(self, step: _Step, action: Compute, links: Links) -> torch.Tensor | None:
        """The output's, summed over its consumers in the tensors' order; None: no consumer gives one."""
        total: torch.Tensor | None = None
        for tensor in links.out:
            if tensor.gradient is None:
                continue
            part = step.ready.pop(tensor.gradient)
            if tensor.slices:
                part = _spread(part, tensor.slices, step.shapes[action.place])
            total = part if total is None else total + part
        return total

    def _backward(self, step: _Step, action: Compute, links: Links) -> None:
        one = step.passes[action.place]
        gradient = self._gradient(step, action, links)
        loss = not any(tensor.gradient is not None for tensor in links.out)
        before = one.alive
        one.again()
        step.alive += one.alive - before
        step.most_alive = max(step.most_alive, step.alive)
        if loss and one.output is not None:
            gradient = torch.ones((), dtype=step.weighted[-1].dtype if step.weighted else None, device=self.device)
        was, shapes = one.alive, [leaf.detach() for leaf in one.leaves]
        gradients = one.input_gradient(gradient) if action.op == "I" else one.backward(gradient)
        step.alive += one.alive - was
        if action.op == "B":
            del step.passes[action.place]
        for tensor, leaf, value in zip(links.inputs, shapes, gradients):
            if tensor.gradient is not None:
                back = self.program.actions.tensors[tensor.gradient]
                self._hand_over(step, back, torch.zeros_like(leaf) if value is None else value)


def _arguments(links: Links, leaves: list[torch.Tensor], chains: tuple[str, ...],
               program: Program) -> tuple[list[Any], dict[str, Any]]:
    """What the chunk is called with: the previous stage's output (or None), then other chains' outputs by name."""
    given: list[Any] = [leaves[0] if links.previous else None]
    items = leaves[1:] if links.previous else leaves
    if not chains and not items:
        return given, {}
    by_chain: dict[str, list[torch.Tensor]] = {chain: [] for chain in chains}
    for tensor, leaf in zip(links.items, items):
        by_chain.setdefault(program.actions.stages[tensor.source.stage].chain, []).append(leaf)
    return [*given, by_chain], {}


def _spread(part: torch.Tensor, slices: tuple[tuple[int, int], ...], shape: torch.Size) -> torch.Tensor:
    """Gradient rows at their places in the whole output's."""
    whole, row = part.new_zeros(shape), 0
    for first, end in slices:
        whole[first:end] += part[row:row + end - first]
        row += end - first
    return whole


def _tensor(output: Any, place: Place) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        raise PipeweaverError(f"the chunk of {place} gave {type(output).__name__}, one tensor is needed")
    return output


def _scalar(value: Any, place: Place) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        shape = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise PipeweaverError(f"the loss of {place} is {shape}, a scalar tensor is needed")
    return value


def check_torch(program: Program) -> None:
    """Raises PipeweaverError where this PyTorch lacks a call that the plan needs."""
    if any(action.recompute == "half" for row in program.actions.lists for action in row if isinstance(action, Compute)):
        # What torch.utils.checkpoint loads at its first call, which takes seconds: not in the middle of a step.
        importlib.import_module("torch._dynamo")
    missing = [] if hasattr(torch.autograd.graph, "get_gradient_edge") else ["torch.autograd.graph.get_gradient_edge"]
    if any(link.split for link in program.links.values()):
        try:
            from torch.distributed.pipelining import _backward

            missing += [f"torch.distributed.pipelining._backward.{name}"
                        for name in ("stage_backward_input", "stage_backward_weight") if not hasattr(_backward, name)]
        except ImportError:
            missing.append("torch.distributed.pipelining._backward")
    if missing:
        raise PipeweaverError(f"PyTorch {torch.__version__} has no {' and no '.join(missing)}, which this plan needs")
