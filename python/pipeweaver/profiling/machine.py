"""The machine at hand, and its clock."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import torch

from ..errors import InputError
from .timing import Clock, CpuClock, Run

_flushed_bytes = 256 << 20  # more than the second-level cache of any GPU
_cycles_per_s = 2e9  # of a GPU, about
_least_sleep_cycles, _most_sleep_cycles = 100_000, 50_000_000  # some 50 us and 25 ms


class CudaClock(CpuClock):
    """Events of a GPU. Its caches are emptied before each repetition. While the host launches, the GPU sleeps, half as
    long again as the launches before took: they do not count. Where it woke too early the repetition is done again."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffer = torch.empty(_flushed_bytes, dtype=torch.int8, device=device)
        self._cycles = _least_sleep_cycles

    def sample(self, run: Run) -> float:
        while True:
            cycles = self._cycles
            microseconds, launched_s, late = self._sample(run, cycles)
            wanted = max(int(1.5 * _cycles_per_s * launched_s), 2 * cycles if late else 0)
            self._cycles = min(max(_least_sleep_cycles, wanted), _most_sleep_cycles)
            if not late or cycles == _most_sleep_cycles:
                return microseconds

    def _sample(self, run: Run, cycles: int) -> tuple[float, float, bool]:
        """Microseconds, seconds of the launches, and whether the GPU woke before they were done."""
        stream = torch.cuda.current_stream(self._device)
        begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._buffer.zero_()
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        begin.record(stream)
        begun = time.perf_counter()
        run()
        launched_s = time.perf_counter() - begun
        late = bool(begin.query())  # type: ignore[no-untyped-call]
        end.record(stream)
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3, launched_s, late


class Machine:
    """A device of PyTorch. Raises InputError where it is not there."""

    def __init__(self, name: str) -> None:
        try:
            self.device = torch.device(name)
        except RuntimeError:
            raise InputError(f"--device: is {name!r}, must be cpu or cuda:N") from None
        if self.device.type not in ("cpu", "cuda"):
            raise InputError(f"--device: is {name!r}, must be cpu or cuda:N")
        if self.device.type == "cuda" and (self.device.index or 0) >= torch.cuda.device_count():
            raise InputError(f"--device: is {name!r}, PyTorch sees {torch.cuda.device_count()} CUDA devices")
        # With its number, which "cuda" leaves out and PyTorch asks for; a CPU has none.
        self.device = torch.device("cuda", self.device.index or 0) if self.is_gpu else torch.device("cpu")

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    def clock(self) -> Clock:
        return CudaClock(self.device) if self.is_gpu else CpuClock()

    def free_bytes(self) -> int:
        if self.is_gpu:
            kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            return int(torch.cuda.mem_get_info(self.device)[0]) + kept  # what PyTorch keeps for itself is free, too
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def alike(self) -> list[torch.device]:
        """The GPUs of the same name, this one first; none on a CPU."""
        if not self.is_gpu:
            return []
        own, count = self.device.index, torch.cuda.device_count()
        name = torch.cuda.get_device_name(own)
        others = [(own + k) % count for k in range(count)]
        return [torch.device("cuda", other) for other in others if torch.cuda.get_device_name(other) == name]

    def is_like(self, device: str) -> bool:
        """Whether the GPU's name holds that of a device of pipeweaver, "h100" of "h100_sxm"."""
        return device.partition("_")[0] in torch.cuda.get_device_name(self.device).lower()

    def describe(self) -> dict[str, Any]:
        """What a reader must know to judge the times."""
        about: dict[str, Any] = {
            "host": platform.node(),
            "cpu": _cpu_name(),
            "threads": torch.get_num_threads(),
            "torch": str(torch.__version__),
        }
        if self.is_gpu:
            about["gpu"] = torch.cuda.get_device_name(self.device)
            about["cuda"] = torch.version.cuda
            about["clock_mhz"] = self.clock_mhz()
        return about

    def clock_mhz(self) -> int | None:
        """Of the GPU's multiprocessors now; None where PyTorch cannot tell."""
        try:
            return int(torch.cuda.clock_rate(self.device))
        except Exception:  # nvml has errors of its own
            return None


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
