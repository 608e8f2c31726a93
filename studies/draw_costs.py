#!/usr/bin/env python3
"""Evaluates the embedded cost tables and rewrites docs/costs.md's tables, docs/errors-of-costs.txt, which has all rows
of the first, and docs/pictures/costs.svg:
studies/draw_costs.py PIPEWEAVER

A table of the page stands between <!-- NAME --> and <!-- end -->.
"""

import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from svg import circle, document, line, rect, text
from table import fill, table

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
COLORS = {"gemm": "#2e6f9e", "attention": "#c0622d", "collective": "#55803f", "p2p": "#8e6bb0", "moe": "#b8902c",
          "gdn": "#4f6d7a"}
TRANSFERS = ["a100_sxm:h100_sxm", "h100_sxm:b200", "a100_sxm:h200_sxm", "h100_sxm:h200_sxm"]
LEFT, SIDE, TOP = 70, 400, 30


def run(program, *arguments):
    return subprocess.run([program, "costdb", "evaluate", *arguments], check=True, capture_output=True,
                          text=True).stdout


def find(rows, like, **wanted):
    """The row that differs from `like` in what is wanted, or None."""
    same = {key: like[key] for key in ("device", "op", "kind", "left_out")} | wanted
    return next((row for row in rows if all(row[key] == value for key, value in same.items())), None)


def errors(row):
    return "" if row is None else f"{row['median_percent']:.1f} / {row['p90_percent']:.1f}"


def within(row):
    return "" if row is None or row["points"] < 100 else f"{100 * row['within']:.0f} %"


HEAD = ("operator", "kind", "device", "left out", "answers", "all", "big", "interpolated within", "extrapolated within")
IN_TEXT_ALONE = ("b300", "gb300")  # much like B200 and GB200
EXPERTS = ("bf16", "fp8_block")
WHOLE = ("bf16", "fp8", "nvfp4", "causal", "encoder")  # kinds of GEMM and attention whose rows the page has


def evaluation(rows):
    # Single points of GEMMs and attentions are easier than whole planes; A100 PCIe has a few dozen points.
    wanted = [row for row in rows if row["size"] == "all" and row["basis"] == "any" and row["device"] != "a100_pcie"
              and (row["left_out"] == "planes" or row["op"] not in ("gemm", "attention"))]
    order = list(COLORS)
    for row in sorted(wanted, key=lambda r: (order.index(r["op"]), r["left_out"] == "planes", r["kind"], r["device"])):
        big = find(rows, row, size="big", basis="any")
        bases = [within(find(rows, row, size="all", basis=basis)) for basis in ("interpolated", "extrapolated")]
        yield (row["op"], row["kind"], row["device"], row["left_out"], row["points"], errors(row), errors(big), *bases)


def evaluation_table(lines):
    """Those of planes and of whole layers of experts; of the latter 16 bits, and the format with the largest errors."""
    return table(HEAD, [line for line in lines if line[2] not in IN_TEXT_ALONE
                        and (line[3] == "planes" and line[1] in WHOLE or line[0] == "moe" and line[1] in EXPERTS)])


def evaluation_text(lines):
    lines = [[str(cell) for cell in line] for line in [HEAD, *lines]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in lines)


def transfer_table(trials):
    lines = []
    for trial in trials:
        for row in trial["rows"]:
            if (row["size"], row["basis"]) != ("big", "any"):
                continue
            plain = find(trial["by_peak"], row, size="big", basis="any")
            everything = find(trial["rows"], row, size="all", basis="any")
            lines.append((trial["donor"], row["device"], row["kind"], trial["points"], row["points"], errors(row),
                          errors(plain), f"{100 * row['within']:.0f} %", errors(everything)))
    return table(("donor", "device", "kind", "shapes", "hidden", "transferred, big", "by the peaks, big", "within",
                  "transferred, all"), lines)


def scatter(points):
    """Answer over truth, both in microseconds on logarithmic axes: every so-manieth point of each operator."""
    low, high = 0, 6.5  # decades
    place = lambda us: (math.log10(max(us, 1)) - low) / (high - low) * SIDE
    yield rect(LEFT, TOP, SIDE, SIDE, "#8882")
    for decade in range(7):
        label = ["1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"][decade]
        yield text(LEFT + place(10**decade), TOP + SIDE + 18, label, "middle")
        yield text(LEFT - 6, TOP + SIDE - place(10**decade) + 4, label, "end")
    yield line(("M", LEFT, TOP + SIDE, "L", LEFT + SIDE, TOP), "#888")
    for op, color in reversed(COLORS.items()):
        some = [p for p in points if p["op"] == op and p["left_out"] == "points"]
        for p in some[::max(1, len(some) // 300)]:
            x, y = LEFT + place(float(p["truth_us"])), TOP + SIDE - place(float(p["answer_us"]))
            yield circle(x, y, 1.6, color, fill_opacity=0.6)
    yield text(LEFT + SIDE / 2, TOP + SIDE + 36, "measured", "middle")
    yield text(LEFT, TOP - 10, "answered, the point left out")


def bars(rows):
    """From the median to nine of ten, for each operator and device."""
    wanted = [row for row in rows if row["size"] == "all" and row["basis"] == "any" and row["left_out"] == "points"
              and row["points"] >= 100]
    wanted.sort(key=lambda r: (list(COLORS).index(r["op"]), r["kind"], r["device"]))
    left, wide, most = LEFT + SIDE + 300, 200, 40
    step = SIDE / len(wanted)
    yield text(left + wide, TOP - 10, "error in percent: from the median to nine of ten", "end")
    for tick in range(0, most + 1, 10):
        x = left + tick / most * wide
        yield line(("M", x, TOP, "V", TOP + SIDE), "#8886")
        yield text(x, TOP + SIDE + 18, tick, "middle")
    for i, row in enumerate(wanted):
        y = TOP + i * step
        x, end = (left + min(row[key], most) / most * wide for key in ("median_percent", "p90_percent"))
        yield rect(x, y + 2, max(end - x, 1), max(step - 4, 2), COLORS[row["op"]])
        yield text(left - 8, y + step / 2 + 4, f"{row['op']} {row['kind']} {row['device']}", "end",
                   style="font-size:11px")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        rows = json.loads(run(program, "--json", "--out", folder))["rows"]
        with open(pathlib.Path(folder) / "points.csv", newline="") as file:
            points = list(csv.DictReader(file))
    trials = [json.loads(run(program, "--transfer", pair, "--points", "32", "--json")) for pair in TRANSFERS]
    path = DOCS / "costs.md"
    lines = list(evaluation(rows))
    (DOCS / "errors-of-costs.txt").write_text(evaluation_text(lines))
    page = fill(path.read_text(), "evaluation", evaluation_table(lines))
    path.write_text(fill(page, "transfers", transfer_table(trials)))
    parts = [*scatter(points), *bars(rows)]
    for i, (op, color) in enumerate(COLORS.items()):
        parts += [rect(LEFT + 10, TOP + 10 + 20 * i, 12, 12, color), text(LEFT + 28, TOP + 21 + 20 * i, op)]
    (DOCS / "pictures/costs.svg").write_text(document(1000, TOP + SIDE + 50, parts))


if __name__ == "__main__":
    main()
