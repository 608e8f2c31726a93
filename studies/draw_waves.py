#!/usr/bin/env python3
"""Measures batches in waves and shifts of modality, and writes waves.md and its pictures.

    studies/draw_waves.py [--max-rounds 100] [--json answer.json]
    studies/draw_waves.py --from answer.json

Runs `pipeweaver_studies waves` and `pipeweaver_studies shift`, puts tables, answers and commands between the page's
markers, and two pictures beside it. With --json what was measured is kept; --from writes page and pictures again
without measuring. Further options (--microbatches, --threads ...) go to both commands as they are, those in --waves
"..." and --shift "..." to one of them. The program is build/release/bin/pipeweaver_studies or PIPEWEAVER_STUDIES_BIN.
Takes ten minutes.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess

from svg import across, area, curve, document, text
from table import code, fill, table

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("PIPEWEAVER_STUDIES_BIN", str(HERE.parent / "build/release/bin/pipeweaver_studies"))
PAGE, PICTURES = HERE / "waves.md", HERE / "pictures"
STATIC = ("static-first", "static-first-five", "static-waves", "static-1f1b")
MOST_STEPS = 100_000  # beyond, a difference is one of chance
COLORS = {"ours": "#2e6f9e", "dip": "#c0622d", "static-first": "#8a5fa8", "static-first-five": "#5a8f3c",
          "static-1f1b": "#888888", "opponent": "#b0922e"}
KINDS = {"images": "image-heavy", "text": "text-heavy", "mix": "a mix"}
WIDTH, HEIGHT, LEFT, TOP, LEGEND = 620, 300, 60, 16, 150
MANY = "--steps 8 --microbatches 64 --max-rounds 5"  # eight times as large, so with fewer rounds
SHIFT_ROUNDS = 20


def measure(words, own):
    def told(command, options):
        words = [command, *options]
        answer = json.loads(subprocess.run([BINARY, *words, "--json"], check=True, stdout=subprocess.PIPE).stdout)
        return {**answer, "command": shlex.join(["pipeweaver_studies", *words])}
    asked = {command: [*words, *shlex.split(own[command])] for command in own}
    return {"waves": told("waves", asked["waves"]), "many": told("waves", shlex.split(MANY)),
            "shift": told("shift", asked["shift"])}


def seconds(nanoseconds):
    return "does not run" if nanoseconds is None else f"{nanoseconds * 1e-9:.3f} s"


def ratio(value):
    return "none" if value is None else f"{value:.3f}x"


GIVEN_AWAY = 0.001  # without --robust (planner/choose/robust_choice)


# ---- waves

def over_ours(step, way):
    time = step["step_ns"][way]
    return None if time is None else time / step["step_ns"]["ours"]


def behind(waves, way):
    """Steps in which ours takes longer by more than a plan gives away to be safer if costs are wrong, by how much."""
    found = [(over_ours(step, way) or 1, step["step"]) for step in waves["steps"]]
    return sorted((1 / value - 1, step) for value, step in found if 1 / value - 1 > GIVEN_AWAY)


def loss(waves):
    text, ways = "text_heavy", {way["name"]: way["over_ours"] for way in waves["ways"]}
    chain, first, five = ways["static-1f1b"], ways["static-first"], ways["static-first-five"]
    heavy = [step["step"] for step in waves["steps"] if step["text_heavy"]]
    yield (f"In the {len(heavy)} text-heavy steps (published: the static plan loses 50.5 % in them) the static chain "
           f"of 1F1B takes {ratio(chain[text])} as long as ours, and {ratio(chain['image_heavy'])} in image-heavy "
           f"ones; `dip` {ratio(ways['dip'][text])} and {ratio(ways['dip']['image_heavy'])}. On a partition chosen on "
           f"steps 1 to 5 the order of step 1 takes {ratio(first[text])} and {ratio(first['image_heavy'])}, on ours "
           f"the best order of steps 1 to 5 {ratio(five[text])} and {ratio(five['image_heavy'])}.")


def verdict(waves):
    """Is ours ever behind a static plan?"""
    all_behind = [one for way in STATIC for one in behind(waves, way)]
    runs = sum(step["step_ns"][way] is not None for step in waves["steps"] for way in STATIC)
    if all_behind:
        yield (f"**Yes, a little**: in {len(all_behind)} of {runs} comparisons of a step with a static plan, by "
               f"{100 * max(all_behind)[0]:.2f} % at most.")
    else:
        yield f"**No**, in none of {runs} comparisons of a step with a static plan."
    yield ""
    rows = []
    for way in [*STATIC, "opponent"]:
        found = behind(waves, way)
        most = (f"{100 * found[-1][0]:.2f} %", found[-1][1]) if found else ("-", "-")
        rows.append((way, f"{len(found)} of {len(waves['steps'])} steps", *most))
    yield from table(("plan", "ours is behind it in", "by at most", "in step"), rows)


def ways_table(waves):
    rows = []
    for way in waves["ways"]:
        over = way["over_ours"]
        figures = [ratio(over[name]) for name in ("text_heavy", "image_heavy", "all", "least", "most")]
        rows.append((way["name"], *figures, f"{over['steps']} of {len(waves['steps'])}", way["partition"]))
    return table(("way", "text-heavy steps", "image-heavy steps", "all", "least", "most", "steps that it runs",
                  "partition"),
                 rows)


def listed(steps):
    """[16, 17, 18, 37] as "16 to 18 and 37"."""
    runs = []
    for step in steps:
        if runs and step == runs[-1][1] + 1:
            runs[-1][1] = step
        else:
            runs.append([step, step])
    words = [f"{first} to {last}" if last > first else str(first) for first, last in runs]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def of_way(waves, name):
    return next(way for way in waves["ways"] if way["name"] == name)["over_ours"]


def ahead(waves, name):
    """Steps in which the way is faster than ours, with how much longer ours takes."""
    return [(step, 1 / over - 1) for step in waves["steps"]
            if (over := over_ours(step, name)) is not None and over < 1 - GIVEN_AWAY]


def weakest(waves):
    faster = ahead(waves, "dip")
    if not faster:
        yield "**The weakest point**: in no step is a partition that is cut anew for each batch (`dip`) faster."
    else:
        items = [step["items"] for step, _ in faster]
        yield (f"**The weakest point**: in {len(faster)} steps, those with {min(items):.1f} to {max(items):.1f} items "
               "a microbatch, a partition that is cut anew for each batch, which no job can have, is faster: ours "
               f"takes up to {100 * max(by for _, by in faster):.1f} % longer than `dip` (steps "
               f"{listed([s['step'] for s, _ in faster])}); over all steps `dip` takes "
               f"{ratio(of_way(waves, 'dip')['all'])}.")
    gains = [100 * (all_steps - 1) for name in STATIC[:3] if (all_steps := of_way(waves, name)["all"])]
    if gains:
        yield (f"And an order of a batch's own gains {min(gains):.1f} to {max(gains):.1f} % over orders that stay, on "
               "the same or a like partition.")


def many_table(waves, many):
    def over_dip(of, way):
        times = [of_way(of, name)["text_heavy"] for name in (way, "dip")]
        return None if None in times else times[0] / times[1]

    def items(kind):
        some = [step["items"] for step in many["steps"] if step[kind]]
        return f"{sum(some) / len(some):.1f}" if some else "no"
    yield (f"Against `dip` the static chain takes {ratio(over_dip(waves, 'static-1f1b'))} in text-heavy steps here. "
           f"The publication does not say how many microbatches its steps have; 64 are in its example. With 64 in "
           f"place of 16 ({len(many['steps'])} steps, {items('text_heavy')} images in text-heavy and "
           f"{items('image_heavy')} in image-heavy ones):")
    yield ""
    rows = []
    for way in many["ways"]:
        over = way["over_ours"]
        rows.append((f"`{way['name']}`", ratio(over["text_heavy"]), ratio(over_dip(many, way["name"])),
                     ratio(over["image_heavy"]), way["partition"]))
    yield from table(("way", "text-heavy steps over ours", "over `dip`", "image-heavy steps over ours", "partition"),
                     rows)
    yield ""
    behind = [f"`{name}` is ahead of ours in {len(some)} of {len(many['steps'])} steps, by up to "
              f"{100 * max(by for _, by in some):.1f} %"
              for name in ("dip", *STATIC, "opponent") if (some := ahead(many, name))]
    yield "; ".join(behind) + "." if behind else "None of them is ahead of ours in any of these steps."


def few_images(waves):
    """Of the text-heavy steps those with about five items a microbatch: closer to what was published."""
    some = [step for step in waves["steps"] if step["text_heavy"] and 4.5 <= step["items"] < 5.5
            and step["step_ns"]["static-1f1b"] and step["step_ns"]["dip"]]
    ratios = [step["step_ns"]["static-1f1b"] / step["step_ns"]["dip"] for step in some]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield (f"Of the text-heavy steps of 16 microbatches those with about 5 images (steps "
               f"{listed([step['step'] for step in some])}) have {ratio(mean)} against `dip`.")


def steps_table(waves):
    names = [way["name"] for way in waves["ways"]]
    rows = []
    for step in waves["steps"]:
        kind = " (text)" if step["text_heavy"] else " (images)" if step["image_heavy"] else ""
        rows.append((f"{step['step']}{kind}", f"{step['items']:.1f}",
                     *(seconds(step["step_ns"][name]) for name in names)))
    return table(("step", "items", *names), rows)


def waves_picture(waves):
    """Above the steps' times, on a scale where equal ratios are equally far apart; below the items."""
    steps, below = waves["steps"], 90
    times = [time * 1e-9 for step in steps for way in COLORS if (time := step["step_ns"][way])]
    ticks = [scale * tick for scale in (0.01, 0.1, 1, 10, 100) for tick in (1, 1.5, 2, 3, 4, 6, 8)]
    bottom, top = max(tick for tick in ticks if tick < min(times)), min(tick for tick in ticks if tick > max(times))

    def x(step):
        return LEFT + (step - 1) / (len(steps) - 1) * WIDTH

    def y(time):
        return TOP + math.log(top / time) / math.log(top / bottom) * HEIGHT

    for step in steps:
        if step["text_heavy"]:
            half = WIDTH / (len(steps) - 1) / 2
            left, right = max(LEFT, x(step["step"]) - half), min(LEFT + WIDTH, x(step["step"]) + half)
            yield area(("M", left, TOP, "H", right, "V", TOP + HEIGHT, "H", left, "z"), "#8882")
    for tick in (tick for tick in ticks if bottom <= tick <= top):
        yield from across(LEFT, y(tick), WIDTH, f"{tick:g} s")
    for number, (way, color) in enumerate(COLORS.items()):
        points = [(x(step["step"]), y(time * 1e-9)) for step in steps if (time := step["step_ns"][way])]
        yield curve(points, color, 2.5 if way == "ours" else 1.5)
        yield text(LEFT + WIDTH + 12, TOP + 16 + 18 * number, way, color=color)
    base, crest = TOP + HEIGHT + 24 + below, max(step["items"] for step in steps)
    width = 0.7 * WIDTH / len(steps)
    for step in steps:
        height = step["items"] / crest * below
        yield area(("M", x(step["step"]) - width / 2, base, "v", -height, "h", width, "v", height, "z"), "#2e6f9e88")
    for step in {1, *range(5, len(steps) + 1, 5), len(steps)}:
        yield text(x(step), base + 18, step, "middle")
    yield text(LEFT + WIDTH + 12, base - below / 2, f"items, up to {crest:.0f}")
    yield text(LEFT + WIDTH / 2, base + 38, "step; grey: text-heavy; below: items of a microbatch", "middle")


# ---- shift

def cell(set_up, batches, partition):
    return next(one for one in set_up["on"] if (one["batches"], one["partition"]) == (batches, partition))


def shift_table(shift):
    rows = []
    for set_up in shift["set_ups"]:
        for one in set_up["on"]:
            chosen = set_up["partitions"][one["partition"]]
            right, after = one["batches"] == one["partition"], one["pays_after_steps"]
            saved = "" if right or one["saved"] is None else f"{100 * one['saved']:.1f} %"
            long = after is not None and after > MOST_STEPS
            pays = ("" if right else "never" if after is None else f"more than {MOST_STEPS:,} steps" if long
                    else f"{after:,} steps")
            time = "" if right or after is None or long else f"{after * one['mean_ns'] * 1e-9 / 3600:.1f} h"
            rows.append((set_up["model"], KINDS[one["batches"]], KINDS[one["partition"]],
                         f"{chosen['name']}, {chosen['chunks_per_rank']} chunks a rank", seconds(one["mean_ns"]), saved,
                         pays, time))
    return table(("set-up", "batches", "partition chosen on", "it is", "mean step", "the right one saves",
                  "a stop pays after", "that is"), rows)


def shift_words(shift):
    wrong = [one for set_up in shift["set_ups"] for one in set_up["on"]
             if {one["batches"], one["partition"]} == {"images", "text"} and one["saved"] is not None]
    mixed = [one for set_up in shift["set_ups"] for one in set_up["on"]
             if one["partition"] == "mix" and one["saved"] is not None]

    def span(some):
        values = [100 * one["saved"] for one in some]
        return f"{min(values):.1f} to {max(values):.1f} %" if values else "nothing that could be measured"
    yield (f"A partition of the wrong kind: the right one saves {span(wrong)} of a step. A partition chosen on a mix "
           f"of both kinds: {span(mixed)}. ({shift['batches']} batches of each kind for each set-up; means of their "
           "steps.)")


def shift_picture(shift):
    """Bars: the step on a partition of each kind over that of the right kind."""
    bars = [(set_up["model"], batches, partition, cell(set_up, batches, partition), cell(set_up, batches, batches))
            for set_up in shift["set_ups"] for batches in ("images", "text") for partition in ("images", "text", "mix")]
    ratios = [one["mean_ns"] / right["mean_ns"] for *_, one, right in bars if one["mean_ns"] and right["mean_ns"]]
    low, high = 0.9, max(1.1, 0.05 * (int(max(ratios, default=1) / 0.05) + 1))
    height, wide, color = 220, WIDTH / max(1, len(bars)), {"images": "#2e6f9e", "text": "#c0622d", "mix": "#888888"}

    def y(value):
        return TOP + (high - min(max(value, low), high)) / (high - low) * height

    tick = 0.05 if high - low < 0.5 else 0.1
    for count in range(math.floor((high - low) / tick + 1e-9) + 1):
        value = low + tick * count
        yield from across(LEFT, y(value), WIDTH, f"{value:.2f}x", f"#888{8 if abs(value - 1) < 1e-9 else 4}")
    for number, (model, batches, partition, one, right) in enumerate(bars):
        left = LEFT + number * wide
        if one["mean_ns"] and right["mean_ns"]:
            at = y(one["mean_ns"] / right["mean_ns"])
            yield area(("M", left + 4, y(low), "V", at, "h", wide - 8, "V", y(low), "z"), color[partition])
        if partition == "text":
            yield text(left + wide / 2, TOP + height + 20, batches, "middle")
            if batches == "images":
                yield text(left + 2 * wide, TOP + height + 40, model, "middle")
    for number, partition in enumerate(color):
        yield text(LEFT + WIDTH + 12, TOP + 16 + 18 * number, f"chosen on {partition}", color=color[partition])


# ---- the page

def commands(answer):
    return code(answer[name]["command"] for name in ("waves", "many", "shift"))


def write(answer, page, pictures):
    waves, many, shift = answer["waves"], answer["many"], answer["shift"]
    written = page.read_text()
    for marker, lines in (("loss", loss(waves)), ("verdict", verdict(waves)), ("ways", ways_table(waves)),
                          ("weakest", weakest(waves)), ("many", many_table(waves, many)), ("few", few_images(waves)),
                          ("steps", steps_table(waves)), ("shift-words", shift_words(shift)),
                          ("shift", shift_table(shift)), ("command", commands(answer))):
        written = fill(written, marker, lines)
    page.write_text(written)
    width = LEFT + WIDTH + LEGEND
    (pictures / "waves.svg").write_text(document(width, TOP + HEIGHT + 24 + 90 + 50, waves_picture(waves)))
    (pictures / "shift.svg").write_text(document(width, TOP + 220 + 52, shift_picture(shift)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="keep what was measured in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="measured", help="what --json kept: nothing is measured")
    parser.add_argument("--waves", default="", help="options for the waves alone")
    parser.add_argument("--shift", default="", help="options for the shifts alone")
    parser.add_argument("--max-rounds", default="100", help="of each search of the waves (default 100)")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--pictures", type=pathlib.Path, default=PICTURES, help="the folder for them")
    options, words = parser.parse_known_args()
    if options.measured:
        answer = json.loads(options.measured.read_text())
    else:
        answer = measure(words, {"waves": f"--max-rounds {options.max_rounds} {options.waves}",
                                 "shift": f"--max-rounds {SHIFT_ROUNDS} {options.shift}"})
    if options.json:
        options.json.write_text(json.dumps(answer))
    write(answer, options.page, options.pictures)


if __name__ == "__main__":
    main()
