#!/usr/bin/env python3
"""How often `solve` finds a schedule where memory is so tight that there may be none.

    tools/bench_feasible.py [--problems 10000] [--first 0] [--tasks 16 40] [--tight 1.05 1 0.99] [--budget 1]

Makes random problems by number, solves each within the budget (first within a twentieth of it, which is enough for
most), and lets OR-tools' CP-SAT decide on those that are refused. Every schedule is replayed by the program, which checks the memory of every rank. Needs ortools; the program is
build/release/bin/pipeweaver or PIPEWEAVER_BIN.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

import cp_sat  # noqa: E402
from random_problems import random_problem  # noqa: E402

BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))


def proves(refused):
    return "nor does any other order fit" in refused.stderr


def judge(number, options, folder):
    """(problem's name, verdict, seconds of solve)"""
    problem = random_problem(number, options.tight[number % len(options.tight)], options.tasks)
    path, out = folder / f"{number}.json", folder / f"{number}.solution.json"
    path.write_text(json.dumps(problem))
    for budget in (options.budget / 20, options.budget):
        start = time.monotonic()
        solved = subprocess.run([BINARY, "solve", path, "--budget", f"{budget:.3f}s", "--threads", "1", "--out", out],
                                capture_output=True, text=True)
        seconds = time.monotonic() - start
        if solved.returncode != 4 or proves(solved):
            break
    if solved.returncode == 0:
        replayed = subprocess.run([BINARY, "replay", path, out], capture_output=True, text=True)
        return problem["name"], "found" if replayed.returncode == 0 else "false: " + replayed.stderr, seconds
    if solved.returncode != 4:
        return problem["name"], "false: " + solved.stderr, seconds
    there = cp_sat.feasible(problem, options.effort).status
    proven = proves(solved)
    if there == "feasible":
        return problem["name"], "false: " + solved.stderr if proven else "missed", seconds
    return problem["name"], "none" if there == "infeasible" or proven else "unknown", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tasks", type=int, nargs=2, default=(16, 40))
    parser.add_argument("--tight", type=float, nargs="+", default=(1.05, 1, 0.99))
    parser.add_argument("--budget", type=float, default=1, help="in seconds")
    parser.add_argument("--effort", type=float, default=1, help="of CP-SAT, in seconds about")
    options = parser.parse_args()
    verdicts, slowest = {}, 0
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        jobs = [threads.submit(judge, options.first + k, options, pathlib.Path(name)) for k in range(options.problems)]
        for job in jobs:
            problem, verdict, seconds = job.result()
            slowest = max(slowest, seconds)
            verdicts[verdict.split(":")[0]] = verdicts.get(verdict.split(":")[0], 0) + 1
            if verdict == "missed" or verdict.startswith("false"):
                print(f"{problem}: {verdict.strip()}", flush=True)
    found, missed = verdicts.get("found", 0), verdicts.get("missed", 0)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    print(f"a schedule was found for {100 * found / max(1, found + missed):.2f} % of those known to have one; "
          f"the longest took {slowest:.2f} s")
    return 1 if "false" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
