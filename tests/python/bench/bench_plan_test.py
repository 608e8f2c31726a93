"""pipeweaver bench plan: a job's plan against what engineers run, on drawn batches."""

import json

import pytest
from cli_shared import BATCH, PLAN, full


def test_bench_plan_holds_a_job_against_its_opponents_its_own_order_and_wrong_costs(pipeweaver):
    bench = ["bench", *PLAN, *BATCH, "--batches", "2", "--max-rounds", "2", "--regret", "--sample", "101-102"]
    told = json.loads(pipeweaver(*bench, "--published", "200ms", "--json"))
    assert told["batches"] == 2 and len(told["step_ns"]) == 2
    assert told["partition"]["chosen_on"].endswith("seeds 101-102")
    opponents = [row for row in told["comparisons"] if row["opponent"]]
    assert {row["partition"].split()[0] for row in opponents} >= {"balanced", "megatron", "no-pipeline"}
    assert told["job_opponent"] == told["comparisons"][0] == opponents[0]
    assert sum(opponents[0]["recompute"].values()) == opponents[0]["applies_to"] == 2
    best = told["best_opponent"]
    assert best["least"] == min(row["least"] for row in opponents)
    full = [row for row in opponents if row["applies_to"] == 2]
    assert best["geometric_mean"] <= min(row["geometric_mean"] for row in full)
    assert told["static_order"]["least"] > 0.99
    assert told["published"]["geometric_mean"] > 0.9
    assert len(told["regret"]["of_each"]) == 2 and told["regret"]["most"] == max(told["regret"]["of_each"])
    for row in told["robustness"]:
        assert row["batches"] in (1, 2) and row["replays"] == 200 * row["batches"]
        assert 0 < row["gain_p10"] < row["gain_p50"] < row["gain_p90"]
        assert row["wins_share"] == row["wins"] / row["replays"]

    table = pipeweaver(*bench)
    assert f"| the best opponent | of each batch | | | 2 | {best['geometric_mean']:.3f}x |" in table
    assert f"the job's opponent: {opponents[0]['command']}" in table
    assert "regret against each batch's own partition: mean " in table


def test_the_opponents_command_prints_its_step(pipeweaver):
    """A third of them; planner/job_test.cpp asks the same of each without the command line."""
    told = json.loads(pipeweaver("bench", *PLAN, *BATCH, "--batches", "1", "--max-rounds", "0", "--sample", "101",
                                 "--json"))
    rows = [row for row in told["comparisons"] if row["opponent"] and row["command"]]
    assert len(rows) > 10
    for row in rows[::1 if full() else 3]:
        step = json.loads(pipeweaver(*row["command"].split()[1:], "--json"))["step_ns"]
        assert step / told["step_ns"][0] == pytest.approx(row["geometric_mean"], rel=1e-12), row["command"]


def test_a_sample_of_the_batch_itself_has_no_job(pipeweaver):
    told = json.loads(pipeweaver("bench", *PLAN, *BATCH, "--batches", "1", "--max-rounds", "0", "--sample", "batch",
                                 "--json"))
    assert told["partition"] is None and told["static_order"] is None
