"""examples/train_with_server.py where no server is there: all ranks open the same session and plan by policy."""

import re
import subprocess
import sys

from absent import needed
from checkout import ROOT
from served import free_port

needed("pipeweaver")
needed("torch")
LINE = re.compile(r"^step (\d+) rank (\d): loss ([0-9.]+), (served|by policy), waited (\d+) ms", re.MULTILINE)


def test_a_job_trains_by_policy_until_there_is_a_server():
    job = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port",
                          str(free_port()), ROOT / "examples/train_with_server.py", "--server",
                          "http://127.0.0.1:1", "--steps", "4", "--deadline", "0.2"],
                         capture_output=True, text=True, timeout=300)
    assert job.returncode == 0, job.stderr[-3000:]
    lines = LINE.findall(job.stdout)
    assert sorted((int(step), int(rank)) for step, rank, *_ in lines) == [(s, r) for s in range(4) for r in range(4)]
    assert {how for *_, how, _ in lines} == {"by policy"}
    for step in range(4):
        assert len({loss for number, _, loss, *_ in lines if int(number) == step}) == 1
