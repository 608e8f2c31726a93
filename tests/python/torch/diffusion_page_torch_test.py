"""docs/diffusion.md: examples/train_dit.py trains plans on two processes, and on as many as a plan has GPUs."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from checkout import ROOT
from example_ranks import printed_by
from getting_started import blocks, page_of
from served import free_port

PAGE = page_of("docs/diffusion.md")
SIZES = [(1240, 1754), (1600, 1200), (960, 540)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dit")
    model = blocks("sh", PAGE)[0].partition("<<'END'\n")[2].partition("END\n")[0]
    (folder / "small-dit.json").write_text(model)
    (folder / "photos.jsonl").write_text("".join(
        f'{{"id":"{w}","text_tokens":0,"images":[{{"width":{w},"height":{h},"role":"target"}}]}}\n' for w, h in SIZES))
    shutil.copy(ROOT / "examples/train_dit.py", folder)
    return folder


def printed_by_torchrun(folder, processes, plan):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes),
                           "--master-port", str(free_port()), "train_dit.py", plan], cwd=folder,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def losses_of(pipeweaver, folder, tp, replicas):
    """By torchrun, as the page has it, where the processes are few."""
    gpus = 2 * tp * replicas
    pipeweaver("plan", "--model", folder / "small-dit.json", "--cluster", f"h100-sxm:{gpus}", "--tp", tp, "--pp", "2",
               "--batch", folder / "photos.jsonl", "--max-rounds", "1", "--out", folder / f"planned-{gpus}")
    plan = f"planned-{gpus}"
    said = printed_by_torchrun(folder, 2, plan) if gpus == 2 else printed_by(
        gpus, folder, folder / "train_dit.py", [plan], folder)
    return [float(loss) for loss in re.findall(r"step \d: loss ([\d.]+)", said)]


def test_the_script_trains_alike_on_two_processes_and_on_eight_with_groups(pipeweaver, folder):
    losses = losses_of(pipeweaver, folder, 1, 1)
    assert len(losses) == 3 and losses[2] < losses[0]
    assert losses_of(pipeweaver, folder, 2, 2) == pytest.approx(losses, abs=0.002)
