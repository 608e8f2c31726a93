"""One step on one rank: its passes, and what is alive between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..errors import PipeweaverError
from .actions import Compute, Place, Reduce, Tensor
from .clocks import clock_of
from .crossings import parted, share_at, tp_of
from .groups import PHASE, key_of
from .inner import Inner
from .passes import Pass, random_state, task_seed
from .program import DTYPES, Links, Order, Program
from .replicas import Sums
from .transport import Transport
from .unit_shares import Piece, UnitShare
from .walk import Walk


class Unit(NamedTuple):
    """What `split` is asked for: the data of one pass through a chain. `purpose` is "input" where a module begins and
    "target" where a loss is taken. `share` says how the unit's sequences are shared where the plan says so, `pieces`
    which of them this GPU's copy has: None where one process is the whole rank, or its stage has one copy."""

    module: str
    microbatch: int
    item: int
    stage: int
    replica: int
    purpose: str
    pieces: tuple[Piece, ...] | None = None
    share: UnitShare | None = None


@dataclass(frozen=True)
class Share:
    """What a chunk is told of its GPU's part of a unit, where ranks have several GPUs. It is GPU `gpu` of the rank, of
    copy `gpu // tp`. `unit` has all copies' pieces (None: there is one copy), `pieces` are this copy's; `rows` is how
    many rows of the stage before the copy has, without zeros behind its parts (None: nothing comes before)."""

    gpu: int
    tp: int
    rows: int | None
    pieces: tuple[Piece, ...] | None
    unit: UnitShare | None


@dataclass(frozen=True)
class Training:
    """What the user runs: Executor describes it."""

    chunks: Mapping[int, torch.nn.Module]
    split: Callable[[Any, Unit], Any]
    loss: Callable[[torch.Tensor, Any], torch.Tensor]
    device: torch.device
    dtype: torch.dtype | None


class Step(Walk):
    """Runs the rank's list once. `losses` are the means of the losses taken here, `weighted` the same times their
    weights; `most_alive` counts passes with activations at once."""

    def __init__(self, program: Program, training: Training, batch: Any, seed: int, transport: Transport,
                 sums: Sums, inner: Inner) -> None:
        super().__init__(program, transport, clock_of(training.device))
        self.training, self.sums, self.inner = training, sums, inner
        self.reductions = Reductions(program, training.chunks)
        self.batch, self.seed = batch, seed
        self.passes: dict[Place, Pass] = {}
        self.output_shapes: dict[Place, torch.Size] = {}
        self.losses: dict[Place, torch.Tensor] = {}
        self.weighted: list[torch.Tensor] = []
        self.most_alive = 0

    def reduce(self, action: Reduce) -> None:
        self.sums.start(self.reductions.complete(action.stages))

    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        return self.training.dtype or DTYPES[tensor.dtype]

    def compute(self, action: Compute) -> None:
        if action.op == "F":
            self._forward(action)
        elif action.op == "W":
            self.passes.pop(action.place).weight_gradient()
        else:
            self._backward(action)

    def _count(self) -> None:
        self.most_alive = max(self.most_alive, sum(one.alive for one in self.passes.values()))

    def _forward(self, action: Compute) -> None:
        place, links = action.place, self.program.links[action.place]
        leaves = [self._leaf(tensor) for tensor in links.inputs]
        one = Pass(self.training.chunks[place.stage], self._run_of(action, links, leaves), leaves, action.recompute,
                   links.split, links.backward,
                   [part.layers or 0 for part in self.program.actions.stages[place.stage].parts])
        output = one.forward()
        if links.backward:
            self.passes[place] = one
            self._count()
        if action.loss_weight is not None and self._counts(place.stage):
            self.weighted.append(output)
        self.output_shapes[place] = output.shape
        for tensor in links.out:
            self.hand_over(tensor, self.inner.sent(tensor, self.program.crossings[tensor.tensor], output))

    def _counts(self, stage: int) -> bool:
        """Whether this GPU is its copy's first: what all GPUs of a copy have alike is counted once."""
        return self.inner.gpu % self._tp(stage) == 0

    def _tp(self, stage: int) -> int:
        inside = self.program.inside
        return tp_of(self.program.stages[stage], inside.gpus) if inside else 1

    def _leaf(self, tensor: Tensor) -> torch.Tensor:
        leaf = self.inner.taken(self.program.crossings[tensor.tensor], self.ready.pop(tensor.tensor)).detach()
        return leaf.requires_grad_() if tensor.gradient is not None else leaf

    def _run_of(self, action: Compute, links: Links, leaves: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
        """The forward as it is run now and, where it is recomputed, once more."""
        place, replica, loss = action.place, self.program.actions.replica, self.training.loss
        share = self._share(place, links)
        arguments, named = self._arguments(place, links, leaves, share)
        target = self._split(place, "target", share) if action.loss_weight is not None else None
        chunk, device, orders = self.training.chunks[place.stage], self.training.device, links.orders
        seed = task_seed(self.seed, replica, place, share.gpu // share.tp if share and share.unit else 0)
        part = _part_of_unit(share)
        weight, losses = None if action.loss_weight is None else action.loss_weight * part, self.losses

        def run() -> torch.Tensor:
            with random_state(seed, device):
                output = _tensor(chunk(*_in_order(arguments, orders), **named), place)
                if weight is None:
                    return output
                # A copy that has nothing of the unit has no mean.
                value = _scalar(loss(output, target), place) if part else output.sum() * 0
            losses[place] = value.detach()
            return value * weight

        return run

    def _split(self, place: Place, purpose: str, share: Share | None) -> Any:
        stage = self.program.stages[place.stage]
        return self.training.split(self.batch, Unit(stage.chain, place.microbatch, place.item, place.stage,
                                                    self.program.actions.replica, purpose,
                                                    share.pieces if share else None,
                                                    share_at(self.program.actions, place)))

    def _share(self, place: Place, links: Links) -> Share | None:
        """None: one process is the whole rank."""
        if self.program.inside is None:
            return None
        tp, gpu = self._tp(place.stage), self.inner.gpu
        unit = share_at(self.program.actions, place) if tp < self.program.inside.gpus else None
        pieces = unit.copies[gpu // tp] if unit else None
        rows = None
        if links.previous:
            rows = unit.positions_of(gpu // tp) if unit else self.program.crossings[links.previous.tensor].shape[0]
        return Share(gpu, tp, rows, pieces, unit)

    def _arguments(self, place: Place, links: Links, leaves: list[torch.Tensor],
                   share: Share | None) -> tuple[list[Any], dict[str, Any]]:
        """What the chunk is called with, by position and by name."""
        stage = self.program.stages[place.stage]
        x: Any = leaves[0] if links.previous else None
        data = self._split(place, "input", share) if stage.reads_batch else None
        begins = place.stage in self.program.chain_starts
        arguments = [data if begins and stage.reads_batch else x]
        items = leaves[1:] if links.previous else leaves
        if stage.inputs or items:
            by_chain: dict[str, list[torch.Tensor]] = {chain: [] for chain in stage.inputs}
            for tensor, leaf in zip(links.items, items):
                by_chain.setdefault(self.program.actions.stages[tensor.source.stage].chain, []).append(leaf)
            arguments.append(by_chain)
        named = {"data": data} if stage.reads_batch and not begins else {}
        return arguments, {**named, "share": share} if share else named

    def _backward(self, action: Compute) -> None:
        place, links = action.place, self.program.links[action.place]
        one = self.passes[place]
        gradient = torch.ones_like(self.losses[place]) if place in self.losses else self._gradient(place, links)
        one.again()
        self._count()
        if action.op == "I":
            gradients = one.input_gradient(gradient)
        else:
            gradients = self.passes.pop(place).backward(gradient)
        for tensor, value in zip(links.inputs, gradients):
            if tensor.gradient is None:
                continue
            self._give_back(tensor, value)

    def _give_back(self, tensor: Tensor, value: torch.Tensor | None) -> None:
        """The gradient of what a pass took; None: the chunk does not depend on it."""
        crossing, actions = self.program.crossings[tensor.tensor], self.program.actions
        if value is None:
            shape = crossing.shape if crossing.gathered else tensor.shape or ()
            value = torch.zeros(shape, dtype=self.dtype_of(tensor), device=self.training.device)
        target = tensor.target.stage
        counts = parted(actions, actions.stages[target]) or self._counts(target)
        assert tensor.gradient is not None
        self.hand_over(actions.tensors[tensor.gradient], self.inner.given_back(crossing, value, counts))

    def _gradient(self, place: Place, links: Links) -> torch.Tensor | None:
        """The output's, summed over its consumers in the tensors' order; None: no consumer gives one."""
        total: torch.Tensor | None = None
        for tensor in links.out:
            if tensor.gradient is None:
                continue
            part = self.inner.returned(self.program.crossings[tensor.tensor], self.ready.pop(tensor.gradient),
                                       self.output_shapes[place])
            total = part if total is None else total + part
        return total


class Reductions:
    """Which gradients are complete. A weight of several stages is when all of these are; those of phases are summed
    together, when all of the rank's are."""

    def __init__(self, program: Program, chunks: Mapping[int, torch.nn.Module]) -> None:
        self.program, self.chunks = program, chunks
        self.done: set[int] = set()
        self.holders: dict[int, set[int]] = {}
        trained = [stage for number, stage in sorted(program.stages.items()) if stage.trainable]
        self.phases = {stage.stage for stage in trained if stage.phase}
        for stage in trained:
            for weight in chunks[stage.stage].parameters():
                self.holders.setdefault(id(weight), set()).add(stage.stage)

    def complete(self, stages: Sequence[int]) -> dict[int, list[torch.nn.Parameter]]:
        """The backwards of these stages have ended: the weights whose gradients are now complete, by whom sums them."""
        self.done |= set(stages)
        chains = [stage for stage in stages if stage not in self.phases]
        phases = sorted(self.phases) if self.phases <= self.done and self.phases & set(stages) else []
        found: dict[int, list[torch.nn.Parameter]] = {}
        for stage in chains + phases:
            for weight in self.chunks[stage].parameters():
                if weight.requires_grad and self.holders[id(weight)] <= self.done:
                    key = PHASE if stage in self.phases else key_of(self.program, stage, weight)
                    found.setdefault(key, []).append(weight)
        return found


def _part_of_unit(share: Share | None) -> float:
    """Of a loss's weight: by positions."""
    if share is None or share.unit is None:
        return 1.0
    return share.unit.positions_of(share.gpu // share.tp) / max(1, share.unit.positions())


def _in_order(arguments: list[Any], orders: Mapping[str, Order]) -> list[Any]:
    """What comes from a phase on several ranks, as one tensor in the order of the microbatch's items."""
    if not orders:
        return arguments
    by_chain = dict(arguments[1])
    for chain, order in orders.items():
        items = by_chain[chain]
        by_chain[chain] = [torch.cat([items[k][first:end] for k, first, end in order])] if order else items[:1]
    return [arguments[0], by_chain]


def _tensor(output: Any, place: Place) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        raise PipeweaverError(f"the chunk of {place} gave {type(output).__name__}, one tensor is needed")
    return output


def _scalar(value: Any, place: Place) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        shape = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise PipeweaverError(f"the loss of {place} is {shape}, a scalar tensor is needed")
    return value
