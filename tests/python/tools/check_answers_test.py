"""tools/check_answers.py, in short: no answer refutes itself, whichever target it is for."""

import subprocess
import sys

from checkout import ROOT
from cli_shared import full


def test_answers_hold_against_themselves(pipeweaver):
    script = [sys.executable, ROOT / "tools/check_answers.py", pipeweaver.path]
    short = ["--plans", "5", "--rounds", "1", "--every", "11"]
    done = subprocess.run(script + ([] if full() else short), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
