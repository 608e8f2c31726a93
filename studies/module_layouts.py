#!/usr/bin/env python3
"""Prints what layouts of modules take off a step, as a table in Markdown:
studies/module_layouts.py [--program PATH] [--page studies/module-layouts.md] [--batches 1-5] [--rounds 20]
    [--only NAME]

Both partitions are chosen on the seeds 101 to 105 of the data set: one with `--module-tp auto`, one with the job's
tensor parallelism for all modules. Batches of other seeds are then planned on each with the same number of rounds.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile

from table import fill, table

CASES = [
    {"model": "dip-vlm-s", "where": "h100-sxm:16 --tp 4 --pp 4", "data": "vlm-mix", "one": "vit=4", "kind": "presets"},
    {"model": "dip-vlm-m", "where": "h100-sxm:32 --tp 8 --pp 4", "data": "vlm-mix", "one": "vit=8", "kind": "presets"},
    {"model": "dip-vlm-l", "where": "h100-sxm:64 --tp 8 --pp 8", "data": "vlm-mix", "one": "vit=8", "kind": "presets"},
    {"model": "dip-t2v-s", "where": "h100-sxm:16 --tp 4 --pp 4", "data": "t2v-mix", "one": "dit=4", "kind": "presets"},
    {"model": "dip-t2v-l", "where": "h100-sxm:64 --tp 8 --pp 8", "data": "t2v-mix", "one": "dit=8", "kind": "presets"},
    {"model": "qwen2.5-vl-32b", "where": "h100-sxm:16 --tp 8 --pp 2", "data": "vlm-mix", "one": "vit=8",
     "kind": "real models"},
    {"model": "qwen2.5-vl-72b", "where": "h100-sxm:32 --tp 8 --pp 4", "data": "vlm-mix", "one": "vit=8",
     "kind": "real models"},
    {"model": "internvl3-38b", "where": "h100-sxm:32 --tp 8 --pp 4", "data": "vlm-mix", "one": "vit=8",
     "kind": "real models"},
    {"model": "internvl3-78b", "where": "h100-sxm:64 --tp 8 --pp 8", "data": "vlm-mix", "one": "vit=8",
     "kind": "real models"},
    {"model": "llama-3.2-90b-vision", "where": "h100-sxm:64 --tp 8 --pp 8", "data": "vlm-mix", "one": "vit=8",
     "kind": "real models"},
]


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")


def job_of(case):
    return ["--model", case["model"], "--cluster", *case["where"].split(), "--dataset", case["data"]]


def step_of(program, case, seed, cut, rounds, folder):
    out = folder / "plan"
    run(program, "plan", *job_of(case), "--seed", str(seed), "--partition", str(cut), "--replicas", "0",
        "--max-rounds", str(rounds), "--out", str(out))
    return json.loads((out / "plan.json").read_text())["step_ns"]


def layout_of(cut):
    """The layouts that are not the job's, in words."""
    partition = json.loads(cut.read_text())
    names = [f"{one['module']} tp {one['tp']} x {one['copies']}, {one.get('sharing', 'in phases')}"
             for one in partition["modules"] if one["copies"] > 1]
    return "; ".join(names) or "one TP"


def measured(program, case, seeds, rounds):
    """Per batch: the step with layouts of modules over that with one TP; and the layouts."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cuts = {}
        for way, asked in (("auto", "auto"), ("one", case["one"])):
            cuts[way] = folder / f"{way}.json"
            run(program, "partition", *job_of(case), "--sample", "101-105", "--module-tp", asked, "--out",
                str(cuts[way]))
        steps = {way: [step_of(program, case, seed, cut, rounds, folder) for seed in seeds]
                 for way, cut in cuts.items()}
        words = layout_of(cuts["auto"])
    return [auto / one for auto, one in zip(steps["auto"], steps["one"])], words, sum(steps["auto"]) / len(seeds)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def shorter(ratio):
    return f"{100 * (1 - ratio):.1f} %"


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/bin/pipeweaver")
    parser.add_argument("--page")
    parser.add_argument("--batches", default="1-5")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only")
    asked = parser.parse_args()
    rows, by_kind = [], {"presets": [], "real models": [], "VLM presets": []}
    for case in CASES:
        if asked.only and asked.only != case["model"]:
            continue
        ratios, layout, step = measured(asked.program, case, seeds_of(asked.batches), asked.rounds)
        by_kind[case["kind"]].append(mean(ratios))
        if case["model"].startswith("dip-vlm"):
            by_kind["VLM presets"].append(mean(ratios))
        rows.append([case["model"], case["where"].replace(" --", ", ").replace(":", " x "), layout,
                     f"{step / 1e9:.3f} s", shorter(mean(ratios)), shorter(max(ratios))])
    for kind, ratios in by_kind.items():
        if ratios:
            rows.append([f"the {len(ratios)} {kind}", "", "", "", shorter(mean(ratios)), ""])
    lines = list(table(["model", "where", "layouts taken", "mean step", "shorter, mean", "shorter, least"], rows))
    print("\n".join(lines))
    if asked.page:
        page = pathlib.Path(asked.page)
        page.write_text(fill(page.read_text(), "module-layouts", lines))


if __name__ == "__main__":
    main()
