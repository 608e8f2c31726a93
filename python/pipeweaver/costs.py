"""What operators cost on a device."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from ._options import Path, as_path
from .problem import as_csv


class CostDatabase:
    """The measured times of operators that every plan rests on. As `costs` of a configuration, a plan takes them from
    here; `path` is the file, None for the tables that ship with the package."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._devices: dict[str, _core.CostDatabase] = {}

    @classmethod
    def default(cls) -> CostDatabase:
        """The tables that ship with the package."""
        return cls(None)

    @classmethod
    def open(cls, path: Path) -> CostDatabase:
        """A file that `pipeweaver costdb import` made; it is read at the first query of each device."""
        return cls(as_path(path))

    def query(self, device: str, op: str, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Each row with `latency_us`, `basis` and `error_percent`; `op` and the rows' keys are those of
        `pipeweaver costdb query`."""
        asked = [dict(row) for row in rows]
        if not asked:
            return []
        answers = csv.DictReader(io.StringIO(self._of(device).answer(op, as_csv(asked))))
        return [{**row, **_answer(line)} for row, line in zip(asked, answers)]

    def _of(self, device: str) -> _core.CostDatabase:
        if device not in self._devices:
            read = _core.CostDatabase.embedded
            self._devices[device] = read(device) if self.path is None else _core.CostDatabase.read(self.path, device)
        return self._devices[device]


def _answer(line: Mapping[str, str]) -> dict[str, Any]:
    return {
        "latency_us": float(line["latency_us"]),
        "basis": line["basis"],
        "error_percent": float(line["error_percent"]),
    }
