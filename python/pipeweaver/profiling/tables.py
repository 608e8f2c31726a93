"""Measured times as files."""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Iterable

from .needs import KEYS, MEASURABLE, Need
from .timing import Measurement

_spreads = (0.1, 1000.0)  # that an import takes


def measured_tables(measured: Iterable[tuple[Need, Measurement]]) -> dict[str, str]:
    """File names and contents for `pipeweaver costdb import`; a table without rows is none."""
    rows: dict[str, list[list[str]]] = {name: [] for name in MEASURABLE}
    for need, time in measured:
        key = [need.row[column] for column in KEYS[need.table]]
        spread = min(max(time.spread_percent, _spreads[0]), _spreads[1])
        rows[need.table].append([*key, f"{time.median_us:.3f}", f"{spread:.1f}"])
    return {f"{name}.csv": _as_csv([*KEYS[name], "latency_us", "spread_percent"], sorted(rows[name], key=_in_order))
            for name in MEASURABLE if rows[name]}


def needed_tables(needs: Iterable[Need]) -> dict[str, str]:
    """What is still to be measured, by another tool or with more time."""
    rows: dict[str, list[list[str]]] = {name: [] for name in KEYS}
    for need in needs:
        rows[need.table].append([need.row[column] for column in (*KEYS[need.table], "times", "share_percent")])
    return {f"{name}.csv": _as_csv([*KEYS[name], "times", "share_percent"], rows[name]) for name in KEYS if rows[name]}


def write(folder: pathlib.Path, files: dict[str, str]) -> list[pathlib.Path]:
    """Writes the files and removes tables of another run that are not among them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in KEYS:
        if f"{name}.csv" not in files:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in files]


def _in_order(row: list[str]) -> list[tuple[bool, int, str]]:
    return [(cell.isdigit(), int(cell) if cell.isdigit() else 0, cell) for cell in row[:-2]]


def _as_csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
