#!/usr/bin/env python3
"""Do budgets hold? Every preset of the pipeline paper, at 1 to 32 replicas, planned within 0.1, 1 and 10 seconds.

Prints a table in Markdown: wall time of each plan, beside the floor (what `plan --budget 1ms` takes: reading, the
partition's choice, one schedule a replica, files), and the rounds of the replica that got fewest. A line that takes longer
than 1.2 times the larger of budget and floor and 0.3 s is marked, and the exit status is then 1. Run it on a machine at
rest.

    tools/bench_budgets.py [--replicas 1,8,32] [--budgets 0.1,1,10] [PRESET...]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = os.environ.get("PIPEWEAVER_BIN", Path(__file__).parent.parent / "build/release/bin/pipeweaver")
PRESETS = {  # tp, pp and data set; one replica has tp * pp GPUs
    "dip-vlm-s": (4, 4, "vlm-mix"),
    "dip-vlm-m": (8, 4, "vlm-mix"),
    "dip-vlm-l": (8, 8, "vlm-mix"),
    "dip-t2v-s": (4, 4, "t2v-mix"),
    "dip-t2v-l": (8, 8, "t2v-mix"),
    "dip-vlm-xl-8k": (8, 8, "vlm-mix"),
    "dip-vlm-xl-16k": (8, 16, "vlm-mix"),
    "dip-t2v-xl-3k": (8, 8, "t2v-mix"),
    "dip-t2v-xl-6k": (8, 16, "t2v-mix"),
}


def numbers(text):
    return [float(part) for part in text.split(",")]


def planned(preset, replicas, seconds):
    """Wall time, and the fewest rounds that a replica's search had."""
    tp, pp, dataset = PRESETS[preset]
    with tempfile.TemporaryDirectory() as folder:
        command = [BINARY, "plan", "--model", preset, "--cluster", f"h100-sxm:{tp * pp * replicas}", "--tp", str(tp),
                   "--pp", str(pp), "--dataset", dataset, "--microbatches", "16",
                   "--budget", f"{round(1000 * seconds)}ms", "--quiet", "--json", "--out", Path(folder) / "plan"]
        begin = time.monotonic()
        plan = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        wall = time.monotonic() - begin
    return wall, min(replica["rounds"] for replica in plan["replicas"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=numbers, default=[1, 8, 32])
    parser.add_argument("--budgets", type=numbers, default=[0.1, 1, 10])
    parser.add_argument("presets", nargs="*", metavar="PRESET", default=list(PRESETS))
    asked = parser.parse_args()
    budgets = asked.budgets
    print("| preset | replicas | floor | " + " | ".join(f"{b:g} s | rounds" for b in budgets) + " |")
    print("|---|---:|---:|" + "---:|" * (2 * len(budgets)))
    late = 0
    for preset in asked.presets:
        for replicas in map(int, asked.replicas):
            floor, _ = planned(preset, replicas, 0.001)
            cells = []
            for budget in budgets:
                wall, rounds = planned(preset, replicas, budget)
                over = wall > 1.2 * max(budget, floor) + 0.3
                late += over
                cells += [f"{wall:.2f} s{' (late)' if over else ''}", str(rounds)]
            print(f"| {preset} | {replicas} | {floor:.2f} s | " + " | ".join(cells) + " |", flush=True)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
