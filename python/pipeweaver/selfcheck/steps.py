"""Steps on one GPU: three stacks in bf16 (on a CPU in fp32) under FSDP2, eager and compiled, with every recomputation.

FSDP2 over one rank is what `--recipe torch-fsdp2` and `torch-fsdp2-eager` stand for where there is one: weights,
gradients and Adam's moments in fp32, passes in bf16 on weights that are gathered for each block. A step is two
microbatches, forward and backward each, and Adam. The first steps are not timed.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional

from ..torch.failures import one_line
from .cases import MICROBATCHES, RECOMPUTATIONS, SCALES, Stack, stacks
from .folder import Work
from .networks import Diffusion, Vlm, initialised, wrapped

Tensor = torch.Tensor
_warm, _fewest, _most = 2, 3, 7  # steps
_compiling_s = 45.0  # so long at least, before the first has said it
_share_of_left = 0.25  # of the time that is left, what the timed steps of one case may take


@dataclass(frozen=True)
class Case:
    stack: Stack
    how: str  # eager, compiled
    recompute: str

    def __str__(self) -> str:
        return f"{self.stack.name} {self.how} {self.recompute}"


def cases(scale: str) -> list[Case]:
    """What tells most comes first: all eager, then, on a GPU, compiled with the least and with the most memory."""
    found = stacks(SCALES[scale])
    eager = [Case(stack, "eager", recompute) for recompute in RECOMPUTATIONS for stack in found]
    compiled = [Case(stack, "compiled", recompute) for recompute in ("none", "full", "selective") for stack in found]
    return eager + (compiled if scale == "gpu" else [])


def run(work: Work) -> None:
    """The part "steps"."""
    device = torch.device(work.device)
    _one_rank(device)
    try:
        _all(work, device)
    finally:
        dist.destroy_process_group()


def _all(work: Work, device: torch.device) -> None:
    longest = {"eager": 0.0, "compiled": _compiling_s}
    for case in cases(work.scale):
        begun = time.monotonic()
        if work.left_s() < 1.5 * longest[case.how]:
            work.leave(str(case))
            continue
        row: dict[str, Any] = {"stack": case.stack.name, "how": case.how, "recompute": case.recompute}
        try:
            row |= measured(case, device, work.left_s())
        except torch.OutOfMemoryError as error:
            row |= {"why": one_line(error)[:300], "out_of_memory": True}
        except Exception as error:  # the other cases may well run
            row["why"] = one_line(error)[:300]
        if "out_of_memory" in row:  # outside, where the error holds none of its tensors
            _let_go(device)
            row["free_bytes"] = torch.cuda.mem_get_info(device)[0]
        work.add(row)
        longest[case.how] = max(longest[case.how], time.monotonic() - begun)


def _one_rank(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_device(device)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")  # a rank alone needs no network
        os.environ.setdefault("NCCL_IB_DISABLE", "1")
    backend = "nccl" if device.type == "cuda" else "gloo"
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=0, world_size=1)


def measured(case: Case, device: torch.device, left_s: float) -> dict[str, Any]:
    """Seconds of the case's steps, and what they held at their peak. Raises what PyTorch raises."""
    _let_go(device)
    base = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    step, weights = _step(case, device)
    first = step()
    for _ in range(_warm - 1):
        step()
    _wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds, issued = _timed(step, device, _share_of_left * left_s)
    row: dict[str, Any] = {"seconds": round(statistics.median(seconds), 6), "fastest_s": round(min(seconds), 6),
                           "slowest_s": round(max(seconds), 6), "steps": len(seconds),
                           "issued_s": round(statistics.median(issued), 6), "loss": first, "parameters": weights}
    if device.type == "cuda":
        row["before_bytes"] = base
        row["allocated_bytes"] = torch.cuda.max_memory_allocated(device) - base
        row["reserved_bytes"] = torch.cuda.max_memory_reserved(device)
    return row


def _timed(step: _Step, device: torch.device, budget_s: float) -> tuple[list[float], list[float]]:
    """Of each step: what it took, and after what time the host had launched all of it."""
    seconds: list[float] = []
    issued: list[float] = []
    begun = time.perf_counter()
    while len(seconds) < _fewest or (len(seconds) < _most and time.perf_counter() - begun < budget_s):
        start = time.perf_counter()
        step.launch()
        issued.append(time.perf_counter() - start)
        _wait(device)
        seconds.append(time.perf_counter() - start)
    return seconds, issued


class _Step:
    """Two microbatches and Adam. Called: also the loss of the first, which waits for the GPU."""

    def __init__(self, model: torch.nn.Module, data: list[tuple[Tensor, ...]], loss: Callable[..., Tensor],
                 adam: torch.optim.Optimizer) -> None:
        self.model, self.data, self.loss, self.adam = model, data, loss, adam

    def launch(self) -> Tensor:
        first: Tensor | None = None
        for *inputs, target in self.data:
            loss = self.loss(self.model(*inputs), target) / len(self.data)
            first = loss.detach() if first is None else first
            loss.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        self.adam.zero_grad()
        assert first is not None
        return first

    def __call__(self) -> float:
        value = float(self.launch()) * len(self.data)
        if not math.isfinite(value):
            raise ValueError(f"the loss is {value}")
        return value


def _step(case: Case, device: torch.device) -> tuple[_Step, int]:
    """The case, ready to run, and its parameters."""
    torch.manual_seed(0)
    with torch.device(device):
        model = initialised(network(case.stack))
        data = batches(case.stack)
    parameters = sum(weight.numel() for weight in model.parameters())
    policy = MixedPrecisionPolicy(param_dtype=numbers_on(device), reduce_dtype=torch.float32)
    for block in wrapped(model, case.recompute, case.how == "compiled"):
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    loss: Callable[..., Tensor] = token_loss if isinstance(model, Vlm) else flow_loss
    if case.how == "compiled":
        loss = torch.compile(loss, dynamic=False)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    return _Step(model, data, loss, adam), parameters


def numbers_on(device: torch.device) -> torch.dtype:
    """Of passes: bf16, but on a CPU, few of which have products of it."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def network(stack: Stack) -> Vlm | Diffusion:
    """The stack's modules, on the device that is the default."""
    if stack.name == "dit":
        return Diffusion(stack.architecture("dit"), stack.batch[0]["videos"][0]["tokens"])
    names = [module["name"] for module in stack.model["modules"]]
    vit = stack.architecture("vit") if "vit" in names else None
    return Vlm(stack.architecture("llm"), stack.model["microbatch_tokens"], vit)


def batches(stack: Stack) -> list[tuple[Tensor, ...]]:
    """Of each microbatch: the model's inputs and what the loss compares with, drawn on the default device."""
    count = len(stack.batch) // MICROBATCHES
    return [_microbatch(stack, stack.batch[number * count:(number + 1) * count]) for number in range(MICROBATCHES)]


def _microbatch(stack: Stack, samples: list[dict[str, Any]]) -> tuple[Tensor, ...]:
    if stack.name == "dit":
        dit, positions = stack.architecture("dit"), samples[0]["videos"][0]["tokens"]
        latents = torch.randn(len(samples), positions, dit["in_channels"])
        text = torch.randn(len(samples), dit["text_tokens"], dit["condition_dim"])
        return latents, text, torch.randn_like(latents)
    images = sum(len(sample.get("images", [])) for sample in samples)
    side = samples[0]["images"][0]["width"] // 14 if images else 0
    positions = samples[0]["text_tokens"] + images // len(samples) * side * side // 4
    tokens = torch.randint(0, stack.architecture("llm")["vocab"], (len(samples), positions))
    seen = (torch.randn(images, side * side, 3 * 14 * 14),) if images else ()
    return tokens, *seen, tokens.roll(-1, dims=1)


def token_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross entropy over logits in fp32, as eager PyTorch takes it."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), target.flatten())


def flow_loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.mse_loss(output.float(), target)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _let_go(device: torch.device) -> None:
    """Of the case before."""
    torch.compiler.reset()
    gc.collect()
    gc.collect()  # what the finalisers of the first have let go
    _wait(device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
