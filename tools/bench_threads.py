#!/usr/bin/env python3
"""How many more rounds of search two threads do than one in the same time.

    tools/bench_threads.py PROBLEM... [--pairs 20] [--budget 1s]

Solves each problem with one thread and with two by turns, and prints the ratio of rounds: least, median, most of all
pairs. The machine should do nothing else. The program is build/release/bin/pipeweaver or PIPEWEAVER_BIN.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))


def rounds(problem, threads, seed, budget, folder):
    out = pathlib.Path(folder) / "solution.json"
    subprocess.run([BINARY, "solve", problem, "--budget", budget, "--seed", str(seed), "--threads", str(threads), "--out",
                    out], check=True, capture_output=True)
    return json.loads(out.read_text())["rounds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of runs, shared among the problems")
    parser.add_argument("--budget", default="1s")
    options = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            problem = options.problems[pair % len(options.problems)]
            # Who begins changes, so that neither gains by it.
            order = (1, 2) if pair // len(options.problems) % 2 == 0 else (2, 1)
            done = {threads: rounds(problem, threads, pair + 1, options.budget, folder) for threads in order}
            ratios.append(done[2] / done[1])
            print(f"{pathlib.Path(problem).name} seed {pair + 1}: {done[1]} and {done[2]} rounds, {ratios[-1]:.2f}x",
                  flush=True)
    print(f"{len(ratios)} pairs: least {min(ratios):.2f}x, median {statistics.median(ratios):.2f}x, most {max(ratios):.2f}x")


if __name__ == "__main__":
    main()
