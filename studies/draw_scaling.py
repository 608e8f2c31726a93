#!/usr/bin/env python3
"""Draws how long emulating a step takes against its GPUs, as SVG: studies/draw_scaling.py OUT.svg PIPELINE GPUS...

PIPELINE is a command with its options, GPUS the numbers of GPUs, each a multiple of a replica's. Every step is
emulated three times in one process: the first time is the cold one, the last the warm one. Prints a table in Markdown.
Example: studies/draw_scaling.py scaling.svg "build/release/bin/pipeweaver emulate --model dip-vlm-l --tp 8 --pp 8
--dataset vlm-mix --microbatches 16 --cluster h100-sxm" 64 512 4096 65536
"""

import json
import math
import pathlib
import shlex
import subprocess
import sys

from svg import across, curve, document, element, line, text
from table import table

WIDTH, HEIGHT, LEFT, TOP = 560, 320, 70, 16
SERIES = (("cold", "#2e6f9e"), ("warm", "#c0622d"))


def measure(command, gpus):
    """What emulating that many GPUs takes."""
    words = shlex.split(command)
    words[words.index("--cluster") + 1] += f":{gpus}"
    answer = json.loads(subprocess.run([*words, "--repeat", "3", "--json"], check=True, capture_output=True).stdout)
    run = answer["run"]
    return {"gpus": gpus, "kernels": answer["kernels"], "step": answer["step_ns"] * 1e-9, "mfu": answer["mfu"],
            "cold": run["emulate_seconds"][0], "warm": run["emulate_seconds"][-1], "bytes": run["peak_memory_bytes"]}


def rows_table(rows):
    return table(("GPUs", "kernels of the step", "step", "cold", "warm", "memory"),
                 [(f"{row['gpus']:,}", f"{row['kernels']:,}", f"{row['step']:.3f} s", f"{row['cold']:.3f} s",
                   f"{row['warm']:.3f} s", f"{row['bytes'] / 2**20:.0f} MiB") for row in rows], right=range(6))


def decades(values):
    return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)


def picture(rows):
    times = [row[name] for row in rows for name, _ in SERIES]
    ticks = list(decades(times))
    first, last = math.log2(rows[0]["gpus"]), math.log2(rows[-1]["gpus"])

    def x(gpus):
        return LEFT + (math.log2(gpus) - first) / max(1, last - first) * WIDTH

    def y(seconds):
        return TOP + (ticks[-1] - math.log10(seconds)) / (ticks[-1] - ticks[0]) * HEIGHT

    for tick in ticks:
        yield from across(LEFT, y(10**tick), WIDTH, f"{10.0**tick:g} s")
    for row in rows:
        yield text(x(row["gpus"]), TOP + HEIGHT + 20, row["gpus"], "middle")
    yield text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "GPUs", "middle")
    # What is linear is a straight line of this slope.
    top, bottom = y(rows[-1]["cold"]), y(rows[-1]["cold"] * rows[0]["gpus"] / rows[-1]["gpus"])
    yield element("clipPath", element("path", d=f"M{LEFT} {TOP}h{WIDTH}v{HEIGHT}h-{WIDTH}z"), id="c")
    yield line(("M", x(rows[-1]["gpus"]), top, "L", x(rows[0]["gpus"]), bottom), "#888", clip_path="url(#c)",
               stroke_dasharray="4 4")
    for number, (name, color) in enumerate(SERIES):
        yield curve([(x(row["gpus"]), y(row[name])) for row in rows], color)
        yield text(LEFT + 20, TOP + 20 + 20 * number, name, color=color)
    yield text(LEFT + 20, TOP + 60, "dashed: linear")


def main():
    out, command = sys.argv[1], sys.argv[2]
    rows = [measure(command, int(gpus)) for gpus in sys.argv[3:]]
    print("\n".join(rows_table(rows)))
    pathlib.Path(out).write_text(document(LEFT + WIDTH + 30, TOP + HEIGHT + 56, picture(rows)))


if __name__ == "__main__":
    main()
