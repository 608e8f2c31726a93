#!/usr/bin/env python3
"""Runs the steps of a plan of examples/small-vlm.json, records what each rank's passes took, and watches them.

    torchrun --nproc-per-node 2 examples/record_steps.py PLAN [--steps 5] [--out measured] [--slow RANK]

Writes timings-<rank>.json for `pipeweaver replay PLAN --measured` and `pipeweaver costdb import --measured PLAN`.
"""

import argparse
import json
import pathlib
import time

import torch
import torch.distributed as dist
import vlm_parts as vlm

from pipeweaver.torch import Executor, Timings, Watch, read_actions


class Slow(torch.nn.Module):
    """A chunk on a machine that is busy with something else."""

    def __init__(self, chunk):
        super().__init__()
        self.chunk, self.blocks = chunk, chunk.blocks

    def forward(self, *arguments, **named):
        began = time.perf_counter()
        output = self.chunk(*arguments, **named)
        time.sleep(time.perf_counter() - began)
        return output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("measured"))
    parser.add_argument("--slow", type=int, help="a rank whose forwards take twice as long")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, folder = dist.get_rank(), options.plan / "replica-000"

    actions = read_actions(folder / "actions.json")
    chunks = {number: vlm.Chunk(stage) for number, stage in actions.on_rank(rank).items()}
    if rank == options.slow:
        chunks = {number: Slow(chunk) for number, chunk in chunks.items()}
    executor = Executor(actions, chunks, vlm.split, vlm.loss, dtype=torch.float32)
    batch = vlm.Batch(json.loads((options.plan / "assignment.json").read_text()), torch.device("cpu"))
    executor.step(batch)  # the first step is slower than those that follow

    timings = Timings(executor)
    watch = Watch(executor, folder, tell=lambda finding: print(f"watch: {finding}", flush=True) if rank == 0 else None)
    for step in range(options.steps):
        result = executor.step(batch, seed=step)
        timings.add(result)
        watch.step(result)
    options.out.mkdir(exist_ok=True)
    timings.write(options.out / f"timings-{rank}.json")
    if rank == 0:
        print(f"{options.steps} steps, the last took {1e3 * result.seconds:.0f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
