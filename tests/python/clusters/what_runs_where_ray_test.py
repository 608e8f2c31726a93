"""docs/what-runs-where.md: the planner as an actor of Ray, on a Ray of this machine."""

import os
import subprocess
import sys

from absent import needed
from getting_started import blocks, page_of

needed("pipeweaver")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
needed("ray")

BEGIN = """
ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
config = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "max_rounds": 2, "budget": 1}
batches = [[{"id": f"s{k}", "text_tokens": 900, "images": [{"width": 448, "height": 448}] * (k % 3)} for k in range(8)]]
"""
END = """
print(actions["format"], actions["rank"], assignment["format"])
ray.shutdown()
"""


def test_an_actor_plans_and_gives_each_rank_its_list(tmp_path):
    actor, use = blocks("python", page_of("docs/what-runs-where.md"))[1:]
    (tmp_path / "job.py").write_text(actor + BEGIN + use + END)
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["pipeweaver-rank-actions/1", "1", "pipeweaver-assignment/1"]
