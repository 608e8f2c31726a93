#!/usr/bin/env python3
"""How even the replicas of a step are: plans many batches and compares the slowest replica with the mean of all.

Prints a table in Markdown, a row a batch: the slowest makespan over the mean, the 95th percentile over the mean, the gap of
the slowest, and the largest load over the mean had the microbatches gone in turn. With --in-turn every batch is also
planned that way, and the last column is its step over the plan's.

    tools/bench_evenness.py [--batches 20] [--in-turn] --model dip-vlm-m --cluster h100-sxm:128 --dataset vlm-mix ...

Other options go to `pipeweaver plan`; without --budget or --max-rounds every search has one round.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BINARY = os.environ.get("PIPEWEAVER_BIN", Path(__file__).parent.parent / "build/release/bin/pipeweaver")


def planned(options, *more):
    with tempfile.TemporaryDirectory() as folder:
        command = [BINARY, "plan", *options, *more, "--quiet", "--json", "--out", Path(folder) / "plan"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--in-turn", action="store_true")
    asked, options = parser.parse_known_args()
    if not {"--budget", "--max-rounds"} & set(options):
        options += ["--max-rounds", "1"]
    print("| seed | slowest over mean | p95 over mean | gap | largest load in turn |" + (" step in turn |" if asked.in_turn else ""))
    print("|---:|---:|---:|---:|---:|" + ("---:|" if asked.in_turn else ""))
    slowest, gains = [], []
    for seed in range(1, asked.batches + 1):
        plan = planned(options, "--seed", str(seed))
        makespans = [replica["makespan_ns"] for replica in plan["replicas"]]
        mean = sum(makespans) / len(makespans)
        slowest.append(max(makespans) / mean)
        loads = plan["assignment"]
        row = [str(seed), f"{slowest[-1]:.4f}", f"{percentile(makespans, 95) / mean:.4f}", f"{100 * plan['gap']:.1f} %",
               f"{loads['in_turn_largest_load_ns'] / loads['mean_load_ns']:.4f}"]
        if asked.in_turn:
            gains.append(planned(options, "--seed", str(seed), "--assignment", "in-turn")["step_ns"] / plan["step_ns"])
            row.append(f"{gains[-1]:.4f}")
        print("| " + " | ".join(row) + " |", flush=True)
    text = f"slowest over mean: median {percentile(slowest, 50):.4f}, p95 {percentile(slowest, 95):.4f}, most {max(slowest):.4f}"
    if gains:
        text += f"; step in turn over the plan's: mean {sum(gains) / len(gains):.4f}, least {min(gains):.4f}"
    print("\n" + text)


if __name__ == "__main__":
    sys.exit(main())
