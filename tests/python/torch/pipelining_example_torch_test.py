"""examples/train_vlm_pipelining.py: a ViT + LLM in PyTorch's pipeline runtime, the same steps in every layout."""

import importlib
import json
import os
import re
import subprocess
import sys

import pytest
import torch
from checkout import ROOT
from example_ranks import printed_by
from getting_started import blocks, page_of
from served import free_port

PAGE = page_of("docs/pytorch-pipelining.md")
PLAN = next(block for block in blocks("sh", PAGE) if "small-vlm" in block).splitlines()[-1].split()[1:]
SCRIPT, = re.findall(r"^torchrun .*(examples/train_vlm_pipelining.py) ", PAGE, re.MULTILINE)


def planned(pipeweaver, folder, ranks, replicas, *more):
    plan = [*PLAN, *more]
    for option, value in (("--cluster", f"h100-sxm:{ranks * replicas}"), ("--pp", str(ranks)),
                          ("--batch", ROOT / "examples/small-batch.jsonl"), ("--out", folder),
                          ("--model", ROOT / "examples/small-vlm.json"), ("--max-rounds", "1")):
        plan[plan.index(option) + 1] = value
    pipeweaver(*plan)


def by_torchrun(folder, processes):
    return subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes),
                           "--master-port", str(free_port()), SCRIPT, folder], cwd=ROOT,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def losses_of(folder, processes):
    said = printed_by(processes, ROOT, SCRIPT, [str(folder)], folder.parent)
    return [float(loss) for loss in re.findall(r"^step \d: loss ([\d.]+)", said, re.MULTILINE)]


def test_replicas_stages_packings_and_recomputations_of_all_sorts_train_alike(pipeweaver, tmp_path):
    planned(pipeweaver, tmp_path / "three", 3, 1)
    three = losses_of(tmp_path / "three", 3)
    assert len(three) == 3 and three[2] < three[0]
    # Two replicas of which one has a microbatch less, which it repeats; each rank computes something else again.
    planned(pipeweaver, tmp_path / "two", 2, 2, "--microbatch-tokens", "420")
    file = tmp_path / "two/torch/padding.json"
    padding = json.loads(file.read_text())
    assert (padding["replicas"], padding["repeated_microbatches"]) == (2, 1) and padding["items"] > 1
    file.write_text(json.dumps({**padding, "recompute": "by-rank", "recompute_of_ranks": ["blocks:1", "selective"]}))
    assert losses_of(tmp_path / "two", 4) == pytest.approx(three, abs=0.002)
    few = by_torchrun(tmp_path / "two", 2)
    assert few.returncode != 0
    assert "the plan has 2 replicas of 2 pipeline ranks: start 4 processes, not 2" in few.stderr
    assert "TypeError" not in few.stderr


@pytest.mark.parametrize("setting, wrapped", [("none", []), ("half", [0, 1, 2]), ("blocks:1", [0, 2]),
                                              ("blocks:9", [0, 1, 2, 3, 4]), ("full", [0, 1, 2, 3, 4]),
                                              ("selective", [0, 1, 2, 3, 4])])
def test_layers_that_the_plan_computes_again_run_twice(monkeypatch, setting, wrapped):
    monkeypatch.syspath_prepend(ROOT / "examples")
    example = importlib.import_module("train_vlm_pipelining")
    stage = example.Stage([{"module": "vit", "first_layer": 2, "layers": 2},
                           {"module": "llm", "first_layer": 0, "layers": 3}])
    ran = []
    layers = [layer for part in stage.parts for layer in part.layers]
    for number, layer in enumerate(layers):
        layer.qkv.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    example.recomputed(stage, example.setting_of({"recompute": "by-rank", "recompute_of_ranks": ["x", setting]}, 1),
                       splits_backwards=False)
    assert example.setting_of({"recompute": setting}, 1) == setting
    known = {"tokens": torch.ones(1, 6, dtype=torch.long), "samples": torch.zeros(1, 6, dtype=torch.long),
             "places": torch.tensor([[0, 1, -1, -1, -1, -1]]), "patches": torch.tensor([[8]])}
    stage(torch.randn(1, 1, 8, example.WIDTH["vit"], requires_grad=True), **known).sum().backward()
    assert ran[:5] == [0, 1, 2, 3, 4] and sorted(ran[5:]) == wrapped
