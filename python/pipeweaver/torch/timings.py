"""What a rank's steps took, as a file that `pipeweaver replay --measured` reads ("pipeweaver-timings/1")."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
from collections import deque
from typing import Any

from ..errors import InputError, PipeweaverError
from .actions import Action, Compute, Message
from .executor import Executor, StepResult
from .walk import Timing

FORMAT = "pipeweaver-timings/1"


class Timings:
    """Collects steps of one plan on this rank:

        timings = Timings(executor)
        for batch in batches:
            timings.add(executor.step(batch))
        timings.write(f"timings-{rank}.json")

    Every step is kept in memory, `last` alone the last so many: say it in a job of many steps. On a GPU the times are
    those of events around the actions."""

    def __init__(self, executor: Executor, last: int | None = None) -> None:
        if last is not None and last < 1:
            raise InputError(f"last: is {last}, a whole number from 1 or None is needed")
        self._executor = executor
        self._program = executor.program
        self.steps: deque[list[dict[str, Any]]] = deque(maxlen=last)

    def add(self, result: StepResult) -> None:
        """Takes a step that the executor has just run. Raises PipeweaverError if it has loaded another plan since."""
        if self._executor.program is not self._program:
            raise PipeweaverError("the executor has loaded another plan: its steps belong into a file of their own")
        actions = self._program.actions.actions
        rows = (_row(actions[one.action], one) for one in result.timings)
        self.steps.append([row for row in rows if row is not None])

    def document(self) -> dict[str, Any]:
        """The file's content."""
        plan = self._program.actions
        return {"format": FORMAT, "problem": plan.problem, "replica": plan.replica, "rank": plan.rank,
                "ranks": plan.ranks, "steps": [{"actions": rows} for rows in self.steps]}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, gzip if its name ends in .gz; under another name until it is whole."""
        place = pathlib.Path(path)
        content = json.dumps(self.document(), separators=(",", ":")).encode() + b"\n"
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        beside.write_bytes(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)
        beside.replace(place)


def _row(action: Action, timing: Timing) -> dict[str, Any] | None:
    """None for what is not compared: receives, which are posted and take no time, and reductions."""
    when = {"start_ns": round(timing.start * 1e9), "end_ns": round(timing.end * 1e9)}
    if isinstance(action, Compute):
        place = action.place
        return {"op": action.op, "stage": place.stage, "microbatch": place.microbatch, "item": place.item, **when}
    if isinstance(action, Message) and action.op != "receive":
        return {"op": action.op, "tensor": action.tensor, **when}
    return None
