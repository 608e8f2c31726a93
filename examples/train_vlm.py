#!/usr/bin/env python3
"""Trains a small ViT + LLM on images of many sizes, DP 2 x PP 2, with a plan of its own for every batch.

    torchrun --nproc-per-node 4 examples/train_vlm.py [--steps 10] [--device cpu|cuda]

Rank 0 plans the next batch while all run the one before. CPU ranks talk over gloo, GPUs over NCCL.
"""

import argparse
import concurrent.futures
import random

import pipeweaver
import torch
import torch.distributed as dist
import vlm_parts as vlm

from pipeweaver.torch import Executor, actions_of

CONFIG = {"model": str(vlm.MODEL_FILE), "cluster": "h100-sxm:4", "tp": 1, "pp": 2, "dp": 2, "partition": "dip"}


def draw_batch(step):
    """Samples as in a batch file: text and up to four images, each of its own size."""
    draw = random.Random(step)
    return [{"id": f"{step}.{i}", "text_tokens": draw.randint(32, 160),
             "images": [{"width": 28 * draw.randint(1, 6), "height": 28 * draw.randint(1, 6)}
                        for _ in range(draw.choice([0, 1, 1, 2, 4]))]} for i in range(16)]


def make_plan(step):
    """What all ranks need of the plan, as plain dicts."""
    plan = pipeweaver.plan({**CONFIG, "budget": "100ms"}, draw_batch(step))
    return plan.assignment, [replica.actions for replica in plan.replicas]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
    me = dist.get_rank()
    device = torch.device(options.device, me if options.device == "cuda" else None)
    pipelines = [dist.new_group([0, 1]), dist.new_group([2, 3])]  # replica, pipeline rank = divmod(rank, 2)
    replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]

    planner = concurrent.futures.ThreadPoolExecutor(1)
    planned = planner.submit(make_plan, 0) if me == 0 else None
    executor = optimizer = None
    for step in range(options.steps):
        shared = [planned.result() if planned else None]
        dist.broadcast_object_list(shared, src=0, device=device)
        if me == 0:
            planned = planner.submit(make_plan, step + 1)
        assignment, lists = shared[0]
        actions = actions_of(lists[me // 2])
        if executor is None:
            chunks = {number: vlm.Chunk(stage).to(device) for number, stage in actions.on_rank(me % 2).items()}
            optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 3e-3)
            executor = Executor(actions, chunks, vlm.split, vlm.loss, group=pipelines[me // 2], replicas=replicas[me % 2],
                                device=device, dtype=torch.float32)
        else:
            executor.load(actions)
        result = executor.step(vlm.Batch(assignment, device), seed=step)
        optimizer.step()
        optimizer.zero_grad()
        if me == 0:
            print(f"step {step}: loss {result.loss:.4f}, {1e3 * result.seconds:.0f} ms", flush=True)
    planner.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
