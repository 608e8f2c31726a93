#!/usr/bin/env python3
"""Prints what each rung of the ladder gains over what runs now, as a table in Markdown, and its commands:
studies/draw_ladder.py [--program PATH] [--batches 5] [--rounds 20]

A factor is the geometric mean over the batches of the seeds 1, 2, ...; the least of the last rung stands beside it.
Every search has so many rounds: the figures are the same on any machine.
"""

import argparse
import json
import math
import shlex
import subprocess
import tempfile

from table import table

SETUPS = [
    "--model dip-vlm-m --cluster h100-sxm:32 --tp 8 --pp 4 --dataset vlm-mix --microbatches 16",
    "--model qwen2.5-vl-32b --cluster h100-sxm:64 --tp 4 --pp 4 --dataset vlm-mix --microbatches 16",
    "--model qwen2.5-vl-72b --cluster h100-sxm:64 --tp 8 --pp 4 --dataset vlm-mix --microbatches 16",
    "--model llama-3.2-90b-vision --cluster h100-sxm:64 --tp 8 --pp 8 --dataset vlm-mix --microbatches 16",
    "--model wan2.1-t2v-14b --cluster h100-sxm:16 --tp 8 --pp 1 --dataset t2v-mix --microbatches 16",
]
RUNGS = ("data", "flags", "layout", "schedule")


def ladder(asked, setup, seed):
    """The factors over what runs now, by rung, and what runs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [asked.program, "plan", *shlex.split(setup), *shlex.split(asked.options), "--seed", str(seed),
                   "--max-rounds", str(asked.rounds), "--quiet", "--json", "--out", folder]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr}")
    plan = json.loads(done.stdout)
    return {rung["rung"]: rung for rung in plan["ladder"]}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def row(asked, setup):
    ladders = [ladder(asked, setup, seed) for seed in range(1, asked.batches + 1)]
    words = shlex.split(setup)
    factors = [[one[rung]["over_now"] for one in ladders] for rung in RUNGS]
    ways = sorted({one["now"]["way"] for one in ladders})
    return [f"{words[1]}, {words[3].split(':')[1]}", ways[0] + (f" (and {len(ways) - 1} more)" if ways[1:] else ""),
            *(f"{mean(of):.3f}x" for of in factors), f"{min(factors[-1]):.3f}x"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/pipeweaver", metavar="PATH")
    parser.add_argument("--options", default="", help="more options of plan, like --target megatron")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    head = ["model, H100s", "now", *RUNGS, "least"]
    print("\n".join(table(head, [row(asked, setup) for setup in SETUPS], right=range(2, len(head)))))
    print()
    for setup in SETUPS:
        command = f"pipeweaver plan {setup} {asked.options} --max-rounds {asked.rounds} --seed 1 --out plan"
        print(" ".join(command.split()))


if __name__ == "__main__":
    main()
