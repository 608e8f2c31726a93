"""tools/check_commands.py, in short: commands that a plan prints give its rows, and names are quoted."""

import subprocess
import sys

from checkout import ROOT


def test_printed_commands_print_their_rows(pipeweaver):
    script = [sys.executable, ROOT / "tools/check_commands.py", pipeweaver.path, "--sets", "6", "--rows", "2"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
