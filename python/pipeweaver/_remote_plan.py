"""A plan that a server has, each part of it fetched when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from . import _core
from ._options import Path, as_path
from ._server import Server
from .problem import Problem, Solution

_to_fetch = 120.0


def as_object(text: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


class RemoteReplica:
    """One data-parallel copy of the pipeline, with its own schedule."""

    def __init__(self, server: Server, path: str, number: int) -> None:
        self._server = server
        self._path = f"{path}/replicas/{number}"
        self.number = number

    def _get(self, part: str) -> bytes:
        return self._server.ask("GET", f"{self._path}/{part}", within=_to_fetch)

    @cached_property
    def problem(self) -> Problem:
        return Problem(_core.Problem.parse("problem", self._get("problem").decode()))

    @cached_property
    def solution(self) -> Solution:
        return Solution(_core.replay(self.problem._core, "solution", self._get("solution").decode()))

    @cached_property
    def actions(self) -> dict[str, Any]:
        """What each rank does, in order (`pipeweaver-actions/1`)."""
        return as_object(self._get("actions"))

    def rank_actions(self, rank: int) -> dict[str, Any]:
        """What this rank does (`pipeweaver-rank-actions/1`): nothing else is sent."""
        return as_object(self._get(f"ranks/{rank}"))


class RemotePlan:
    """As Plan."""

    def __init__(self, server: Server, path: str, answer: Mapping[str, Any]) -> None:
        self._server = server
        self._path = path
        self.step: int = answer["step"]
        self.found: dict[str, Any] = dict(answer["found"])
        numbers = sorted({int(part.split("/")[1]) for part in answer["parts"] if part.startswith("replicas/")})
        self.replicas = [RemoteReplica(server, path, number) for number in numbers]
        self._parts = list(answer["parts"])

    def _get(self, part: str) -> bytes:
        return self._server.ask("GET", f"{self._path}/{part}", within=_to_fetch)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """plan.json (`pipeweaver-plan/1`)."""
        return as_object(self._get("plan"))

    @cached_property
    def assignment(self) -> dict[str, Any]:
        """assignment.json (`pipeweaver-assignment/1`)."""
        return as_object(self._get("assignment"))

    @cached_property
    def deferred(self) -> list[dict[str, Any]]:
        """Samples that are left for a later step."""
        if "deferred" not in self._parts:
            return []
        return [as_object(line) for line in self._get("deferred").splitlines()]

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the same plan comes from again: `pipeweaver plan --served`."""
        return as_object(self._get("record"))

    @property
    def makespan_ns(self) -> int:
        """Of the slowest replica."""
        return int(self.found["makespan_ns"])

    @property
    def lower_bound_ns(self) -> int:
        """No schedule of this partition and packing is shorter."""
        return int(self.found["lower_bound_ns"])

    @property
    def step_ns(self) -> int:
        """Makespan, and what follows all ranks: the optimizer."""
        return int(self.found["step_ns"])

    @property
    def gap(self) -> float:
        """(makespan - bound) / bound."""
        return float(self.found["gap"])

    @property
    def seconds(self) -> float:
        """What planning took the server, from the batch's submission on."""
        return float(self.found["seconds"])

    def write(self, folder: Path) -> None:
        """Writes the plan folder, the same bytes as `pipeweaver plan --server URL --out`: what a plan in process
        writes, with the record in place of run.json, report and traces, which `pipeweaver plan --served` makes of it.
        """
        record = self._get("record")
        files = [(_file_of(part), self._get(part)) for part in self._parts if "/ranks/" not in part]
        files.append(("record.json", record))
        files.append(("partition.json", as_object(record)["session"]["config"]["partition"].encode()))
        _core.write_plan(as_path(folder), files)

    def __repr__(self) -> str:
        return f"<Plan: step {self.step_ns / 1e6:.3f} ms, gap {100 * self.gap:.1f} %, {len(self.replicas)} replica(s)>"


def _file_of(part: str) -> str:
    """"replicas/0/solution" as the folder of a plan has it."""
    if part == "deferred":
        return "deferred.jsonl"
    if not part.startswith("replicas/"):
        return f"{part}.json"
    _, number, name = part.split("/", 2)
    return f"replica-{number:0>3}/{name}.json{'.gz' if name == 'problem' else ''}"
