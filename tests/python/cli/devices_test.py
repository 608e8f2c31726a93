"""Devices that are known by their data sheets alone: every answer on them says `modelled`."""

import json
import subprocess

import pytest
from cli_shared import BATCH

MODEL = ["--model", "dip-vlm-s", "--tp", "4", "--pp", "2"]
LAUNCH = ("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
          "--max-position-embeddings 4096 --vocab-size 32000 --swiglu --ffn-hidden-size 11008 --micro-batch-size 1 "
          "--global-batch-size 64 --bf16 --use-distributed-optimizer --tensor-model-parallel-size 4 "
          "--sequence-parallel")
RANGE = "a step may take 0.8 to 1.5 times as long"


@pytest.mark.parametrize("cluster, device", [("mi300x", "mi300x"), ("mi355x", "mi355x"), ("gh200", "gh200")])
def test_an_emulated_step_is_marked_in_text_and_json(pipeweaver, cluster, device):
    ask = ("emulate", *MODEL, "--cluster", f"{cluster}:8", *BATCH)
    marked = [line for line in pipeweaver(*ask).splitlines() if line.startswith("modelled: ")]
    assert len(marked) == 1 and device in marked[0] and RANGE in marked[0]
    answer = json.loads(pipeweaver(*ask, "--json"))
    assert answer["modelled"] == {"device": device, "step_from": 0.8, "step_to": 1.5}


@pytest.mark.parametrize("cluster", ["h100-sxm", "b300-sxm"])
def test_a_measured_device_is_not_marked(pipeweaver, cluster):
    ask = ("emulate", *MODEL, "--cluster", f"{cluster}:8", *BATCH)
    assert "modelled: " not in pipeweaver(*ask)
    assert "modelled" not in json.loads(pipeweaver(*ask, "--json"))


def test_a_plan_and_a_check_are_marked(pipeweaver, tmp_path):
    text = pipeweaver("plan", *MODEL, "--cluster", "mi300x:8", *BATCH, "--max-rounds", "2", "--out", tmp_path / "plan")
    assert RANGE in " ".join(text.split())
    plan = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert plan["modelled"]["device"] == "mi300x" and plan["in_situ"]["footing"] == "modelled"
    done = subprocess.run([pipeweaver.path, "check", "--cluster", "mi300x:8", "--json", "--megatron-args", LAUNCH],
                          capture_output=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["memory"]["modelled"] is True
    assert any(one.startswith("mi300x is modelled") for one in answer["assumed"])


def test_a_recommendation_ranks_modelled_rows_at_the_long_end_of_their_error(pipeweaver):
    ask = ("recommend", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--global-batch", "64", "--tokens", "30B",
           "--gpus", "32", "--cp", "1", "--max-rounds", "1", "--json")
    rows = json.loads(pipeweaver(*ask, "--clusters", "h100-sxm,gh200"))["rows"]
    assert {row["cluster"]: row["basis"]["footing"] for row in rows}["gh200"] == "modelled"
    assert rows[0]["cluster"] == "h100-sxm"


def test_an_unknown_name_is_refused_with_the_nearest(pipeweaver):
    for name, nearest in (("mi300", "mi300x"), ("h100-94gb", "h100-nvl"), ("b300-sxm6", "b300-sxm")):
        status, line = pipeweaver.fails("emulate", *MODEL, "--cluster", f"{name}:8", *BATCH)
        assert status == 2 and f"did you mean '{nearest}'?" in line


def test_lists_for_a_price_a_token_hold_what_they_held(pipeweaver):
    answer = json.loads(pipeweaver("analyze", "deepseek-v3", "--device", "all", "--json"))
    assert not {"mi300x", "mi355x", "l40s"} & {one["device"] for one in answer["costs"]}
