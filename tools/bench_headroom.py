#!/usr/bin/env python3
"""What memory that plans keep free costs in step time, and whether plans fit where activations are larger than said.

    tools/bench_headroom.py [--headroom 3%] [--max-rounds 100] [--seeds 3] [--larger 2] [--draws 100]

Plans drawn batches of the five published set-ups with no headroom and with it, the same rounds for both. Then every
pass of a plan holds more than said, by a factor of its own drawn from 1 to 1 + larger %: counted are the draws in which
a rank of the plan needs more than the usable part of its device. The program is build/release/bin/pipeweaver or
PIPEWEAVER_BIN.
"""

import argparse
import gzip
import json
import os
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))
PRESETS = [("dip-vlm-s", "h100-sxm:16", "vlm-mix"), ("dip-vlm-m", "h100-sxm:32", "vlm-mix"),
           ("dip-vlm-l", "h100-sxm:64", "vlm-mix"), ("dip-t2v-s", "h100-sxm:16", "t2v-mix"),
           ("dip-t2v-l", "h100-sxm:64", "t2v-mix")]


def plan(preset, seed, headroom, rounds, folder):
    model, cluster, dataset = preset
    subprocess.run([BINARY, "plan", "--model", model, "--cluster", cluster, "--dataset", dataset, "--seed", str(seed),
                    "--headroom", headroom, "--max-rounds", str(rounds), "--out", folder], check=True, capture_output=True)
    return json.loads((folder / "plan.json").read_text())


def effects(problem, modes, factors):
    """What each task takes at its start and gives back at its end, with all of it larger by its pair's factor."""
    own = [(task["acquire_bytes"], task["release_bytes"]) for task in problem["tasks"]]
    paired = set()
    for pair, mode, factor in zip(problem.get("pairs", []), modes, factors):
        chosen = pair["modes"][mode]
        held, transient = factor * chosen["held_bytes"], factor * chosen["transient_bytes"]
        passing, kept = factor * chosen.get("forward_transient_bytes", 0), factor * chosen.get("kept_bytes", 0)
        own[pair["forward"]] = held + passing, passing
        own[pair["backward"]] = transient, held + transient - kept
        paired |= {pair["forward"], pair["backward"]}
        if pair.get("weight") is not None:
            own[pair["weight"]] = 0, kept
            paired.add(pair["weight"])
    most = max(factors, default=1)
    return [effect if task in paired else (most * effect[0], most * effect[1]) for task, effect in enumerate(own)]


def fullest(problem, solution, factors):
    """The largest peak of a rank. Memory depends on the ranks' orders alone."""
    of_task = effects(problem, solution.get("mode", []), factors)
    peak = 0
    for rank, order in zip(problem["ranks"], solution["order"]):
        level = rank["base_bytes"]
        for task in order:
            level += of_task[task][0]
            peak = max(peak, level)
            level -= of_task[task][1]
    return peak


def overflows(folder, usable, larger, draws):
    """Draws in which a rank of some replica needs more than `usable`; and the largest peak as said."""
    replicas = []
    for replica in sorted(folder.glob("replica-*")):
        problem = json.loads(gzip.decompress((replica / "problem.json.gz").read_bytes()))
        replicas.append((problem, json.loads((replica / "solution.json").read_text())))
    said = max(fullest(problem, solution, [1] * len(problem.get("pairs", []))) for problem, solution in replicas)
    count = 0
    for draw in range(draws):
        chance = random.Random(draw)
        count += any(
            fullest(problem, solution, [1 + larger / 100 * chance.random() for _ in problem.get("pairs", [])]) > usable
            for problem, solution in replicas)
    return count, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headroom", default="3%")
    parser.add_argument("--max-rounds", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3, help="drawn batches of each set-up")
    parser.add_argument("--larger", type=float, default=2, help="activations at most, in percent")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    print(f"| model, GPUs | seed | step without, s | step with {options.headroom}, s | longer | fullest rank without, with "
          f"| of {options.draws} draws too large without, with |\n|---|---|---|---|---|---|---|", flush=True)
    for preset in PRESETS:
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                folders = [pathlib.Path(folder) / name for name in ("without", "with")]
                made = [plan(preset, seed, headroom, options.max_rounds, out)
                        for headroom, out in zip(("0", options.headroom), folders)]
                usable = made[0]["replicas"][0]["memory"][0]["capacity_bytes"]
                told = [overflows(out, usable, options.larger, options.draws) for out in folders]
            steps = [one["step_ns"] / 1e9 for one in made]
            print(f"| {preset[0]}, {preset[1]} | {seed} | {steps[0]:.3f} | {steps[1]:.3f} | "
                  f"{100 * (steps[1] / steps[0] - 1):+.2f} % | {told[0][1] / usable:.1%}, {told[1][1] / usable:.1%} | "
                  f"{told[0][0]}, {told[1][0]} |", flush=True)


if __name__ == "__main__":
    main()
