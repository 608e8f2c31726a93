"""One rank's part of a plan, looked up once: which tensors each pass takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..errors import PipeweaverError
from .actions import Compute, Place, RankActions, Stage, Tensor

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

    actions: RankActions
    stages: dict[int, Stage]
    links: dict[Place, Links]
    chain_starts: frozenset[int]


def program_of(actions: RankActions) -> Program:
    """Pre: check(actions) passed, or that of the whole that it is of."""
    links: dict[Place, Links] = {}
    for action in actions.actions:
        if isinstance(action, Compute):
            link = links.setdefault(action.place, Links())
            link.split |= action.op == "I"
            link.backward |= action.op in "BI"
    for tensor in actions.tensors.values():
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
    return Program(actions, actions.on_rank(actions.rank), links, frozenset(first.values()))


def _join(link: Links, tensor: Tensor) -> None:
    if tensor.join == "item":
        link.items.append(tensor)
        return
    if link.previous:
        raise PipeweaverError(f"{tensor.target}: tensors {link.previous.tensor} and {tensor.tensor} both come from "
                              "the stage before")
    link.previous = tensor
