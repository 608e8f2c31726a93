#!/usr/bin/env python3
"""Draws schedules under one another on one time axis, as SVG: studies/draw_schedules.py OUT.svg TITLE=FOLDER...

A folder holds problem.json.gz and solution.json, as `pipeweaver plan` and `pipeweaver solve` write them.
"""

import gzip
import json
import pathlib
import sys

from svg import document, rect, text

WIDTH, LEFT, ROW, GAP = 1000, 62, 20, 4
COLORS = {("vit", "F"): "#7fb3d5", ("vit", "B"): "#2e6f9e", ("vit", "W"): "#6f8fb0",
          ("llm", "F"): "#f0b27a", ("llm", "B"): "#c0622d", ("llm", "W"): "#b58463",
          ("vit+llm", "F"): "#a3c293", ("vit+llm", "B"): "#55803f"}
PARTS = "forward", "backward", "weight"
NAMES = {"F": "forward", "B": "backward", "W": "weight gradient"}


def kind_of(task):
    """An input gradient is drawn as the backward that others wait for."""
    return task["module"], "B" if task["kind"] == "I" else task["kind"]


def load(folder):
    folder = pathlib.Path(folder)
    problem = json.loads(gzip.decompress((folder / "problem.json.gz").read_bytes()))
    return problem, json.loads((folder / "solution.json").read_text())


def duration(problem, solution, task, pairs):
    if task["id"] not in pairs:
        return task["duration_ns"]
    number, pair = pairs[task["id"]]
    mode = pair["modes"][solution["mode"][number]]
    part = next(part for part in PARTS if pair.get(part) == task["id"])
    return mode[f"{part}_ns"]


def bars(problem, solution, top, scale):
    pairs = {pair[part]: (k, pair) for k, pair in enumerate(problem.get("pairs", [])) for part in PARTS if part in pair}
    for rank in range(len(problem["ranks"])):
        y = top + rank * (ROW + GAP)
        yield text(LEFT - 8, y + 14, f"rank {rank}", "end")
        yield rect(LEFT, y, WIDTH - LEFT, ROW, "#8883")
    for task in problem["tasks"]:
        x = LEFT + solution["start_ns"][task["id"]] * scale
        width = duration(problem, solution, task, pairs) * scale
        color = COLORS.get(kind_of(task), "#888")
        y = top + task["rank"] * (ROW + GAP)
        yield rect(x, y, max(width - 0.3, 0.2), ROW, color)


def main():
    out, schedules = sys.argv[1], [argument.split("=", 1) for argument in sys.argv[2:]]
    loaded = [(title, *load(folder)) for title, folder in schedules]
    longest = max(solution["makespan_ns"] for _, _, solution in loaded)
    scale = (WIDTH - LEFT) / longest
    parts, top = [], 24
    for title, problem, solution in loaded:
        seconds = solution["makespan_ns"] / 1e9
        parts.append(text(LEFT, top - 8, f"{title}: {seconds:.2f} s", font_weight="bold"))
        parts += bars(problem, solution, top, scale)
        top += len(problem["ranks"]) * (ROW + GAP) + 34
    used = {kind_of(task) for _, problem, _ in loaded for task in problem["tasks"]}
    x = LEFT
    for (module, kind), color in COLORS.items():
        if (module, kind) not in used:
            continue
        name = f"{module} {NAMES[kind]}"
        if x + 30 + 7 * len(name) > WIDTH:
            x, top = LEFT, top + 22
        parts += [rect(x, top - 24, 14, 14, color), text(x + 19, top - 12, name)]
        x += 30 + 7 * len(name)
    pathlib.Path(out).write_text(document(WIDTH, top, parts))


if __name__ == "__main__":
    main()
