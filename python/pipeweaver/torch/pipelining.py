"""Loads the schedule of a plan's torch/ folder into PyTorch's pipeline runtime, at the start or before any step.

PyTorch checks little of such a file, and of one with messages nothing: what it would run wrongly, or wait for without
end, is refused here before anything is sent.
"""

from __future__ import annotations

import csv
import json
import os
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import PipeweaverError

FORMAT = "pipeweaver-torch/1"
CELL = re.compile(r"(\d+)(?:(F|I|B|W|SEND_F|RECV_F|SEND_B|RECV_B)(\d+)|(UNSHARD|RESHARD|REDUCE_GRAD))")
MESSAGES = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")


class Cell(NamedTuple):
    """One action; the microbatch is -1 where it has none."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch if self.microbatch >= 0 else ''}"


def load_schedule(schedule: Any, folder: str | os.PathLike[str], *, messages: bool = False,
                  new_shapes: bool = False) -> None:
    """Gives a `_PipelineScheduleRuntime` the order in `folder` ("pipeweaver-torch/1"), in place of the one it has.

    Call it on every rank with the same files, before the first step or between two. The order may change from step to
    step; stages, ranks and the number of microbatches are fixed for the job. `messages`: load schedule.comms.csv, as it
    stands, else schedule.csv, for which PyTorch works out the messages. `new_shapes`: the next step's microbatches have
    other shapes than the last step's; all ranks must say so together. Raises PipeweaverError, before anything is sent.
    """
    path = pathlib.Path(folder)
    said = read_said(path / "schedule.json")
    require_fits(schedule, said, path / "schedule.json")
    file = path / ("schedule.comms.csv" if messages else "schedule.csv")
    rows = read_rows(file)
    if why := why_not_run(rows, said["stage_to_rank"], said["n_microbatches"], messages):
        raise PipeweaverError(f"{file}: {why}")
    # PyTorch replaces rows one by one, and would keep those that the new file does not have.
    schedule.pipeline_order, schedule.pipeline_order_with_comms = {}, {}
    schedule._load_csv(str(file), format="compute_comms" if messages else "compute_only")
    if new_shapes:
        schedule._stages_forward_initialized = schedule._stages_backward_initialized = False


def read_said(path: pathlib.Path) -> dict[str, Any]:
    """schedule.json."""
    try:
        said = json.loads(path.read_bytes())
    except OSError as error:
        raise PipeweaverError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise PipeweaverError(f"{path}: is no JSON: {error}") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise PipeweaverError(f"{path}: is not of the format {FORMAT}")
    for key in ("pp_size", "num_stages", "n_microbatches"):
        if not is_whole(said.get(key), 1):
            raise PipeweaverError(f"{path}: {key}: is {shown(said.get(key))}, a whole number from 1 is needed")
    ranks = said.get("stage_to_rank")
    if not isinstance(ranks, list) or len(ranks) != said["num_stages"] or not all(is_whole(one, 0) for one in ranks):
        raise PipeweaverError(f"{path}: stage_to_rank: is {shown(ranks)}, needed are the ranks of {said['num_stages']} "
                              "stages")
    return said


def is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def shown(value: Any) -> str:
    return json.dumps(value)[:40]


def require_fits(schedule: Any, said: dict[str, Any], path: pathlib.Path) -> None:
    """Raises where the job's runtime was built for something else."""
    for key, has, what in (("pp_size", schedule.pp_group_size, "ranks in the pipeline's group"),
                           ("num_stages", schedule._num_stages, "stages"),
                           ("n_microbatches", schedule._n_microbatches, "microbatches")):
        if said[key] != has:
            raise PipeweaverError(f"{path}: {key} is {said[key]}, the job has {has} {what}; the number is fixed for "
                                  "the job")
    mine = [stage for stage, rank in enumerate(said["stage_to_rank"]) if rank == schedule.rank]
    built = [stage.stage_index for stage in schedule._stages]
    if mine != built:
        raise PipeweaverError(f"{path}: rank {schedule.rank} has the stages {mine}, this process built {built}")


def read_rows(path: pathlib.Path) -> list[list[Cell]]:
    """The cells of each rank; empty ones stand for nothing and are left out."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise PipeweaverError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise PipeweaverError(f"{path}: is no CSV: {error}") from None
    return [[cell_of(path, rank, text) for text in row if text.strip()] for rank, row in enumerate(rows)]


def cell_of(path: pathlib.Path, rank: int, text: str) -> Cell:
    found = CELL.fullmatch(text.strip())
    if found is None:
        raise PipeweaverError(f"{path}: rank {rank}: {text!r} is no action of PyTorch's pipelines")
    stage, kind, microbatch, other = found.groups()
    return Cell(int(stage), kind or other, -1 if microbatch is None else int(microbatch))


def why_not_run(rows: Sequence[Sequence[Cell]], stage_to_rank: Sequence[int], microbatches: int,
                messages: bool) -> str | None:
    """The first rule that the rows break, with rank and action; None: PyTorch runs them to the end, and rightly."""
    ranks = max(stage_to_rank) + 1
    if len(rows) != ranks:
        return f"has {len(rows)} rows, the plan is for {ranks} ranks"
    for rank, row in enumerate(rows):
        for cell in row:
            if cell.stage >= len(stage_to_rank) or stage_to_rank[cell.stage] != rank:
                return f"rank {rank}: {cell}: the stage is not on this rank"
            if cell.microbatch >= microbatches:
                return f"rank {rank}: {cell}: the job has {microbatches} microbatches"
            if not messages and (cell.microbatch < 0 or cell.kind in MESSAGES):
                return f"rank {rank}: {cell}: a file without messages has F, B, I and W alone"
    return why_not_complete(rows, stage_to_rank, microbatches, messages) or Run(rows, stage_to_rank, messages).why_not()


def why_not_complete(rows: Sequence[Sequence[Cell]], stage_to_rank: Sequence[int], microbatches: int,
                     messages: bool) -> str | None:
    """What is missing, or there more than once."""
    count = Counter(cell for row in rows for cell in row)
    for cell, times in count.items():
        if times > 1 and cell.kind not in ("UNSHARD", "RESHARD"):
            return f"rank {stage_to_rank[cell.stage]}: {cell} is there {times} times"
    for cell in expected(stage_to_rank, microbatches, messages):
        whole, parts = Cell(cell.stage, "B", cell.microbatch), [cell._replace(kind=kind) for kind in "IW"]
        there = [one in count for one in ([whole, *parts] if cell.kind == "B" else [cell])]
        if there not in ([True], [True, False, False], [False, True, True]):
            what = f"{whole} or both of {parts[0]} and {parts[1]}" if cell.kind == "B" else str(cell)
            return f"rank {stage_to_rank[cell.stage]}: needed is {what}"
    wanted = set(expected(stage_to_rank, microbatches, messages))
    for cell in count:
        if cell.kind in MESSAGES and cell not in wanted:
            return f"rank {stage_to_rank[cell.stage]}: {cell}: no tensor goes there"
    return None


def expected(stage_to_rank: Sequence[int], microbatches: int, messages: bool) -> Iterator[Cell]:
    """What each stage must have; "B" stands for I and W, too."""
    for stage, rank in enumerate(stage_to_rank):
        if messages:
            yield Cell(stage, "REDUCE_GRAD", -1)
        for microbatch in range(microbatches):
            yield Cell(stage, "F", microbatch)
            yield Cell(stage, "B", microbatch)
            if messages and stage + 1 < len(stage_to_rank) and stage_to_rank[stage + 1] != rank:
                yield from (Cell(stage, "SEND_F", microbatch), Cell(stage + 1, "RECV_F", microbatch),
                            Cell(stage + 1, "SEND_B", microbatch), Cell(stage, "RECV_B", microbatch))


class Run:
    """The rows, run with no more than their order. A send and its receive are done together, when both are next: so no
    transport, in whatever order it matches messages, can wait without end. Pre: nothing is missing or twice there."""

    def __init__(self, rows: Sequence[Sequence[Cell]], stage_to_rank: Sequence[int], messages: bool) -> None:
        self.rows, self.stage_to_rank, self.messages = rows, stage_to_rank, messages
        self.at = [0] * len(rows)
        self.done: set[Cell] = set()
        self.whole: set[int] = set()  # stages between UNSHARD and RESHARD
        self.wrong: str | None = None
        self.next_loss = 0

    def why_not(self) -> str | None:
        moved = True
        while moved and self.wrong is None:
            moved = False
            for rank in range(len(self.rows)):
                while self.wrong is None and self.advance(rank):
                    moved = True
        waiting = [f"rank {rank} for {self.next(rank)}" for rank in range(len(self.rows)) if self.next(rank)]
        if self.wrong is None and waiting:
            return f"ranks wait for each other: {', '.join(waiting)}"
        if self.wrong is None and self.whole:
            return f"rank {self.stage_to_rank[min(self.whole)]}: {min(self.whole)}RESHARD is missing at the end"
        return self.wrong

    def next(self, rank: int) -> Cell | None:
        return self.rows[rank][self.at[rank]] if self.at[rank] < len(self.rows[rank]) else None

    def advance(self, rank: int) -> bool:
        """Does the rank's next action; False: it has none, or must wait."""
        cell = self.next(rank)
        if cell is None:
            return False
        if cell.kind in MESSAGES:
            return cell.kind.startswith("SEND") and self.pass_on(rank, cell)
        if cell.kind in ("UNSHARD", "RESHARD"):
            self.shard(rank, cell)
        elif cell.microbatch >= 0 and not self.ready(rank, cell):
            return False
        self.finish(rank, cell)
        return True

    def shard(self, rank: int, cell: Cell) -> None:
        if (cell.kind == "RESHARD") != (cell.stage in self.whole):
            self.wrong = f"rank {rank}: {cell}: the stage is {'sharded' if cell.kind == 'RESHARD' else 'whole'} already"
        self.whole ^= {cell.stage}

    def pass_on(self, rank: int, cell: Cell) -> bool:
        forward = cell.kind == "SEND_F"
        made = [cell._replace(kind=kind) for kind in ("F" if forward else "BI")]
        if not self.done.intersection(made):
            self.wrong = f"rank {rank}: {cell} comes before what it sends is made"
            return False
        received = Cell(cell.stage + (1 if forward else -1), "RECV_F" if forward else "RECV_B", cell.microbatch)
        peer = self.stage_to_rank[received.stage]
        if self.next(peer) != received:
            return False
        self.finish(rank, cell)
        self.finish(peer, received)
        return True

    def ready(self, rank: int, cell: Cell) -> bool:
        """Whether what the pass takes is there. What its own rank gives it must be there already."""
        if self.messages and cell.stage not in self.whole:
            self.wrong = f"rank {rank}: {cell} comes before the stage's UNSHARD"
            return False
        own = {"F": "", "B": "F", "I": "F", "W": "I"}[cell.kind]
        if own and cell._replace(kind=own) not in self.done:
            self.wrong = f"rank {rank}: {cell} comes before its {own}"
            return False
        if cell.kind == "W":
            return True
        neighbour = cell.stage + (-1 if cell.kind == "F" else 1)
        if not 0 <= neighbour < len(self.stage_to_rank):
            return True
        given = [Cell(neighbour, kind, cell.microbatch) for kind in ("F" if cell.kind == "F" else "BI")]
        if self.messages and self.stage_to_rank[neighbour] != rank:
            given = [cell._replace(kind="RECV_F" if cell.kind == "F" else "RECV_B")]
        return bool(self.done.intersection(given))

    def finish(self, rank: int, cell: Cell) -> None:
        self.done.add(cell)
        self.at[rank] += 1
        if cell.kind == "F" and cell.stage + 1 == len(self.stage_to_rank):
            # PyTorch pairs losses with microbatches in the order of these forwards.
            if cell.microbatch != self.next_loss:
                self.wrong = f"rank {rank}: {cell}: the last stage's forwards must run in the order of the microbatches"
            self.next_loss += 1
        if cell.kind in ("B", "W") and self.messages and Cell(cell.stage, "REDUCE_GRAD", -1) in self.done:
            self.wrong = f"rank {rank}: {cell} comes behind the stage's REDUCE_GRAD"
