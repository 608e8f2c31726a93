"""Schedule problems of your own: read, solve, replay."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _core
from ._options import Numbers, Path, Progress, Stop, as_json, as_options, as_path, size


class Problem:
    """Which task runs on which rank, how long, with how much memory, and after what."""

    def __init__(self, core: _core.Problem) -> None:
        self._core = core

    @classmethod
    def from_file(cls, path: Path) -> Problem:
        """Reads a problem file (`pipeweaver-problem/1`; JSON or YAML, gzip allowed)."""
        return cls(_core.Problem.read(as_path(path)))

    @classmethod
    def from_dict(cls, problem: Mapping[str, Any]) -> Problem:
        """The same from the file's content."""
        return cls(_core.Problem.parse("problem", as_json("problem", problem)))

    @classmethod
    def from_stages(
        cls,
        stages: Iterable[Mapping[str, Any]] | Path,
        microbatches: int,
        capacity: int | str | None = None,
        link: int | str | None = None,
        *,
        for_torch: bool = False,
    ) -> Problem:
        """A chain of stages by their measured times: rows, or a CSV file, with the columns of
        docs/your-own-stage-times.md. `capacity` is memory of each rank (bytes, or a text like "73.6GiB"), `link` the
        speed between ranks (bytes a second, or a text like "50GB/s")."""
        options = {"microbatches": microbatches, "capacity": size(capacity, "B"), "link": size(link, "B/s")}
        given = as_options("from_stages", options), for_torch
        if isinstance(stages, (str, os.PathLike)):
            return cls(_core.Problem.from_stages(as_path(stages), None, *given))
        return cls(_core.Problem.from_stages("stages", as_csv(stages), *given))

    def to_dict(self) -> dict[str, Any]:
        """The content of its file."""
        return as_dict(self.to_json())

    def to_json(self) -> str:
        """The bytes that the command writes."""
        return self._core.to_json()

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def ranks(self) -> int:
        """How many there are."""
        return self._core.ranks

    @property
    def kinds(self) -> str:
        """A letter for each task: F, B, I, W or X."""
        return self._core.kinds

    @property
    def rank(self) -> Numbers:
        """Of each task."""
        return self._core.rank

    @property
    def duration_ns(self) -> Numbers:
        """Of each task, in mode 0."""
        return self._core.duration_ns

    @property
    def acquire_bytes(self) -> Numbers:
        """Taken at each task's start, in mode 0."""
        return self._core.acquire_bytes

    @property
    def release_bytes(self) -> Numbers:
        """Given back at each task's end, in mode 0."""
        return self._core.release_bytes

    @property
    def edges(self) -> Numbers:
        """Rows (from, to, lag in nanoseconds)."""
        return self._core.edges

    def __repr__(self) -> str:
        return f"<Problem {self.name}: {len(self.kinds)} tasks on {self.ranks} ranks>"


class Solution:
    """An order of tasks for each rank and a memory mode for each pair, with what they take."""

    def __init__(self, core: _core.Solution) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """The content of its file (`pipeweaver-solution/1`)."""
        return as_dict(self.to_json())

    def to_json(self) -> str:
        """The bytes that the command writes."""
        return self._core.to_json()

    @property
    def makespan_ns(self) -> int:
        return self._core.makespan_ns

    @property
    def lower_bound_ns(self) -> int:
        """No schedule of the problem is shorter."""
        return self._core.lower_bound_ns

    @property
    def gap(self) -> float:
        """(makespan - bound) / bound."""
        return self._core.gap

    @property
    def order(self) -> list[Numbers]:
        """The tasks of each rank, in the order in which they run."""
        return self._core.order

    @property
    def start_ns(self) -> Numbers:
        """Of each task."""
        return self._core.start_ns

    @property
    def duration_ns(self) -> Numbers:
        """Of each task, in the mode that was taken."""
        return self._core.duration_ns

    @property
    def mode(self) -> Numbers:
        """Of each pair."""
        return self._core.mode

    @property
    def peak_bytes(self) -> Numbers:
        """Of each rank."""
        return self._core.peak_bytes

    def __repr__(self) -> str:
        return f"<Solution: makespan {self.makespan_ns / 1e6:.3f} ms, gap {100 * self.gap:.1f} %>"


AnySolution = Union[Solution, Mapping[str, Any], Path]


def solve(
    problem: Problem,
    *,
    budget: float | str | None = None,
    max_rounds: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    strategy: str | None = None,
    warm: AnySolution | None = None,
    target: str | None = None,
    then: str | None = None,
    stop: Stop = None,
    progress: Progress = None,
) -> Solution:
    """Searches for the schedule with the smallest makespan. The options are those of `pipeweaver solve`; `budget` may
    be a number of seconds. `warm` is a solution to begin with, also one of another batch. `stop` is asked and
    `progress` told about twenty times a second, from this thread; other threads run meanwhile."""
    options = as_options(
        "solve",
        {
            "budget": budget,
            "max_rounds": max_rounds,
            "seed": seed,
            "threads": threads,
            "strategy": strategy,
            "target": target,
            "then": then,
        },
    )
    start = None if warm is None else _solution(problem, warm)
    return Solution(_core.solve(problem._core, options, start, stop, progress))


def replay(problem: Problem, solution: AnySolution) -> Solution:
    """Works out times and memory of a schedule again. Raises LimitError, naming the task, where it cannot run."""
    if isinstance(solution, Solution):
        return Solution(_core.replay(problem._core, "solution", solution.to_json()))
    return Solution(_solution(problem, solution))


def _solution(problem: Problem, solution: AnySolution) -> _core.Solution:
    if isinstance(solution, Solution):
        return solution._core
    if isinstance(solution, Mapping):
        return _core.replay(problem._core, "solution", as_json("solution", solution))
    path = as_path(solution)
    return _core.replay(problem._core, path, _core.read_text(path))


def as_dict(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a table; the first names the columns, what is None is empty."""
    rows = list(rows)
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
