#!/usr/bin/env python3
"""Trains a small language model under plain DistributedDataParallel, its samples packed and shared out by a data plan.

    torchrun --nproc-per-node 2 examples/train_ddp_sampler.py [--steps 40] [--checkpoint FILE]

With --checkpoint it may be killed at any time, and goes on from the last step that was saved.
"""

import argparse
import multiprocessing
import os
import pathlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from pipeweaver.data import Costs, EpochSteps, Quadratic, Sizes, StageCosts
from pipeweaver.torch.sampler import BalancedBatchSampler

SAMPLES, SAMPLES_PER_STEP, BUDGET, WORDS, SEED = 320, 16, 256, 64, 7
COSTS = Costs((StageCosts(Quadratic(0.02, 1.0, 20.0)),))  # pipeweaver.data.coefficients has those of real models


class Texts(Dataset):
    """Texts of 4 to 131 tokens; the first quarter of each is a prompt, without a loss. Every 40th has no loss."""

    def __init__(self):
        numbers = torch.Generator().manual_seed(SEED)
        self.lengths = (4 + 127 * torch.rand(SAMPLES, generator=numbers) ** 3).long().tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, place):
        length = self.lengths[place]
        tokens = (torch.arange(length + 1) * (1 + place % 5) + place) % WORDS
        has_loss = (torch.arange(length) >= length // 4) & (place % 40 != 0)
        return {"place": place, "inputs": tokens[:-1], "labels": tokens[1:], "has_loss": has_loss}

    def sizes(self):
        losses = [int(self[place]["has_loss"].sum()) for place in range(len(self))]
        return Sizes(self.lengths, loss_tokens=losses)


def packed(samples):
    """One sequence of all, and which samples it has."""
    places = [sample.pop("place") for sample in samples]
    return places, {key: torch.cat([sample[key] for sample in samples]) for key in samples[0]}


def model():
    torch.manual_seed(SEED)
    layers = [torch.nn.Embedding(WORDS, 16), torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, WORDS)]
    return torch.nn.Sequential(*layers).double()


def mean_loss(network, batch):
    """Over the tokens that have a loss; 0 where none has."""
    losses = torch.nn.functional.cross_entropy(network(batch["inputs"]), batch["labels"], reduction="none")
    return (losses * batch["has_loss"]).sum() / batch["has_loss"].sum().clamp(min=1)


def saved(file, network, optimizer, sampler, done):
    """Under another name first: a kill leaves the one before."""
    state = {"model": network.state_dict(), "optimizer": optimizer.state_dict(), "sampler": sampler.state_dict()}
    torch.save({**state, "done": done}, f"{file}.new")
    os.replace(f"{file}.new", file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    options = parser.parse_args()
    multiprocessing.set_forkserver_preload(["torch", "pipeweaver.torch.sampler"])  # once, not in every worker
    dist.init_process_group("gloo")
    replica, replicas = dist.get_rank(), dist.get_world_size()
    texts = Texts()
    sampler = BalancedBatchSampler(
        lambda: EpochSteps(texts.sizes(), replicas, SAMPLES_PER_STEP, budget=BUDGET, costs=COSTS, seed=SEED), replica)
    network = DistributedDataParallel(model())
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    done = 0
    if options.checkpoint and options.checkpoint.exists():
        state = torch.load(options.checkpoint)
        network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])
        done = state["done"]

    while done < options.steps:
        # Not forked from here: a thread of gloo may hold a lock at that moment, which the worker waits for without end.
        batches = iter(DataLoader(texts, batch_sampler=sampler, collate_fn=packed, num_workers=2,
                                  multiprocessing_context="forkserver"))
        for step in sampler.steps():
            loss, trained = torch.zeros((), dtype=torch.double), []
            for number, microbatch in enumerate(step):
                places, batch = next(batches)
                trained += places
                network.require_backward_grad_sync = number == len(step) - 1
                part = mean_loss(network, batch) * microbatch.loss_weight
                (part * replicas).backward()  # DDP takes the mean over replicas
                loss += part.detach()
            optimizer.step()
            optimizer.zero_grad()
            dist.all_reduce(loss)
            done += 1
            line = f"replica {replica} step {done} loss {loss.item():.15g} samples {sorted(trained)}\n"
            print(line, end="", flush=True)  # in one piece beside other replicas'
            if options.checkpoint and replica == 0 and done % 10 == 0:
                saved(options.checkpoint, network, optimizer, sampler, done)
            if done == options.steps:
                break
        else:
            sampler.set_epoch(sampler.epoch + 1)
    del batches, network, optimizer  # their threads and hooks end before the group that they use
    dist.barrier()  # gloo's threads let go of tensors, for which they need the interpreter, before they are joined
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
