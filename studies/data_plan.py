#!/usr/bin/env python3
"""What a data plan gains under a framework's own schedule: studies/data_plan.py [--models A,B] [--dp 4,16] [--seeds 10]

Drawn batches of `vlm-mix`, 16 microbatches a replica, encoders on the first stage, 1F1B, on h100-sxm; each is emulated
as it comes in turn, dealt longest first (what frameworks ship), by balance() with fitted coefficients, and as `plan`
packs and shares it (the best of its packings, as the rung *data* of the ladder takes it). The four have the same
samples and cut. Gains are geometric means over batches; `behind` counts
batches on which a way is slower than longest first. Needs the package pipeweaver; some seconds for each batch.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pipeweaver
from pipeweaver.data import Sizes, balance, coefficients
from table import fill, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build" / "release" / "bin" / "pipeweaver"))
LAYOUTS = {"dip-vlm-m": (8, 4), "dip-vlm-s": (4, 4), "qwen2.5-vl-32b": (4, 4), "qwen2.5-vl-72b": (8, 4)}  # tp, pp
BUDGET = {"dip-vlm-m": 8192, "dip-vlm-s": 8192, "qwen2.5-vl-32b": 8192, "qwen2.5-vl-72b": 8192}  # tokens
PACKINGS = ("given", "ffd", "balanced", "padded")
WAYS = ("longest first", "balance()", "plan")


def config_of(model, dp, seed):
    tp, pp = LAYOUTS[model]
    return {"model": model, "cluster": f"h100-sxm:{tp * pp * dp}", "tp": tp, "pp": pp, "dp": dp, "dataset": "vlm-mix",
            "microbatches": 16, "seed": seed}


def step(config, *more):
    """The emulated step, in ns."""
    options = [text for key, value in config.items() for text in (f"--{key}", str(value))]
    done = subprocess.run([PROGRAM, "emulate", *options, "--partition", "first-stage", "--sample-packing", "given",
                           "--policy", "1f1b", "--json", "--threads", "1", *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["step_ns"]


def steps_of(model, dp, seed, costs):
    """Of one batch: as it comes, then WAYS."""
    config = config_of(model, dp, seed)
    sizes = Sizes.of(pipeweaver.batch_of(config))
    steps = [step(config, "--packing", "given", "--assignment", "in-turn")]
    with tempfile.TemporaryDirectory() as folder:
        for method in ("longest-first", "best"):
            file = pathlib.Path(folder, f"{method}.json")
            plan = balance(sizes, dp, budget=BUDGET[model], costs=costs, method=method)
            file.write_text(json.dumps(plan.to_dict()))
            steps.append(step(config, "--assigned", str(file)))
    return [*steps, min(step(config, "--packing", packing) for packing in PACKINGS)]


def bench(samples=100_000):
    """CPU seconds of balance() on so many samples, for 16, 64 and 256 replicas."""
    costs = coefficients({**config_of("qwen2.5-vl-32b", 4, 1), "partition": "first-stage", "packing": "given"})
    rng = np.random.default_rng(1)
    tokens = np.minimum(8192, rng.lognormal(6, 1, samples)).astype(int)
    sizes = Sizes(tokens, {"images": [[1296] * count for count in rng.integers(0, 4, samples)]})
    for replicas in (16, 64, 256):
        begun = time.process_time()
        plan = balance(sizes, replicas, budget=8192, costs=costs)
        print(f"{samples} samples, {replicas} replicas of {plan.microbatches}: {time.process_time() - begun:.2f} s")


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def row(model, dp, batches):
    """Gains over the batch as it comes, and where a way is behind longest first."""
    cells = [f"`{model}`", str(dp)]
    cells += [f"{100 * (mean([one[0] / one[1 + k] for one in batches]) - 1):.1f} %" for k in range(len(WAYS))]
    cells += [str(sum(one[2 + k] > one[1] for one in batches)) for k in range(2)]
    return cells + [f"{100 * (max(one[3] / one[1] for one in batches) - 1):+.1f} %"]


def rows(models, replicas, seeds):
    for model in models:
        costs = coefficients({**config_of(model, 4, 1), "partition": "first-stage", "packing": "given"})
        for dp in replicas:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                batches = list(pool.map(lambda seed: steps_of(model, dp, seed, costs), range(1, seeds + 1)))
            print(model, dp, [[round(one * 1e-9, 3) for one in batch] for batch in batches], file=sys.stderr)
            yield row(model, dp, batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(LAYOUTS))
    parser.add_argument("--dp", default="4,16")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--bench", action="store_true", help="only the time of balance() on 100,000 samples")
    parser.add_argument("--page", help="write the table into this page, between <!-- data plan --> and <!-- end -->")
    asked = parser.parse_args()
    if asked.bench:
        return bench()
    head = ["model", "DP", *WAYS, "balance() behind", "plan behind", "plan's step over longest first's, at most"]
    all_of = rows(asked.models.split(","), [int(dp) for dp in asked.dp.split(",")], asked.seeds)
    lines = list(table(head, list(all_of), right=range(1, len(head))))
    print("\n".join(lines))
    if asked.page:
        page = pathlib.Path(asked.page)
        page.write_text(fill(page.read_text(), "data plan", lines))


if __name__ == "__main__":
    main()
