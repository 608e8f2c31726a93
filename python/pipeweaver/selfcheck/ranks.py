"""Two ranks run a plan by the executor: over NCCL where each has a GPU, else on one device over gloo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .. import plan
from ..profiling.machine import Machine
from .cases import SCALES, uneven
from .folder import Work

RANKS = 2


def run(work: Work) -> None:
    """The part "ranks"."""
    for pattern in ("ranks/rank-*.json", "ranks/timings-*", "ranks/collectives.csv"):
        work.folder.remove(pattern)
    _plan(work)
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", 0, is_master=True, wait_for_workers=False)
    outputs = [open(work.folder.path / f"ranks/rank-{rank}.log", "w", encoding="utf-8") for rank in range(RANKS)]
    ranks = [subprocess.Popen([sys.executable, "-m", "pipeweaver.selfcheck.rank", str(work.folder.path), str(rank),
                               str(store.port), str(work.left_s())], stdout=output, stderr=subprocess.STDOUT,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})
             for rank, output in enumerate(outputs)]
    try:
        ended = _ended(ranks, work.left_s())
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        for output in outputs:
            output.close()
    for number, status in enumerate(ended):
        if status != 0:
            late = "gave no answer in time: it hangs, or waits for the other; its last words: "
            why = (late if status is None else "") + _last_line(work, number)
            work.add({"check": "both ranks come to their end", "holds": False, "rank": number, "why": why})
    for number in range(RANKS):
        for row in (work.folder.json(f"ranks/rank-{number}.json") or {"rows": []})["rows"]:
            work.add(row)


def _plan(work: Work) -> None:
    """The plan that the ranks run; its folder is for `pipeweaver replay --measured`."""
    about, stack = work.about, uneven(SCALES[work.scale])
    config: dict[str, Any] = {**stack.write(work.folder.path / "stacks"), "cluster": f"{about['cluster']}:{RANKS}",
                              "tp": 1, "pp": RANKS, "partition": "dip", "packing": "given", "max_rounds": 20}
    # Of one replica alone no schedule of others is taken, and the modules stay the chains that Rank has chunks for.
    made = plan(config, replica=0, out=work.folder.path / "ranks/plan")
    work.folder.write_json("ranks/actions.json", made.replicas[0].actions)
    work.folder.write_json("ranks/assignment.json", made.assignment)


def _ended(ranks: list[subprocess.Popen[bytes]], seconds: float) -> list[int | None]:
    """Their exit statuses, None where one runs still. Where one fails, the others have a few seconds more."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(rank.poll() is None for rank in ranks):
        if any(rank.poll() not in (None, 0) for rank in ranks):
            until = min(until, time.monotonic() + 5)
        time.sleep(0.05)
    return [rank.poll() for rank in ranks]


def _last_line(work: Work, rank: int) -> str:
    """Of its log: the last error, else the last line. NCCL warns at the exit of a process that has failed."""
    text = (work.folder.path / f"ranks/rank-{rank}.log").read_text(encoding="utf-8", errors="replace")
    lines = [line.strip()[:300] for line in text.split("\n") if line.strip()]
    errors = [line for line in lines if re.match(r"(\[rank\d+\]: *)?[\w.]+(Error|Exception)\b", line)]
    return (errors or lines or ["ended without a word"])[-1]


def device_of(torch_device: str, rank: int) -> torch.device:
    """Of one of the ranks: a GPU of its own where there are as many of one kind, the check's the first."""
    machine = Machine(torch_device)
    found = machine.alike()
    return found[rank] if len(found) >= RANKS else machine.device


def own_devices(torch_device: str) -> bool:
    """Whether every rank has a GPU of its own."""
    return len(Machine(torch_device).alike()) >= RANKS


def joined(rank: int, port: int, torch_device: str) -> None:
    """Joins the two ranks."""
    device = device_of(torch_device, rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    wait = timedelta(seconds=60)
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", port, is_master=False, timeout=wait)
    # Without a device_id: PyTorch then gives messages a communicator of their own, beside that of barriers and sums.
    backend = "nccl" if own_devices(torch_device) else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=RANKS, timeout=wait)
