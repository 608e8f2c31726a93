"""docs/running-a-plan.md: its commands train, four processes with a plan for every batch or a layout per module."""

import os
import pathlib
import re
import subprocess
import sys

from absent import left_out, needed
from checkout import ROOT
from served import free_port


def losses_of(command, *paths):
    """What the command prints, of six steps."""
    path = ":".join([*paths, str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PET_MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(["bash", "-c", f"{command} --steps 6"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = [float(value) for value in re.findall(r"^step \d+: loss ([0-9.]+),", done.stdout, re.MULTILINE)]
    assert len(losses) == 6
    return losses


def test_the_example_trains_with_a_new_plan_each_step():
    if subprocess.run([sys.executable, "-c", "import pipeweaver; pipeweaver.Planner"], capture_output=True).returncode:
        left_out("the package pipeweaver is not installed")
    command, = re.findall(r"^```sh\n(.*?)\n```$", (ROOT / "docs/running-a-plan.md").read_text(), re.MULTILINE)
    losses = losses_of(command)
    assert losses[-1] < losses[0] - 1


def test_the_example_of_module_layouts_trains(pipeweaver):
    needed("pipeweaver.torch")
    page = (ROOT / "docs/running-a-plan.md").read_text()
    command, = re.findall(r"^torchrun .*train_module_layouts.py$", page, re.MULTILINE)
    losses = losses_of(command, str(pipeweaver.path.parent))
    assert losses[-1] < losses[0] - 1
