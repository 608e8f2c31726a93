"""Action lists ("pipeweaver-actions/1", "pipeweaver-rank-actions/1": docs/formats.md) as values."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Union

from .._whole_plan import require_whole
from ..errors import PipeweaverError
from .unit_shares import Piece, UnitShare

FORMAT = "pipeweaver-actions"
RANK_FORMAT = "pipeweaver-rank-actions"
VERSION = 1
COMPUTE = ("F", "B", "I", "W")
RECOMPUTE = re.compile(r"none|selective|half|full|offload|blocks:[1-9][0-9]*")


class Place(NamedTuple):
    """One unit's pass through one stage."""

    stage: int
    microbatch: int
    item: int

    def __str__(self) -> str:
        return f"stage {self.stage}, microbatch {self.microbatch}, item {self.item}"


@dataclass(frozen=True)
class Part:
    """Consecutive layers of a module inside a stage; `layers` None: all of it."""

    module: str
    first_layer: int | None
    layers: int | None
    trainable: bool


@dataclass(frozen=True)
class Stage:
    """What a chunk is built from, and what it is given. `copies` of it share a unit's sequences on the GPUs of its
    rank, each of them `tp` GPUs; a `phase` stage has one on every GPU of the replica."""

    stage: int
    rank: int
    chain: str
    trainable: bool
    gradient: bool
    reads_batch: bool
    inputs: tuple[str, ...]
    parts: tuple[Part, ...]
    tp: int = 1
    copies: int = 1
    phase: bool = False


@dataclass(frozen=True)
class Tensor:
    """What goes from one pass to another. `gradient` (of an activation) and `of` (of a gradient) are each other's
    numbers; `shape` None: not known to the plan."""

    tensor: int
    kind: str
    source: Place
    target: Place
    shape: tuple[int, ...] | None
    dtype: str
    join: str = "previous"
    slices: tuple[tuple[int, int], ...] = ()
    gradient: int | None = None
    of: int | None = None


@dataclass(frozen=True)
class Compute:
    """F, B, I or W of a pass. `loss_weight` None: no loss follows this forward."""

    op: str
    task: int
    place: Place
    recompute: str = "none"
    loss_weight: float | None = None


@dataclass(frozen=True)
class Message:
    """send, receive or wait. `freed`: when this wait has ended, who sent the tensor has received these of this rank."""

    op: str
    tensor: int
    peer: int = -1
    tag: int = -1
    freed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reduce:
    """The gradients of these stages are complete on this rank."""

    stages: tuple[int, ...]
    op: str = "reduce"


Action = Union[Compute, Message, Reduce]
ShareKey = tuple[str, int, int]  # chain, microbatch, item; or "", phase stage, 0


def _shaped(tensor: Tensor, shapes: Mapping[int, tuple[int, ...]]) -> Tensor:
    """With the shape of its stage's output, if it has none."""
    stage = tensor.source.stage if tensor.kind == "activation" else tensor.target.stage
    return replace(tensor, shape=tuple(shapes[stage])) if tensor.shape is None and stage in shapes else tensor


@dataclass(frozen=True)
class RankActions:
    """What one rank of a replica does, in order: all that its executor needs. `tensors` are those that it takes or
    gives, by number; `lists_sha256` is the same on all ranks of a replica. Each rank has `gpus` GPUs, `shares` say what
    copies of stages among them take."""

    problem: str
    replica: int
    replicas: int
    ranks: int
    rank: int
    most_alive: int
    stages: Mapping[int, Stage]
    tensors: Mapping[int, Tensor]
    actions: tuple[Action, ...]
    lists_sha256: str = ""
    gpus: int = 1
    sequence_parallel: bool = False
    shares: Mapping[ShareKey, UnitShare] = field(default_factory=dict)

    def on_rank(self, rank: int) -> dict[int, Stage]:
        """The rank's stages by number."""
        return _on_rank(self.stages, rank)

    def of_rank(self, rank: int) -> RankActions:
        """Itself. Raises PipeweaverError where another rank's are asked for."""
        if rank != self.rank:
            raise PipeweaverError(f"these are the actions of rank {self.rank}, this is rank {rank}")
        return self

    def with_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> RankActions:
        """As Actions.with_shapes()."""
        return replace(self, tensors={number: _shaped(tensor, shapes) for number, tensor in self.tensors.items()})


@dataclass(frozen=True)
class Actions:
    """One replica's step: what each rank does, in order."""

    problem: str
    replica: int
    replicas: int
    ranks: int
    most_alive: tuple[int, ...]
    stages: Mapping[int, Stage]
    tensors: tuple[Tensor, ...]
    lists: tuple[tuple[Action, ...], ...]
    gpus: int = 1
    sequence_parallel: bool = False
    shares: Mapping[ShareKey, UnitShare] = field(default_factory=dict)

    def on_rank(self, rank: int) -> dict[int, Stage]:
        """The rank's stages by number."""
        return _on_rank(self.stages, rank)

    def of_rank(self, rank: int) -> RankActions:
        """What this rank needs of them. Pre: check() passed."""
        ends = {t.tensor: (self.stages[t.source.stage].rank, self.stages[t.target.stage].rank) for t in self.tensors}
        tensors = {t.tensor: t for t in self.tensors if rank in ends[t.tensor]}
        freed = self._freed(rank, {number: source for number, (source, _) in ends.items()})
        actions = tuple(replace(action, freed=freed.get(action.tensor, ()))
                        if isinstance(action, Message) and action.op == "wait" else action
                        for action in self.lists[rank])
        return RankActions(self.problem, self.replica, self.replicas, self.ranks, rank, self.most_alive[rank],
                           self.stages, tensors, actions, "", self.gpus, self.sequence_parallel, self.shares)

    def _freed(self, rank: int, source: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
        """Per tensor that the rank waits for: the tensors that its sender has received from this rank before it sends
        that one; their buffers are free then."""
        freed: dict[int, tuple[int, ...]] = {}
        for peer in range(self.ranks):
            known: list[int] = []
            for action in self.lists[peer] if peer != rank else ():
                if not isinstance(action, Message):
                    continue
                if action.op == "wait" and source[action.tensor] == rank:
                    known.append(action.tensor)
                elif action.op == "send" and action.peer == rank and known:
                    freed[action.tensor], known = tuple(known), []
        return freed

    def with_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> Actions:
        """For plans that do not know shapes (those of measured stage times): `shapes` has each stage's output."""
        return replace(self, tensors=tuple(_shaped(tensor, shapes) for tensor in self.tensors))


def _on_rank(stages: Mapping[int, Stage], rank: int) -> dict[int, Stage]:
    return {number: stage for number, stage in stages.items() if stage.rank == rank}


class _Reader:
    """Takes values out of parsed JSON, naming the place of what is missing or of another type."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise PipeweaverError(f"{where}: is {type(value).__name__}, an object is needed")
        self.value, self.where = value, where

    def get(self, key: str, kind: type | tuple[type, ...], *default: Any) -> Any:
        if key not in self.value:
            if default:
                return default[0]
            raise PipeweaverError(f"{self.where}.{key}: is missing")
        found = self.value[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise PipeweaverError(f"{self.where}.{key}: is {json.dumps(found)[:40]}, which is of another type")
        return found

    def number(self, key: str, *default: int | None) -> Any:
        found = self.get(key, (int, type(None)) if default else int, *default)
        if found is not None and found < 0:
            raise PipeweaverError(f"{self.where}.{key}: is {found}, must be a whole number from 0")
        return found

    def one_of(self, key: str, allowed: tuple[str, ...], *default: str) -> str:
        found: str = self.get(key, str, *default)
        if found not in allowed:
            raise PipeweaverError(f"{self.where}.{key}: is '{found}', must be one of {', '.join(allowed)}")
        return found

    def objects(self, key: str) -> list[_Reader]:
        return [_Reader(entry, f"{self.where}.{key}[{i}]") for i, entry in enumerate(self.get(key, list))]

    def numbers(self, key: str, *default: tuple[int, ...]) -> tuple[int, ...]:
        return _numbers(list(self.get(key, list, *default)), f"{self.where}.{key}")

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key, list)
        if not all(isinstance(one, str) for one in found):
            raise PipeweaverError(f"{self.where}.{key}: holds what is no text")
        return tuple(found)

    def place(self) -> Place:
        return Place(self.number("stage"), self.number("microbatch"), self.number("item"))

    def child(self, key: str) -> _Reader:
        return _Reader(self.get(key, dict), f"{self.where}.{key}")


def _numbers(values: list[Any], where: str) -> tuple[int, ...]:
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in values):
        raise PipeweaverError(f"{where}: is {json.dumps(values)[:40]}, must be a whole number from 0")
    return tuple(values)


def _stage(entry: _Reader, gpus: int) -> Stage:
    parts = tuple(Part(part.get("module", str), part.number("first_layer", None), part.number("layers", None),
                       part.get("trainable", bool, True)) for part in entry.objects("parts"))
    copies = entry.number("copies", 1)
    return Stage(entry.number("stage"), entry.number("rank"), entry.get("chain", str), entry.get("trainable", bool),
                 entry.get("gradient", bool), entry.get("reads_batch", bool), entry.texts("inputs"), parts,
                 entry.number("tp", gpus), copies, entry.get("phase", bool, False))


def _share(entry: _Reader) -> UnitShare:
    copies = []
    for k, pieces in enumerate(entry.get("copies", list)):
        where = f"{entry.where}.copies[{k}]"
        found = pieces if isinstance(pieces, list) else [pieces]
        copies.append(tuple(Piece(*_tuple(one, 3, where)) for one in found))
    of = tuple(_tuple(one, 2, f"{entry.where}.of") for one in entry.get("of", list, []))
    share = UnitShare(entry.get("chain", str), entry.number("microbatch"), entry.number("item"),
                      entry.numbers("lengths"), entry.number("reduction", 1), tuple(copies),
                      entry.number("stage", None), of)
    if share.reduction < 1:
        raise PipeweaverError(f"{entry.where}.reduction: is 0, must be a whole number from 1")
    if share.stage is not None and len(of) != len(share.lengths):
        raise PipeweaverError(f"{entry.where}.of: has {len(of)} entries, there are {len(share.lengths)} sequences")
    if problem := share.problem():
        raise PipeweaverError(f"{entry.where}: {problem}")
    return share


def _tuple(value: Any, count: int, where: str) -> tuple[Any, ...]:
    found = _numbers(value if isinstance(value, list) else [value], where)
    if len(found) != count:
        raise PipeweaverError(f"{where}: is {json.dumps(value)[:40]}, {count} whole numbers are needed")
    return found


def _shares(entry: _Reader) -> dict[ShareKey, UnitShare]:
    shares: dict[ShareKey, UnitShare] = {}
    for one in entry.objects("shares") if "shares" in entry.value else ():
        share = _share(one)
        key = (share.chain, share.microbatch, share.item) if share.stage is None else ("", share.stage, 0)
        if key in shares:
            raise PipeweaverError(f"{one.where}: is of the same unit as another")
        shares[key] = share
    return shares


def _shape(entry: _Reader) -> tuple[int, ...] | None:
    return None if entry.get("shape", (list, type(None))) is None else entry.numbers("shape")


def _slices(entry: _Reader) -> tuple[tuple[int, int], ...]:
    slices = []
    for k, found in enumerate(entry.get("slices", list, [])):
        where = f"{entry.where}.slices[{k}]"
        ends = _numbers(found if isinstance(found, list) else [found], where)
        if len(ends) != 2 or ends[0] > ends[1]:
            raise PipeweaverError(f"{where}: is {json.dumps(found)[:40]}, the first row and the end are needed")
        slices.append((ends[0], ends[1]))
    return tuple(slices)


def _tensor(entry: _Reader) -> Tensor:
    kind = entry.one_of("kind", ("activation", "gradient"))
    common = (entry.number("tensor"), kind, entry.child("from").place(), entry.child("to").place(), _shape(entry),
              entry.get("dtype", str))
    if kind == "gradient":
        return Tensor(*common, of=entry.number("of"))
    return Tensor(*common, join=entry.one_of("join", ("previous", "item")), slices=_slices(entry),
                  gradient=entry.number("gradient", None))


def _recompute(entry: _Reader) -> str:
    name: str = entry.get("recompute", str, "none")
    if not RECOMPUTE.fullmatch(name):
        raise PipeweaverError(f"{entry.where}.recompute: is '{name}', the executor knows none, selective, half, full, "
                              "offload and blocks:N")
    return name


def _action(entry: _Reader) -> Action:
    op = entry.one_of("op", (*COMPUTE, "send", "receive", "wait", "reduce"))
    if op == "reduce":
        return Reduce(entry.numbers("stages"))
    if op == "wait":
        return Message(op, entry.number("tensor"), freed=entry.numbers("freed", ()))
    if op in ("send", "receive"):
        return Message(op, entry.number("tensor"), entry.number("peer"), entry.number("tag"))
    weight = entry.get("loss_weight", (int, float, type(None)), None)
    return Compute(op, entry.number("task"), entry.place(), _recompute(entry),
                   None if weight is None else float(weight))


def _format(entry: _Reader) -> str:
    name, _, version = str(entry.get("format", str)).partition("/")
    if name not in (FORMAT, RANK_FORMAT) or not version.isdigit():
        raise PipeweaverError(f"{entry.where}.format: is '{entry.value['format']}', '{FORMAT}/{VERSION}' or "
                              f"'{RANK_FORMAT}/{VERSION}' is needed")
    if int(version) != VERSION:
        raise PipeweaverError(f"{entry.where}.format: is version {version}, this executor reads version {VERSION}")
    return name


def parse_actions(text: str | bytes, name: str = "actions") -> Actions | RankActions:
    """The lists in `text`. Raises PipeweaverError naming the place of what is wrong; `name` stands for the file."""
    try:
        return actions_of(json.loads(text), name)
    except ValueError as error:
        raise PipeweaverError(f"{name}: is not JSON: {error}") from error


def actions_of(value: Mapping[str, Any], name: str = "actions") -> Actions | RankActions:
    """The same from parsed JSON, as `Replica.actions` and `Replica.rank_actions()` of a plan give it."""
    entry = _Reader(value, name)
    kind = _format(entry)
    gpus = entry.number("gpus", 1)
    stages = {stage.stage: stage for stage in (_stage(one, gpus) for one in entry.objects("stages"))}
    tensors = tuple(map(_tensor, entry.objects("tensors")))
    common = (entry.get("problem", str), entry.number("replica"), entry.number("replicas"), entry.number("ranks"))
    inside = {"gpus": gpus, "sequence_parallel": entry.get("sequence_parallel", bool, False), "shares": _shares(entry)}
    if kind == RANK_FORMAT:
        by_number = {tensor.tensor: tensor for tensor in tensors}
        if len(by_number) < len(tensors):
            raise PipeweaverError(f"{name}.tensors: a number comes twice")
        return RankActions(*common, entry.number("rank"), entry.number("most_alive"), stages, by_number,
                           _row(entry.get("actions", list), f"{name}.actions"), entry.get("lists_sha256", str),
                           **inside)
    lists = tuple(_row(row, f"{name}.actions[{rank}]") for rank, row in enumerate(entry.get("actions", list)))
    return Actions(*common, entry.numbers("most_alive"), stages, tensors, lists, **inside)


def _row(row: Any, where: str) -> tuple[Action, ...]:
    if not isinstance(row, list):
        raise PipeweaverError(f"{where}: is {type(row).__name__}, a list is needed")
    return tuple(_action(_Reader(one, f"{where}[{i}]")) for i, one in enumerate(row))


def read_actions(source: str | os.PathLike[str]) -> Actions | RankActions:
    """Reads a file actions.json, or that of a rank alone; gzip allowed. Raises PipeweaverError with file and place."""
    path = pathlib.Path(source)
    try:
        content = path.read_bytes()
        require_whole(path, content)
        return parse_actions(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise PipeweaverError(f"{path}: cannot be read: {error}") from error
