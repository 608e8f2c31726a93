"""A plan that a server has, each part of it fetched when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _core
from ._server import Server

_to_fetch = 120.0


def as_object(text: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


class ServedPlan:
    """What a Plan is made of, as `_core.Plan` has it, from a server."""

    def __init__(self, server: Server, path: str, answer: Mapping[str, Any]) -> None:
        self._server = server
        self._path = path
        self._parts = list(answer["parts"])
        self._problems: dict[int, _core.Problem] = {}
        found = answer["found"]
        self.makespan_ns = int(found["makespan_ns"])
        self.lower_bound_ns = int(found["lower_bound_ns"])
        self.step_ns = int(found["step_ns"])
        self.gap = float(found["gap"])
        self.seconds = float(found["seconds"])
        self.replicas = sorted({int(part.split("/")[1]) for part in self._parts if part.startswith("replicas/")})

    def _get(self, part: str) -> bytes:
        return self._server.ask("GET", f"{self._path}/{part}", within=_to_fetch)

    def plan_json(self) -> str:
        return self._get("plan").decode()

    def assignment_json(self) -> str:
        return self._get("assignment").decode()

    def record_json(self) -> str:
        return self._get("record").decode()

    @property
    def deferred(self) -> str:
        return self._get("deferred").decode() if "deferred" in self._parts else ""

    def problem(self, replica: int) -> _core.Problem:
        if replica not in self._problems:
            text = self._get(f"replicas/{replica}/problem").decode()
            self._problems[replica] = _core.Problem.parse("problem", text)
        return self._problems[replica]

    def solution(self, replica: int) -> _core.Solution:
        solution = self._get(f"replicas/{replica}/solution").decode()
        return _core.replay(self.problem(replica), "solution", solution)

    def actions_json(self, replica: int) -> str:
        return self._get(f"replicas/{replica}/actions").decode()

    def rank_actions_json(self, replica: int, rank: int) -> str:
        """Nothing else is sent."""
        return self._get(f"replicas/{replica}/ranks/{rank}").decode()

    def write(self, folder: str) -> None:
        """The same bytes as `pipeweaver plan --server URL --out`: what a plan in process writes, with the record in
        place of run.json, report and traces, which `pipeweaver plan --served` makes of it."""
        record = self._get("record")
        files = [(_file_of(part), self._get(part)) for part in self._parts if "/ranks/" not in part]
        files.append(("record.json", record))
        files.append(("partition.json", as_object(record)["session"]["config"]["partition"].encode()))
        _core.write_plan(folder, files)


def _file_of(part: str) -> str:
    """"replicas/0/solution" as the folder of a plan has it."""
    if part == "deferred":
        return "deferred.jsonl"
    if not part.startswith("replicas/"):
        return f"{part}.json"
    _, number, name = part.split("/", 2)
    return f"replica-{number:0>3}/{name}.json{'.gz' if name == 'problem' else ''}"
