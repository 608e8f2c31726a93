"""One rank's part of a plan, looked up once: which tensors each pass takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from ..errors import PipeweaverError
from .actions import Actions, Compute, Message, Place, Stage, Tensor

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


@dataclass
class Links:
    """What one pass is connected with; activations, each with the number of its gradient."""

    previous: Tensor | None = None
    items: list[Tensor] = field(default_factory=list)
    out: list[Tensor] = field(default_factory=list)
    split: bool = False
    backward: bool = False

    @property
    def inputs(self) -> list[Tensor]:
        """In the order of the pass's leaves."""
        return ([self.previous] if self.previous else []) + self.items


@dataclass
class Program:
    """A rank's list with what it needs to be run."""

    actions: Actions
    rank: int
    stages: dict[int, Stage]
    links: dict[Place, Links]
    releases: dict[int, list[int]]
    chain_starts: frozenset[int]

    @property
    def most_alive(self) -> int:
        return self.actions.most_alive[self.rank]


def program_of(actions: Actions, rank: int) -> Program:
    """Pre: check(actions) passed."""
    links: dict[Place, Links] = {}
    for action in actions.lists[rank]:
        if isinstance(action, Compute):
            link = links.setdefault(action.place, Links())
            link.split |= action.op == "I"
            link.backward |= action.op in "BI"
    for tensor in actions.tensors:
        if tensor.kind != "activation":
            continue
        if tensor.source in links:
            links[tensor.source].out.append(tensor)
        if tensor.target in links:
            _join(links[tensor.target], tensor)
    for link in links.values():
        link.items.sort(key=lambda tensor: (tensor.source, tensor.tensor))
    first: dict[str, int] = {}
    for number, stage in sorted(actions.stages.items()):
        first.setdefault(stage.chain, number)
    return Program(actions, rank, actions.on_rank(rank), links, _releases(actions, rank), frozenset(first.values()))


def _join(link: Links, tensor: Tensor) -> None:
    if tensor.join == "item":
        link.items.append(tensor)
        return
    if link.previous:
        raise PipeweaverError(f"{tensor.target}: tensors {link.previous.tensor} and {tensor.tensor} both come from "
                              "the stage before")
    link.previous = tensor


def _releases(actions: Actions, rank: int) -> dict[int, list[int]]:
    """Per tensor that the rank waits for: the tensors that its sender must have received from this rank before it sent
    that one; their buffers are free then."""
    releases: dict[int, list[int]] = {}
    source = {t.tensor: actions.stages[t.source.stage].rank for t in actions.tensors}
    for peer in range(actions.ranks):
        known: list[int] = []
        for action in actions.lists[peer] if peer != rank else ():
            if not isinstance(action, Message):
                continue
            if action.op == "wait" and source[action.tensor] == rank:
                known.append(action.tensor)
            elif action.op == "send" and action.peer == rank and known:
                releases[action.tensor], known = known, []
    return releases


def check_chunks(program: Program, chunks: Mapping[int, torch.nn.Module]) -> None:
    """Raises PipeweaverError unless there is a chunk for each of the rank's stages and no other, frozen where the plan
    has it frozen."""
    for number, stage in sorted(program.stages.items()):
        if number not in chunks:
            parts = " and ".join(_part_text(stage, k) for k in range(len(stage.parts)))
            raise PipeweaverError(f"there is no chunk for stage {number} ({parts}), which the plan has here")
        trained = any(weight.requires_grad for weight in chunks[number].parameters())
        if trained and not stage.trainable:
            raise PipeweaverError(f"stage {number} is frozen in the plan, but its chunk has parameters that require "
                                  "gradients")
    for number in sorted(chunks):
        if number not in program.stages:
            there = f"on rank {program.actions.stages[number].rank}" if number in program.actions.stages else "nowhere"
            raise PipeweaverError(f"there is a chunk for stage {number}, which the plan has {there}")


def _part_text(stage: Stage, k: int) -> str:
    part = stage.parts[k]
    if part.layers is None or part.first_layer is None:
        return part.module
    return f"{part.module} layers {part.first_layer} to {part.first_layer + part.layers - 1}"


def check_shapes(program: Program) -> None:
    """Raises PipeweaverError where a tensor's shape or type is not known."""
    for tensor in program.actions.tensors:
        if tensor.shape is None:
            raise PipeweaverError(f"tensor {tensor.tensor} of stage {tensor.source.stage} has no shape: give the stages' "
                                  "output shapes, actions.with_shapes({stage: shape})")
        if tensor.dtype not in DTYPES:
            raise PipeweaverError(f"tensor {tensor.tensor}: is of type '{tensor.dtype}', known are {', '.join(DTYPES)}")
