"""examples/train_with_server.py, as `pipeweaver bench service` runs it.

Forked workers submit, ranks collect their own lists, and the server is killed twice."""

import json
import os
import subprocess
import sys

import pytest
from absent import left_out
from checkout import ROOT

STEPS = int(os.environ.get("PIPEWEAVER_SERVED_STEPS", "40"))


@pytest.mark.alone
def test_each_step_has_its_plan_in_time_though_the_server_is_killed_twice(pipeweaver):
    if subprocess.run([sys.executable, "-c", "import pipeweaver; pipeweaver.Planner"], capture_output=True).returncode:
        left_out("the package pipeweaver is not installed")
    done = pipeweaver.run("bench", "service", "--only", "training", "--python", sys.executable, "--steps", STEPS,
                          "--step-deadline", "1s", "--step-noise", "50ms", "--json",
                          "--example", ROOT / "examples/train_with_server.py")
    print(done.stderr)
    said = [one["figures"] for one in json.loads(done.stdout)["promises"]]
    assert done.returncode == 0, done.stdout
    trained, differ, waits, losses = said
    assert trained == {"steps": STEPS, "killed": 2, "status": 0} and differ == {"apart": 0}
    assert waits["late"] == 0 and 0 < waits["longest_ms"] <= 1050
    assert 1 <= waits["by_policy"] < STEPS * 3 // 4
    assert losses["last"] < losses["first"] - 1
