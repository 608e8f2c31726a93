"""How the GPUs of a rank have a tensor between them: which of its rows each sends and takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import PipeweaverError
from .actions import Actions, Place, RankActions, Stage, Tensor
from .unit_shares import Ranges, UnitShare


@dataclass(frozen=True)
class Cut:
    """One GPU's rows of a tensor. `local`: where they are in its copy's output (None: all of it, in this order);
    `part`: where those that it sends are in the tensor; `rows` is how many it sends, zeros behind them included."""

    local: Ranges | None
    part: Ranges
    rows: int


@dataclass(frozen=True)
class Crossing:
    """An activation and its gradient on their way between two passes. `shape` is the whole tensor's; `parts` GPUs of a
    copy have parts of its rows (1: each has all of them). `gathered`: the consumer puts the whole tensor together;
    `summed`: its GPUs' gradients are then summed."""

    shape: tuple[int, ...]
    tp: int
    parts: int
    cuts: tuple[Cut, ...]
    gathered: bool = False
    summed: bool = False


@dataclass(frozen=True)
class Inside:
    """The GPUs of a rank: how many, and this one's number."""

    gpus: int
    gpu: int


def tp_of(stage: Stage, gpus: int) -> int:
    """GPUs of a copy, of the `gpus` of a rank."""
    return 1 if stage.phase else gpus // stage.copies


def parted(actions: RankActions, stage: Stage) -> bool:
    """Whether GPUs of one copy have different rows."""
    return actions.sequence_parallel and tp_of(stage, actions.gpus) > 1


def last_stages(stages: Mapping[int, Stage]) -> frozenset[int]:
    """Those that end their chains."""
    last: dict[str, int] = {}
    for number, stage in sorted(stages.items()):
        if not stage.phase:
            last[stage.chain] = number
    return frozenset(last.values()) | {number for number, stage in stages.items() if stage.phase}


def share_at(actions: Actions | RankActions, place: Place) -> UnitShare | None:
    """How copies share the pass's unit; None: its stage has one copy."""
    stage = actions.stages[place.stage]
    if stage.phase:
        return actions.shares.get(("", place.stage, 0))
    return actions.shares.get((stage.chain, place.microbatch, place.item))


def crossing_of(actions: RankActions, tensor: Tensor, last: frozenset[int], inside: Inside | None) -> Crossing:
    """Of an activation with a shape. `inside` None: one process is the whole rank."""
    assert tensor.shape is not None
    if inside is None or inside.gpus == 1 and not tensor.slices:
        return Crossing(tensor.shape, 1, 1, (_whole(tensor),))
    source, target = (actions.stages[place.stage] for place in (tensor.source, tensor.target))
    tp = tp_of(source, inside.gpus)
    parts = tp if parted(actions, source) else 1
    share = share_at(actions, tensor.source) if inside.gpus > tp else None
    if inside.gpus > tp and share is None:
        raise PipeweaverError(f"tensor {tensor.tensor} of {tensor.source}: its stage has {inside.gpus // tp} copies, "
                              "and the plan has no share for this unit")
    cuts = tuple(_cut(tensor, share, gpu, tp, parts, tensor.source.stage in last) for gpu in range(inside.gpus))
    _check_cover(tensor, cuts, tp if parts == 1 else 1)
    others = source.chain != target.chain
    shared = inside.gpus > tp_of(target, inside.gpus) or parted(actions, target)
    return Crossing(tensor.shape, tp, parts, cuts, others and (share is not None or parts > 1), others and shared)


def _whole(tensor: Tensor) -> Cut:
    rows = tensor.shape[0] if tensor.shape else 0
    return Cut(tensor.slices or None, ((0, rows),), rows)


def _cut(tensor: Tensor, share: UnitShare | None, gpu: int, tp: int, parts: int, behind: bool) -> Cut:
    if share is None:
        whole = _whole(tensor)
        local, taken = whole.local, whole.part
    else:
        assert tensor.shape is not None
        local, taken = _inside(share.rows_of(gpu // tp, behind), tensor.slices or ((0, tensor.shape[0]),))
        local = local if tensor.slices else None
    if parts == 1:
        return Cut(local, taken, length(taken))
    each = -(-length(taken) // parts)
    return Cut(local, part_of(taken, (gpu % tp) * each, (gpu % tp + 1) * each), each)


def _inside(owned: Ranges, slices: Ranges) -> tuple[Ranges, Ranges]:
    """The rows of `owned` in `slices`: where they are among the owned ones, and where in the slices put together."""
    local, taken, at = [], [], 0
    for first, end in owned:
        begin = 0
        for a, b in slices:
            low, high = max(first, a), min(end, b)
            if low < high:
                local.append((at + low - first, at + high - first))
                taken.append((begin + low - a, begin + high - a))
            begin += b - a
        at += end - first
    return tuple(local), tuple(taken)


def length(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges)


def part_of(ranges: Ranges, begin: int, stop: int) -> Ranges:
    """Rows `begin` to `stop - 1` of the ranges put together."""
    return tuple(_parts(ranges, begin, stop))


def _parts(ranges: Ranges, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    at = 0
    for first, end in ranges:
        low, high = max(begin - at, 0), min(stop - at, end - first)
        if low < high:
            yield first + low, first + high
        at += end - first


def _check_cover(tensor: Tensor, cuts: tuple[Cut, ...], step: int) -> None:
    """The GPUs have every row of the tensor between them, once."""
    assert tensor.shape is not None
    at = 0
    for first, end in sorted(one for cut in cuts[::step] if cut.rows for one in cut.part):
        if first != at:
            break
        at = end
    if at != tensor.shape[0]:
        raise PipeweaverError(f"tensor {tensor.tensor} of {tensor.source} has {tensor.shape[0]} rows, of which the "
                              f"copies' pieces do not have row {at} once")
