"""Predicted beside measured, as one document ("pipeweaver-selfcheck/1"), and whether it is within the stated limits.

Steps and memory are predicted by `pipeweaver emulate` on one GPU, with the recipe of the stack that was measured: by
the tables as shipped, and with what the part "operators" has measured in front of them. The recipe's factors stay what
they are. Errors are predicted over measured, less one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import NotBuiltError, PipeweaverError
from ..profiling.needs import needs_of
from .cases import SCALES, Stack, plans, stacks
from .folder import PARTS, Folder

# What a check must keep to: of each step of a stack, of each peak, of the middle operator of a table, and of the step
# of two ranks that have a GPU each, replayed with its passes' own times.
LIMITS = {"step": 0.25, "memory": 0.15, "operators": 0.15, "replayed_step": 0.10}
_recipes = {"eager": "torch-fsdp2-eager", "compiled": "torch-fsdp2"}
_known = ("shipped", "own")  # tables


def compared(folder: Folder) -> dict[str, Any]:
    """The document. Raises NotBuiltError where the program does not run here, InputError for a damaged folder."""
    about = folder.json("about.json") or {}
    found = {part.name: folder.found(part.name) for part in PARTS}
    rows = {name: one.rows if one else [] for name, one in found.items()}
    own = _own_costs(folder, about)
    document: dict[str, Any] = {
        **about,
        "version": _program("--version").split()[-1],
        "limits": LIMITS,
        "parts": [{"part": part.name, "state": one.state if one else "missing", "why": one.why if one else "",
                   "seconds": one.seconds if one else 0.0, "left": one.left if one else []}
                  for part in PARTS for one in [found[part.name]]],
        "machine": rows["machine"],
        "steps": [_step(folder, about, row, own) for row in rows["steps"]],
        "operators": _by_table(rows["operators"]),
        "worst_operators": sorted(rows["operators"], key=lambda row: -abs(_error_of(row)))[:12],
        "ranks": rows["ranks"],
        "schedule": _schedule(folder, about),
    }
    document["beyond"] = _beyond(document)
    missing = [part["part"] for part in document["parts"] if part["state"] != "complete"]
    document["verdict"] = "beyond" if document["beyond"] else "unfinished" if missing else "within"
    return document


def _program(*arguments: str) -> str:
    """What `pipeweaver` prints. Raises NotBuiltError, PipeweaverError with its one line."""
    done = subprocess.run([sys.executable, "-m", "pipeweaver", *arguments], capture_output=True, text=True)
    if done.returncode in (127, 3) and not done.stdout:
        raise NotBuiltError((done.stderr.strip().splitlines() or ["pipeweaver does not run here"])[-1])
    if done.returncode:
        raise PipeweaverError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    return done.stdout


def _own_costs(folder: Folder, about: Mapping[str, Any]) -> str | None:
    """A database with what was measured here in front; None where nothing was."""
    tables = sorted(str(table) for table in (folder.path / "operators").glob("*.csv"))
    if about.get("gpus", 0) >= 2:
        tables += [str(table) for table in (folder.path / "ranks").glob("collectives.csv")]
    if not tables:
        return None
    out = folder.path / "own.sqlite"
    device = needs_of(plans(SCALES[about["scale"]], about["cluster"], folder.path / "stacks")[0]).device
    _program("costdb", "import", *tables, "--device", device, "--out", str(out))
    return str(out)


def _step(folder: Folder, about: Mapping[str, Any], row: Mapping[str, Any], own: str | None) -> dict[str, Any]:
    """A measured step with its predictions; of one that ran out of memory, what it was to hold."""
    result = dict(row)
    if "seconds" not in row and "out_of_memory" not in row:
        return result
    stack = next(one for one in stacks(SCALES[about["scale"]]) if one.name == row["stack"])
    if "seconds" not in row:
        return {**result, "predicted_bytes": _emulated(folder, about, stack, row, own)["peak_bytes"]}
    for tables, costs in zip(_known, (None, own)):
        if tables == "own" and costs is None:
            continue
        predicted = _emulated(folder, about, stack, row, costs)
        result[tables] = {**predicted, "error": round(predicted["seconds"] / row["seconds"] - 1, 5)}
        if "allocated_bytes" in row:
            result[tables]["memory_error"] = round(predicted["peak_bytes"] / row["allocated_bytes"] - 1, 5)
    return result


def _emulated(folder: Folder, about: Mapping[str, Any], stack: Stack, row: Mapping[str, Any],
              costs: str | None) -> dict[str, Any]:
    files = stack.write(folder.path / "stacks")
    answer = json.loads(_program(
        "emulate", "--model", files["model"], "--batch", files["batch"], "--cluster", f"{about['cluster']}:1", "--tp",
        "1", "--pp", "1", "--packing", "given", "--recipe", _recipes[row["how"]], "--recompute", row["recompute"],
        "--any-memory", *(["--costs", costs] if costs else []), "--json", "--quiet"))
    memory = answer["replicas"][0]["ranks"][0]["memory"]
    return {"seconds": round(answer["step_ns"] / 1e9, 6), "peak_bytes": memory["peak_bytes"],
            "memory": {name: value for name, value in memory.items() if name.endswith("_bytes")},
            "operators": answer["share_of_time"]["by_operator"], "basis": answer["share_of_time"]["by_basis"],
            "assumed": answer["assumed"]}


def _error_of(row: Mapping[str, Any]) -> float:
    return float(row["predicted_us"] / row["measured_us"] - 1)


def _by_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Errors of the tables' answers, by table, pass or kind, and what the answers rested on."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        what = row["table"] + (f" {row['kind']}" if "kind" in row else "")
        groups.setdefault((what, row["pass"], row["basis"]), []).append(_error_of(row))
    found = []
    for (what, pass_, basis), errors in sorted(groups.items()):
        sizes = sorted(abs(error) for error in errors)
        found.append({"operator": what, "pass": pass_, "basis": basis, "count": len(errors),
                      "middle_error": round(statistics.median(errors), 4),
                      "nine_of_ten": round(sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))], 4)})
    return found


def _schedule(folder: Folder, about: Mapping[str, Any]) -> dict[str, Any] | None:
    """The two ranks' run beside its plan: the step as planned, with its passes' own times, and as measured."""
    files = sorted(str(file) for file in (folder.path / "ranks").glob("timings-*.json.gz"))
    if not files:
        return None
    found = json.loads(_program("replay", str(folder.path / "ranks/plan"), "--measured", *files, "--json", "--quiet"))
    replayed = found["planned_ns"] + found["run_ns"]
    return {"planned_s": found["planned_ns"] / 1e9, "with_own_times_s": replayed / 1e9,
            "measured_s": found["measured_ns"] / 1e9, "error": round(replayed / found["measured_ns"] - 1, 5),
            "clocks_loosened_s": found["clocks"]["loosened_ns"] / 1e9, "own_devices": about.get("gpus", 0) >= 2}


def _beyond(document: Mapping[str, Any]) -> list[str]:
    """What is not within the limits, a line each. On a CPU predictions are of an assumed device and are not judged."""
    lines = [f"{row['check']}, rank {row['rank']}: does not hold{_why(row)}" for row in document["ranks"]
             if not row["holds"] and (row.get("judged", True) or "why" in row)]
    if document.get("scale") == "cpu":
        return lines
    for row in document["steps"]:
        name = f"{row['stack']} {row['how']}, recompute {row['recompute']}"
        if "seconds" not in row:
            if not _as_predicted(row):
                lines.append(f"{name}: did not run: {row['why']}")
            continue
        best = row.get("own", row["shipped"])
        if abs(best["error"]) > LIMITS["step"]:
            lines.append(f"{name}: the step is predicted {100 * best['error']:+.1f} %")
        if abs(best.get("memory_error", 0.0)) > LIMITS["memory"]:
            lines.append(f"{name}: the peak is predicted {100 * best['memory_error']:+.1f} %")
    for row in document["operators"]:
        if row["count"] >= 5 and abs(row["middle_error"]) > LIMITS["operators"]:
            lines.append(f"{row['operator']} {row['pass']}, {row['basis']}: the middle one of {row['count']} is "
                         f"predicted {100 * row['middle_error']:+.1f} %")
    schedule = document["schedule"]
    if schedule and schedule["own_devices"] and abs(schedule["error"]) > LIMITS["replayed_step"]:
        lines.append(f"the two ranks' step with its passes' own times is {100 * schedule['error']:+.1f} %")
    return lines


def _as_predicted(row: Mapping[str, Any]) -> bool:
    """Whether a step ran out of memory where it was predicted not to fit into what was free, or hardly."""
    return "predicted_bytes" in row and row["predicted_bytes"] * (1 + LIMITS["memory"]) > row["free_bytes"]


def _why(row: Mapping[str, Any]) -> str:
    if "why" in row:
        return f": {row['why']}"
    return f" ({row['worst']:.2g}, limit {row['limit']:.2g})" if "worst" in row else ""
