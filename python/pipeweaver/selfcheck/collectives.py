"""Collectives of two ranks, as a table of `pipeweaver costdb import`. Sizes are those of nccl-tests: the whole message,
which all ranks have together after an all-gather and before a reduce-scatter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist

Rows = list[list[str]]
HEADER = ["collective", "dtype", "gpus", "message_bytes", "latency_us", "spread_percent"]
SIZES: Mapping[str, Sequence[int]] = {"gpu": [1 << 16, 1 << 20, 1 << 24, 1 << 28], "cpu": [1 << 10, 1 << 16]}
_warm, _timed = 3, 11


def measured(device: torch.device, sizes: Sequence[int]) -> Rows:
    """A row for each collective and size, all ranks together. Times are those of this rank."""
    ranks = dist.get_world_size()
    rows: Rows = []
    for size in sizes:
        values = size // 2
        whole = torch.ones(values, dtype=torch.bfloat16, device=device)
        part = torch.ones(values // ranks, dtype=torch.bfloat16, device=device)
        runs: dict[str, Callable[[], object]] = {
            "all_reduce": lambda whole=whole: dist.all_reduce(whole),  # type: ignore[misc]
            "all_gather": lambda whole=whole, part=part: dist.all_gather_into_tensor(whole, part),  # type: ignore[misc]
            "reduce_scatter": lambda whole=whole, part=part: dist.reduce_scatter_tensor(  # type: ignore[misc]
                part, whole),
        }
        for name, run in runs.items():
            times = [_seconds(device, run) for _ in range(_warm + _timed)][_warm:]
            middle = statistics.median(times)
            spread = 100 * (sorted(times)[-2] - sorted(times)[1]) / 2 / middle
            rows.append([name, "bf16", str(ranks), str(size), f"{1e6 * middle:.3f}", f"{max(spread, 0.1):.1f}"])
    return rows


def meet(device: torch.device) -> None:
    """Waits for all ranks. NCCL is told the device: it would guess one by the rank's number."""
    dist.barrier(device_ids=[device.index] if dist.get_backend() == "nccl" else None)


def _seconds(device: torch.device, run: Callable[[], object]) -> float:
    meet(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begun = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun
