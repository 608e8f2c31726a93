"""Which device a check is of, and what of its software a reader must know."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
import re
import subprocess
from typing import Any

from ..errors import InputError

_oldest = (2, 6)  # of PyTorch: fully_shard() where it is today, messages by the rank in a group


def about_device(asked: str | None, cluster: str | None) -> dict[str, Any]:
    """What about.json says of the device `asked`, by default the first GPU, else the CPU. Raises InputError.

    Takes no memory of a GPU and makes no context on it: one that is set to serve a single process serves the parts."""
    torch = _torch()
    device = asked or ("cuda:0" if torch.cuda.is_available() else "cpu")
    if asked is None and device == "cpu":
        print(f"PyTorch sees no GPU ({_why_none(torch)}): all is run on the CPU, at small sizes", flush=True)
    from ..profiling.machine import Machine

    machine = Machine(device)
    try:
        found = machine.describe()
        gpus = len(machine.alike())
        memory = torch.cuda.get_device_properties(machine.device).total_memory if machine.is_gpu else None
    except (RuntimeError, AssertionError) as error:  # a driver that does not start; a PyTorch without CUDA
        raise InputError(f"--device: {machine.device} cannot be used: {_line(error)}") from None
    return {
        "format": "pipeweaver-selfcheck/1",
        "begun": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "torch_device": str(machine.device), "scale": "gpu" if machine.is_gpu else "cpu",
        "cluster": cluster or cluster_of(found.get("gpu")),
        "gpu": found.get("gpu"), "gpus": gpus, "memory_bytes": memory,
        "driver": _driver() if machine.is_gpu else None,
        "cuda": found.get("cuda"), "torch": found["torch"], "cpu": found["cpu"], "threads": found["threads"],
        "python": platform.python_version(), "host": found["host"],
    }


def _torch() -> Any:
    """PyTorch. Raises InputError where there is none, or one that is broken or too old."""
    try:
        import torch
    except ModuleNotFoundError:
        raise InputError("needs PyTorch: pip install 'pipeweaver[torch]'") from None
    except (ImportError, OSError) as error:  # libraries of CUDA that are missing
        raise InputError(f"PyTorch cannot be loaded: {_line(error)}") from None
    if too_old(str(torch.__version__)):
        raise InputError(f"PyTorch {torch.__version__} is too old, {'.'.join(map(str, _oldest))} or later is needed")
    return torch


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def too_old(version: str) -> bool:
    """Whether a PyTorch of this version lacks what a check calls."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _oldest


def _why_none(torch: Any) -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return f"{torch.__version__} is built without CUDA"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES is {visible!r}"
    return "there is none, or its driver does not answer: nvidia-smi tells"


# By the first of these patterns that the GPU's name has: whose cluster of `pipeweaver list clusters` it is taken for.
# None: a kind that no cluster has, whatever follows.
_clusters: tuple[tuple[str, str | None], ...] = (
    (r"\bmig\b", None), (r"gb300", "gb300-nvl72"), (r"gb200", "gb200-nvl72"), (r"gh200", "gh200"),
    (r"b300", "b300-sxm"), (r"b200", "b200-sxm"), (r"h200 nvl", None), (r"h200", "h200-sxm"), (r"h100 nvl", "h100-nvl"),
    (r"h[18]00 pcie", None), (r"h100", "h100-sxm"), (r"h800", "h800-sxm"), (r"h20", "h20-sxm"),
    (r"a100.*pcie", "a100-pcie"), (r"a100.*40gb", "a100-40gb"), (r"a100", "a100-sxm"), (r"a800.*pcie", None),
    (r"a800", "a800-sxm"), (r"l40s", "l40s"), (r"l40", "l40"), (r"rtx 3090", "rtx-3090"), (r"rtx 4090", "rtx-4090"),
    (r"rtx pro 6000", "rtx-pro-6000"), (r"mi300x", "mi300x"), (r"mi325x", "mi325x"), (r"mi355x", "mi355x"),
)


def cluster_of(gpu: str | None) -> str:
    """The cluster with this GPU. Raises InputError."""
    if gpu is None:
        return "cpu"
    name = gpu.lower()
    found = next((cluster for pattern, cluster in _clusters if re.search(rf"\b{pattern}\b", name)), None)
    if found is None:
        why = "predictions are of whole GPUs" if re.search(r"\bmig\b", name) else "no cluster of it is known"
        raise InputError(f"missing --cluster NAME, of `pipeweaver list clusters`: this is {gpu}, {why}")
    return found


def _driver() -> str | None:
    try:
        if found := driver_in(pathlib.Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")):
            return found
    except OSError:
        pass
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20)
        return done.stdout.split("\n")[0].strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def driver_in(text: str) -> str | None:
    """The driver's version, of what the kernel says of it; a compiler's is below it."""
    found = re.search(r"\d{3,}\.\d+(?:\.\d+)?", text.partition("\n")[0])
    return found[0] if found else None
