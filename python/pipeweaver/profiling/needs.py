"""What a plan asks the cost database for."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._options import as_options

# Per table of `pipeweaver costdb needs`: the columns that say which operator it is, and that import takes.
KEYS = {
    "gemm": ("dtype", "m", "n", "k", "pass"),
    "attention": ("dtype", "batch", "seq_len", "q_heads", "kv_heads", "head_dim", "causal", "pass"),
    "elementwise": ("kind", "pass", "traffic_bytes"),
    "collectives": ("collective", "dtype", "gpus", "gpus_per_node", "message_bytes"),
    "moe": ("dtype", "tokens", "hidden", "ffn", "top_k", "experts", "moe_tp", "moe_ep", "routing"),
}
MEASURABLE = ("gemm", "attention", "elementwise")


@dataclass(frozen=True)
class Need:
    """An operator: the row of its table."""

    table: str
    row: Mapping[str, str]

    @property
    def key(self) -> tuple[str, ...]:
        return (self.table, *(self.row[column] for column in KEYS[self.table]))

    @property
    def share(self) -> float:
        """Of the time of all operators of a step."""
        return float(self.row["share_percent"]) / 100

    @property
    def exact(self) -> bool:
        """Whether the database answers it with a measurement of just this."""
        return self.row["basis"] == "exact"

    def __getitem__(self, column: str) -> int:
        return int(self.row[column])

    @property
    def pass_(self) -> str:
        return self.row["pass"]

    def __str__(self) -> str:
        return " ".join((self.table, *(self.row[column] for column in KEYS[self.table])))


@dataclass(frozen=True)
class Needs:
    """All that a plan asks for, most important first."""

    device: str
    all: list[Need]

    def to_measure(self) -> list[Need]:
        return [need for need in self.all if need.table in MEASURABLE]

    def exact_share(self) -> float:
        """The share of the operators' time that is measured just so; what one machine cannot measure does not count."""
        own = self.to_measure()
        return sum(need.share for need in own if need.exact) / (sum(need.share for need in own) or 1)


def needs_of(config: Mapping[str, Any], costs: str | None = None) -> Needs:
    """What planning by `config` (the options of `pipeweaver plan`) asks for, with the times of the database `costs`.
    Raises InputError, FileError, LimitError."""
    asked = _core.Asked("config", as_options("config", {**config, "costs": costs}), None, None)
    device, tables = _core.needs(asked)
    found = [need for name, text in tables.items() for need in rows_of(name, text)]
    return Needs(device, sorted(found, key=lambda need: -need.share))


def rows_of(table: str, text: str) -> Iterable[Need]:
    """The needs of a table's content."""
    return (Need(table, row) for row in csv.DictReader(io.StringIO(text)))
