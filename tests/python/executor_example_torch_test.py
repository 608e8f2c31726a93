"""docs/running-a-plan.md: its command trains, four processes with a plan for every batch."""

import os
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
    command, = re.findall(r"^```sh\n(.*?)\n```$", (ROOT / "docs/running-a-plan.md").read_text(), re.MULTILINE)
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
                   "PET_MASTER_PORT": str(free_port())}
    done = subprocess.run(["bash", "-c", f"{command} --steps 6"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = [float(value) for value in re.findall(r"^step \d+: loss ([0-9.]+),", done.stdout, re.MULTILINE)]
    assert len(losses) == 6
    assert losses[-1] < losses[0] - 1
