"""The machine at hand, and its clock."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch

from ..errors import InputError
from .timing import Clock, CpuClock, Run

_flushed_bytes = 256 << 20  # more than the second-level cache of any GPU


class CudaClock(CpuClock):
    """Events of a GPU. Its caches are emptied before each repetition; the kernels are queued meanwhile, so the time of
    launching them does not count as long as it is shorter."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffer = torch.empty(_flushed_bytes, dtype=torch.int8, device=device)

    def sample(self, run: Run) -> float:
        stream = torch.cuda.current_stream(self._device)
        begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._buffer.zero_()
        begin.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3


class Machine:
    """A device of PyTorch. Raises InputError where it is not there."""

    def __init__(self, name: str) -> None:
        try:
            self.device = torch.device(name)
        except RuntimeError:
            raise InputError(f"--device: is {name!r}, allowed are cpu and cuda:N") from None
        if self.device.type not in ("cpu", "cuda"):
            raise InputError(f"--device: is {name!r}, allowed are cpu and cuda:N")
        if self.device.type == "cuda" and (self.device.index or 0) >= torch.cuda.device_count():
            raise InputError(f"--device: is {name!r}, PyTorch sees {torch.cuda.device_count()} CUDA devices")

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    def clock(self) -> Clock:
        return CudaClock(self.device) if self.is_gpu else CpuClock()

    def free_bytes(self) -> int:
        if self.is_gpu:
            return int(torch.cuda.mem_get_info(self.device)[0])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

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
        except (RuntimeError, ImportError, ModuleNotFoundError):
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
