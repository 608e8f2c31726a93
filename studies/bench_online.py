#!/usr/bin/env python3
"""A training job that has a new plan for every step, made while the step before runs.

    studies/bench_online.py [--steps 100] [--budget 0.2 10] [--json]

A step is a sleep of the time that its plan predicts, scaled. Printed is, for each budget of a search, how many plans
were there before their step began, how long steps waited for the others, and how the process grew. With a budget longer
than a step every search is cut short.
"""

import argparse
import json
import random
import resource
import statistics
import time

import pipeweaver


def batch(step):
    """Samples with as many images as vary from step to step."""
    draw = random.Random(step)
    return [{"id": f"{step}-{k}", "text_tokens": draw.randrange(100, 2000),
             "images": [{"width": draw.randrange(200, 1200), "height": draw.randrange(200, 1200)}
                        for _ in range(draw.randrange(0, 4))]} for k in range(48)]


def is_of(plan, step):
    """Whether the plan is of the batch of that step."""
    return all(sample["id"].startswith(f"{step}-") for replica in plan.assignment["replicas"]
               for microbatch in replica["microbatches"] for sample in microbatch["samples"])


def memory_mib():
    """What the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def run(budget, asked):
    """Returns what was measured with so many seconds for a search."""
    waits, gaps, memory, ready = [], [], [], 0
    config = {"model": asked.model, "cluster": asked.cluster, "budget": budget, "threads": 1}
    with pipeweaver.Planner(config, batch(0), stop=stop_after(1.0)) as planner:
        scale = asked.sleep / planner.first.step_ns
        future = planner.submit(batch(1))
        for step in range(1, asked.steps + 1):
            time.sleep(scale * (planner.first if step == 1 else plan).step_ns)
            ready += future.done()
            began = time.monotonic()
            plan = future.result(asked.deadline)
            waits.append(time.monotonic() - began)
            assert is_of(plan, step)
            future = planner.submit(batch(step + 1))
            gaps.append(plan.gap)
            memory.append(memory_mib())
    settled = min(10, asked.steps) - 1  # pools and caches have their size by then
    return {"budget_s": budget, "steps": asked.steps, "ready": ready, "longest_wait_ms": 1e3 * max(waits),
            "longest_wait_beyond_deadline_ms": 1e3 * max(0.0, max(waits) - asked.deadline),
            "median_wait_ms": 1e3 * statistics.median(waits), "median_gap": statistics.median(gaps),
            "memory_mib": memory[settled], "memory_growth_mib": memory[-1] - memory[settled]}


def stop_after(seconds):
    """A function that says to stop then."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def show(measured, asked):
    """Prints a line for each budget."""
    print(f"{asked.steps} steps of about {asked.sleep:g} s, deadline of a plan {1e3 * asked.deadline:g} ms")
    print("budget  ready before  median wait  longest wait  beyond deadline  median gap    memory   growth")
    for m in measured:
        print(f"{m['budget_s']:4g} s  {m['ready']:12}  {m['median_wait_ms']:8.1f} ms  {m['longest_wait_ms']:9.1f} ms  "
              f"{m['longest_wait_beyond_deadline_ms']:12.1f} ms  {100 * m['median_gap']:8.1f} %  "
              f"{m['memory_mib']:4.0f} MiB  {m['memory_growth_mib']:+.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--model", default="dip-vlm-s")
    parser.add_argument("--cluster", default="h100-sxm:16")
    parser.add_argument("--sleep", type=float, default=0.4, help="seconds of the first plan's step (default 0.4)")
    parser.add_argument("--deadline", type=float, default=0.05, help="seconds a step waits for a plan (default 0.05)")
    parser.add_argument("--budget", type=float, nargs="+", default=[0.2, 10], help="seconds of search (default 0.2 10)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    measured = [run(budget, asked) for budget in asked.budget]
    if asked.json:
        print(json.dumps(measured))
    else:
        show(measured, asked)


if __name__ == "__main__":
    main()
