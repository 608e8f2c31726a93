#!/usr/bin/env python3
"""Trains a small ViT + LLM in PyTorch's own pipeline runtime, torch.distributed.pipelining, by the torch/ folder of a
plan (docs/pytorch-pipelining.md has the command that makes it).

    torchrun --nproc-per-node RANKS x REPLICAS examples/train_vlm_pipelining.py PLAN [--steps 3] [--device cpu|cuda]

One process a rank. Every microbatch has the shape of padding.json: `items` images of `item_patches` patches and a row
of `tokens`. Images are noise, texts count up from a number that the sample's name gives.
"""

import argparse
import functools
import json
import os
import pathlib
import re

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.utils.checkpoint import create_selective_checkpoint_contexts
from vlm_parts import MERGE, PATCH, VOCABULARY, WIDTH

from pipeweaver.torch import load_schedule

HEADS, LAYERS = 2, {"vit": 4, "llm": 4}


class Layer(torch.nn.Module):
    """A transformer layer over [batch, rows, width]; `seen` says which rows a row attends to."""

    def __init__(self, width):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.feed = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                        torch.nn.Linear(4 * width, width))

    def forward(self, x, seen):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2))
        return x + self.feed(self.norms[1](x))


class Part(torch.nn.Module):
    """The layers of one module on a stage, with the embedding, projector or head at the module's ends."""

    def __init__(self, module, first_layer, layers):
        super().__init__()
        width, vit = WIDTH[module], module == "vit"
        self.vit, self.first, self.last = vit, None, None
        self.layers = torch.nn.ModuleList()
        for layer in range(first_layer, first_layer + layers):
            torch.manual_seed(100 * vit + layer)  # the same on all replicas, and in every cut
            self.layers.append(Layer(width))
        torch.manual_seed(100 * vit + LAYERS[module])
        if first_layer == 0:
            self.first = torch.nn.Linear(PATCH, width) if vit else torch.nn.Embedding(VOCABULARY, width)
        if first_layer + layers == LAYERS[module]:
            self.last = torch.nn.Linear(width * MERGE, WIDTH["llm"]) if vit else torch.nn.Linear(width, VOCABULARY)

    def forward(self, x, tokens, samples, places, patches):
        if self.vit:  # [1, items, item_patches, width]
            return self.images(x, patches)
        if self.first is not None:  # x has the ViT's rows
            text, rows = self.first(tokens), x.flatten(1, -2)
            images = rows.gather(1, places.clamp(min=0)[..., None].expand(-1, -1, rows.shape[-1]))
            x = torch.where(places[..., None] >= 0, images, text)
        same = samples[:, :, None] == samples[:, None, :]
        seen = (same & torch.ones_like(same).tril())[:, None]
        for layer in self.layers:
            x = layer(x, seen)
        return x if self.last is None else self.last(x)

    def images(self, x, patches):
        x = (x if self.first is None else self.first(x)).squeeze(0)
        # A place without an image attends to its first row: to none at all would give no numbers.
        seen = torch.arange(x.shape[1], device=x.device) < patches.squeeze(0).clamp(min=1)[:, None]
        for layer in self.layers:
            x = layer(x, seen[:, None, None])
        x = x[None]
        return x if self.last is None else self.last(x.unflatten(2, (-1, MERGE)).flatten(3))


class Stage(torch.nn.Module):
    """One of the plan's stages: a part of the ViT, of the LLM, or the end of one and the beginning of the other."""

    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(Part(**part) for part in parts)

    def forward(self, x, **known):
        for part in self.parts:
            x = part(x, **known)
        return x.clone()  # where backwards are split PyTorch detaches it in place, which no view can be


ATEN = torch.ops.aten
PRODUCTS = [ATEN.mm.default, ATEN.addmm.default, ATEN._scaled_dot_product_flash_attention_for_cpu.default,
            ATEN._scaled_dot_product_efficient_attention.default, ATEN._scaled_dot_product_flash_attention.default,
            ATEN._scaled_dot_product_cudnn_attention.default]


def setting_of(padding, rank):
    """What is computed again on a pipeline rank: none, selective, half, full or blocks:N."""
    return padding["recompute_of_ranks"][rank] if padding["recompute"] == "by-rank" else padding["recompute"]


def recomputed(stage, setting, splits_backwards):
    """The stage, with checkpoints round the layers that are computed again: all, the first half of the stage's, or the
    first N of each part. `selective` keeps what products and attentions give; PyTorch refuses it where backwards are
    split, so that there layers are computed again whole."""
    how = {"checkpoint_impl": CheckpointImpl.NO_REENTRANT}
    if setting == "selective" and not splits_backwards:
        how["context_fn"] = functools.partial(create_selective_checkpoint_contexts, PRODUCTS)
    layers = [len(part.layers) for part in stage.parts]
    left = {"none": 0, "half": (sum(layers) + 1) // 2}.get(setting, sum(layers))
    each = int(setting.removeprefix("blocks:")) if setting.startswith("blocks:") else sum(layers)
    for part in stage.parts:
        again = min(len(part.layers), left, each)
        left -= again
        for number in range(again):
            part.layers[number] = checkpoint_wrapper(part.layers[number], **how)
    return stage


def filled(microbatch, shape):
    """A microbatch as tensors of the padded shape."""
    rows, items, most = shape["tokens"], shape["items"], shape["item_patches"]
    tokens, samples, places = torch.zeros(rows, dtype=torch.long), torch.full((rows,), -1), torch.full((rows,), -1)
    pixels, patches = torch.zeros(items, most, PATCH), torch.zeros(items, dtype=torch.long)
    target = torch.zeros(rows, 2)  # the next token, and what it weighs in the loss
    free = {}
    for number, sample in enumerate(microbatch["samples"]):
        first, end = sample["rows"]
        samples[first:end] = number
        tokens[first:end] = (sum(sample["id"].encode()) + torch.arange(end - first)) % VOCABULARY
        target[first:end, 0] = tokens[first:end].roll(-1)
        target[first:end, 1] = 1
        free[sample["id"]] = first
    # Units are of "vit", or of "vit+llm" where the plan's own partition is one chain, too.
    images = sorted((item for unit in microbatch["units"] for item in unit["items"]),
                    key=lambda item: (item["sample"], item["item"]))
    for number, item in enumerate(images):
        count, begin = item["rows"][1] - item["rows"][0], free[item["sample"]]
        noise = torch.Generator().manual_seed(1000 * sum(item["sample"].encode()) + item["item"])
        pixels[number, :count], patches[number] = torch.randn(count, PATCH, generator=noise), count
        places[begin:begin + item["tokens"]] = number * (most // MERGE) + torch.arange(item["tokens"])
        target[begin:begin + item["tokens"], 1] = 0  # the loss is of text
        free[item["sample"]] += item["tokens"]
    target[:, 1] *= microbatch["loss_weight"] / max(1, target[:, 1].sum())
    return {"pixels": pixels, "tokens": tokens, "samples": samples, "places": places, "patches": patches,
            "target": target}


def batch_of(assignment, replica, said, shape, device):
    """All microbatches of a replica, one behind the other; the last one once more, for no loss, where others have
    more."""
    own = assignment["replicas"][replica]["microbatches"]
    again = {**own[-1], "loss_weight": 0}
    all_filled = [filled(own[m] if m < len(own) else again, shape) for m in said["microbatch_order"]]
    return {name: torch.stack([one[name] for one in all_filled]).to(device) for name in all_filled[0]}


def loss(output, target):
    losses = F.cross_entropy(output.flatten(0, 1), target[..., 0].flatten().long(), reduction="none")
    return (losses * target[..., 1].flatten()).sum()


def require_processes(replicas, ranks):
    """Ends with one line where torchrun started another number."""
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started != replicas * ranks:
        raise SystemExit(f"the plan has {replicas} replicas of {ranks} pipeline ranks: start {replicas * ranks} "
                         f"processes, not {started} (torchrun --nproc-per-node)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    said, shape = (json.loads((options.plan / "torch" / name).read_text())
                   for name in ("schedule.json", "padding.json"))
    assignment = json.loads((options.plan / "assignment.json").read_text())
    require_processes(len(assignment["replicas"]), said["pp_size"])
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]) if options.device == "cuda" else None)
    if options.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")
    mesh = init_device_mesh(options.device, (len(assignment["replicas"]), said["pp_size"]),
                            mesh_dim_names=("replica", "rank"))
    replica, rank = mesh.get_coordinate()

    mine = [stage for stage in said["stages"] if stage["rank"] == rank]
    splits = re.search(r"\dI\d", (options.plan / "torch" / "schedule.csv").read_text()) is not None
    modules = [recomputed(Stage(stage["parts"]), setting_of(shape, rank), splits).to(device) for stage in mine]
    stages = [PipelineStage(module, stage["stage"], said["num_stages"], device, group=mesh.get_group("rank"))
              for module, stage in zip(modules, mine)]
    schedule = _PipelineScheduleRuntime(stages, said["n_microbatches"], loss_fn=loss, scale_grads=False)
    load_schedule(schedule, options.plan / "torch", messages=True)
    weights = [weight for module in modules for weight in module.parameters()]
    optimizer = torch.optim.AdamW(weights, 1e-3)
    batch = batch_of(assignment, replica, said, shape, device)
    pixels, target = batch.pop("pixels"), batch.pop("target")
    has = {stage["stage"] for stage in mine}
    for step in range(options.steps):
        losses = []
        schedule.step(*([pixels] if 0 in has else []), losses=losses,
                      target=target if said["num_stages"] - 1 in has else None, **batch)
        for weight in weights:
            dist.all_reduce(weight.grad, group=mesh.get_group("replica"))
        optimizer.step()
        optimizer.zero_grad()
        total = torch.stack(losses).sum() if losses else torch.zeros((), device=device)
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"step {step}: loss {total:.4f}", flush=True)
    dist.barrier()  # gloo's threads let go of tensors, for which they need the interpreter, before they are joined
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
