"""What the machine does alone: its rate in products, its bandwidths, what a launch costs, a loss eager and compiled."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..profiling.machine import Machine
from ..profiling.timing import Measurement, Run, measure
from ..torch.failures import one_line
from .folder import Work
from .steps import token_loss

_sizes: Mapping[str, Mapping[str, int]] = {
    "gpu": {"product": 8192, "copy": 1 << 30, "launches": 1000, "rows": 8192, "columns": 32768},
    "cpu": {"product": 256, "copy": 1 << 22, "launches": 50, "rows": 64, "columns": 512},
}


def run(work: Work) -> None:
    """The part "machine"."""
    machine = Machine(work.device)
    sizes = _sizes[work.scale]
    seconds = work.left_s() / 12
    on_gpu = (_free, _to_device, _from_device, _launches) if machine.is_gpu else ()
    for what in (*on_gpu[:1], _product, _copy, *on_gpu[1:], _loss, *((_fused_loss,) if machine.is_gpu else ())):
        try:
            rows = what(machine, sizes, seconds)
        except Exception as error:  # the others may well run
            rows = [{"what": what.__name__.strip("_").replace("_", " "), "why": one_line(error)[:300]}]
        for row in rows:
            work.add(row)


def _row(what: str, value: float, unit: str, time: Measurement) -> dict[str, Any]:
    return {"what": what, "value": float(f"{value:.5g}"), "unit": unit, "spread_percent": round(time.spread_percent, 2)}


def _timed(machine: Machine, seconds: float, run: Run) -> Measurement:
    return measure(machine.clock(), run, seconds)


def _free(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    """What other processes have left."""
    free, total = torch.cuda.mem_get_info(machine.device)
    return [{"what": f"memory that is free, of {total / 2**30:.1f} GiB", "value": free / 2**30, "unit": "GiB"}]


def _product(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    n = sizes["product"]
    a, b = (torch.randn(n, n, dtype=torch.bfloat16, device=machine.device) for _ in range(2))
    time = _timed(machine, seconds, lambda: torch.mm(a, b))
    return [_row(f"bf16 product of {n} x {n} x {n}", 2 * n**3 / time.median_us / 1e6, "TFLOP/s", time)]


def _copy(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    a = torch.empty(sizes["copy"], dtype=torch.int8, device=machine.device).random_(-9, 9)
    b = torch.empty_like(a)
    time = _timed(machine, seconds, lambda: b.copy_(a))
    return [_row("copy on the device, read and written", 2 * sizes["copy"] / time.median_us / 1e3, "GB/s", time)]


def _to_device(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    return _over_the_bus(machine, sizes, seconds, to_device=True)


def _from_device(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    return _over_the_bus(machine, sizes, seconds, to_device=False)


def _over_the_bus(machine: Machine, sizes: Mapping[str, int], seconds: float, to_device: bool) -> list[dict[str, Any]]:
    size = sizes["copy"] // 4
    host = torch.ones(size, dtype=torch.int8).pin_memory()
    there = torch.empty(size, dtype=torch.int8, device=machine.device)
    into, source = (there, host) if to_device else (host, there)
    time = _timed(machine, seconds, lambda: into.copy_(source, non_blocking=True))
    name = "host to device" if to_device else "device to host"
    return [_row(f"{name}, pinned", size / time.median_us / 1e3, "GB/s", time)]


def _launches(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    """Kernels of next to no work, one after the other: by the host, and as one CUDA graph."""
    x, count = torch.zeros(64, device=machine.device), sizes["launches"]

    def launch() -> None:
        for _ in range(count):
            x.add_(1.0)

    launch()
    torch.cuda.synchronize(machine.device)
    samples = []
    for _ in range(5):
        begun = time.perf_counter()
        launch()
        samples.append((time.perf_counter() - begun) / count * 1e6)
        torch.cuda.synchronize(machine.device)
    eager = Measurement(statistics.median(samples), 100 * (max(samples) - min(samples)) / 2 / min(samples), 5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # on a stream of its own, after what was launched
        launch()
    replayed = _timed(machine, seconds, graph.replay)
    return [_row("launch by the host", eager.median_us, "us a kernel", eager),
            _row("launch in a CUDA graph", replayed.median_us / count, "us a kernel", replayed)]


def _loss(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    return _losses(machine, sizes, seconds, "eager", token_loss)


def _fused_loss(machine: Machine, sizes: Mapping[str, int], seconds: float) -> list[dict[str, Any]]:
    """Apart: without Triton or a compiler of C there is none."""
    return _losses(machine, sizes, seconds, "compiled", torch.compile(token_loss, dynamic=False))


def _losses(machine: Machine, sizes: Mapping[str, int], seconds: float, name: str,
            loss: Callable[..., torch.Tensor]) -> list[dict[str, Any]]:
    rows, columns = sizes["rows"], sizes["columns"]
    logits = torch.randn(1, rows, columns, dtype=torch.bfloat16, device=machine.device).requires_grad_()
    target = torch.randint(0, columns, (1, rows), device=machine.device)

    def both() -> object:
        return torch.autograd.grad(loss(logits, target), logits)

    both()  # compiles
    time = _timed(machine, seconds, both)
    return [_row(f"cross entropy of {rows} x {columns}, forward and backward, {name}", time.median_us / 1e3, "ms",
                 time)]
