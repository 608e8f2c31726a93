#!/usr/bin/env python3
"""Draws how long emulating a step takes against its GPUs, as SVG: tools/draw_scaling.py OUT.svg PIPELINE GPUS...

PIPELINE is a command with its options, GPUS the numbers of GPUs, each a multiple of a replica's. Every step is
emulated three times in one process: the first time is the cold one, the last the warm one. Prints a table in Markdown.
Example: tools/draw_scaling.py scaling.svg "build/release/bin/pipeweaver emulate --model dip-vlm-l --tp 8 --pp 8
--dataset vlm-mix --microbatches 16 --cluster h100-sxm" 64 512 4096 65536
"""

import json
import math
import pathlib
import shlex
import subprocess
import sys

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


def table(rows):
    yield "| GPUs | kernels of the step | step | cold | warm | memory |\n|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        yield (f"| {row['gpus']:,} | {row['kernels']:,} | {row['step']:.3f} s | {row['cold']:.3f} s | {row['warm']:.3f} s "
               f"| {row['bytes'] / 2**20:.0f} MiB |")


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
        yield f'<path d="M{LEFT} {y(10**tick):.1f}h{WIDTH}" stroke="#8884" />'
        yield f'<text x="{LEFT - 8}" y="{y(10**tick) + 4:.1f}" text-anchor="end">{10.0**tick:g} s</text>'
    for row in rows:
        yield f'<text x="{x(row["gpus"]):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{row["gpus"]}</text>'
    yield f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">GPUs</text>'
    # What is linear is a straight line of this slope.
    top, bottom = y(rows[-1]["cold"]), y(rows[-1]["cold"] * rows[0]["gpus"] / rows[-1]["gpus"])
    yield f'<clipPath id="c"><path d="M{LEFT} {TOP}h{WIDTH}v{HEIGHT}h-{WIDTH}z" /></clipPath>'
    yield (f'<path clip-path="url(#c)" d="M{x(rows[-1]["gpus"]):.1f} {top:.1f}L{x(rows[0]["gpus"]):.1f} {bottom:.1f}" '
           'stroke="#888" stroke-dasharray="4 4" />')
    for number, (name, color) in enumerate(SERIES):
        points = " ".join(f"{x(row['gpus']):.1f},{y(row[name]):.1f}" for row in rows)
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" />'
        yield f'<text x="{LEFT + 20}" y="{TOP + 20 + 20 * number}" style="fill:{color}">{name}</text>'
    yield f'<text x="{LEFT + 20}" y="{TOP + 60}">dashed: linear</text>'


def main():
    out, command = sys.argv[1], sys.argv[2]
    rows = [measure(command, int(gpus)) for gpus in sys.argv[3:]]
    print("\n".join(table(rows)))
    style = "text{font:13px sans-serif;fill:#777}"
    width, height = LEFT + WIDTH + 30, TOP + HEIGHT + 56
    pathlib.Path(out).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                                 f'width="{width}"><style>{style}</style>{"".join(picture(rows))}</svg>\n')


if __name__ == "__main__":
    main()
