#!/usr/bin/env python3
"""Trains a small ViT + LLM on images of many sizes, DP 2 x PP 2, with a plan of its own for every batch.

    torchrun --nproc-per-node 4 examples/train_vlm.py [--steps 10] [--device cpu|cuda]

Rank 0 plans the next batch while all run the one before. CPU ranks talk over gloo, GPUs over NCCL.
"""

import argparse
import os

import pipeweaver
import torch
import torch.distributed as dist
import vlm_parts as vlm

from pipeweaver.torch import Executor, actions_of

# Replicas that are named are planned without opponents: the faster one of a short budget may be cut into stages with
# layers of both modules, which vlm.Chunk has not.
CONFIG = {"model": str(vlm.MODEL_FILE), "cluster": "h100-sxm:4", "tp": 1, "pp": 2, "dp": 2, "partition": "dip",
          "replicas": "0-1", "budget": 0.1, "threads": 1}


def what_ranks_need(plan):
    """Which samples each microbatch has, and each replica's action lists."""
    return plan.assignment, [replica.actions for replica in plan.replicas]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]) if options.device == "cuda" else None)
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
    replica, rank = divmod(dist.get_rank(), 2)
    pipelines = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]

    plans = dist.get_rank() == 0
    planner = pipeweaver.Planner(CONFIG, sample=vlm.draw_batch(0)) if plans else None
    plan = planner.first if plans else None
    executor = optimizer = None
    for step in range(options.steps):
        shared = [what_ranks_need(plan) if plans else None]
        dist.broadcast_object_list(shared, src=0, device=device)
        assignment, lists = shared[0]
        coming = planner.submit(vlm.draw_batch(step + 1)) if plans else None  # while this step runs
        actions = actions_of(lists[replica])
        if executor is None:
            chunks = {number: vlm.Chunk(stage).to(device) for number, stage in actions.on_rank(rank).items()}
            optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 3e-3)
            executor = Executor(actions, chunks, vlm.split, vlm.loss, group=pipelines[replica], replicas=replicas[rank],
                                device=device, dtype=torch.float32)
        else:
            executor.load(actions)
        result = executor.step(vlm.Batch(assignment, device), seed=step)
        optimizer.step()
        optimizer.zero_grad()
        if plans:
            print(f"step {step}: loss {result.loss:.4f}, {1e3 * result.seconds:.0f} ms", flush=True)
            plan = coming.result(deadline=0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
