#!/usr/bin/env python3
"""Runs two published experiments, sizes of sub-microbatches and memory over time, and writes
published-experiments.md's tables and pictures.

    studies/draw_published.py [--json answers.json]
    studies/draw_published.py --from answers.json

Runs `pipeweaver_studies units` and `pipeweaver_studies memory` for every line of UNITS and MEMORY. With --json what was
measured is kept; --from writes page and pictures again without measuring. All searches are limited by rounds, so the
figures are the same on any machine. The program is build/release/bin/pipeweaver_studies or PIPEWEAVER_STUDIES_BIN. It
takes a few minutes.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess

from svg import across, curve, document, line, text
from table import code, fill, table

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("PIPEWEAVER_STUDIES_BIN", str(HERE.parent / "build/release/bin/pipeweaver_studies"))
PAGE, PICTURES = HERE / "published-experiments.md", HERE / "pictures"

ROUNDS = "--dataset vlm-mix --max-rounds 100"
UNITS = {
    "dip-vlm-s": f"--model dip-vlm-s --cluster h800-sxm:16 {ROUNDS} --batches 5",
    "dip-vlm-m": f"--model dip-vlm-m --cluster h800-sxm:32 {ROUNDS} --batches 5",
    "dip-vlm-l": f"--model dip-vlm-l --cluster h800-sxm:64 {ROUNDS} --batches 3",
}
MEMORY = {
    "dip-vlm-m": f"--model dip-vlm-m --cluster h800-sxm:32 {ROUNDS}",
    "dip-vlm-s": f"--model dip-vlm-s --cluster h800-sxm:16 {ROUNDS}",
}
WIDTH, HEIGHT, LEFT, TOP = 600, 260, 60, 16
COLORS = {"1f1b": "#888888", "interleaved": "#c0622d", "dip": "#5a8f3c", "plan": "#2e6f9e",
          "dip-vlm-s": "#2e6f9e", "dip-vlm-m": "#c0622d", "dip-vlm-l": "#5a8f3c"}
GIB = 1 << 30


def ask(kind, words):
    print(kind, words, flush=True)
    return json.loads(subprocess.run([BINARY, kind, *shlex.split(words), "--json"], check=True,
                                     capture_output=True, text=True).stdout)


def measure():
    return {kind: {name: ask(kind, words) for name, words in runs.items()}
            for kind, runs in (("units", UNITS), ("memory", MEMORY))}


# ---- tables

def best_size(answer):
    return min(answer["sizes"], key=lambda size: size["step_over_best"])


def units_verdict(answers):
    for name, answer in answers["units"].items():
        best, small, large = best_size(answer), answer["sizes"][0], answer["sizes"][-1]
        costs = [f"{100 * (size['step_over_best'] / best['step_over_best'] - 1):.1f} % at {size['items']}"
                 for size in (small, large) if size is not best]
        yield (f"- {name}: best at {best['items']} items; longer by {' and '.join(costs)}. The published rule takes "
               f"{answer['chosen_items']} here.")


def units_table(answers):
    return table(("set-up", "items at most", "mean", "layer efficiency",
                  "step over the best size's: geometric mean (least to most)", "dual queue over searched"),
                 [(name, size["items"], f"{size['mean_items']:.1f}", f"{100 * size['layer_efficiency']:.1f} %",
                   f"{size['step_over_best']:.3f} ({size['least']:.3f} to {size['most']:.3f})",
                   f"{size['dual_queue_over_searched']:.3f}")
                  for name, answer in answers["units"].items() for size in answer["sizes"]])


def memory_table(answers):
    keys = ("base_bytes", "peak_bytes", "mean_bytes", "deviation_bytes", "swing_bytes")
    return table(("set-up", "schedule", "", "step, s", "at rest, GiB", "peak", "mean", "deviation",
                  "swing in the middle half"),
                 [(name, curve["name"], curve["settings"], f"{curve['step_ns'] * 1e-9:.3f}",
                   *(f"{curve[key] / GIB:.1f}" for key in keys))
                  for name, answer in answers["memory"].items() for curve in answer["curves"]])


def command_lines(answers):
    return code(["studies/draw_published.py",
                 *(f"pipeweaver_studies {kind} {runs[name]}" for kind, runs in (("units", UNITS), ("memory", MEMORY))
                   for name in answers[kind])])


# ---- pictures

def row(number):
    """Where the text of a curve stands beside the picture."""
    return TOP + 16 + 18 * number


def units_picture(answers):
    """Step over the best size's; dashed: the layers' inefficiency, best time over theirs."""
    largest = max(size["items"] for answer in answers["units"].values() for size in answer["sizes"])
    top = 0.05 + max(max(size["step_over_best"], 1 / size["layer_efficiency"])
                     for answer in answers["units"].values() for size in answer["sizes"])

    def at(items, value):
        return LEFT + WIDTH * items / largest, TOP + HEIGHT * (1 - (value - 1) / (top - 1))
    for step in range(int((top - 1) / 0.05) + 1):
        value = 1 + 0.05 * step
        yield from across(LEFT, at(0, value)[1], WIDTH, f"{value:.2f}")
    for items in range(4, largest + 1, 4):
        yield text(LEFT + WIDTH * items / largest, TOP + HEIGHT + 20, items, "middle")
    yield text(LEFT + WIDTH / 2, TOP + HEIGHT + 42,
               "items of a sub-microbatch at most; step over the best size's, dashed: "
               "layer time over the best size's", "middle")
    for number, (name, answer) in enumerate(answers["units"].items()):
        yield curve([at(size["items"], size["step_over_best"]) for size in answer["sizes"]], COLORS[name])
        yield curve([at(size["items"], 1 / size["layer_efficiency"]) for size in answer["sizes"]], COLORS[name],
                    stroke_dasharray="4 4")
        yield text(LEFT + WIDTH + 12, row(number), name, color=COLORS[name])


def memory_picture(answer):
    """What the rank holds, from task to task; each on the same axes."""
    end = max(curve["makespan_ns"] for curve in answer["curves"])
    top = answer["usable_bytes"]

    def x(ns):
        return LEFT + WIDTH * ns / end

    def y(held):
        return TOP + HEIGHT * (1 - held / top)
    for gib in range(0, int(top / GIB) + 1, 10):
        yield from across(LEFT, y(gib * GIB), WIDTH, gib)
    for second in range(int(end * 1e-9) + 1):
        yield text(x(second * 1e9), TOP + HEIGHT + 20, second, "middle")
    yield text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, f"seconds; GiB held by rank {answer['rank']} of {answer['model']}",
               "middle")
    for number, one in enumerate(answer["curves"]):
        steps = [word for ns, held in zip(one["held_from_ns"], one["held_bytes"])
                 for word in ("H", x(ns), "V", y(held))]
        color = COLORS[one["name"]]
        yield line(("M", LEFT, y(one["base_bytes"]), *steps, "H", x(one["makespan_ns"])), color, stroke_width=1.2,
                   stroke_opacity=0.85)
        yield text(LEFT + WIDTH + 12, row(number), one["name"], color=color)


def write(answers, page, pictures):
    written = page.read_text()
    for marker, lines in (("units-answer", units_verdict), ("units", units_table), ("memory", memory_table),
                          ("command", command_lines)):
        written = fill(written, marker, lines(answers))
    page.write_text(written)
    width, height = LEFT + WIDTH + 130, TOP + HEIGHT + 56
    (pictures / "unit-sizes.svg").write_text(document(width, height, units_picture(answers)))
    first = next(iter(answers["memory"].values()))
    (pictures / "memory-over-time.svg").write_text(document(width, height, memory_picture(first)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="keep what was measured in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="measured", help="what --json kept: nothing is measured")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--pictures", type=pathlib.Path, default=PICTURES)
    options = parser.parse_args()
    answers = json.loads(options.measured.read_text()) if options.measured else measure()
    if options.json:
        options.json.write_text(json.dumps(answers) + "\n")
    write(answers, options.page, options.pictures)


if __name__ == "__main__":
    main()
