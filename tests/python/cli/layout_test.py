"""plan --tp, --pp, --dp: a layout is chosen where it is asked for; one that cannot be says what could."""

import json

import pytest
from cli_shared import BATCH, ONE_DRAW, SCREEN, digests, write_batch


def test_a_layout_is_chosen_where_it_is_asked_for(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", *BATCH, *ONE_DRAW, "--partition",
            "dip", "--max-rounds", "1"]
    plan = json.loads(pipeweaver(*rest, "--tp", "auto", "--json", "--threads", "1", "--out", tmp_path / "one"))
    tried = plan["layout_choice"]["tried"]
    assert len(tried) > 4
    taken, = [one for one in tried if one["taken"]]
    assert [plan["asked"][key] for key in ("tp", "pp", "dp")] == [taken[key] for key in ("tp", "pp", "dp")]
    assert taken["ns_per_microbatch"] <= 1.005 * tried[0]["ns_per_microbatch"]
    assert [one["ns_per_microbatch"] for one in tried] == sorted(one["ns_per_microbatch"] for one in tried)
    assert all(one["tp"] * one["pp"] * one["dp"] == 16 and one["microbatches"] == 4 * one["dp"] for one in tried)
    assert plan["asked"]["microbatches"] == taken["microbatches"]
    assert {one["why"]: one["layouts"] for one in plan["layout_choice"]["refused"]}[
        "tp does not divide the 8 GPUs of a node"] == 1
    table = pipeweaver(*rest, "--tp", "auto", "--pp", "auto", "--dp", "auto", "--threads", "2", "--verbose",
                       "--out", tmp_path / "two")
    assert f" of {len(tried)} that fit, by known schedules" in table
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_all_degrees_are_chosen_at_one_global_batch_and_a_command_repeats_it(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", *ONE_DRAW,
            "--max-rounds", "1", "--json"]
    plan = json.loads(pipeweaver(*rest, "--layout", "auto", "--tp", "8", "--pp", "2", "--microbatches", "8",
                                 "--out", tmp_path / "auto"))
    choice = plan["layout_choice"]
    tried = choice["tried"]
    assert choice["same_batch"] and all(one["microbatches"] == 8 for one in tried)
    assert {one.get("cp", 1) for one in tried} > {1} and {one["zero"] for one in tried} > {1}
    own, = [one for one in tried if one["own"]]
    assert [own[key] for key in ("tp", "pp", "dp")] == [8, 2, 1]
    taken, = [one for one in tried if one["taken"]]
    assert taken["step_ns"] <= own["step_ns"]
    layout = [word for key in ("tp", "pp", "dp", "cp", "zero") if key in taken
              for word in (f"--{key}", str(taken[key]))]
    again = json.loads(pipeweaver(*rest, *layout, "--global-batch", "8mb", "--packing", plan["asked"]["packing"],
                                  "--out", tmp_path / "again"))
    assert again["layout_choice"] is None and again["step_ns"] == plan["step_ns"]


@pytest.mark.parametrize("context", ["all-to-all", "ring"])
def test_context_parallel_GPUs_are_named_where_there_are_any(pipeweaver, tmp_path, context):
    rest = ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", *BATCH, *ONE_DRAW, "--partition",
            "dip", "--max-rounds", "1", "--tp", "4", "--pp", "2"]
    plan = json.loads(pipeweaver(*rest, "--json", "--cp", "2", "--context", context, "--out", tmp_path / "two"))
    assert [plan["asked"].get(key) for key in ("tp", "cp", "pp", "dp", "context", "ep")] == [4, 2, 2, 1, context, None]
    assert "tp 4 x cp 2 x pp 2 x dp 1." in (tmp_path / "two/report.html").read_text()
    one = json.loads(pipeweaver(*rest, "--json", "--out", tmp_path / "one"))
    assert "cp" not in one["asked"] and "context" not in one["asked"] and one["asked"]["dp"] == 2


def test_a_chosen_layout_keeps_the_context_parallel_GPUs(pipeweaver, tmp_path):
    plan = json.loads(pipeweaver("plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", *BATCH,
                                 *ONE_DRAW, "--partition", "dip", "--max-rounds", "1", "--tp",
                                 "auto", "--cp", "2", "--json", "--out", tmp_path / "plan"))
    tried = plan["layout_choice"]["tried"]
    assert tried and all(one["cp"] == 2 and one["tp"] * one["pp"] * one["dp"] == 8 for one in tried)


@pytest.mark.parametrize("model, text, more", [
    ("llama-3.2-11b-vision-llm", 3000, []),
    ("nextstep-1-14b", 400, [{"width": 256, "height": 256, "role": "target"}] * 2),
])
def test_networks_with_added_cross_attention_or_a_head_are_planned(pipeweaver, tmp_path, model, text, more):
    lines = [json.dumps({"id": str(i), "text_tokens": text, "images": more}) for i in range(8)]
    (tmp_path / "batch.jsonl").write_text("\n".join(lines) + "\n")
    plan = json.loads(pipeweaver("plan", "--model", model, "--cluster", "h100-sxm:16",
                                 "--batch", tmp_path / "batch.jsonl",
                                 "--tp", "8", "--pp", "2", "--max-rounds", "1", "--json", "--out", tmp_path / "plan"))
    assert plan["step_ns"] > 0 and 0 < plan["mfu"] < 1


LAYOUT_FAULTS = [
    (["h100-sxm:128", "--tp", "1", "--pp", "128"], 2, "--pp: 128 ranks are more than the 63 layers of module 'vit'"),
    (["h100-sxm:48", "--tp", "3", "--pp", "16"], 2,
     "--tp: 3 does not divide the 16 attention heads of module 'vit'; the next smaller that divides those of every "
     "module is 2"),
    (["h100-sxm:64", "--tp", "8", "--pp", "1"], 2,
     "--dp: 8 replicas are more than the batch's 2 microbatches, and each needs one"),
]


@pytest.mark.parametrize("options, status, message", LAYOUT_FAULTS, ids=[" ".join(f[0]) for f in LAYOUT_FAULTS])
def test_a_layout_that_does_not_divide_the_model_or_batch_says_what_does(pipeweaver, tmp_path, options, status,
                                                                         message):
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
    assert line.endswith("; 16 GPUs fit it as tp 4 x pp 4 x dp 1")
    assert pipeweaver(*rest, "h100-sxm:16", "--tp", "8", "--pp", "2", "--max-rounds", "1")
    status, line = pipeweaver.fails(*rest, "h100-sxm:16", "--tp", "4", "--pp", "1")
    assert status == 4 and " fits on these GPUs" in line


def test_a_target_that_replicates_in_some_layouts_chooses_among_these(pipeweaver, tmp_path):
    """torchtitan shares no weights out where GPUs share experts among those of a tensor parallel group alone."""
    done = pipeweaver.run("plan", "--model", "qwen3-30b-a3b", "--cluster", "h200-sxm:8", "--target", "torchtitan",
                          "--zero", "0", "--ep", "2", "--dataset", "constant-1024", "--microbatches", "2",
                          "--max-rounds", "0", "--quiet", "--out", tmp_path / "plan")
    assert done.returncode == 0, done.stderr
    asked = json.loads((tmp_path / "plan" / "plan.json").read_text())["asked"]
    assert asked["ep"] == 2 and asked["tp"] % 2 == 0
