"""pipeweaver_studies packing: the same samples in several orders, under each packing."""

import json

import pytest

VLM_M = ["packing", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--dataset", "vlm-mix", "--microbatches", "4",
         "--partition", "first-stage", "--policy", "1f1b"]


def test_ffd_and_balanced_take_the_same_step_in_any_order(studies):
    answer = json.loads(studies(*VLM_M, "--batches", "2", "--orders", "3", "--json"))
    rows = {row["packing"]: row for row in answer["packings"]}
    assert list(rows) == ["given", "ffd", "balanced"]
    assert all(len(row["step_ns"]) == 2 and len(row["step_ns"][0]) == 3 for row in rows.values())
    assert rows["given"]["most_spread"] > 1
    for packing in ("ffd", "balanced"):
        assert rows[packing]["spread"] == rows[packing]["most_spread"] == 1
    steps = [step for batch in rows["given"]["step_ns"] for step in batch]
    assert rows["given"]["mean_step_seconds"] == pytest.approx(sum(steps) / len(steps) / 1e9)


def test_given_order_is_what_emulate_takes(pipeweaver, studies):
    answer = json.loads(studies(*VLM_M, "--batches", "1", "--orders", "1", "--json"))
    told = json.loads(pipeweaver("emulate", *VLM_M[1:], "--json"))
    assert answer["packings"][0]["step_ns"] == [[told["step_ns"]]]
