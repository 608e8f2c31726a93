"""Trains the diffusion transformer of docs/diffusion.md by a plan, a process a GPU, for any tp, pp and dp."""

import json
import sys

import torch
import torch.distributed as dist
from pipeweaver.torch import Executor, parallel, read_actions
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.functional import gelu, mse_loss, scaled_dot_product_attention

WIDTH, CHANNELS, LAYERS, HEADS = 64, 64, 4, 2


class Block(torch.nn.Module):
    def __init__(self, gpus, parts):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv = torch.nn.ModuleList(parallel.ColumnParallel(WIDTH, WIDTH, gpus, parts) for _ in range(3))
        self.out = parallel.RowParallel(WIDTH, WIDTH, gpus, parts)
        self.up = parallel.ColumnParallel(WIDTH, 4 * WIDTH, gpus, parts)
        self.down = parallel.RowParallel(4 * WIDTH, WIDTH, gpus, parts)

    def forward(self, x, rows):
        normed = self.norms[0](x)
        q, k, v = (one(normed, rows).unflatten(1, (-1, WIDTH // HEADS)).transpose(0, 1) for one in self.qkv)
        x = x + self.out(scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1))
        return x + self.down(gelu(self.up(self.norms[1](x), rows)))


class Chunk(torch.nn.Module):
    def __init__(self, stage, gpus, parts):
        super().__init__()
        torch.manual_seed(stage.stage)  # the same weights everywhere; each GPU keeps its part of them
        part, self.gpus, self.parts = stage.parts[0], gpus, parts
        self.blocks = torch.nn.ModuleList(Block(gpus, parts) for _ in range(part.layers))
        self.first = torch.nn.Linear(CHANNELS, WIDTH) if part.first_layer == 0 else None
        self.last = torch.nn.Linear(WIDTH, CHANNELS) if part.first_layer + part.layers == LAYERS else None
        on_parts = [self.first, *(block.norms for block in self.blocks)] if parts else []
        for weight in (weight for one in on_parts if one is not None for weight in one.parameters()):
            parallel.of_parts(weight)  # whole on every GPU, used on its part of the rows

    def forward(self, x, share):
        rows = share.rows
        if self.first is not None:
            rows = len(x)
            x = self.first(parallel.scatter_rows(x, self.gpus) if self.parts else x)
        for block in self.blocks:
            x = block(x, rows)
        if self.last is None:
            return x
        return self.last(parallel.gather_rows(x, self.gpus, rows, alike=True) if self.parts else x)


def split(assignment, unit):
    rows = []
    for sample in assignment["replicas"][unit.replica]["microbatches"][unit.microbatch]["samples"]:
        first, end = sample["rows"]
        generator = torch.Generator().manual_seed(sum(sample["id"].encode()))
        rows.append(torch.randn(2, end - first, CHANNELS, generator=generator))
    noise, latents = torch.cat(rows, 1)
    return (noise + latents) / 2 if unit.purpose == "input" else noise - latents


plan = sys.argv[1]
dist.init_process_group("gloo")
assignment = json.load(open(f"{plan}/assignment.json"))
ranks = read_actions(f"{plan}/replica-000/actions.json").ranks
mesh = init_device_mesh("cpu", (len(assignment["replicas"]), ranks, dist.get_world_size() // ranks //
                                len(assignment["replicas"])), mesh_dim_names=("replica", "rank", "gpu"))
replica, rank, gpu = mesh.get_coordinate()
gpus = mesh.get_group("gpu")
actions = read_actions(f"{plan}/replica-{replica:03}/actions.json")
chunks = {number: Chunk(stage, gpus, actions.sequence_parallel and stage.tp > 1)
          for number, stage in actions.on_rank(rank).items()}
executor = Executor(actions, chunks, split, mse_loss, inner=gpus, group=mesh.get_group("rank"),
                    replicas=mesh.get_group("replica"), dtype=torch.float32)
optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 1e-3)
for step in range(3):
    result = executor.step(assignment, seed=step)
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"step {step}: loss {result.loss:.3f}")
dist.destroy_process_group()
