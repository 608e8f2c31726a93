"""pipeweaver_studies units and memory: sizes of sub-microbatches, and what a rank holds over time."""

import json

import pytest

VLM_S = ["--model", "dip-vlm-s", "--cluster", "h800-sxm:16", "--dataset", "vlm-mix", "--microbatches", "4",
         "--max-rounds", "2"]


def test_sizes_are_held_against_the_best_of_each_batch(studies):
    answer = json.loads(studies("units", *VLM_S, "--batches", "2", "--sizes", "4,12,24", "--json"))
    sizes = answer["sizes"]
    assert [size["items"] for size in sizes] == [4, 12, 24]
    best = [min(steps) for steps in zip(*(size["step_ns"] for size in sizes))]
    for size in sizes:
        ratios = [step / least for step, least in zip(size["step_ns"], best)]
        assert (size["least"], size["most"]) == pytest.approx((min(ratios), max(ratios)))
        assert size["least"] <= size["step_over_best"] <= size["most"]
        assert 0 < size["mean_items"] <= size["items"]
        assert size["dual_queue_over_searched"] >= 1
    efficiency = [size["layer_efficiency"] for size in sizes]
    assert 0 < efficiency[0] < efficiency[1] <= 1
    table = studies("units", *VLM_S, "--batches", "2", "--sizes", "4,12,24")
    assert f"| 12 | {sizes[1]['mean_items']:.1f} | {100 * efficiency[1]:.1f} % |" in table


@pytest.mark.parametrize("wrong", ["12,4", "4,4", "0", "", "a"])
def test_wrong_sizes_are_refused(studies, wrong):
    status, error = studies.fails("units", *VLM_S, "--sizes", wrong)
    assert status == 2 and "--sizes: " in error


def test_a_curve_begins_and_ends_at_rest_and_stays_within_the_memory(studies):
    answer = json.loads(studies("memory", *VLM_S, "--json"))
    assert [curve["name"] for curve in answer["curves"]] == ["1f1b", "interleaved", "dip", "plan"]
    for curve in answer["curves"]:
        at, held = curve["held_from_ns"], curve["held_bytes"]
        assert at == sorted(at) and at[0] == 0 and at[-1] <= curve["makespan_ns"] <= curve["step_ns"]
        assert held[0] == held[-1] == curve["base_bytes"] == min(held)
        assert max(held) == curve["peak_bytes"] <= answer["usable_bytes"]
        ends = [*at[1:], curve["makespan_ns"]]
        mean = sum(bytes_ * (end - start) for start, end, bytes_ in zip(at, ends, held)) / curve["makespan_ns"]
        assert curve["mean_bytes"] == pytest.approx(mean)
    table = studies("memory", *VLM_S)
    assert table.count("\n| ") == 5 and "GiB is usable" in table


def test_a_rank_that_is_not_there_is_refused(studies):
    status, error = studies.fails("memory", *VLM_S, "--rank", "4")
    assert status == 2 and "--rank: is 4, must be a whole number from 0 to 3" in error
