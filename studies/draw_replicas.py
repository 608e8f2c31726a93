#!/usr/bin/env python3
"""Draws what planning many replicas takes, time and memory against their number, as SVG, and prints a table in
Markdown: studies/draw_replicas.py OUT.svg [--rounds N] [--program PATH] [--options "..."] REPLICAS...

Every search has so many rounds, so the work is the same for each replica. Nothing else may run beside it.
Example: studies/draw_replicas.py studies/pictures/replicas.svg 1 4 16 64 256
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess
import tempfile

from svg import curve, document, element, line, text
from table import table

WIDTH, HEIGHT, LEFT, RIGHT, TOP = 520, 300, 70, 80, 16
GPUS_OF_ONE = 64
OPTIONS = "--model dip-vlm-xl-8k --tp 8 --pp 8 --dataset vlm-mix --microbatches 64"
TIME, MEMORY = "#2e6f9e", "#c0622d"


def measure(options, replicas):
    """Wall seconds, processor seconds, peak memory and what came out."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.program, "plan", *shlex.split(options.options), "--cluster",
                   f"h100-sxm:{GPUS_OF_ONE * replicas}", "--max-rounds", str(options.rounds), "--quiet", "--out",
                   folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{shlex.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
        plan = json.loads(pathlib.Path(folder, "plan.json").read_text())
        run = json.loads(pathlib.Path(folder, "run.json").read_text())
    makespans = [one["makespan_ns"] for one in plan["replicas"]]
    return {"replicas": replicas, "wall": run["seconds"], "cpu": used.ru_utime + used.ru_stime,
            "mib": used.ru_maxrss / 1024, "gap": plan["gap"],
            "uneven": max(makespans) * len(makespans) / sum(makespans) - 1, "threads": run["threads"]}


def rows_table(rows):
    return table(("replicas", "GPUs", "wall time", "processor time", "memory", "slowest over mean", "gap"),
                 [(row["replicas"], f"{row['replicas'] * GPUS_OF_ONE:,}", f"{row['wall']:.1f} s", f"{row['cpu']:.1f} s",
                   f"{row['mib']:,.0f} MiB", f"{100 * row['uneven']:.1f} %", f"{100 * row['gap']:.1f} %")
                  for row in rows], right=range(7))


def series(rows, key, color, unit, anchor):
    first, last = math.log2(rows[0]["replicas"]), math.log2(rows[-1]["replicas"])
    low, high = (math.floor(math.log10(min(row[key] for row in rows))),
                 math.ceil(math.log10(max(row[key] for row in rows))))

    def x(replicas):
        return LEFT + (math.log2(replicas) - first) / max(1, last - first) * WIDTH

    def y(value):
        return TOP + (high - math.log10(value)) / max(1, high - low) * HEIGHT

    at = LEFT - 8 if anchor == "end" else LEFT + WIDTH + 8
    for tick in range(low, high + 1):
        yield text(at, y(10**tick) + 4, f"{10**tick:g} {unit}", anchor, color)
        yield line(("M", LEFT, y(10**tick), "h", WIDTH), "#8883")
    yield curve([(x(row["replicas"]), y(row[key])) for row in rows], color)
    # What is linear is a straight line of slope one.
    top, bottom = rows[-1][key], rows[-1][key] * rows[0]["replicas"] / rows[-1]["replicas"]
    yield line(("M", x(rows[-1]["replicas"]), y(top), "L", x(rows[0]["replicas"]), y(bottom)), color,
               clip_path="url(#c)", stroke_dasharray="3 5")


def picture(rows):
    yield element("clipPath", element("path", d=f"M{LEFT} {TOP}h{WIDTH}v{HEIGHT}h-{WIDTH}z"), id="c")
    yield from series(rows, "wall", TIME, "s", "end")
    yield from series(rows, "mib", MEMORY, "MiB", "start")
    first, last = math.log2(rows[0]["replicas"]), math.log2(rows[-1]["replicas"])
    for row in rows:
        x = LEFT + (math.log2(row["replicas"]) - first) / max(1, last - first) * WIDTH
        yield text(x, TOP + HEIGHT + 20, row["replicas"], "middle")
    yield text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, f"replicas of {GPUS_OF_ONE} GPUs", "middle")
    yield text(LEFT + 14, TOP + 18, "wall time", color=TIME)
    yield text(LEFT + 14, TOP + 36, "memory", color=MEMORY)
    yield text(LEFT + 14, TOP + 54, "dashed: linear")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("replicas", nargs="+", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--program", default="build/release/bin/pipeweaver")
    parser.add_argument("--options", default=OPTIONS)
    options = parser.parse_args()
    rows = [measure(options, replicas) for replicas in options.replicas]
    print("\n".join(rows_table(rows)))
    options.out.write_text(document(LEFT + WIDTH + RIGHT, TOP + HEIGHT + 56, picture(rows)))


if __name__ == "__main__":
    main()
