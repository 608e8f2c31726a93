#!/usr/bin/env python3
"""Trains a small ViT + LLM with a layout for each module, PP 2 x 2 GPUs: the LLM tensor parallel with sequence
parallelism, the ViT whole on each GPU, which share the images of a unit or split them.

    torchrun --nproc-per-node 4 examples/train_module_layouts.py [--steps 6] [--device cpu|cuda]

One plan is made for one batch, and run again and again. CPU ranks talk over gloo, GPUs over NCCL.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
import vlm_parts as vlm

from pipeweaver.torch import Executor, actions_of, parallel

GPUS, HEADS = 2, 2


def plan():
    """assignment.json and the lists of the one replica."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "batch.jsonl").write_text("".join(json.dumps(one) + "\n" for one in vlm.draw_batch(0)))
        subprocess.run(["pipeweaver", "plan", "--model", vlm.MODEL_FILE, "--cluster", "h100-sxm:4", "--tp", str(GPUS),
                        "--pp", "2", "--batch", folder / "batch.jsonl", "--partition", "dip", "--module-tp",
                        "vit=1:hybrid", "--replicas", "0", "--max-rounds", "2", "--out", folder / "plan"], check=True,
                       stdout=subprocess.DEVNULL)
        return [json.loads((folder / "plan" / one).read_text())
                for one in ("assignment.json", "replica-000/actions.json")]


class Layer(torch.nn.Module):
    """A transformer layer, tensor parallel over `group`; `attend` has the sequences."""

    def __init__(self, width, group, parts):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        for weight in self.norms.parameters() if parts else ():
            parallel.of_parts(weight)
        self.width = width // HEADS
        self.qkv = torch.nn.ModuleList(parallel.ColumnParallel(width, width, group, parts) for _ in range(3))
        self.out = parallel.RowParallel(width, width, group, parts)
        self.up = parallel.ColumnParallel(width, 4 * width, group, parts)
        self.down = parallel.RowParallel(4 * width, width, group, parts)

    def forward(self, x, rows, attend):
        normed = self.norms[0](x)
        q, k, v = (one(normed, rows).unflatten(1, (-1, self.width)) for one in self.qkv)
        x = x + self.out(attend(q, k, v).flatten(1))
        return x + self.down(F.gelu(self.up(self.norms[1](x), rows)))


def causal(q, k, v):
    q, k, v = (one.transpose(0, 1) for one in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1)


class Chunk(torch.nn.Module):
    """One of the plan's stages. `groups`: this GPU's copy, and its number in all copies."""

    def __init__(self, stage, groups, parts):
        super().__init__()
        part = stage.parts[0]
        torch.manual_seed(stage.stage)  # the same on all GPUs: each keeps its part
        self.vit, self.groups, self.parts = part.module == "vit", groups, parts
        width = vlm.WIDTH[part.module]
        self.blocks = torch.nn.ModuleList(Layer(width, groups[0], parts) for _ in range(part.layers))
        self.first = self.last = None
        if part.first_layer == 0:
            self.first = torch.nn.Linear(vlm.PATCH, width) if self.vit else torch.nn.Embedding(vlm.VOCABULARY, width)
            for weight in self.first.parameters() if parts else ():
                parallel.of_parts(weight)
        if part.first_layer + part.layers == 4:
            self.last = torch.nn.Linear(width * vlm.MERGE if self.vit else width,
                                        vlm.WIDTH["llm"] if self.vit else vlm.VOCABULARY)

    def forward(self, x, others=None, share=None):
        rows = share.rows
        if self.first is not None:
            tokens, places = x if isinstance(x, tuple) else (x, None)
            rows, x = len(tokens), self.first(tokens)
            if others and others["vit"]:
                x = x.index_copy(0, places, torch.cat(others["vit"]))
            x = parallel.scatter_rows(x, self.groups[0]) if self.parts else x

        def among_images(q, k, v):
            return parallel.shared_attention(q, k, v, share, self.groups[1])

        for block in self.blocks:
            x = block(x, rows, among_images if self.vit else causal)
        if self.last is None:
            return x
        x = parallel.gather_rows(x, self.groups[0], rows, alike=True) if self.parts else x
        return self.last(x.reshape(-1, self.last.in_features))


def split(batch, unit):
    """A copy gets the patches of its pieces; vlm_parts has the rest."""
    if unit.pieces is None:
        return vlm.split(batch, unit)
    return torch.randn(sum(piece.rows for piece in unit.pieces), vlm.PATCH, device=batch.device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]) if options.device == "cuda" else None)
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
    rank, gpu = divmod(dist.get_rank(), GPUS)
    inners = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    pipelines = [dist.new_group([0, 2]), dist.new_group([1, 3])]

    shared = [plan() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(shared, src=0, device=device)
    assignment, lists = shared[0]
    actions = actions_of(lists)
    groups = {tp: parallel.inner_groups(inners[rank], tp) for tp in (1, GPUS)}
    chunks = {number: Chunk(stage, groups[stage.tp], actions.sequence_parallel and stage.tp > 1).to(device)
              for number, stage in actions.on_rank(rank).items()}
    executor = Executor(actions, chunks, split, vlm.loss, inner=inners[rank], group=pipelines[gpu], device=device,
                        dtype=torch.float32)
    optimizer = torch.optim.AdamW([weight for chunk in chunks.values() for weight in chunk.parameters()], 3e-3)
    for step in range(options.steps):
        result = executor.step(vlm.Batch(assignment, device), seed=step)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {result.loss:.4f}, {1e3 * result.seconds:.0f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
