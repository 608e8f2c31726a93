#!/usr/bin/env python3
"""What `solve` takes at its limits: many tasks, ranks, memory modes, a long chain; and every policy where memory is tight.

Makes the problems, one at a time, solves each with `--budget 1s` and prints wall and processor time as a table in Markdown;
then what each policy takes on problems of dip-vlm-l, whose memory is tight, over what the quickest takes, reading included.
What exceeds its limit is marked, and the exit status is then 1. Run it on a machine at rest; it takes half a minute.

    tools/bench_limits.py [--only NAME ...]
"""
import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = os.environ.get("PIPEWEAVER_BIN", Path(__file__).parent.parent / "build/release/bin/pipeweaver")
MIB = 1 << 20
MOST_OVER_QUICKEST = 8  # of a policy's processor time
PLAN = ["plan", "--model", "dip-vlm-l", "--cluster", "h100-sxm:64", "--tp", "8", "--pp", "8", "--dataset", "vlm-mix",
        "--partition", "dip", "--max-rounds", "0", "--quiet", "--json"]


def pipeline(ranks, microbatches, room, seed=1):
    """One stage a rank; forwards of 1 to 3 ms, backwards twice as long. `room`: microbatches that a rank has memory for."""
    draw = random.Random(seed)
    tasks, edges = [], []
    for microbatch in range(microbatches):
        ms = draw.randint(1, 3)
        forward, backward = len(tasks), len(tasks) + ranks
        for kind, stages in (("F", range(ranks)), ("B", reversed(range(ranks)))):
            for stage in stages:
                tasks.append({"id": len(tasks), "rank": stage, "kind": kind,
                              "duration_ns": 1_000_000 * ms * (1 if kind == "F" else 2),
                              "acquire_bytes": MIB if kind == "F" else 0, "release_bytes": 0 if kind == "F" else MIB,
                              "label": f"m{microbatch}.s{stage}.{kind}", "stage": stage, "microbatch": microbatch,
                              "item": 0, "module": "net"})
        last = backward + ranks - 1
        edges += [[k, k + 1, 0] for k in range(forward, last)]
        edges += [[forward + stage, last - stage, 0] for stage in range(ranks - 1)]
    return {"format": "pipeweaver-problem/1", "name": "limits", "tasks": tasks, "edges": edges,
            "ranks": [{"capacity_bytes": room * MIB, "base_bytes": 0}] * ranks,
            "stages": [{"stage": stage, "rank": stage, "parts": [{"module": "net"}]} for stage in range(ranks)]}


def many_modes(modes):
    """Two ranks, one of whose pairs has so many modes, each with less memory and a longer backward than the one before."""
    problem = pipeline(2, 4, 4)
    forward, backward = (problem["tasks"][k]["duration_ns"] for k in (0, 3))
    problem["pairs"] = [{"forward": 0, "backward": 3, "modes": [
        {"forward_ns": forward, "backward_ns": backward + 100 * k, "held_bytes": MIB - 10 * k,
         "transient_bytes": 0} for k in range(modes)]}]
    return problem


# name: problem, limit in seconds, whether of processor time
LIMITS = {
    "10,000 tasks, 8 ranks, room for 10": (lambda: pipeline(8, 625, 10), 1.5, False),
    "500,000 tasks, 4 ranks, room for 8": (lambda: pipeline(4, 62_500, 8), 15, True),
    "10,000 modes of a pair": (lambda: many_modes(10_000), 2, False),
    "100,000 ranks": (lambda: pipeline(100_000, 1, 2), 2, False),
    "a chain over 2,000 ranks": (lambda: pipeline(2_000, 8, 4), 2, False),
}


def run(*arguments):
    """Wall and processor time in seconds, the answer or null."""
    began, before = time.monotonic(), os.times()
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, processor, json.loads(done.stdout) if done.returncode == 0 else None


def solved(make, folder):
    problem = Path(folder) / "problem.json"
    problem.write_text(json.dumps(make()))
    return run("solve", problem, "--budget", "1s", "--out", Path(folder) / "solution.json", "--quiet", "--json")


def policy_times(microbatches, folder):
    """Tasks, and the processor time of every policy that applies."""
    run(*PLAN, "--microbatches", microbatches, "--out", folder)
    problem = Path(folder) / "replica-000/problem.json.gz"
    times = {}
    for name in (one["name"] for one in run("list", "policies", "--json")[2]):
        _, took, answer = run("solve", problem, "--policy", name, "--out", Path(folder) / "one.json", "--quiet", "--json")
        if answer is not None:
            times[name] = took
    return len(json.loads(gzip.decompress(problem.read_bytes()))["tasks"]), times


def limits(names):
    print("| problem | wall time | processor time | limit | makespan over its bound |\n|---|---:|---:|---:|---:|")
    late = 0
    for name in names:
        make, limit, of_processor = LIMITS[name]
        with tempfile.TemporaryDirectory() as folder:
            wall, processor, answer = solved(make, folder)
        over = (processor if of_processor else wall) > limit or answer is None
        late += over
        gap = f"{answer['makespan_ns'] / answer['lower_bound_ns']:.3f}" if answer else "no answer"
        print(f"| {name} | {wall:.2f} s | {processor:.2f} s | {limit:g} s"
              f"{' of processor time' if of_processor else ''}{' (late)' if over else ''} | {gap} |", flush=True)
    print()
    return late


def policies():
    found = []
    for microbatches in (16, 64, 152):
        with tempfile.TemporaryDirectory() as folder:
            found.append(policy_times(microbatches, folder))
    print("| policy | " + " | ".join(f"{tasks:,} tasks" for tasks, _ in found) + " |\n|---|" + "---:|" * len(found))
    late = 0
    for name in (name for name in found[0][1] if all(name in times for _, times in found)):
        over = [times[name] / min(times.values()) for _, times in found]
        late += max(over) > MOST_OVER_QUICKEST
        print(f"| {name} | " + " | ".join(f"{times[name]:.2f} s, {k:.1f}x" for (_, times), k in zip(found, over)) +
              f"{' (late)' if max(over) > MOST_OVER_QUICKEST else ''} |")
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[*LIMITS, "policies"], help="may stand more than once")
    asked = parser.parse_args().only or [*LIMITS, "policies"]
    names = [name for name in LIMITS if name in asked]
    late = (limits(names) if names else 0) + (policies() if "policies" in asked else 0)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
