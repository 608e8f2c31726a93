"""docs/diffusion.md: its script trains the plan on two processes."""

import os
import re
import subprocess
import sys

from getting_started import blocks, page_of
from served import free_port

PAGE = page_of("docs/diffusion.md")
SIZES = [(1240, 1754), (1600, 1200), (960, 540)]


def test_the_script_of_the_page_trains(pipeweaver, tmp_path):
    model = blocks("sh", PAGE)[0].partition("<<'END'\n")[2].partition("END\n")[0]
    (tmp_path / "small-dit.json").write_text(model)
    (tmp_path / "photos.jsonl").write_text("".join(
        f'{{"id":"{w}","text_tokens":0,"images":[{{"width":{w},"height":{h},"role":"target"}}]}}\n' for w, h in SIZES))
    pipeweaver("plan", "--model", tmp_path / "small-dit.json", "--cluster", "h100-sxm:2", "--tp", "1", "--pp", "2",
               "--batch", tmp_path / "photos.jsonl", "--max-rounds", "1", "--out", tmp_path / "planned")
    script, = blocks("python", PAGE)
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
                           str(free_port()), "train.py"], cwd=tmp_path,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"step \d: loss ([\d.]+)", done.stdout)]
    assert len(losses) == 3 and losses[2] < losses[0]
