#!/usr/bin/env python3
"""How a drawn batch's step varies: studies/step_quantiles.py PREDICTIONS.csv ID... [--steps N]

PREDICTIONS.csv is what `pipeweaver validate --out` writes. The command of each row that is named by its column `id` is
run with the seeds 1 to N (490); mean, quantiles (nearest rank) and the longest of the steps are printed in seconds.
"""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build" / "release" / "bin" / "pipeweaver"))


def step(command, seed):
    """The seconds of the step that the command emulates, drawn with the seed."""
    program, *arguments = shlex.split(command)
    assert program == "pipeweaver"
    answer = subprocess.run([PROGRAM, *arguments, "--seed", str(seed), "--json", "--threads", "1"], check=True,
                            capture_output=True, text=True)
    return json.loads(answer.stdout)["step_ns"] * 1e-9


def quantile(steps, share):
    """Of sorted steps, by nearest rank."""
    return steps[max(1, math.ceil(share * len(steps))) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predictions")
    parser.add_argument("ids", nargs="+")
    parser.add_argument("--steps", type=int, default=490)
    asked = parser.parse_args()
    with open(asked.predictions, newline="", encoding="utf-8") as file:
        commands = {row["id"]: row["command"] for row in csv.DictReader(file)}
    print(f"{'id':<24} {'mean':>7} {'p50':>7} {'p90':>7} {'p99':>7} {'max':>7}")
    for name in asked.ids:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            steps = sorted(pool.map(lambda seed: step(commands[name], seed), range(1, asked.steps + 1)))
        figures = [sum(steps) / len(steps), *(quantile(steps, share) for share in (0.5, 0.9, 0.99)), steps[-1]]
        print(f"{name:<24} " + " ".join(f"{one:7.3f}" for one in figures))


if __name__ == "__main__":
    main()
