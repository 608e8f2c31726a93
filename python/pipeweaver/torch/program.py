"""One rank's part of a plan, looked up once: which tensors each pass takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from ..errors import PipeweaverError
from .actions import Compute, Place, RankActions, Stage, Tensor
from .crossings import Crossing, Inside, crossing_of, last_stages, share_at

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
Order = tuple[tuple[int, int, int], ...]  # number among the items of its chain, first row, end


@dataclass
class Links:
    """What one pass is connected with; activations, each with the number of its gradient. `orders`: how the outputs of
    a phase's module on several ranks become one tensor, in the order of the microbatch's items."""

    previous: Tensor | None = None
    items: list[Tensor] = field(default_factory=list)
    out: list[Tensor] = field(default_factory=list)
    split: bool = False
    backward: bool = False
    orders: dict[str, Order] = field(default_factory=dict)

    @property
    def inputs(self) -> list[Tensor]:
        """In the order of the pass's leaves."""
        return ([self.previous] if self.previous else []) + self.items


@dataclass
class Program:
    """A rank's list with what it needs to be run. The shapes of `actions` are those of this GPU's own messages, by
    `crossings` (of activations)."""

    actions: RankActions
    stages: dict[int, Stage]
    links: dict[Place, Links]
    chain_starts: frozenset[int]
    crossings: dict[int, Crossing]
    inside: Inside | None = None


def program_of(actions: RankActions, inside: Inside | None = None) -> Program:
    """Of a GPU of the rank, or of one process that is the whole rank. Pre: check(actions) passed, or that of the whole
    that it is of."""
    actions, crossings = _own(actions, inside)
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
        link.orders = _orders(actions, link.items, crossings)
    return Program(actions, actions.on_rank(actions.rank), links, _starts(actions), crossings, inside)


def _own(actions: RankActions, inside: Inside | None) -> tuple[RankActions, dict[int, Crossing]]:
    """With the shapes of what this GPU sends and takes."""
    last, crossings, tensors = last_stages(actions.stages), {}, dict(actions.tensors)
    for number, tensor in actions.tensors.items():
        if tensor.kind != "activation" or tensor.shape is None:
            continue
        crossing = crossings[number] = crossing_of(actions, tensor, last, inside)
        if len(crossing.cuts) > 1 and inside is not None:
            shape = (crossing.cuts[inside.gpu].rows, *tensor.shape[1:])
            for one in (number, tensor.gradient):
                if one is not None:
                    tensors[one] = replace(actions.tensors[one], shape=shape)
    return replace(actions, tensors=tensors), crossings


def _starts(actions: RankActions) -> frozenset[int]:
    first: dict[str, int] = {}
    phase = set()
    for number, stage in sorted(actions.stages.items()):
        if stage.phase:
            phase.add(number)
        else:
            first.setdefault(stage.chain, number)
    return frozenset(first.values()) | phase


def _join(link: Links, tensor: Tensor) -> None:
    if tensor.join == "item":
        link.items.append(tensor)
        return
    if link.previous:
        raise PipeweaverError(f"{tensor.target}: tensors {link.previous.tensor} and {tensor.tensor} both come from "
                              "the stage before")
    link.previous = tensor


def _orders(actions: RankActions, items: list[Tensor], crossings: dict[int, Crossing]) -> dict[str, Order]:
    """Of a pass's inputs from phases, by module."""
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    numbers: dict[str, int] = {}
    for tensor in items:
        source = actions.stages[tensor.source.stage]
        share = share_at(actions, tensor.source) if source.phase else None
        if share is None or tensor.tensor not in crossings:
            continue
        rows = found.setdefault(source.chain, [])
        number = numbers[source.chain] = numbers.get(source.chain, -1) + 1
        begins, at = share.begins(), 0
        for first, end in tensor.slices or ((0, crossings[tensor.tensor].shape[0]),):
            for k, (_, at_place) in enumerate(share.of):
                low, high = max(first, begins[k]), min(end, begins[k + 1])
                if low < high:
                    rows.append((at_place, number, at + low - first, at + high - first))
            at += end - first
        if at != crossings[tensor.tensor].shape[0]:
            raise PipeweaverError(f"tensor {tensor.tensor}: its slices do not have its rows")
    return {chain: tuple(one[1:] for one in sorted(rows)) for chain, rows in found.items()}
