"""One step on one rank: its passes, and what is alive between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..errors import PipeweaverError
from .actions import Compute, Place, Reduce, Tensor
from .passes import Pass, random_state, task_seed
from .program import DTYPES, Links, Program
from .replicas import Sums
from .transport import Transport
from .walk import Walk


class Unit(NamedTuple):
    """What `split` is asked for: the data of one pass through a chain. `purpose` is "input" where a module begins and
    "target" where a loss is taken."""

    module: str
    microbatch: int
    item: int
    stage: int
    replica: int
    purpose: str


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
                 sums: Sums) -> None:
        super().__init__(program, transport)
        self.training, self.sums = training, sums
        self.batch, self.seed = batch, seed
        self.passes: dict[Place, Pass] = {}
        self.output_shapes: dict[Place, torch.Size] = {}
        self.losses: dict[Place, torch.Tensor] = {}
        self.weighted: list[torch.Tensor] = []
        self.most_alive = 0

    def reduce(self, action: Reduce) -> None:
        self.sums.start([self.training.chunks[stage] for stage in action.stages])

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
        if action.loss_weight is not None:
            self.weighted.append(output)
        self.output_shapes[place] = output.shape
        for tensor in links.out:
            self.hand_over(tensor, _rows(tensor, output))

    def _leaf(self, tensor: Tensor) -> torch.Tensor:
        leaf = self.ready.pop(tensor.tensor).detach()
        return leaf.requires_grad_() if tensor.gradient is not None else leaf

    def _run_of(self, action: Compute, links: Links, leaves: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
        """The forward as it is run now and, where it is recomputed, once more."""
        place, replica, loss = action.place, self.program.actions.replica, self.training.loss
        arguments, named = self._arguments(place, links, leaves)
        target = self._split(place, "target") if action.loss_weight is not None else None
        chunk, device = self.training.chunks[place.stage], self.training.device
        seed = task_seed(self.seed, replica, place)
        weight, losses = action.loss_weight, self.losses

        def run() -> torch.Tensor:
            with random_state(seed, device):
                output = _tensor(chunk(*arguments, **named), place)
                if weight is None:
                    return output
                value = _scalar(loss(output, target), place)
            losses[place] = value.detach()
            return value * weight

        return run

    def _split(self, place: Place, purpose: str) -> Any:
        stage = self.program.stages[place.stage]
        return self.training.split(self.batch, Unit(stage.chain, place.microbatch, place.item, place.stage,
                                                    self.program.actions.replica, purpose))

    def _arguments(self, place: Place, links: Links, leaves: list[torch.Tensor]) -> tuple[list[Any], dict[str, Any]]:
        """What the chunk is called with, by position and by name."""
        stage = self.program.stages[place.stage]
        x: Any = leaves[0] if links.previous else None
        data = self._split(place, "input") if stage.reads_batch else None
        begins = place.stage in self.program.chain_starts
        arguments = [data if begins and stage.reads_batch else x]
        items = leaves[1:] if links.previous else leaves
        if stage.inputs or items:
            by_chain: dict[str, list[torch.Tensor]] = {chain: [] for chain in stage.inputs}
            for tensor, leaf in zip(links.items, items):
                by_chain.setdefault(self.program.actions.stages[tensor.source.stage].chain, []).append(leaf)
            arguments.append(by_chain)
        return arguments, {"data": data} if stage.reads_batch and not begins else {}

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
            if value is None:  # the chunk does not depend on it
                value = torch.zeros(tensor.shape or (), dtype=self.dtype_of(tensor), device=self.training.device)
            self.hand_over(self.program.actions.tensors[tensor.gradient], value)

    def _gradient(self, place: Place, links: Links) -> torch.Tensor | None:
        """The output's, summed over its consumers in the tensors' order; None: no consumer gives one."""
        total: torch.Tensor | None = None
        for tensor in links.out:
            if tensor.gradient is None:
                continue
            part = self.ready.pop(tensor.gradient)
            if tensor.slices:
                part = _spread(part, tensor.slices, self.output_shapes[place])
            total = part if total is None else total + part
        return total


def _rows(tensor: Tensor, output: torch.Tensor) -> torch.Tensor:
    """What the tensor's consumer takes of its producer's output."""
    if not tensor.slices:
        return output
    end = max(end for _, end in tensor.slices)
    if output.dim() == 0 or output.shape[0] < end:
        raise PipeweaverError(f"tensor {tensor.tensor} of {tensor.source}: the plan takes rows up to {end}, the chunk "
                              f"gave {list(output.shape)}")
    return torch.cat([output[first:end] for first, end in tensor.slices])


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
