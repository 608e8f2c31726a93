"""pipeweaver bench plan: drawn batches against every policy."""

import json

import pytest
from cli_shared import BATCH, PLAN


def test_bench_plan_compares_with_every_policy_the_best_one_and_wrong_costs(pipeweaver):
    bench = ["bench", *PLAN, *BATCH, "--batches", "2", "--max-rounds", "2"]
    told = json.loads(pipeweaver(*bench, "--json"))
    assert told["batches"] == 2
    best = told["best_policy"]
    assert 1 <= best["least"] <= best["geometric_mean"] <= best["most"]
    full = [row for row in told["comparisons"] if row["applies_to"] == 2]
    assert best["least"] == min(row["least"] for row in told["comparisons"])
    assert best["geometric_mean"] <= min(row["geometric_mean"] for row in full)

    pairs = [(row["partition"], row["policy"]) for row in told["robustness"]]
    assert sorted(pairs) == [("dip", "dual-queue"), ("megatron", "1f1b"), ("megatron", "interleaved")]
    for row in told["robustness"]:
        assert row["batches"] == 2 and row["replays"] == 400
        assert 0 < row["gain_p10"] < row["gain_p50"] < row["gain_p90"]
        assert row["wins_share"] == row["wins"] / row["replays"]
        # Nine of ten replays gain p10 or more; the median is near the gain under the costs themselves.
        plain = min(other["geometric_mean"] for other in full
                    if (other["partition"], other["policy"]) == (row["partition"], row["policy"]))
        assert row["gain_p50"] == pytest.approx(plain, rel=0.05)
        if row["gain_p10"] > 1.01:
            assert row["wins_share"] >= 0.85

    table = pipeweaver(*bench)
    assert f"| the best | of each batch | | 2 | {best['geometric_mean']:.3f}x |" in table
    for row in told["robustness"]:
        assert (f"| {row['partition']} | {row['policy']} | 2 | {row['gain_p10']:.3f}x | {row['gain_p50']:.3f}x | "
                f"{row['gain_p90']:.3f}x | {100 * row['wins_share']:.1f} % |") in table
