"""pipeweaver_studies ablation: one condition added to the other."""

import json
import math

import pytest

VLM_S = ["ablation", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--max-rounds", "1"]
H800, H20 = [*VLM_S, "--cluster", "h800-sxm:16"], [*VLM_S, "--cluster", "h20-sxm:16"]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def test_every_factor_is_the_row_above_over_the_row(studies):
    answer = json.loads(studies(*H800, "--microbatches", "4", "--batches", "2", "--json"))
    rows = answer["rows"]
    assert [row["name"] for row in rows] == ["chain", "modules apart", "stage interleaving", "segment order",
                                             "memory modes"]
    assert rows[0]["factor"] is None and all(len(row["step_ns"]) == 2 for row in rows)
    for above, row in zip(rows, rows[1:]):
        ratios = [a / b for a, b in zip(above["step_ns"], row["step_ns"])]
        assert row["factor"]["geometric_mean"] == pytest.approx(mean(ratios))
        assert (row["factor"]["least"], row["factor"]["most"]) == pytest.approx((min(ratios), max(ratios)))
    assert answer["total"]["geometric_mean"] == pytest.approx(mean([row["factor"]["geometric_mean"]
                                                                    for row in rows[1:]]) ** 4)
    assert [round(row["published_factor"], 3) for row in rows[1:]] == [1.173, 1.184, 1.068, 1.097]
    # The search begins with the dual queue's schedule.
    assert all(searched <= queue for searched, queue in zip(rows[3]["step_ns"], rows[2]["step_ns"]))


def test_a_row_is_what_emulate_prints_of_it(pipeweaver, studies):
    """The partition is cut on the same seeds, and both replay on shared ports."""
    answer = json.loads(studies(*H800, "--microbatches", "4", "--batches", "1", "--cut", "balanced", "--chunks", "2",
                                   "--json"))
    for row, policy in zip(answer["rows"], ("interleaved", "interleaved", "dual-queue")):
        words = ["--chunks", "2"] if row["chunks_per_rank"] else []
        told = pipeweaver("emulate", *H800[1:5], "--cluster", "h800-sxm:16", "--microbatches", "4", "--sample",
                          "101-105",
                          "--partition", row["partition"], "--policy", policy, "--recompute", row["recompute"], *words,
                          "--json")
        assert json.loads(told)["step_ns"] == row["step_ns"][0]


def test_elsewhere_nothing_is_published(studies):
    answer = json.loads(studies(*H20, "--microbatches", "4", "--batches", "1", "--json"))
    assert answer["published_total"] is None
    assert all(row["published_factor"] is None for row in answer["rows"])
    assert "published" not in studies(*H20, "--microbatches", "4", "--batches", "1")


@pytest.mark.parametrize("wrong, status, said", [
    (["--menu", "none,hlf"], 2, "--menu: is 'hlf', must be one of none"),
    (["--queue-recompute", "some"], 2, "--queue-recompute: is 'some', must be one of none"),
    (["--cut", "dip"], 2, "--cut: is 'dip'"),
    (["--pp", "2"], 2, "--dp: is 2, allowed is 1"),
    (["--microbatches", "16", "--fixed-recompute", "none"], 4, "a row does not fit on every batch"),
])
def test_what_cannot_be_run_is_refused(studies, wrong, status, said):
    found, error = studies.fails(*H800, "--batches", "1", *wrong)
    assert found == status and said in error
