#!/usr/bin/env python3
"""Runs the published ablation and writes ablation.md's tables and its picture.

    studies/draw_ablation.py [--json answers.json]
    studies/draw_ablation.py --from answers.json

Runs `pipeweaver_studies ablation` for every line of RUNS and puts tables, the answers and the commands between the
page's markers, and a picture beside it. With --json what was measured is kept; --from writes page and picture again
without measuring. All searches are limited by rounds, so the figures are the same on any machine. The program is
build/release/bin/pipeweaver_studies or PIPEWEAVER_STUDIES_BIN. It takes ten minutes or so.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess

from svg import across, document, line, rect, text
from table import code, fill, table

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("PIPEWEAVER_STUDIES_BIN", str(HERE.parent / "build/release/bin/pipeweaver_studies"))
PAGE, PICTURE = HERE / "ablation.md", HERE / "pictures/ablation.svg"

H800 = "--model dip-vlm-s --cluster h800-sxm:16 --dataset vlm-mix"
H20 = "--model dip-vlm-s --cluster h20-sxm:16 --dataset vlm-mix"
# name -> what `pipeweaver_studies ablation` is asked
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
    "held out, the paper's words": f"{H800} --batches 10 --max-rounds 100 --cut megatron --chunks 8 --queue-recompute "
                                   "full",
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
        told = subprocess.run([BINARY, "ablation", *shlex.split(words), "--json"], check=True,
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


FACTORS = [*NAMES.values(), "all"]


def three(values):
    """Each with three digits."""
    return [f"{value:.3f}" for value in values]


def with_total(gains):
    return three([*gains, math.prod(gains)])


def verdict(answers):
    published = published_factors(answers)
    words = held_out_factors(answers["held out, the paper's words"])
    chosen = held_out_factors(answers["held out"])
    tried = len(answers["published"]["chains"])
    yield (f"**{'No' if missed_in(words, published) else 'Yes'}, under the paper's own words** for the baseline's cut "
           f"and the frugal modes ({judged(words, published)}). **{'No' if missed_in(chosen, published) else 'Yes'}, "
           f"with settings chosen afterwards** so that they agree ({judged(chosen, published)}): the cut and chunks "
           f"from {tried} chains, the queue's recomputation from 4. The settings were chosen on batches 1 to 3; this "
           "answer is of batches 6 to 10.")
    yield ""
    rows = [("(published)", *with_total(published))]
    for shown, name in (("the paper's words: by parameters, 8 chunks; full under the queue",
                         "held out, the paper's words"),
                        ("chosen: equal layers, 4 chunks; half under the queue", "held out"),
                        ("the same, cut by time", "held out, cut by time")):
        rows.append((shown, *with_total(held_out_factors(answers[name]))))
    yield from table(("batches 6 to 10", *FACTORS), rows)


def cut(way):
    return way["partition"] + (f", {way['chunks_per_rank']} chunks" if way["chunks_per_rank"] else "")


def row_table(answers):
    answer = answers["published"]
    rows = []
    for number, row in enumerate(answer["rows"]):
        gained = (spread(row["factor"]), f"{row['published_factor']:.3f}") if row["factor"] else (1, 1)
        rows.append((f"{'+ ' if number else ''}{row['name']}", cut(row), row["schedule"], row["recompute"],
                     f"{mean(row['step_ns']) * 1e-9:.3f}", *gained))
    rows.append(("all", "", "", "", "", spread(answer["total"]), f"{answer['published_total']:.3f}"))
    return table(("row", "partition", "schedule", "recompute", "step, s", "factor: geometric mean (least to most)",
                  "published"), rows)


def beside_table(answers):
    return table(("beside it", "partition", "schedule", "step over the last row's"),
                 [(way["name"], cut(way), way["schedule"], spread(way["ratio"]))
                  for way in answers["published"]["beside"]])


def chain_table(answer, base, cuts):
    """How much longer chains take than `base`: a line for each cut and recomputation, a column for each count of
    chunks. In brackets on how many batches it fits, where that is not all."""
    chunks = sorted({way["chunks_per_rank"] for way in answer["chains"]})
    rows = []
    for name in cuts:
        for recompute in ("selective", "half", "full"):
            cells = []
            for count in chunks:
                way = next(way for way in answer["chains"] if (way["partition"], way["chunks_per_rank"],
                                                               way["recompute"]) == (name, count, recompute))
                ratios = over(way, base)
                few = f" ({len(ratios)} of {answer['batches']})" if len(ratios) < answer["batches"] else ""
                cells.append(f"{mean(ratios):.3f}{few}" if ratios else "does not fit")
            if set(cells) != {"does not fit"}:
                rows.append((name, recompute, *cells))
    return table(("cut", "recompute", *(f"{count} chunk{'s' if count > 1 else ''}" for count in chunks)), rows)


def first_row_table(answers):
    answer = answers["published"]
    return chain_table(answer, answer["rows"][1], ("megatron", "uniform", "balanced", "first-stage"))


def queue_table(answers):
    answer = answers["published"]
    rows = [("(published)", *three(row["published_factor"] for row in answer["rows"][2:]))]
    for mode in answer["queue_modes"]:
        rows.append((mode["recompute"],
                     *three(mode[key]["geometric_mean"] for key in ("interleaving", "order", "memory"))))
    return table(("recompute of rows 3 and 4", *FACTORS[1:-1]), rows)


def order_table(answers):
    return table(("order of the second row", "recompute", "over interleaved with full"),
                 [(way["schedule"], way["recompute"], spread(way["ratio"]))
                  for way in answers["published"]["fixed_orders"] if way["ratio"]])


def other_table(answers):
    rows = [("(published)", "", *three([*published_factors(answers), answers["published"]["published_total"]]))]
    for name, answer in answers.items():
        if name.startswith(("H20", "held out")):
            continue
        shown = "nothing: equal layers, 16 microbatches, TP 4, PP 4" if name == "published" else name
        cells = three(factor["geometric_mean"] for factor in [*factors(answer), answer["total"]])
        rows.append((shown, answer["batches"], *cells))
    return table(("what is changed", "batches", *FACTORS), rows)


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
    yield (f"**{'Yes' if low <= words[1] <= high else 'No'}, cut by parameters**, as the paper says: {words[1]:.3f} "
           f"with its best number of chunks ({words[0]}); published {published:.3f}.")
    for recompute, what in (("half", "recomputing half of the blocks, the fastest that fits every batch"),
                            ("full", "recomputing all")):
        chunks, best, least, most = h20_best(answer, "balanced", recompute)
        yield (f"**{'Yes' if low <= best <= high else 'No'}, cut by time** and {what}: {best:.3f} ({least:.3f} to "
               f"{most:.3f} over {answer['batches']} batches, {chunks} chunks).")


def h20_table(answers):
    found = [(cut, recompute, h20_best(answers["H20"], cut, recompute)) for cut in ("balanced", "uniform", "megatron")
             for recompute in ("full", "half", "selective")]
    return table(("cut", "recompute", "best chunks", "over DIP: geometric mean (least to most)"),
                 [(cut, recompute, best[0], f"{best[1]:.3f} ({best[2]:.3f} to {best[3]:.3f})")
                  for cut, recompute, best in found if best])


def h20_sizes_table(answers):
    fsdp, chain, dip = H20_SECONDS["FSDP2"], H20_SECONDS["interleaved"], H20_SECONDS["DIP"]
    rows = [("(published)", "", f"{dip:.1f}", *three([chain / dip, fsdp / dip, fsdp / chain]))]
    for name, answer in answers.items():
        if name.startswith("H20"):
            flat = next(way for way in answer["beside"] if way["name"].startswith("no pipeline"))
            first, last = answer["rows"][0], answer["rows"][-1]
            rows.append((answer["microbatches"], answer["batches"], f"{mean(last['step_ns']) * 1e-9:.1f}",
                         spread(answer["total"]), spread(flat["ratio"]), f"{mean(over(flat, first)):.3f}"))
    return table(("microbatches", "batches", "DIP, s", "balanced, 4 chunks, full, over DIP", "FSDP2 over DIP",
                  "FSDP2 over that chain"), rows)


def command_lines(answers):
    return code(["studies/draw_ablation.py", *(f"pipeweaver_studies ablation {RUNS[name]}" for name in answers)])


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
        yield from across(LEFT, y(tick), WIDTH, f"{tick:.1f}")
        tick += 0.1
    for number, (name, ours, published) in enumerate(bars):
        middle = LEFT + WIDTH * (number + 0.5) / len(bars)
        for color, value, x in ((PUBLISHED, published, middle - 36), (OURS, ours["geometric_mean"], middle + 4)):
            yield rect(x, y(value), 32, y(1) - y(value), color, title=f"{value:.3f}")
            yield text(x + 16, y(1) + 16, f"{value:.2f}", "middle")
        yield line(("M", middle + 20, y(ours["least"]), "V", y(ours["most"])), "#777", stroke_width=2)
        yield text(middle, y(1) + 36, name, "middle")
    yield text(LEFT + 8, TOP + 14, "published", color=PUBLISHED)
    yield text(LEFT + 88, TOP + 14, f"emulated here, {answer['batches']} batches, with least and most", color=OURS)


def write(answers, page, drawing):
    written = page.read_text()
    for marker, lines in (("answer", verdict), ("rows", row_table), ("beside", beside_table),
                          ("first-row", first_row_table), ("queue", queue_table), ("order", order_table),
                          ("others", other_table), ("h20-answer", h20_verdict), ("h20", h20_table),
                          ("h20-sizes", h20_sizes_table), ("command", command_lines)):
        written = fill(written, marker, lines(answers))
    page.write_text(written)
    drawing.write_text(document(LEFT + WIDTH + 10, TOP + HEIGHT + 48, picture(answers)))


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
