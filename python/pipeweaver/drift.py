"""Steps of a run beside its plan while it goes on: a rank that is slow beside its peers, modules whose times have
drifted, as the compiled part says (measured/drift.cpp). Knows nothing of PyTorch; `pipeweaver.torch.Watch` feeds it."""

from __future__ import annotations

import gzip
import json
import math
import os
import pathlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ._lazy import core
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
        self.noise, self.least, self.strictness = noise, least, strictness
        self._core = core().Drift(noise, window, least, strictness)

    def add(self, step: GivenStep) -> list[Finding]:
        """Takes a step of all ranks, and gives what is to be told after it. Groups and times may be plain tuples.
        Raises InputError, and takes nothing, where they are not two names and two finite numbers from 0."""
        ran = [(rank, *_group(group), *map(float, _times(times)))
               for rank, sums in step.items() for group, times in sums.items()]
        return [Finding(*found) for found in self._core.add(ran)]

    def forget(self) -> None:
        """Begins anew: another plan has been loaded."""
        self._core.forget()


def _group(given: Iterable[str]) -> Group:
    group = tuple(given) if isinstance(given, Iterable) else ()
    if len(group) != 2 or not all(isinstance(one, str) for one in group):
        raise InputError(f"{given!r} is no group, needed is (modules, kind)")
    return Group(*group)


def _times(given: Iterable[float]) -> Times:
    times = tuple(given) if isinstance(given, Iterable) else ()
    if len(times) != 2 or not all(isinstance(one, (int, float)) and 0 <= one < math.inf for one in times):
        raise InputError(f"{given!r} are no times, needed is (planned_ns, measured_ns), finite numbers from 0")
    return Times(*times)
