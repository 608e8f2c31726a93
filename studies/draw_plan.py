#!/usr/bin/env python3
"""Draws a plan folder of `pipeweaver plan` as SVG: studies/draw_plan.py OUT_FOLDER PLAN_FOLDER

Writes batch.svg (what each microbatch holds), partition.svg (how the modules are cut, by the plan and in the chain for
PyTorch), bound.svg (the plan, policies on its partition with their bound, and the fastest opponents) and plan.svg (the
fastest opponent on the plan's ranks above the plan, as report.html has them).
"""

import html
import json
import pathlib
import re
import sys

from draw_schedules import COLORS, GAP, LEFT, NAMES, ROW
from svg import document, legend, rect, text

WIDTH = 1000
TEXT, STRONG = "#777", "#222"
BOLD = "font-weight:bold"
OPPONENTS = 8  # that are drawn, the fastest


def write(path, height, parts):
    path.write_text(document(WIDTH, height, parts))


def batch(path, assignment):
    """Above: tokens of each microbatch, those of items and of text. Below: patches, cut into sub-microbatches."""
    microbatches = assignment["replicas"][0]["microbatches"]
    encoder = [[unit for unit in one["units"] if unit["module"] != "llm"] for one in microbatches]
    items = [sum(item["tokens"] for unit in units for item in unit["items"]) for units in encoder]
    patches = [[sum(item["rows"][1] - item["rows"][0] for item in unit["items"]) for unit in units]
               for units in encoder]
    left, high, step = 110, 110, (WIDTH - 110) / len(microbatches)
    tokens_scale = high / max(one["tokens"] for one in microbatches)
    patches_scale = high / max(map(sum, patches))
    top, below = 30, 30 + high + 40
    parts = [text(left - 10, top + 14, "tokens", "end"),
             text(left - 10, top + 32, "in the LLM", "end"),
             text(left - 10, below + 14, "patches", "end"),
             text(left - 10, below + 32, "in the ViT", "end")]
    for m, one in enumerate(microbatches):
        x, wide = left + m * step, step * 0.8
        y = top + high - one["tokens"] * tokens_scale
        parts.append(rect(x, y, wide, (one["tokens"] - items[m]) * tokens_scale, COLORS["llm", "F"]))
        parts.append(rect(x, top + high - items[m] * tokens_scale, wide, items[m] * tokens_scale, COLORS["vit", "F"]))
        parts.append(text(x + wide / 2, y - 4, one["tokens"], "middle"))
        y = below + high
        for unit in patches[m]:
            y -= unit * patches_scale
            parts.append(rect(x, y, wide, max(unit * patches_scale - 1.5, 1), COLORS["vit", "B"]))
        parts.append(text(x + wide / 2, y - 4, sum(patches[m]), "middle"))
        parts.append(text(x + wide / 2, below + high + 16, m, "middle"))
    foot = below + high + 30
    parts += legend(left, foot, [(COLORS["llm", "F"], "text tokens"), (COLORS["vit", "F"], "image tokens"),
                                 (COLORS["vit", "B"], "patches, a block is a sub-microbatch")])
    write(path, foot + 20, parts)


def stage_box(x, y, wide, parts_of_stage):
    """A stage; its modules side by side, as wide as they have layers."""
    layers = sum(part["layers"] for part in parts_of_stage)
    for part in parts_of_stage:
        share = wide * part["layers"] / layers
        yield rect(x, y, share - 1, 26, COLORS.get((part["module"], "F"), "#9a7fd1"))
        name = f"{part['module']} {part['first_layer']}-{part['first_layer'] + part['layers'] - 1}"
        if share > 44:
            yield text(x + share / 2, y + 18, name, "middle", STRONG)
        x += share


def partition(path, plan, torch):
    """Rows of stages that a microbatch passes from left to right; a column is a rank."""
    ranks = plan["asked"]["pp"]
    chains = [(f"{chain['name']} segment", chain["stages"]) for chain in plan["partition"]["chains"]]
    groups = [(f"{plan['partition']['name']}: a chain for each module", chains),
              (f"{plan['torch']['partition']}: one chain for all", [("segment", torch["stages"])])]
    left, wide = 110, (WIDTH - 110) / ranks
    parts, y = [], 18
    for r in range(ranks):
        parts.append(text(left + (r + 0.5) * wide, y, f"rank {r}", "middle"))
    for title, rows in groups:
        y += 30
        parts.append(text(left, y, title, style=BOLD))
        y += 8
        for name, stages in rows:
            for number, stage in enumerate(stages):
                if number % ranks == 0:
                    parts.append(text(left - 10, y + 18, f"{name} {number // ranks}", "end"))
                parts += stage_box(left + stage["rank"] * wide + 2, y, wide - 6, stage["parts"])
                if number % ranks == ranks - 1:
                    y += 32
    write(path, y + 8, parts)


def bound(path, plan):
    """Schedules as bars, of opponents the fastest; the tick is the bound of the plan's partition, where one is
    known."""
    rows = [(f"{one['partition']}, {one['policy']}, {one['chunks_per_rank']}", one["makespan_ns"],
             one["lower_bound_ns"])
            for one in sorted(plan["baselines"], key=lambda one: one["makespan_ns"])]
    opponents = [row for row in rows if row[2] is None]
    rows = [row for row in rows if row[2] is not None or row in opponents[:OPPONENTS]]
    rows.insert(0, (f"{plan['partition']['name']}, plan, {plan['partition']['chunks_per_rank']}", plan["makespan_ns"],
                    plan["lower_bound_ns"]))
    left, high = 20 + 7 * max(len(row[0]) for row in rows), 18
    scale = (WIDTH - left - 150) / max(row[1] for row in rows)
    parts = []
    for number, (name, time, least) in enumerate(rows):
        y = 4 + number * (high + 4)
        fill = COLORS["llm", "B"] if number == 0 else COLORS["llm", "F"] if least is None else COLORS["vit", "F"]
        parts.append(text(left - 8, y + 13, name, "end", style=BOLD if number == 0 else None))
        parts.append(rect(left, y, time * scale, high, fill))
        words = f"{time / 1e9:.2f} s"
        if least is not None:
            parts.append(rect(left + least * scale - 1.5, y - 1, 3, high + 2, TEXT))
            words += f", gap {100 * (time - least) / least:.1f} %"
        parts.append(text(left + time * scale + 6, y + 13, words))
    foot = 4 + len(rows) * (high + 4) + 8
    parts += legend(20, foot, [(COLORS["llm", "B"], "plan"), (COLORS["vit", "F"], "policy on its partition"),
                                 (COLORS["llm", "F"], "opponent"), (TEXT, "lower bound of this partition and packing")])
    write(path, foot + 20, parts)


def schedules(path, report):
    """The report's two schedules, the plan's below."""
    modules = dict(re.findall(r'<rect class="m(\d+) F"[^>]*/></svg>(.*?) forward', report))
    pictures = re.findall(r'<svg class="time bars[^"]*".*?</svg>', report, re.DOTALL)[:2]
    captions = re.findall(r'<figure class="schedule".*?<figcaption>(.*?)</figcaption>', report)[:2]
    titles = [html.unescape(re.sub("<[^>]*>", "", one.replace(" <span>", ": "))) for one in captions]
    scale, parts, top = (WIDTH - LEFT) / 1e6, [], 24
    used = set()
    for title, picture in reversed(list(zip(titles, pictures, strict=True))):
        parts.append(text(LEFT, top - 8, title, style=BOLD))
        for rank, lane in enumerate(picture.split('<g class="rank"')[1:]):
            y = top + rank * (ROW + GAP)
            parts.append(text(LEFT - 8, y + 14, f"rank {rank}", "end"))
            parts.append(rect(LEFT, y, WIDTH - LEFT, ROW, "#8883"))
            for module, kind, x, wide in re.findall(r'class="bar m(\d+) (\w)" x="(\d+)" y="\d+" width="(\d+)"', lane):
                used.add((modules[module], kind))
                parts.append(rect(LEFT + int(x) * scale, y, max(int(wide) * scale - 0.15, 0.2), ROW,
                                  COLORS.get((modules[module], kind), "#888")))
        top += picture.count('<g class="rank"') * (ROW + GAP) + 34
    parts += legend(LEFT, top - 24, [(color, f"{module} {NAMES[kind]}") for (module, kind), color in COLORS.items()
                                     if (module, kind) in used])
    write(path, top, parts)


def main():
    out, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    plan = json.loads((folder / "plan.json").read_text())
    batch(out / "batch.svg", json.loads((folder / "assignment.json").read_text()))
    partition(out / "partition.svg", plan, json.loads((folder / "torch/schedule.json").read_text()))
    bound(out / "bound.svg", plan)
    schedules(out / "plan.svg", (folder / "report.html").read_text())


if __name__ == "__main__":
    main()
