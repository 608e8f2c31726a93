"""The last step of docs/getting-started.md: its script runs the emitted schedule on PyTorch."""

import os
import re
import subprocess
import sys

from getting_started import blocks
from served import free_port


def test_the_script_of_the_page_runs_the_schedule(followed):
    folder, _ = followed
    script, = blocks("python")
    (folder / "run.py").write_text(script)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port",
                           str(free_port()), "run.py"], cwd=folder,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    # Four processes share one pipe: where Python does not buffer, two lines may stand on one.
    assert sorted(re.findall(r"rank \d+(?=: stages)", done.stdout)) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert "16 microbatches, mean loss " in done.stdout
