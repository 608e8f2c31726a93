"""examples/train_vlm.py trains: four processes, a plan for every batch."""

import pathlib
import re
import subprocess
import sys

from absent import left_out
from served import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_example_trains_with_a_new_plan_each_step():
    if subprocess.run([sys.executable, "-c", "import pipeweaver; pipeweaver.Planner"], capture_output=True).returncode:
        left_out("the package pipeweaver is not installed")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port",
                           str(free_port()),
                           ROOT / "examples/train_vlm.py", "--steps", "6"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = [float(value) for value in re.findall(r"^step \d+: loss ([0-9.]+),", done.stdout, re.MULTILINE)]
    assert len(losses) == 6
    assert losses[-1] < losses[0] - 1
