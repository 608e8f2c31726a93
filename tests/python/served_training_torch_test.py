"""examples/train_with_server.py.

Forked workers submit, ranks collect their own lists, and the server is killed twice."""

import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

import pytest
from absent import left_out
from served import Server, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = int(os.environ.get("PIPEWEAVER_SERVED_STEPS", "40"))
DEADLINE = 1.0
LINE = re.compile(r"^step (\d+) rank (\d): loss ([0-9.]+), (served|by policy), waited (\d+) ms", re.MULTILINE)


class Killed:
    """A server that is killed before some steps, and begun again on its port and state a while later."""

    def __init__(self, binary, state):
        self.binary, self.state = binary, state
        self.port = free_port()
        self.server = Server(binary, "--state", state, "--quiet", http=f"127.0.0.1:{self.port}")
        self.url = self.server.url

    def kill(self, away):
        self.server.kill()
        threading.Timer(away, self.begin).start()

    def begin(self):
        self.server = Server(self.binary, "--state", self.state, "--quiet", http=f"127.0.0.1:{self.port}")


@pytest.mark.alone
def test_each_step_has_its_plan_in_time_though_the_server_is_killed_twice(pipeweaver, tmp_path):
    if subprocess.run([sys.executable, "-c", "import pipeweaver; pipeweaver.Planner"], capture_output=True).returncode:
        left_out("the package pipeweaver is not installed")
    killed = Killed(pipeweaver.path, tmp_path / "state")
    draw = random.Random(STEPS)
    before = sorted(draw.sample(range(STEPS // 5, STEPS * 4 // 5), 2))
    job = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port",
                            str(free_port()),
                            ROOT / "examples/train_with_server.py", "--server", killed.url, "--steps", str(STEPS),
                            "--deadline", str(DEADLINE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(target=lambda: errors.append(job.stderr.read()))
    reader.start()
    said = []
    try:
        for line in job.stdout:
            said.append(line)
            found = LINE.match(line)
            if before and found and int(found.group(1)) >= before[0]:
                before.pop(0)
                killed.kill(away=2.0)
        assert job.wait(60) == 0, "".join(errors)[-3000:]
    finally:
        job.kill()
        reader.join()
        time.sleep(0.1)
        killed.server.kill()
    steps = {}
    for step, rank, loss, how, waited in LINE.findall("".join(said)):
        steps.setdefault(int(step), []).append((loss, how, int(waited)))
    assert sorted(steps) == list(range(STEPS)) and not before
    waited = [wait for ranks in steps.values() for _, _, wait in ranks]
    by_policy = sum(ranks[0][1] == "by policy" for ranks in steps.values())
    print(f"{STEPS} steps of 4 ranks, {by_policy} by policy; longest wait {max(waited)} ms")
    for ranks in steps.values():
        assert len(ranks) == 4 and len({(loss, how) for loss, how, _ in ranks}) == 1
    # 0.7 s where a plan by policy takes 0.2 s; where it takes longer than the deadline, each step by policy does so,
    # too.
    assert max(waited) < 3e3 * DEADLINE
    assert 1 <= by_policy < STEPS * 3 // 4
    assert float(steps[STEPS - 1][0][0]) < float(steps[0][0][0]) - 1
