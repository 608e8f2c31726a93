#!/usr/bin/env python3
"""Trains as train_vlm.py, with plans of a server that runs beside the job: DP 2 x PP 2.

    pipeweaver serve --http 127.0.0.1:8080 --state service-state &
    torchrun --nproc-per-node 4 examples/train_with_server.py --server http://127.0.0.1:8080 [--steps 10]

Workers of rank 0's data loader hand batches over some steps ahead; each rank collects its own list when it needs it.
Where the server gives none in time, because it is killed, began anew or is not there yet, all ranks run the plan by
policy, which each makes in its own process.
"""

import argparse
import pathlib
import time

import pipeweaver
import torch
import torch.distributed as dist
import vlm_parts as vlm

from pipeweaver.torch import Executor, actions_of

CONFIG = {"model": str(vlm.MODEL_FILE), "cluster": "h100-sxm:4", "tp": 1, "pp": 2, "dp": 2, "partition": "dip",
          "budget": "100ms"}


class Steps(torch.utils.data.Dataset):
    """The batch of each step, handed over to the server by the worker that draws it."""

    def __init__(self, planner, steps, submits):
        self.planner, self.steps, self.submits = planner, steps, submits

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        batch = vlm.draw_batch(step)
        if self.submits:
            self.planner.submit(batch, step=step)
        return step, batch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", help="file of the token that the server asks for")
    parser.add_argument("--authority", help="certificate (PEM) that the server's is signed with")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--deadline", type=float, default=1.0, help="seconds that a step waits for its plan at most")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    replica, rank = divmod(dist.get_rank(), 2)
    pipelines = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]

    token = pathlib.Path(options.token).read_text().strip() if options.token else None
    planner = pipeweaver.Planner(CONFIG, vlm.draw_batch(0), url=options.server, token=token,
                                 authority=options.authority, fallback=True)
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, planner.name)
    if len(set(names)) > 1:  # the server came while ranks opened the session: some have another partition
        raise SystemExit("ranks have different sessions; begin again")
    first = actions_of(planner.of_step(0, vlm.draw_batch(0)).by_policy(replica, rank).actions)
    chunks = {number: vlm.Chunk(stage) for number, stage in first.on_rank(rank).items()}
    optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 3e-3)
    executor = Executor(first, chunks, vlm.split, vlm.loss, group=pipelines[replica], replicas=replicas[rank],
                        dtype=torch.float32)
    loader = torch.utils.data.DataLoader(Steps(planner, options.steps, dist.get_rank() == 0), batch_size=None,
                                         num_workers=2, multiprocessing_context="fork")
    for step, batch in loader:
        began = time.perf_counter()
        future = planner.of_step(step, batch)
        work = future.collect(replica, rank, 0.7 * options.deadline)  # the rest is for ranks that come later
        served = executor.load(actions_of(work.actions) if work else None,
                               otherwise=lambda: actions_of(future.by_policy(replica, rank).actions))
        waited = time.perf_counter() - began
        work = work if served else future.by_policy(replica, rank)
        result = executor.step(vlm.Batch(work.assignment, torch.device("cpu")), seed=step)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} rank {dist.get_rank()}: loss {result.loss:.4f}, {'served' if served else 'by policy'}, "
              f"waited {1e3 * waited:.0f} ms\n", end="", flush=True)  # in one piece: four ranks write
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
