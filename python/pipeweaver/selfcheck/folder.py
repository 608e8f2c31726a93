"""The folder of a check. Each part writes one file as it goes, whole or not at all, so that a check that was torn off
says what it has, and goes on."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import time
from dataclasses import dataclass, field
from typing import Any

from ..errors import FileError, InputError

FORMAT = "pipeweaver-selfcheck/1"


@dataclass(frozen=True)
class Part:
    """A piece of a check: its share of the budget, and the module of this package with its run(Work). `least_s` is for
    what ends when it is done, and fails before."""

    name: str
    module: str
    share: float
    about: str
    least_s: float = 0.0

    def seconds(self, budget_s: float) -> float:
        """At most, of a whole budget."""
        return max(self.least_s, self.share * budget_s)


# In this order. What is left of the budget is for starting processes and for the comparison.
PARTS = (
    Part("machine", "rates", 0.08, "products, copies, launches with and without CUDA graphs, cross entropy"),
    Part("steps", "steps", 0.38, "one GPU's steps of three stacks, eager and compiled, with every recomputation"),
    Part("ranks", "ranks", 0.15, "two ranks run a plan by the executor", least_s=120.0),
    Part("operators", "operators", 0.25, "operators that plans ask for and tables lack"),
)


@dataclass
class Found:
    """What a part has found. `state` is begun, complete, or failed, with `why`."""

    part: str
    state: str = "begun"
    why: str = ""
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # what there was no time for


class Folder:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    def write(self, name: str, content: str) -> pathlib.Path:
        """A file of the folder. Raises FileError."""
        place = self.path / name
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(content, encoding="utf-8")
            beside.replace(place)
        except OSError as error:
            raise FileError(f"{place}: cannot be written: {error.strerror}") from None
        return place

    def write_json(self, name: str, document: Any) -> None:
        self.write(name, json.dumps(document, indent=1) + "\n")

    def remove(self, pattern: str) -> None:
        """Files of a run before."""
        for place in self.path.glob(pattern):
            place.unlink()

    def json(self, name: str) -> dict[str, Any] | None:
        """A file's document; None where there is none. Raises InputError."""
        place = self.path / name
        if not place.exists():
            return None
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{place}: is damaged: {error}") from None
        if not isinstance(found, dict):
            raise InputError(f"{place}: is no JSON object")
        return found

    def found(self, part: str) -> Found | None:
        """What the part has found so far. Raises InputError."""
        document = self.json(f"{part}.json")
        if document is None:
            return None
        try:
            return Found(**document)
        except TypeError as error:
            raise InputError(f"{self.path / part}.json: {error}") from None

    def write_found(self, found: Found) -> None:
        self.write_json(f"{found.part}.json", dataclasses.asdict(found))

    def missing(self) -> list[str]:
        """Parts that are not complete."""
        return [part.name for part in PARTS if (one := self.found(part.name)) is None or one.state != "complete"]


class Work:
    """What a part is given: where to write, what to run on, and until when."""

    def __init__(self, folder: Folder, part: str, budget_s: float) -> None:
        self.folder, self.about = folder, folder.json("about.json") or {}
        self.found = Found(part)
        before = folder.json(f"{part}.json")
        if before is not None and before.get("rows"):
            folder.write_json(f"{part}.before.json", before)  # of a run that was torn off
        self._begun, self._budget = time.monotonic(), budget_s
        self.write()

    @property
    def device(self) -> str:
        return str(self.about["torch_device"])

    @property
    def scale(self) -> str:
        return str(self.about["scale"])

    def left_s(self) -> float:
        return self._budget - (time.monotonic() - self._begun)

    def add(self, row: dict[str, Any]) -> None:
        """A row is in the file as soon as it is found."""
        self.found.rows.append(row)
        self.write()

    def leave(self, what: str) -> None:
        """There was no time for this."""
        self.found.left.append(what)
        self.write()

    def write(self) -> None:
        self.found.seconds = round(time.monotonic() - self._begun, 3)
        self.folder.write_found(self.found)
