#!/usr/bin/env python3
"""Draws what planning many replicas takes, time and memory against their number, as SVG, and prints a table in Markdown:
tools/draw_replicas.py OUT.svg [--rounds N] [--program PATH] [--options "..."] REPLICAS...

Every search has so many rounds, so the work is the same for each replica. Nothing else may run beside it.
Example: tools/draw_replicas.py docs/pictures/replicas.svg 1 4 16 64 256
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess
import tempfile

WIDTH, HEIGHT, LEFT, RIGHT, TOP = 520, 300, 70, 80, 16
GPUS_OF_ONE = 64
OPTIONS = "--model dip-vlm-xl-8k --tp 8 --pp 8 --dataset vlm-mix --microbatches 64"
TIME, MEMORY = "#2e6f9e", "#c0622d"


def measure(options, replicas):
    """Wall seconds, processor seconds, peak memory and what came out."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.program, "plan", *shlex.split(options.options), "--cluster",
                   f"h100-sxm:{GPUS_OF_ONE * replicas}", "--max-rounds", str(options.rounds), "--quiet", "--out", folder]
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


def table(rows):
    yield "| replicas | GPUs | wall time | processor time | memory | slowest over mean | gap |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        yield (f"| {row['replicas']} | {row['replicas'] * GPUS_OF_ONE:,} | {row['wall']:.1f} s | {row['cpu']:.1f} s "
               f"| {row['mib']:,.0f} MiB | {100 * row['uneven']:.1f} % | {100 * row['gap']:.1f} % |")


def curve(rows, key, color, unit, anchor):
    first, last = math.log2(rows[0]["replicas"]), math.log2(rows[-1]["replicas"])
    low, high = (math.floor(math.log10(min(row[key] for row in rows))),
                 math.ceil(math.log10(max(row[key] for row in rows))))

    def x(replicas):
        return LEFT + (math.log2(replicas) - first) / max(1, last - first) * WIDTH

    def y(value):
        return TOP + (high - math.log10(value)) / max(1, high - low) * HEIGHT

    at = LEFT - 8 if anchor == "end" else LEFT + WIDTH + 8
    for tick in range(low, high + 1):
        yield f'<text x="{at}" y="{y(10**tick) + 4:.1f}" text-anchor="{anchor}" style="fill:{color}">{10**tick:g} {unit}</text>'
        yield f'<path d="M{LEFT} {y(10**tick):.1f}h{WIDTH}" stroke="#8883" />'
    points = " ".join(f"{x(row['replicas']):.1f},{y(row[key]):.1f}" for row in rows)
    yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" />'
    # What is linear is a straight line of slope one.
    top, bottom = rows[-1][key], rows[-1][key] * rows[0]["replicas"] / rows[-1]["replicas"]
    yield (f'<path clip-path="url(#c)" d="M{x(rows[-1]["replicas"]):.1f} {y(top):.1f}L{x(rows[0]["replicas"]):.1f} '
           f'{y(bottom):.1f}" stroke="{color}" stroke-dasharray="3 5" />')


def picture(rows):
    yield f'<clipPath id="c"><path d="M{LEFT} {TOP}h{WIDTH}v{HEIGHT}h-{WIDTH}z" /></clipPath>'
    yield from curve(rows, "wall", TIME, "s", "end")
    yield from curve(rows, "mib", MEMORY, "MiB", "start")
    first, last = math.log2(rows[0]["replicas"]), math.log2(rows[-1]["replicas"])
    for row in rows:
        x = LEFT + (math.log2(row["replicas"]) - first) / max(1, last - first) * WIDTH
        yield f'<text x="{x:.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{row["replicas"]}</text>'
    yield f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">replicas of {GPUS_OF_ONE} GPUs</text>'
    yield f'<text x="{LEFT + 14}" y="{TOP + 18}" style="fill:{TIME}">wall time</text>'
    yield f'<text x="{LEFT + 14}" y="{TOP + 36}" style="fill:{MEMORY}">memory</text>'
    yield f'<text x="{LEFT + 14}" y="{TOP + 54}">dashed: linear</text>'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("replicas", nargs="+", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--program", default="build/release/bin/pipeweaver")
    parser.add_argument("--options", default=OPTIONS)
    options = parser.parse_args()
    rows = [measure(options, replicas) for replicas in options.replicas]
    print("\n".join(table(rows)))
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + 56
    style = "text{font:13px sans-serif;fill:#777}"
    options.out.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
                           f'<style>{style}</style>{"".join(picture(rows))}</svg>\n')


if __name__ == "__main__":
    main()
