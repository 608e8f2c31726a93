"""A process group that was destroyed has no threads left: one that holds a tensor at the process's end aborts it."""

import subprocess
import sys

THREADS_AT_THE_END = """
import contextlib
import pathlib
import time
import pipeweaver.torch
import torch
import torch.distributed as dist

def gloo_threads():
    names = []
    for path in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(path.read_text().strip())
    return [name for name in names if "gloo" in name]

dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
dist.all_reduce(torch.ones(1))
import torch.distributed.pipelining._backward  # as a plan with split backward passes does
assert gloo_threads()
dist.destroy_process_group()
until = time.monotonic() + 60  # the system may list one that has ended for a moment
while gloo_threads() and time.monotonic() < until:
    time.sleep(0.01)
assert not gloo_threads(), gloo_threads()
"""


def test_a_group_that_is_destroyed_ends_its_threads_whatever_a_plan_loads(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    done = subprocess.run([sys.executable, "-c", THREADS_AT_THE_END], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
