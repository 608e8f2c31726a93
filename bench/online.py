#!/usr/bin/env python3
"""A training job that has a new plan for every step, made while the step before runs.

    bench/online.py [--steps 100] [--json]

A step is a sleep of the time that its plan predicts, scaled. Printed are how long steps waited for their plan beyond the
deadline that they gave, and how the process grew.
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


def memory_mib():
    """What the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def run(steps, model, cluster, sleep, deadline):
    """Returns what was measured, with steps of `sleep` seconds on average."""
    waits, ahead, plans, gaps = [], 0, 0, []
    config = {"model": model, "cluster": cluster, "budget": sleep, "threads": 1}
    with pipeweaver.Planner(config, batch(0)) as planner:
        scale = sleep / (planner.first.step_ns / 1e9)
        future, before = planner.submit(batch(1)), 0.0
        for step in range(1, steps + 1):
            began = time.monotonic()
            ahead += future.done()
            plan = future.result(deadline)
            waits.append(max(0.0, time.monotonic() - began - deadline))
            assert plan.summary["asked"]["samples"] == 48
            plans += 1
            gaps.append(plan.gap)
            if step == min(10, steps):
                before = memory_mib()  # pools and caches have their size by now
            future = planner.submit(batch(step + 1))
            time.sleep(scale * plan.step_ns / 1e9)
        grown = memory_mib() - before
    return {"steps": steps, "plans": plans, "plans_ready_before_the_step": ahead, "deadline_ms": 1e3 * deadline,
            "longest_wait_beyond_deadline_ms": 1e3 * max(waits),
            "median_wait_beyond_deadline_ms": 1e3 * statistics.median(waits),
            "memory_growth_mib": grown, "median_gap": statistics.median(gaps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--model", default="dip-vlm-s")
    parser.add_argument("--cluster", default="h100-sxm:16")
    parser.add_argument("--sleep", type=float, default=0.4, help="seconds of the first plan's step (default 0.4)")
    parser.add_argument("--deadline", type=float, default=0.05, help="seconds a step waits for a plan (default 0.05)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    measured = run(asked.steps, asked.model, asked.cluster, asked.sleep, asked.deadline)
    if asked.json:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        print(f"{name.replace('_', ' '):34} {value:.3f}" if isinstance(value, float) else f"{name.replace('_', ' '):34} {value}")


if __name__ == "__main__":
    main()
