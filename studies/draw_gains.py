#!/usr/bin/env python3
"""Measures what plans gain, and writes the tables of gains.md.

    studies/draw_gains.py [--only NAME ...] [WORDS ...]    measures, keeps the answers, writes the page
    studies/draw_gains.py --from studies/data/gains        writes the page from answers that were kept
    studies/draw_gains.py --from studies/data/gains --check  says whether the page is what it would write

Runs `pipeweaver bench plan --json` for every set-up below, one at a time. WORDS, like `--max-rounds 20`, take the place
of the set-ups' own limits of the search. With --only, which may stand more than once,
only these are measured, and the others are read. Answers are kept as studies/data/gains/NAME.json, without what no
table has; the page has of each set-up the fastest schedules. The program is build/release/bin/pipeweaver or
PIPEWEAVER_BIN, with pipeweaver-bench beside it. All of it takes half an hour on two cores.

A table stands between <!-- NAME --> and <!-- end -->. A cell with a mean says of how many batches if not of all.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

from table import fill, table

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("PIPEWEAVER_BIN", str(HERE.parent / "build/release/bin/pipeweaver"))
KEPT = HERE / "data/gains"
PAGE = "gains.md"
SHOWN = 3  # opponents of a set-up, the fastest; all are in its answer


# ---- the set-ups

@dataclasses.dataclass(frozen=True)
class SetUp:
    name: str
    model: str
    gpus: int
    dataset: str
    layout: str = ""   # options; none: the model's published layout
    batches: int = 5
    limits: str = "--max-rounds 20"
    more: str = ""

    def of_what(self):
        return f"--model {self.model} --cluster h100-sxm:{self.gpus}"

    def words(self, limits=None):
        """What `pipeweaver bench plan` is asked."""
        parts = (self.of_what(), self.layout, f"--dataset {self.dataset} --microbatches 16 --batches {self.batches}",
                 self.limits if limits is None else limits, self.more)
        return " ".join(filter(None, parts))

    def title(self):
        return f"{self.model}, {self.gpus} H100s" + (f", {plain(self.layout)}" if self.layout else "")


def plain(options):
    """--tp 8 --pp 2 as tp 8 pp 2"""
    return options.replace("--", "")


def published(model, gpus, dataset):
    return SetUp(model, model, gpus, dataset, batches=20, limits="--budget 1s", more="--published 1s")


PUBLISHED = (
    published("dip-vlm-s", 16, "vlm-mix"),
    published("dip-vlm-m", 32, "vlm-mix"),
    published("dip-vlm-l", 64, "vlm-mix"),
    published("dip-t2v-s", 16, "t2v-mix"),
    published("dip-t2v-l", 64, "t2v-mix"),
)
# What one partition for all batches costs: a longer search, since what two searches of a second differ by is more.
REGRET = tuple(dataclasses.replace(one, name="regret-" + one.name, batches=20, limits="--max-rounds 800",
                                   more="--regret")
               for one in PUBLISHED)


# ---- measuring

def ask(words, name):
    print(f"pipeweaver {words}", file=sys.stderr, flush=True)
    done = subprocess.run([BINARY, *words.split(), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure(setup, limits):
    words = setup.words(limits)
    return pruned({**ask(f"bench plan {words}", setup.name), "words": words})


def measure_regret(setup, limits):
    words = setup.words(limits)
    answer = ask(f"bench plan {words}", setup.name)
    where = {key: answer["partition"][key] for key in ("name", "chunks_per_rank", "chosen_on")}
    return rounded({"words": words, "batches": answer["batches"], "partition": where, "regret": answer["regret"]})


def rounded(value):
    """Six digits in every number with a fraction."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return value


def pruned(answer):
    """Of an answer of `bench plan` what the tables need."""
    kept = {key: answer[key] for key in ("words", "batches", "gap_median", "gap_worst", "partition", "step_ns",
                                         "job_opponent", "best_opponent", "static_order", "published", "robustness")}
    if kept["partition"]:
        kept["partition"] = {key: kept["partition"][key] for key in ("name", "chunks_per_rank", "chosen_on")}
    kept["comparisons"] = [{key: value for key, value in row.items()
                            if key != "command" and (key != "of_each" or row["opponent"] and row["least"] < 1)}
                           for row in answer["comparisons"]]
    return rounded(kept)


def write_answer(path, answer):
    """One line for each entry of a list, so that changes can be read."""
    text = json.dumps(answer, ensure_ascii=False)
    path.write_text(re.sub(r'(?<=[\[,]) ?(?=\{"(partition|against)")', "\n ", text) + "\n")


# ---- cells

def count(ratios):
    return len(ratios["of_each"]) if "of_each" in ratios else ratios["applies_to"]


def ratio(ratios, batches):
    """Geometric mean, least and most, and of how many batches where not of all."""
    if not ratios:
        return "-"
    of_some = "" if count(ratios) == batches else f" of {count(ratios)}"
    return f"{ratios['geometric_mean']:.3f}x ({ratios['least']:.3f}x to {ratios['most']:.3f}x{of_some})"


def settings(row):
    several = len(row["recompute"]) > 1
    return ", ".join(name + (f" ({batches})" if several else "") for name, batches in row["recompute"].items())


def chunks(row):
    return f"{row['chunks_per_rank']} chunk{'' if row['chunks_per_rank'] == 1 else 's'}"


def opponent(row):
    return f"{row['partition']}, {row['policy']}, {chunks(row)}, recompute {settings(row)}"


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


def faster(ratios):
    """On how many batches it takes less time than the plan."""
    return sum(one < 1 for one in ratios.get("of_each", []))


def gap(answer):
    return f"{100 * answer['gap_median']:.1f} %, {100 * answer['gap_worst']:.1f} %"


def known_on_own_ranks(answer):
    """The fastest fixed policy on the plan's own partition."""
    rows = [row for row in answer["comparisons"] if not row["opponent"] and row["applies_to"] == answer["batches"]]
    return min(rows, key=lambda row: row["geometric_mean"], default=None)


# ---- tables

def summary(setups, answers):
    """One row for each; the opponent leads to its command."""
    def row(setup):
        answer = answers[setup.name]
        one = answer["job_opponent"]
        ratios = (one, answer["best_opponent"], answer["static_order"])
        return (setup.title(), answer["batches"],
                f"[{opponent(one)}](#{anchor(setup.title())})" if one else "none that fits",
                *(ratio(each, answer["batches"]) for each in ratios), gap(answer))
    return table(("set-up", "batches", "the job's opponent", "its step over the plan's",
                  "the best opponent of each batch",
                  "one order for all batches", "gap to the bound: median, worst"), map(row, setups))


def regret_table(answers):
    """What is lost by one partition for all batches."""
    rows = []
    for setup in REGRET:
        answer = answers[setup.name]
        regret, where = answer["regret"], answer["partition"]
        above = sum(one > 1.015 for one in regret["of_each"])
        rows.append((setup.title(), f"{where['name']}, {chunks(where)}", f"{regret['mean']:.4f}",
                     f"{regret['most']:.4f}", f"{above} of {answer['batches']}"))
    return table(("set-up", "the job's partition", "mean", "most", "batches above 1.015"), rows)


def order_table(setups, answers):
    """What is gained by order and by planning each batch anew."""
    def row(setup):
        answer = answers[setup.name]
        own, where, batches = known_on_own_ranks(answer), answer["partition"], answer["batches"]
        return (setup.title(), f"{where['name']}, {chunks(where)}",
                f"{own['policy']}: {ratio(own, batches)}" if own else "-",
                ratio(answer["static_order"], batches), ratio(answer["published"], batches))
    head = ("set-up", "the plan's partition", "the best fixed policy on it", "one order for all batches",
            "the published search")
    rows = [row(setup) for setup in setups]
    asked = [at for at in range(len(head)) if any(one[at] != "-" for one in rows)]
    return table([head[at] for at in asked], [[one[at] for at in asked] for one in rows])


def robustness(setups, answers):
    rows = []
    for setup in setups:
        for one in answers[setup.name]["robustness"]:
            rows.append((setup.title(), one["against"], f"{one['gain_p10']:.3f}x", f"{one['gain_p50']:.3f}x",
                         f"{one['gain_p90']:.3f}x", f"{100 * one['wins_share']:.1f} % of {one['replays']:,}"))
    return table(("set-up", "against", "p10", "p50", "p90", "the plan wins, of replays"), rows)


def fastest(answer):
    """The fastest opponents of those that fit all batches, and the fastest policy on the plan's own partition."""
    rows = sorted((row for row in answer["comparisons"] if row["opponent"] and row["applies_to"] == answer["batches"]),
                  key=lambda row: row["geometric_mean"])
    own = known_on_own_ranks(answer)
    return rows[:SHOWN] + ([own] if own else [])


def comparisons(setup, answer):
    """The commands of one set-up, and its fastest schedules."""
    one = answer["job_opponent"]
    of_all = sum(row["applies_to"] == answer["batches"] for row in answer["comparisons"])
    of_some = len(answer["comparisons"]) - of_all
    yield f"### {setup.title()}"
    yield ""
    if one and one["command"]:
        yield from ("```sh", one["command"], "```", "")
    yield (f"The fastest of {of_all} schedules that fit all batches [(all)](data/gains/{setup.name}.json)"
           + (f"; {of_some} more fit some" if of_some else "") + ":")
    yield ""
    yield from table(("partition", "schedule", "chunks", "recompute", "step over the plan's"),
                     [(row["partition"], row["policy"], row["chunks_per_rank"], settings(row) or "the plan's",
                       ratio(row, answer["batches"]))
                      for row in fastest(answer)])
    yield ""


def details(setups, answers):
    for setup in setups:
        yield from comparisons(setup, answers[setup.name])


def ahead(setups, answers):
    """The opponents that are faster than the plan on some batch."""
    rows = []
    for setup in setups:
        answer = answers[setup.name]
        for row in sorted(answer["comparisons"], key=lambda row: row["geometric_mean"]):
            if row["opponent"] and faster(row):
                rows.append((setup.title(), opponent(row), ratio(row, answer["batches"]),
                             f"{faster(row)} of {count(row)}"))
    if not rows:
        batches = sum(answers[setup.name]["batches"] for setup in setups)
        return ["None, on any of the " + f"{batches} batches."]
    return table(("set-up", "opponent", "its step over the plan's", "batches on which it is faster"), rows)


def sections(answers):
    """Place -> lines."""
    everywhere = {"summary": summary, "order": order_table, "robustness": robustness, "ahead": ahead,
                  "details": details}
    return {**{place: lines(PUBLISHED, answers) for place, lines in everywhere.items()},
            "regret": regret_table(answers)}


# ---- the page

def page(answers, folder=HERE):
    """Its text with tables of these answers."""
    text = (folder / PAGE).read_text()
    for name, lines in sections(answers).items():
        text = fill(text, name, lines)
    return text


def measured(name, limits):
    for setups, how in ((PUBLISHED, measure), (REGRET, measure_regret)):
        for setup in setups:
            if setup.name == name:
                return how(setup, limits)
    raise KeyError(name)


def names():
    return [setup.name for setup in PUBLISHED + REGRET]


def read(folder):
    """The answers of a folder; those of `bench plan` that were not pruned are."""
    answers = {}
    for name in names():
        path = folder / f"{name}.json"
        if not path.is_file():
            sys.exit(f"{path}: is missing")
        answer = json.loads(path.read_text())
        answers[name] = pruned(answer) if "comparisons" in answer else answer
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Set-ups: " + ", ".join(names()))
    parser.add_argument("--from", dest="folder", type=pathlib.Path, metavar="DIR", help="answers that were kept")
    parser.add_argument("--only", action="append", choices=names(), metavar="NAME",
                        help="measure this one, read the others")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the page would change")
    asked, words = parser.parse_known_args()
    limits = " ".join(words) or None
    if asked.folder is None:
        KEPT.mkdir(parents=True, exist_ok=True)
        for name in asked.only or names():
            write_answer(KEPT / f"{name}.json", measured(name, limits))
    answers = read(asked.folder or KEPT)
    written = page(answers)
    if asked.check:
        if (HERE / PAGE).read_text() != written:
            sys.exit(f"{PAGE}: other tables than of these answers; run studies/draw_gains.py --from {asked.folder}")
        return
    if asked.folder and asked.folder.resolve() != KEPT:
        for name, answer in answers.items():
            write_answer(KEPT / f"{name}.json", answer)
    (HERE / PAGE).write_text(written)


if __name__ == "__main__":
    main()
