"""One rank's part of a plan, looked up once: which tensors each pass takes and gives."""

from __future__ import annotations

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
