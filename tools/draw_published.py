#!/usr/bin/env python3
"""Runs two published experiments, sizes of sub-microbatches and memory over time, and writes
docs/published-experiments.md's tables and pictures.

    tools/draw_published.py [--json answers.json]
    tools/draw_published.py --from answers.json

Runs `pipeweaver bench units` and `pipeweaver bench memory` for every line of UNITS and MEMORY. With --json what was
measured is kept; --from writes page and pictures again without measuring. All searches are limited by rounds, so the
figures are the same on any machine. The program is build/release/bin/pipeweaver or PIPEWEAVER_BIN. It takes a few minutes.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess

from draw_families import fill

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))
PAGE, PICTURES = ROOT / "docs/published-experiments.md", ROOT / "docs/pictures"

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
    return json.loads(subprocess.run([BINARY, "bench", kind, *shlex.split(words), "--json"], check=True,
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
    yield ("| set-up | items at most | mean | layer efficiency | step over the best size's: geometric mean (least to most) | "
           "dual queue over searched |")
    yield "|---|---|---|---|---|---|"
    for name, answer in answers["units"].items():
        for size in answer["sizes"]:
            yield (f"| {name} | {size['items']} | {size['mean_items']:.1f} | {100 * size['layer_efficiency']:.1f} % | "
                   f"{size['step_over_best']:.3f} ({size['least']:.3f} to {size['most']:.3f}) | "
                   f"{size['dual_queue_over_searched']:.3f} |")


def memory_table(answers):
    yield "| set-up | schedule | | step, s | at rest, GiB | peak | mean | deviation | swing in the middle half |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, answer in answers["memory"].items():
        for curve in answer["curves"]:
            bytes_of = [curve[key] / GIB for key in ("base_bytes", "peak_bytes", "mean_bytes", "deviation_bytes",
                                                     "swing_bytes")]
            yield (f"| {name} | {curve['name']} | {curve['settings']} | {curve['step_ns'] * 1e-9:.3f} | "
                   f"{' | '.join(f'{value:.1f}' for value in bytes_of)} |")


def command_lines(answers):
    yield "```"
    yield "tools/draw_published.py"
    for kind, runs in (("units", UNITS), ("memory", MEMORY)):
        for name in answers[kind]:
            yield f"pipeweaver bench {kind} {runs[name]}"
    yield "```"


# ---- pictures

def svg(parts, height):
    width = LEFT + WIDTH + 130
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
            f'<style>text{{font:13px sans-serif;fill:#777}}</style>{"".join(parts)}</svg>\n')


def row(number):
    """Where the text of a curve stands beside the picture."""
    return TOP + 16 + 18 * number


def units_picture(answers):
    """Step over the best size's; dashed: the layers' inefficiency, best time over theirs."""
    largest = max(size["items"] for answer in answers["units"].values() for size in answer["sizes"])
    top = 0.05 + max(max(size["step_over_best"], 1 / size["layer_efficiency"])
                     for answer in answers["units"].values() for size in answer["sizes"])

    def at(items, value):
        return f"{LEFT + WIDTH * items / largest:.1f} {TOP + HEIGHT * (1 - (value - 1) / (top - 1)):.1f}"
    for step in range(int((top - 1) / 0.05) + 1):
        value = 1 + 0.05 * step
        x, y = at(0, value).split()
        yield f'<path d="M{x} {y}h{WIDTH}" stroke="#8884" />'
        yield f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
    for items in range(4, largest + 1, 4):
        yield (f'<text x="{LEFT + WIDTH * items / largest:.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{items}'
               '</text>')
    yield (f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">items of a sub-microbatch at most; '
           "step over the best size's, dashed: layer time over the best size's</text>")
    for number, (name, answer) in enumerate(answers["units"].items()):
        for value, dashes in ((lambda size: size["step_over_best"], ""),
                              (lambda size: 1 / size["layer_efficiency"], ' stroke-dasharray="4 4"')):
            path = "L".join(at(size["items"], value(size)) for size in answer["sizes"])
            yield f'<path d="M{path}" fill="none" stroke="{COLORS[name]}" stroke-width="2"{dashes} />'
        yield f'<text x="{LEFT + WIDTH + 12}" y="{row(number)}" style="fill:{COLORS[name]}">{name}</text>'


def memory_picture(answer):
    """What the rank holds, from task to task; each on the same axes."""
    end = max(curve["makespan_ns"] for curve in answer["curves"])
    top = answer["usable_bytes"]

    def x(ns):
        return LEFT + WIDTH * ns / end

    def y(held):
        return TOP + HEIGHT * (1 - held / top)
    for gib in range(0, int(top / GIB) + 1, 10):
        yield f'<path d="M{LEFT} {y(gib * GIB):.1f}h{WIDTH}" stroke="#8884" />'
        yield f'<text x="{LEFT - 8}" y="{y(gib * GIB) + 4:.1f}" text-anchor="end">{gib}</text>'
    for second in range(int(end * 1e-9) + 1):
        yield f'<text x="{x(second * 1e9):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{second}</text>'
    yield (f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">seconds; GiB held by rank '
           f'{answer["rank"]} of {answer["model"]}</text>')
    for number, curve in enumerate(answer["curves"]):
        points = zip(curve["held_from_ns"], curve["held_bytes"])
        path = "".join(f"H{x(ns):.1f}V{y(held):.1f}" for ns, held in points)
        color = COLORS[curve["name"]]
        yield (f'<path d="M{LEFT} {y(curve["base_bytes"]):.1f}{path}H{x(curve["makespan_ns"]):.1f}" fill="none" '
               f'stroke="{color}" stroke-width="1.2" stroke-opacity="0.85" />')
        yield f'<text x="{LEFT + WIDTH + 12}" y="{row(number)}" style="fill:{color}">{curve["name"]}</text>'


def write(answers, page, pictures):
    text = page.read_text()
    for marker, lines in (("units-answer", units_verdict), ("units", units_table), ("memory", memory_table),
                          ("command", command_lines)):
        text = fill(text, marker, lines(answers))
    page.write_text(text)
    height = TOP + HEIGHT + 56
    (pictures / "unit-sizes.svg").write_text(svg(units_picture(answers), height))
    first = next(iter(answers["memory"].values()))
    (pictures / "memory-over-time.svg").write_text(svg(memory_picture(first), height))


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
