"""Operators of plans on the device at hand: first those that tables know least and steps spend most on."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ..profiling.kernels import CannotRun, Kernels, bytes_of
from ..profiling.machine import Machine
from ..profiling.needs import KEYS, Need, Needs, needs_of
from ..profiling.session import Session
from ..profiling.tables import measured_tables
from ..profiling.timing import Measurement
from .cases import SCALES, plans
from .folder import Work

# By what a table's answer rests on: how much of its time is to be looked at. What is exact is measured last.
_doubt = {"modelled": 1.0, "extrapolated": 0.8, "interpolated": 0.3, "exact": 0.05}


def run(work: Work) -> None:
    """The part "operators"."""
    work.folder.remove("operators/*.csv")
    configs = plans(SCALES[work.scale], work.about["cluster"], work.folder.path / "stacks")
    wanted = in_order(needs_of(config) for config in configs)
    machine = Machine(work.device)

    def report(need: Need, time: Measurement) -> None:
        work.add({"table": need.table, **{column: need.row[column] for column in KEYS[need.table]},
                  "doubt": round(need.share, 6), "basis": need.row["basis"],
                  "predicted_us": float(need.row["estimate_us"]), "measured_us": round(time.median_us, 3),
                  "spread_percent": round(time.spread_percent, 2), "repetitions": time.repetitions})

    refusals = (CannotRun, MemoryError, torch.OutOfMemoryError, RuntimeError)
    kernels = Kernels(machine.device, None if machine.is_gpu else "fp32")  # as the steps of the check are
    session = Session(machine.clock(), kernels.make, refusals, machine.free_bytes, bytes_of, report)
    session.run(wanted, session.clock.now() + 0.95 * work.left_s())
    for name, content in measured_tables(session.measured.values()).items():
        work.folder.write(f"operators/{name}", content)
    refused = [f"{need}: {why}" for need, why in session.refused.values()]
    left = [str(need) for need in wanted if need.key not in session.measured and need.key not in session.refused]
    work.found.left = refused + left
    if machine.is_gpu:
        torch.cuda.synchronize(machine.device)  # an error that broke the device fails the part: all after it is void


def in_order(all_needs: Iterable[Needs]) -> list[Need]:
    """Each operator once. Its share of the time is now what of it is in doubt, of all plans together."""
    doubt: dict[tuple[str, ...], float] = {}
    found: dict[tuple[str, ...], Need] = {}
    for needs in all_needs:
        for need in needs.to_measure():
            found.setdefault(need.key, need)
            doubt[need.key] = doubt.get(need.key, 0.0) + need.share * _doubt[need.row["basis"]]
    total = sum(doubt.values()) or 1.0
    weighed = [Need(need.table, {**need.row, "share_percent": str(100 * doubt[key] / total)})
               for key, need in found.items()]
    return sorted(weighed, key=lambda need: (-need.share, need.key))
