"""A check as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Table = tuple[str, list[str], list[list[str]]]


def text(document: Mapping[str, Any]) -> str:
    """What the command prints."""
    lines = [line for name, header, rows in tables(document) if rows for line in ["", name, *_aligned([header, *rows])]]
    lines += ["", *(f"beyond: {line}" for line in document["beyond"])]
    for part in document["parts"]:
        if part["state"] != "complete":
            lines.append(f"missing: {part['part']} ({part['state']}{': ' if part['why'] else ''}{part['why']})")
    lines += [f"not reached: {line}" for line in not_reached(document)]
    return "\n".join(lines + [f"verdict: {document['verdict']}"])


def not_reached(document: Mapping[str, Any]) -> list[str]:
    """Of each part, what there was no time or memory for: nothing is said of it."""
    lines = []
    for part in document["parts"]:
        if left := part["left"]:
            lines.append(f"{part['part']}: {len(left)}, {', '.join(left[:3])}{' ...' if len(left) > 3 else ''}")
    return lines


def tables(document: Mapping[str, Any]) -> list[Table]:
    """Name, header and rows of all that was found: what text and page show."""
    return [_machine(document), _steps(document), _memory(document), _operators(document), _ranks(document)]


def _machine(document: Mapping[str, Any]) -> Table:
    rows = [[row["what"], f"{row['value']:.4g} {row['unit']}" if "value" in row else row["why"]]
            for row in document["machine"]]
    return "The machine alone", ["what", "measured"], rows


def _steps(document: Mapping[str, Any]) -> Table:
    rows = []
    for row in document["steps"]:
        name = [row["stack"], row["how"], row["recompute"]]
        if "seconds" not in row:
            rows.append([*name, row["why"][:60], "", "", "", "", ""])
            continue
        shipped, own = row["shipped"], row.get("own")
        rows.append([*name, _ms(row["seconds"]), _ms(row["issued_s"]), _ms(shipped["seconds"]),
                     _percent(shipped["error"]), _ms(own["seconds"]) if own else "",
                     _percent(own["error"]) if own else ""])
    return ("Steps on one GPU, milliseconds", ["stack", "how", "recompute", "measured", "launched after", "predicted",
                                               "error", "with own operators", "error"], rows)


def _memory(document: Mapping[str, Any]) -> Table:
    rows = [[row["stack"], row["how"], row["recompute"], _gib(row["allocated_bytes"]), _gib(row["reserved_bytes"]),
             _gib(row["shipped"]["peak_bytes"]), _percent(row["shipped"]["memory_error"])]
            for row in document["steps"] if "allocated_bytes" in row and "shipped" in row]
    return ("Peak memory, GiB", ["stack", "how", "recompute", "allocated", "reserved", "predicted", "error"], rows)


def _operators(document: Mapping[str, Any]) -> Table:
    rows = [[row["operator"], row["pass"], row["basis"], str(row["count"]), _percent(row["middle_error"]),
             _percent(row["nine_of_ten"]).lstrip("+")] for row in document["operators"]]
    return ("Operators, the tables' answers over what was measured",
            ["operator", "pass", "rests on", "measured", "middle error", "nine of ten within"], rows)


def _ranks(document: Mapping[str, Any]) -> Table:
    rows = [[row["check"], str(row["rank"]), _holds(row),
             f"{row['worst']:.1e}, limit {row['limit']:.1e}" if "worst" in row else row.get("why", "")]
            for row in document["ranks"]]
    schedule = document["schedule"]
    if schedule:
        rows.append(["a step: planned, with its passes' own times, measured", "all",
                     _percent(schedule["error"]) if schedule["own_devices"] else "not judged",
                     ", ".join(_ms(schedule[key]) + " ms" for key in ("planned_s", "with_own_times_s", "measured_s"))])
    return "Two ranks run a plan", ["check", "rank", "holds", "found"], rows


def _holds(row: Mapping[str, Any]) -> str:
    return "yes" if row["holds"] else "no" if row.get("judged", True) else "not judged"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
