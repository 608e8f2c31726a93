"""tools/round_trip.py, in short: what reads the files of a plan gives the plan's memory."""

import subprocess
import sys

from checkout import ROOT
from cli_shared import full


def test_files_of_a_plan_are_read_with_its_memory(pipeweaver):
    script = [sys.executable, ROOT / "tools/round_trip.py", pipeweaver.path, "--plans", "200" if full() else "12"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plans" in done.stdout
