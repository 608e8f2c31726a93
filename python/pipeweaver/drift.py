"""Steps of a run beside its plan while it goes on: a rank that is slow beside its peers, modules whose times have
drifted. Knows nothing of PyTorch; `pipeweaver.torch.Watch` feeds it."""

from __future__ import annotations

import gzip
import json
import math
import os
import pathlib
import statistics
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from .errors import FileError, InputError


class Group(NamedTuple):
    """Passes of one kind through stages with the same modules, "vit+llm"."""

    modules: str
    kind: str


class Times(NamedTuple):
    """Of all passes of a group on a rank, in a step."""

    planned_ns: float
    measured_ns: float


Step = Mapping[int, Mapping[Group, Times]]  # per rank
GivenStep = Step | Mapping[int, Mapping[tuple[str, str], tuple[float, float]]]
Key = TypeVar("Key")


@dataclass(frozen=True)
class Finding:
    """What the last steps say. `rank` is slow beside its peers by `factor`; or, where it is None, passes through stages
    with `modules` take `factor` times what the plan says."""

    rank: int | None
    modules: str
    factor: float
    steps: int

    def __str__(self) -> str:
        if self.rank is not None:
            return (f"rank {self.rank} takes {self.factor:.3f} times what its peers take for the same passes, over "
                    f"{self.steps} steps")
        return (f"passes through {self.modules} take {self.factor:.3f} times what the plan says, over {self.steps} "
                "steps: import the measurement and plan again")


class PlannedTasks:
    """Group, stage and planned nanoseconds of each task of a plan's schedule; the problem's name."""

    def __init__(self, problem: Mapping[str, Any], solution: Mapping[str, Any]) -> None:
        try:
            modules = {stage["stage"]: "+".join(dict.fromkeys(part["module"] for part in stage["parts"]))
                       for stage in problem.get("stages", [])}
            tasks = problem["tasks"]
            self.name = problem.get("name")
            self.stages = [task.get("stage") for task in tasks]
            self.groups = [Group(modules.get(task.get("stage")) or task.get("module") or "stages", task["kind"])
                           for task in tasks]
            self.planned_ns = [int(task["duration_ns"]) for task in tasks]
            for pair, mode in zip(problem.get("pairs", []), solution.get("mode", [])):
                chosen = pair["modes"][mode]
                for role in ("forward", "backward", "weight"):
                    if role in pair:
                        self.planned_ns[pair[role]] = int(chosen[f"{role}_ns"])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"problem and solution do not say the times of the plan: {error!r}") from None

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> PlannedTasks:
        """Of a folder with problem.json or problem.json.gz and solution.json, as a plan's replica-NNN."""
        place = pathlib.Path(folder)
        plain = place / "problem.json"
        return cls(_json(plain if plain.exists() else place / "problem.json.gz"), _json(place / "solution.json"))

    def why_not_run(self, name: str, passes: Iterable[tuple[int, str, int]]) -> str | None:
        """Why a run of problem `name` with (task, kind, stage) is of another plan or replica; None: it is of this."""
        if name != self.name:
            return (f"the executor runs '{name}', the plan's folder is of '{self.name}': it is another plan's or "
                    "replica's")
        for task, kind, stage in passes:
            if task >= len(self.groups):
                return (f"the executor runs task {task}, the plan's folder has {len(self.groups)} tasks: it is another "
                        "plan's")
            if (kind, stage) != (self.groups[task].kind, self.stages[task]):
                return (f"the executor runs task {task} as {kind} of stage {stage}, the plan's folder has "
                        f"{self.groups[task].kind} of stage {self.stages[task]}: it is another plan's")
        return None

    def sums(self, passes: Iterable[tuple[int, int]]) -> dict[Group, Times]:
        """Of (task, measured nanoseconds) that a rank ran in a step."""
        sums: dict[Group, Times] = {}
        for task, measured_ns in passes:
            planned, measured = sums.get(self.groups[task], (0, 0))
            sums[self.groups[task]] = Times(planned + self.planned_ns[task], measured + measured_ns)
        return sums


def _json(path: pathlib.Path) -> Mapping[str, Any]:
    try:
        content = path.read_bytes()
        found = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: is damaged: {error}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: is no JSON object")
    return found


class Drift:
    """Tells from the sums of each step which rank is slow and which modules have drifted.

    A step gives every rank a ratio beside its peers: measured over planned of each group that several ranks have, over
    the lower middle of that on all of them, weighted by time. The mean of the last n ratios is held against 1 +
    strictness * noise / sqrt(n), and against `least`; `noise` is the deviation of one ratio, where the steps' own is
    not larger. The ratio of a stage's modules to the plan, the ranks' own ratios taken out, is treated alike, in both
    directions. What was told is told again only when it was gone, or has changed by more than `least`."""

    def __init__(self, noise: float = 0.03, window: int = 5, least: float = 0.05, strictness: float = 4.5) -> None:
        if not (noise > 0 and window >= 2 and least > 0 and strictness > 0):
            raise InputError("noise, least and strictness are above 0, window is 2 or more")
        self.noise, self.least, self.strictness = noise, least, strictness
        self._steps: deque[Step] = deque(maxlen=window)
        self._told: dict[tuple[int | None, str], float] = {}

    def add(self, step: GivenStep) -> list[Finding]:
        """Takes a step of all ranks, and gives what is to be told after it. Groups and times may be plain tuples.
        Raises InputError, and takes nothing, where they are not two names and two finite numbers from 0."""
        self._steps.append({rank: {_group(group): _times(times) for group, times in sums.items()}
                            for rank, sums in step.items()})
        count = len(self._steps)
        beside = _rows([_beside_peers(one) for one in self._steps])
        against = _rows([_against_plan(one, _centres(beside)) for one in self._steps])
        findings = [Finding(rank, "", mean, count) for rank, mean in sorted(_centres(beside).items())
                    if mean - 1 > self._limit(beside, rank)]
        findings += [Finding(None, name, mean, count) for name, mean in sorted(_centres(against).items())
                     if abs(mean - 1) > self._limit(against, name)]
        return self._not_told(findings) if count > 1 else []

    def _limit(self, ratios: Mapping[Key, list[float]], key: Key) -> float:
        """How far a mean may be off before it is told."""
        values = ratios[key]
        noise = max(self.noise, statistics.stdev(values)) if len(values) > 1 else math.inf
        return max(self.least, self.strictness * noise / math.sqrt(len(values)))

    def forget(self) -> None:
        """Begins anew: another plan has been loaded."""
        self._steps.clear()
        self._told.clear()

    def _not_told(self, findings: list[Finding]) -> list[Finding]:
        now = {(one.rank, one.modules): one.factor for one in findings}
        fresh = [one for one in findings
                 if abs(one.factor - self._told.get((one.rank, one.modules), math.inf)) > self.least]
        self._told = {key: self._told.get(key, factor) for key, factor in now.items()}
        self._told.update({(one.rank, one.modules): one.factor for one in fresh})
        return fresh


def _group(given: Iterable[str]) -> Group:
    try:
        return Group(*given)
    except TypeError:
        raise InputError(f"{given!r} is no group, needed is (modules, kind)") from None


def _times(given: Iterable[float]) -> Times:
    times = tuple(given) if isinstance(given, Iterable) else ()
    if len(times) != 2 or not all(isinstance(one, (int, float)) and 0 <= one < math.inf for one in times):
        raise InputError(f"{given!r} are no times, needed is (planned_ns, measured_ns), finite numbers from 0")
    return Times(*times)


def _rows(ratios: list[dict[Key, float]]) -> dict[Key, list[float]]:
    """Of what the last step has, over all steps that have it."""
    return {key: [one[key] for one in ratios if key in one] for key in ratios[-1]}


def _centres(rows: Mapping[Key, list[float]]) -> dict[Key, float]:
    return {key: sum(values) / len(values) for key, values in rows.items()}


def _middle(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


def _by_group(step: Step) -> dict[Group, dict[int, Times]]:
    groups: dict[Group, dict[int, Times]] = {}
    for rank, sums in step.items():
        for group, times in sums.items():
            if times.planned_ns > 0:
                groups.setdefault(group, {})[rank] = times
    return groups


def _beside_peers(step: Step) -> dict[int, float]:
    """Per rank that shares a group with another."""
    planned: dict[int, float] = {}
    measured: dict[int, float] = {}
    for ranks in _by_group(step).values():
        if len(ranks) < 2:
            continue
        usual = _middle([times.measured_ns / times.planned_ns for times in ranks.values()])
        for rank, times in ranks.items():
            planned[rank] = planned.get(rank, 0.0) + usual * times.planned_ns
            measured[rank] = measured.get(rank, 0.0) + times.measured_ns
    return {rank: measured[rank] / usual for rank, usual in planned.items() if usual > 0}


def _against_plan(step: Step, of_rank: Mapping[int, float]) -> dict[str, float]:
    """Per stage's modules: all its passes, measured over planned."""
    planned: dict[str, float] = {}
    measured: dict[str, float] = {}
    for group, ranks in _by_group(step).items():
        for rank, times in ranks.items():
            planned[group.modules] = planned.get(group.modules, 0.0) + times.planned_ns
            measured[group.modules] = measured.get(group.modules, 0.0) + times.measured_ns / of_rank.get(rank, 1.0)
    return {modules: measured[modules] / planned[modules] for modules in planned}
