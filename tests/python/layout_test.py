"""plan --tp, --pp, --dp: a layout is chosen where it is asked for; one that cannot be says what could."""

import json

import pytest
from cli_shared import BATCH, SCREEN, digests, write_batch


def test_a_layout_is_chosen_where_it_is_asked_for(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", *BATCH, "--partition", "dip", "--max-rounds", "1"]
    plan = json.loads(pipeweaver(*rest, "--tp", "auto", "--json", "--threads", "1", "--out", tmp_path / "one"))
    tried = plan["layout_choice"]["tried"]
    assert len(tried) > 4
    assert [plan["asked"][key] for key in ("tp", "pp", "dp")] == [tried[0][key] for key in ("tp", "pp", "dp")]
    assert [one["ns_per_microbatch"] for one in tried] == sorted(one["ns_per_microbatch"] for one in tried)
    assert all(one["tp"] * one["pp"] * one["dp"] == 32 and one["microbatches"] == 4 * one["dp"] for one in tried)
    assert plan["asked"]["microbatches"] == tried[0]["microbatches"]
    assert {one["why"]: one["layouts"] for one in plan["layout_choice"]["refused"]}[
        "tp does not divide the 8 GPUs of a node"] == 3
    table = pipeweaver(*rest, "--tp", "auto", "--pp", "auto", "--dp", "auto", "--threads", "2", "--out", tmp_path / "two")
    assert f"layout: the fastest of {len(tried)} that fit" in table
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


LAYOUT_FAULTS = [
    (["h100-sxm:128", "--tp", "1", "--pp", "128"], 2, "--pp: 128 ranks are more than the 63 layers of module 'vit'"),
    (["h100-sxm:48", "--tp", "3", "--pp", "16"], 2,
     "--tp: 3 does not divide the 16 attention heads of module 'vit'; the next smaller that divides those of every module is 2"),
    (["h100-sxm:64", "--tp", "8", "--pp", "1"], 2, "--dp: 8 replicas are more than the batch's 2 microbatches, and each needs one"),
]


@pytest.mark.parametrize("options, status, message", LAYOUT_FAULTS, ids=[" ".join(f[0]) for f in LAYOUT_FAULTS])
def test_a_layout_that_does_not_divide_the_model_or_batch_says_what_does(pipeweaver, tmp_path, options, status, message):
    batch = write_batch(tmp_path, [(3000, [])] * 4)
    assert pipeweaver.fails("plan", "--model", "dip-vlm-m", "--batch", batch, "--cluster", *options, "--out",
                            tmp_path / "plan") == (status, f"pipeweaver: {message}")


def test_a_model_that_does_not_fit_says_rank_bytes_and_what_would_fit(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--batch", write_batch(tmp_path, [(3000, [SCREEN])] * 8), "--out",
            tmp_path / "plan", "--cluster"]
    status, line = pipeweaver.fails(*rest, "h100-sxm:8", "--tp", "8", "--pp", "1")
    assert status == 4
    assert line.startswith("pipeweaver: rank 0: weights, gradients, optimizer state and buffers need ")
    assert " GiB short; " in line
    assert line.endswith("; 16 GPUs fit it as tp 8 x pp 2 x dp 1")
    assert pipeweaver(*rest, "h100-sxm:16", "--tp", "8", "--pp", "2", "--max-rounds", "1")
    status, line = pipeweaver.fails(*rest, "h100-sxm:16", "--tp", "4", "--pp", "1")
    assert status == 4 and " fits on these GPUs" in line
