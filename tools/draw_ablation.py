#!/usr/bin/env python3
"""Runs the published ablation and writes docs/ablation.md's tables and its picture.

    tools/draw_ablation.py [--json answers.json]
    tools/draw_ablation.py --from answers.json

Runs `pipeweaver bench ablation` for every line of RUNS and puts tables, the answers and the commands between the page's
markers, and a picture beside it. With --json what was measured is kept; --from writes page and picture again without
measuring. All searches are limited by rounds, so the figures are the same on any machine. The program is
build/release/bin/pipeweaver or PIPEWEAVER_BIN. It takes ten minutes or so.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess

from draw_families import fill

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))
PAGE, PICTURE = ROOT / "docs/ablation.md", ROOT / "docs/pictures/ablation.svg"

H800 = "--model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix"
H20 = "--model dip-vlm-s --cluster h20-sxm:16 --dataset vlm-mix"
# name -> what `bench ablation` is asked
RUNS = {
    "published": f"{H800} --batches 5 --max-rounds 200 --vary --ours --no-pipeline",
    "cut by time": f"{H800} --batches 5 --max-rounds 200 --cut balanced",
    "8 microbatches": f"{H800} --batches 3 --max-rounds 100 --microbatches 8",
    "32 microbatches": f"{H800} --batches 3 --max-rounds 100 --microbatches 32",
    "64 microbatches": f"{H800} --batches 3 --max-rounds 100 --microbatches 64",
    "128 microbatches": f"{H800} --batches 2 --max-rounds 100 --microbatches 128",
    "TP 2, PP 8": f"{H800} --batches 3 --max-rounds 100 --tp 2 --pp 8",
    "TP 8, PP 2": f"{H800} --batches 3 --max-rounds 100 --tp 8 --pp 2",
    "traffic inside GEMMs": f"{H800} --batches 3 --max-rounds 100 --recipe megatron-core-overlap",
    "selective to choose, too": f"{H800} --batches 3 --max-rounds 100 --menu none,selective,half,full",
    "40 % of the memory kept free": f"{H800} --batches 3 --max-rounds 100 --headroom 40%",
    "1,000 rounds": f"{H800} --batches 2 --max-rounds 1000",
    "held out": f"{H800} --batches 10 --max-rounds 100",
    "held out, cut by time": f"{H800} --batches 10 --max-rounds 100 --cut balanced",
    "held out, the paper's words": f"{H800} --batches 10 --max-rounds 100 --cut megatron --chunks 8 --queue-recompute full",
    "H20": f"{H20} --batches 5 --max-rounds 100 --cut balanced --vary --no-pipeline",
    "H20, 32 microbatches": f"{H20} --batches 3 --max-rounds 100 --cut balanced --no-pipeline --microbatches 32",
    "H20, 64 microbatches": f"{H20} --batches 2 --max-rounds 100 --cut balanced --no-pipeline --microbatches 64",
}
CHOSEN_ON = 5  # batches that the rows' settings were chosen on, or reported for; those after them are held out
NAMES = {"modules apart": "modules apart", "stage interleaving": "interleaving", "segment order": "segment order",
         "memory modes": "memory modes"}
WITHIN, TOTAL = 0.10, (1.4, 1.9)  # what is asked of each factor, and of all together
H20_SECONDS = {"FSDP2": 40.270, "interleaved": 39.053, "DIP": 28.606}  # published
H20_RANGE = (1.25, 1.5)  # asked of interleaved over DIP
WIDTH, HEIGHT, LEFT, TOP = 600, 260, 50, 16
OURS, PUBLISHED = "#2e6f9e", "#c0622d"


def measure():
    answers = {}
    for name, words in RUNS.items():
        print(name, flush=True)
        told = subprocess.run([BINARY, "bench", "ablation", *shlex.split(words), "--json"], check=True,
                              capture_output=True, text=True).stdout
        answers[name] = json.loads(told)
    return answers


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def over(way, base):
    """Steps of one way over another's, of the batches that both run."""
    return [a / b for a, b in zip(way["step_ns"], base["step_ns"]) if a and b]


def spread(ratio):
    return f"{ratio['geometric_mean']:.3f} ({ratio['least']:.3f} to {ratio['most']:.3f})"


def factors(answer):
    return [row["factor"] for row in answer["rows"][1:]]


# ---- tables

def missed_in(gains, published):
    """Names of the factors that are further off than asked, and whether the total is outside."""
    names = [name for name, gain, theirs in zip(NAMES.values(), gains, published) if abs(gain - theirs) > WITHIN]
    return names + ([] if TOTAL[0] <= math.prod(gains) <= TOTAL[1] else ["the total"])


def published_factors(answers):
    return [row["published_factor"] for row in answers["published"]["rows"][1:]]


def held_out_factors(answer):
    """Of the batches on which no setting was chosen."""
    steps = [row["step_ns"][CHOSEN_ON:] for row in answer["rows"]]
    return [mean([a / b for a, b in zip(above, row)]) for above, row in zip(steps, steps[1:])]


def judged(gains, published):
    missed = missed_in(gains, published)
    return "each within the limits" if not missed else "outside: " + ", ".join(missed)


def verdict(answers):
    published = published_factors(answers)
    words = held_out_factors(answers["held out, the paper's words"])
    chosen = held_out_factors(answers["held out"])
    tried = len(answers["published"]["chains"])
    yield (f"**{'No' if missed_in(words, published) else 'Yes'}, under the paper's own words** for the baseline's cut and "
           f"the frugal modes ({judged(words, published)}). **{'No' if missed_in(chosen, published) else 'Yes'}, with "
           f"settings chosen afterwards** so that they agree ({judged(chosen, published)}): the cut and chunks from {tried} "
           "chains, the queue's recomputation from 4. The settings were chosen on batches 1 to 3; this answer is of "
           "batches 6 to 10.")
    yield ""
    yield "| batches 6 to 10 | modules apart | interleaving | segment order | memory modes | all |"
    yield "|---|---|---|---|---|---|"
    yield f"| (published) | {' | '.join(f'{factor:.3f}' for factor in [*published, math.prod(published)])} |"
    for shown, name in (("the paper's words: by parameters, 8 chunks; full under the queue", "held out, the paper's words"),
                        ("chosen: equal layers, 4 chunks; half under the queue", "held out"),
                        ("the same, cut by time", "held out, cut by time")):
        gains = held_out_factors(answers[name])
        yield f"| {shown} | {' | '.join(f'{factor:.3f}' for factor in [*gains, math.prod(gains)])} |"


def row_table(answers):
    answer = answers["published"]
    yield "| row | partition | schedule | recompute | step, s | factor: geometric mean (least to most) | published |"
    yield "|---|---|---|---|---|---|---|"
    for number, row in enumerate(answer["rows"]):
        seconds = mean(row["step_ns"]) * 1e-9
        chunks = f", {row['chunks_per_rank']} chunks" if row["chunks_per_rank"] else ""
        gained = f"{spread(row['factor'])} | {row['published_factor']:.3f}" if row["factor"] else "1 | 1"
        yield (f"| {'+ ' if number else ''}{row['name']} | {row['partition']}{chunks} | {row['schedule']} | "
               f"{row['recompute']} | {seconds:.3f} | {gained} |")
    yield f"| all | | | | | {spread(answer['total'])} | {answer['published_total']:.3f} |"


def beside_table(answers):
    answer = answers["published"]
    yield "| beside it | partition | schedule | step over the last row's |"
    yield "|---|---|---|---|"
    for way in answer["beside"]:
        chunks = f", {way['chunks_per_rank']} chunks" if way["chunks_per_rank"] else ""
        yield f"| {way['name']} | {way['partition']}{chunks} | {way['schedule']} | {spread(way['ratio'])} |"


def chain_table(answer, base, cuts):
    """How much longer chains take than `base`: a line for each cut and recomputation, a column for each count of
    chunks. In brackets on how many batches it fits, where that is not all."""
    chunks = sorted({way["chunks_per_rank"] for way in answer["chains"]})
    yield "| cut | recompute | " + " | ".join(f"{count} chunk{'s' if count > 1 else ''}" for count in chunks) + " |"
    yield "|---|---|" + "---|" * len(chunks)
    for cut in cuts:
        for recompute in ("selective", "half", "full"):
            cells = []
            for count in chunks:
                way = next(way for way in answer["chains"] if (way["partition"], way["chunks_per_rank"],
                                                               way["recompute"]) == (cut, count, recompute))
                ratios = over(way, base)
                few = f" ({len(ratios)} of {answer['batches']})" if len(ratios) < answer["batches"] else ""
                cells.append(f"{mean(ratios):.3f}{few}" if ratios else "does not fit")
            if set(cells) != {"does not fit"}:
                yield f"| {cut} | {recompute} | {' | '.join(cells)} |"


def first_row_table(answers):
    answer = answers["published"]
    yield from chain_table(answer, answer["rows"][1], ("megatron", "uniform", "balanced", "first-stage"))


def queue_table(answers):
    answer = answers["published"]
    yield "| recompute of rows 3 and 4 | interleaving | segment order | memory modes |"
    yield "|---|---|---|---|"
    published = [row["published_factor"] for row in answer["rows"][2:]]
    yield f"| (published) | {' | '.join(f'{factor:.3f}' for factor in published)} |"
    for mode in answer["queue_modes"]:
        cells = [mode[key]["geometric_mean"] for key in ("interleaving", "order", "memory")]
        yield f"| {mode['recompute']} | {' | '.join(f'{factor:.3f}' for factor in cells)} |"


def order_table(answers):
    answer = answers["published"]
    yield "| order of the second row | recompute | over interleaved with full |"
    yield "|---|---|---|"
    for way in answer["fixed_orders"]:
        if way["ratio"]:
            yield f"| {way['schedule']} | {way['recompute']} | {spread(way['ratio'])} |"


def other_table(answers):
    published = [row["published_factor"] for row in answers["published"]["rows"][1:]]
    yield "| what is changed | batches | modules apart | interleaving | segment order | memory modes | all |"
    yield "|---|---|---|---|---|---|---|"
    published.append(answers["published"]["published_total"])
    yield f"| (published) | | {' | '.join(f'{factor:.3f}' for factor in published)} |"
    for name, answer in answers.items():
        if name.startswith(("H20", "held out")):
            continue
        cells = [f"{factor['geometric_mean']:.3f}" for factor in [*factors(answer), answer["total"]]]
        shown = "nothing: equal layers, 16 microbatches, TP 4, PP 4" if name == "published" else name
        yield f"| {shown} | {answer['batches']} | {' | '.join(cells)} |"


def h20_best(answer, cut, recompute):
    """Of the chunk counts that fit all batches the fastest, over DIP: (chunks, geometric mean, least, most)."""
    found = []
    for way in answer["chains"]:
        ratios = over(way, answer["rows"][-1])
        if (way["partition"], way["recompute"]) == (cut, recompute) and len(ratios) == answer["batches"]:
            found.append((way["chunks_per_rank"], mean(ratios), min(ratios), max(ratios)))
    return min(found, key=lambda one: one[1], default=None)


def h20_verdict(answers):
    low, high = H20_RANGE
    answer = answers["H20"]
    published = H20_SECONDS["interleaved"] / H20_SECONDS["DIP"]
    words = h20_best(answer, "megatron", "full")
    yield (f"**{'Yes' if low <= words[1] <= high else 'No'}, cut by parameters**, as the paper says: {words[1]:.3f} with "
           f"its best number of chunks ({words[0]}); published {published:.3f}.")
    for recompute, what in (("half", "recomputing half of the blocks, the fastest that fits every batch"), ("full", "recomputing all")):
        chunks, best, least, most = h20_best(answer, "balanced", recompute)
        yield (f"**{'Yes' if low <= best <= high else 'No'}, cut by time** and {what}: {best:.3f} ({least:.3f} to {most:.3f} "
               f"over {answer['batches']} batches, {chunks} chunks).")


def h20_table(answers):
    answer = answers["H20"]
    yield "| cut | recompute | best chunks | over DIP: geometric mean (least to most) |"
    yield "|---|---|---|---|"
    for cut in ("balanced", "uniform", "megatron"):
        for recompute in ("full", "half", "selective"):
            best = h20_best(answer, cut, recompute)
            if best:
                yield f"| {cut} | {recompute} | {best[0]} | {best[1]:.3f} ({best[2]:.3f} to {best[3]:.3f}) |"


def h20_sizes_table(answers):
    yield ("| microbatches | batches | DIP, s | balanced, 4 chunks, full, over DIP | FSDP2 over DIP | FSDP2 over that "
           "chain |")
    yield "|---|---|---|---|---|---|"
    fsdp, chain, dip = H20_SECONDS["FSDP2"], H20_SECONDS["interleaved"], H20_SECONDS["DIP"]
    yield f"| (published) | | {dip:.1f} | {chain / dip:.3f} | {fsdp / dip:.3f} | {fsdp / chain:.3f} |"
    for name, answer in answers.items():
        if name.startswith("H20"):
            flat = next(way for way in answer["beside"] if way["name"].startswith("no pipeline"))
            first, last = answer["rows"][0], answer["rows"][-1]
            yield (f"| {answer['microbatches']} | {answer['batches']} | {mean(last['step_ns']) * 1e-9:.1f} | "
                   f"{spread(answer['total'])} | {spread(flat['ratio'])} | {mean(over(flat, first)):.3f} |")


def command_lines(answers):
    yield "```"
    yield "tools/draw_ablation.py"
    for name in answers:
        yield f"pipeweaver bench ablation {RUNS[name]}"
    yield "```"


# ---- the picture

def picture(answers):
    """A group of two bars for each factor, ours with the range of its batches."""
    answer = answers["published"]
    bars = [(NAMES[row["name"]], row["factor"], row["published_factor"]) for row in answer["rows"][1:]]
    bars.append(("all", answer["total"], answer["published_total"]))
    top = max(max(ours["most"], published) for _, ours, published in bars) + 0.05

    def y(factor):
        return TOP + HEIGHT * (1 - (factor - 1) / (top - 1))
    tick = 1.0
    while tick < top:
        yield f'<path d="M{LEFT} {y(tick):.1f}h{WIDTH}" stroke="#8884" />'
        yield f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>'
        tick += 0.1
    for number, (name, ours, published) in enumerate(bars):
        middle = LEFT + WIDTH * (number + 0.5) / len(bars)
        for color, value, x in ((PUBLISHED, published, middle - 36), (OURS, ours["geometric_mean"], middle + 4)):
            yield (f'<rect x="{x:.1f}" y="{y(value):.1f}" width="32" height="{y(1) - y(value):.1f}" fill="{color}">'
                   f'<title>{value:.3f}</title></rect>')
            yield f'<text x="{x + 16:.1f}" y="{y(1) + 16:.1f}" text-anchor="middle">{value:.2f}</text>'
        yield (f'<path d="M{middle + 20:.1f} {y(ours["least"]):.1f}V{y(ours["most"]):.1f}" stroke="#777" '
               'stroke-width="2" />')
        yield f'<text x="{middle:.1f}" y="{y(1) + 36:.1f}" text-anchor="middle">{name}</text>'
    yield f'<text x="{LEFT + 8}" y="{TOP + 14}" style="fill:{PUBLISHED}">published</text>'
    yield (f'<text x="{LEFT + 88}" y="{TOP + 14}" style="fill:{OURS}">emulated here, {answer["batches"]} batches, with '
           'least and most</text>')


def write(answers, page, drawing):
    text = page.read_text()
    for marker, lines in (("answer", verdict), ("rows", row_table), ("beside", beside_table),
                          ("first-row", first_row_table), ("queue", queue_table), ("order", order_table),
                          ("others", other_table), ("h20-answer", h20_verdict), ("h20", h20_table),
                          ("h20-sizes", h20_sizes_table), ("command", command_lines)):
        text = fill(text, marker, lines(answers))
    page.write_text(text)
    width, height = LEFT + WIDTH + 10, TOP + HEIGHT + 48
    drawing.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
                       f'<style>text{{font:13px sans-serif;fill:#777}}</style>{"".join(picture(answers))}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="keep what was measured in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="measured", help="what --json kept: nothing is measured")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--picture", type=pathlib.Path, default=PICTURE)
    options = parser.parse_args()
    answers = json.loads(options.measured.read_text()) if options.measured else measure()
    if options.json:
        options.json.write_text(json.dumps(answers, indent=1) + "\n")
    write(answers, options.page, options.picture)


if __name__ == "__main__":
    main()
