#!/usr/bin/env python3
r"""Trains a small ViT + LLM by a plan that lies in a folder, on any number of nodes.

    pipeweaver plan --model examples/small-vlm.json --cluster h100-sxm:4 --tp 1 --pp 2 --partition dip \
        --batch examples/small-batch.jsonl --actions by-rank --out plan
    torchrun --nproc-per-node 4 examples/train_from_folder.py plan [--steps 4] [--device cpu|cuda]

Each process reads its own list alone. CPU ranks talk over gloo, GPUs over NCCL.
"""

import argparse
import json
import os
import pathlib

import torch
import torch.distributed as dist
import vlm_parts as vlm
from torch.distributed.device_mesh import init_device_mesh

from pipeweaver.torch import Executor, read_actions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]) if options.device == "cuda" else None)
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
    asked = json.loads((options.plan / "plan.json").read_text())["asked"]
    mesh = init_device_mesh(options.device, (asked["dp"], asked["pp"]), mesh_dim_names=("replica", "rank"))
    replica, rank = mesh.get_coordinate()

    actions = read_actions(options.plan / f"replica-{replica:03}/actions/rank-{rank:03}.json.gz")
    chunks = {number: vlm.Chunk(stage).to(device) for number, stage in actions.on_rank(rank).items()}
    executor = Executor(actions, chunks, vlm.split, vlm.loss, device=device, dtype=torch.float32,
                        group=mesh.get_group("rank"), replicas=mesh.get_group("replica"))
    optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 3e-3)
    batch = vlm.Batch(json.loads((options.plan / "assignment.json").read_text()), device)
    for step in range(options.steps):
        result = executor.step(batch, seed=step)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}, process {dist.get_rank()}: replica {replica} rank {rank} on node "
              f"{os.environ.get('GROUP_RANK', 0)}, loss {result.loss:.4f}\n", end="", flush=True)  # in one piece
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
