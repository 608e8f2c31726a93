"""A training step of a model: planned, or as a known policy runs it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from . import _core
from ._remote_plan import ServedPlan
from ._options import Batch, Config, Path, Progress, Stop, as_asked, as_path
from .problem import Problem, Solution, as_dict


class Replica:
    """One data-parallel copy of the pipeline, with its own schedule."""

    def __init__(self, plan: _core.Plan | ServedPlan, number: int) -> None:
        self._plan = plan
        self.number = number

    @cached_property
    def problem(self) -> Problem:
        return Problem(self._plan.problem(self.number))

    @cached_property
    def solution(self) -> Solution:
        return Solution(self._plan.solution(self.number))

    @cached_property
    def actions(self) -> dict[str, Any]:
        """What each rank does, in order (`pipeweaver-actions/1`)."""
        return as_dict(self._plan.actions_json(self.number))

    def rank_actions(self, rank: int) -> dict[str, Any]:
        """What this rank does, and the tensors that it takes or gives (`pipeweaver-rank-actions/1`): all that its
        executor needs."""
        return as_dict(self._plan.rank_actions_json(self.number, rank))


class Plan:
    """How the modules are cut, how the batch is packed, and in which order each rank runs its work. Of a plan that a
    server has each part is fetched when it is asked for."""

    def __init__(self, core: _core.Plan | ServedPlan) -> None:
        self._core = core
        self.replicas = [Replica(core, number) for number in core.replicas]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """plan.json (`pipeweaver-plan/1`)."""
        return as_dict(self._core.plan_json())

    @cached_property
    def assignment(self) -> dict[str, Any]:
        """assignment.json (`pipeweaver-assignment/1`): which samples and items each microbatch takes."""
        return as_dict(self._core.assignment_json())

    @cached_property
    def deferred(self) -> list[dict[str, Any]]:
        """Samples that are left for a later step (`defer` of the configuration): they go before the next batch's."""
        return [as_dict(line) for line in self._core.deferred.splitlines()]

    @cached_property
    def record(self) -> dict[str, Any] | None:
        """What the same plan comes from again (`pipeweaver plan --served`), of one that a server has; else None."""
        return as_dict(self._core.record_json()) if isinstance(self._core, ServedPlan) else None

    @property
    def makespan_ns(self) -> int:
        """Of the slowest replica."""
        return self._core.makespan_ns

    @property
    def lower_bound_ns(self) -> int:
        """No schedule of this partition and packing is shorter."""
        return self._core.lower_bound_ns

    @property
    def step_ns(self) -> int:
        """Makespan, and what follows all ranks: the optimizer."""
        return self._core.step_ns

    @property
    def gap(self) -> float:
        """(makespan - bound) / bound."""
        return self._core.gap

    @property
    def seconds(self) -> float:
        """What planning took; a server, from the batch's submission on."""
        return self._core.seconds

    def write(self, folder: Path) -> None:
        """Writes the plan folder, the same bytes as `pipeweaver plan --out` but for run.json, or as `pipeweaver plan
        --server URL --out`."""
        self._core.write(as_path(folder))

    def __repr__(self) -> str:
        return f"<Plan: step {self.step_ns / 1e6:.3f} ms, gap {100 * self.gap:.1f} %, {len(self.replicas)} replica(s)>"


def plan(
    config: Config,
    batch: Batch | None = None,
    *,
    replica: int | None = None,
    out: Path | None = None,
    stop: Stop = None,
    progress: Progress = None,
) -> Plan:
    """Plans a step. `config` has the options of `pipeweaver plan` as keys, or names such a file; `batch` is a list of
    samples as in a batch file, or names one. `replica` alone is planned, the same as in the plan of all. With `out`, or
    that key, the plan folder is written. `stop` ends the searches early with the best so far; it is asked, and
    `progress` told, about twenty times a second.

    Raises InputError, FileError, LimitError; what `stop` and `progress` raise; KeyboardInterrupt."""
    asked = as_asked(config, batch, replica)
    return _written(Plan(_core.plan(asked, stop, progress)), asked, out)


def emulate(config: Config, batch: Batch | None = None, *, policy: str = "1f1b", out: Path | None = None) -> Plan:
    """The step as a known policy runs it, without a search, on the partition (of `config`, else of all) where the
    policy is fastest. Raises InputError, FileError, LimitError."""
    asked = as_asked(config, batch)
    return _written(Plan(_core.by_policy(asked, policy)), asked, out)


def batch_of(config: Config) -> list[dict[str, Any]]:
    """The samples of the batch that `config` names or has drawn from a data set, items in the model's own measure: what
    plan() and Planner take as a batch. Raises InputError, FileError."""
    return [as_dict(line) for line in _core.batch(as_asked(config, None)).splitlines()]


def _written(made: Plan, asked: _core.Asked, out: Path | None) -> Plan:
    folder = asked.out if out is None else out
    if folder:
        made.write(folder)
    return made
