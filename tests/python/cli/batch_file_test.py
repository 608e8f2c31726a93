"""plan --batch FILE: samples of one's own, and one clear line for what cannot be planned."""

import gzip
import json
import shlex

import pytest
from cli_shared import PLAN, SCREEN, write_batch
from used import peak_of, seconds_of_children, slowness


def test_a_batch_file_is_planned_and_a_configuration_file_read(pipeweaver, tmp_path):
    lines = [json.dumps({"id": f"s{i}", "text_tokens": 3000, "images": [{"width": 640, "height": 480}] * (i % 3)})
             for i in range(8)]
    (tmp_path / "batch.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.json").write_text(json.dumps({"model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "pp": 4,
                                                    "batch": str(tmp_path / "batch.jsonl"), "max-rounds": 1}))
    answer = json.loads(pipeweaver("plan", "--config", tmp_path / "plan.json", "--json", "--out", tmp_path / "plan"))
    assert answer["asked"]["samples"] == 8
    assert answer["asked"]["microbatches"] == 4


@pytest.mark.parametrize("samples, items", [([(3000, [])] * 6, 0), ([(0, [SCREEN] * 20)] * 6, 120)],
                         ids=["no image", "only images"])
def test_a_batch_of_one_kind_alone_is_planned(pipeweaver, tmp_path, samples, items):
    plan = json.loads(pipeweaver(*PLAN, "--batch", write_batch(tmp_path, samples), "--max-rounds", "1", "--json",
                                 "--out", tmp_path / "plan"))
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] and plan["step_ns"] <= min(
        b["step_ns"] for b in plan["baselines"] if not b["opponent"])
    problem = json.loads(gzip.decompress((tmp_path / "plan/replica-000/problem.json.gz").read_bytes()))
    for module in ["llm", "vit"] if items else ["llm"]:
        assert any(module in task["module"] for task in problem["tasks"])
    assignment = json.loads((tmp_path / "plan/assignment.json").read_text())
    microbatches = assignment["replicas"][0]["microbatches"]
    assigned = {(one["sample"], one["item"]) for mb in microbatches for unit in mb["units"] for one in unit["items"]}
    assert len(assigned) == items
    # Also without text: then positions are weighed, not loss tokens.
    assert abs(sum(mb["loss_weight"] for mb in microbatches) - 1) < 1e-9


def test_a_batch_line_that_is_not_json_names_file_and_line(pipeweaver, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":10}\n{"id":"b","text_tokens":\n')
    status, line = pipeweaver.fails(*PLAN, "--batch", batch, "--out", tmp_path / "plan")
    assert status == 2
    assert f"{batch}:2: " in line
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("line", ['{"id":"b","text_tokens":7', '{"id":"b","text_to', '{"id":"b","images":[{"width":1'])
def test_a_line_that_was_cut_is_said_to_end_too_early(pipeweaver, tmp_path, line):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":7}\n' + line)
    status, message = pipeweaver.fails("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--batch", batch,
                              "--out", tmp_path / "out")
    assert status == 2 and f"{batch}:2: is not JSON" in message and message.endswith("it ends too early")


def test_what_an_image_may_have_is_listed_with_tokens_and_patches(pipeweaver, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":7,"images":[{"zzzzzz":1}]}\n')
    status, message = pipeweaver.fails("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--batch", batch,
                              "--out", tmp_path / "out")
    assert status == 2 and "tokens" in message and "patches" in message and "width" in message


def test_an_image_larger_than_a_microbatch_is_refused_with_its_line(pipeweaver, tmp_path):
    batch = write_batch(tmp_path, [(100, [SCREEN]), (100, [SCREEN, {"tokens": 9000, "patches": 36000}])])
    assert pipeweaver.fails(*PLAN, "--batch", batch, "--out", tmp_path / "plan") == (
        2, f"pipeweaver: {batch}:2: sample 's1' has an item (image, number 1) of 9000 tokens, a microbatch of "
           "'dip-vlm-m' holds 8192 (microbatch_tokens of its model file, or --microbatch-tokens; --too-long own "
           "packs it alone)")
    assert not (tmp_path / "plan").exists()


@pytest.mark.alone
def test_a_batch_file_of_a_whole_data_set_is_refused_at_once_in_little_memory(pipeweaver, tmp_path):
    with open(tmp_path / "batch.jsonl", "w") as file:
        block = '{"id":"x","text_tokens":1}\n' * 1000
        for _ in range(1001):
            file.write(block)
    code, peak, said = peak_of([pipeweaver.path, *PLAN, "--batch", tmp_path / "batch.jsonl",
                                "--out", tmp_path / "plan"])
    assert code == 4
    assert said == (f"pipeweaver: {tmp_path / 'batch.jsonl'}:1000001: is one sample too many: a batch file is "
                    "the batch of one step, of at most 1000000 samples; write a file for each step\n")
    assert peak < 64 << 20


@pytest.mark.alone
def test_more_microbatches_than_can_be_planned_are_refused_before_anything_is_built(pipeweaver, tmp_path):
    begun = seconds_of_children()
    assert pipeweaver.fails(*PLAN, "--dataset", "laion-2b", "--microbatches", "6251", "--out", tmp_path / "plan") == (
        2, "pipeweaver: a replica has 6251 microbatches of 50008 tasks or more, allowed are 50000 tasks: take a "
           "smaller batch, or more replicas (--dp)")
    # Drawing them takes 2 s of the processor; half as many, which are built, take minutes.
    assert seconds_of_children() - begun < 60 * slowness()


def test_samples_too_long_are_dropped_or_have_a_microbatch_of_their_own(pipeweaver, tmp_path):
    batch = write_batch(tmp_path, [(900, []), (5000, [SCREEN]), (100, [SCREEN]), (700, [])])
    ask = [*PLAN, "--batch", batch, "--microbatch-tokens", "1000", "--max-rounds", "0", "--headroom", "10%", "--json"]
    assert pipeweaver.fails(*ask, "--out", tmp_path / "plan") == (
        2, f"pipeweaver: {batch}:2: sample 's1' has 5169 tokens, a microbatch of 'dip-vlm-m' holds 1000 "
           "(--microbatch-tokens; --too-long own packs it alone)")
    assert not (tmp_path / "plan").exists()

    def planned(way):
        plan = json.loads(pipeweaver(*ask, "--too-long", way, "--packing", "given", "--out", tmp_path / way))
        assignment = json.loads((tmp_path / way / "assignment.json").read_text())
        ids = [[one["id"] for one in mb["samples"]] for mb in assignment["replicas"][0]["microbatches"]]
        assert plan["asked"]["microbatch_tokens"] == 1000 and plan["asked"]["too_long"] == way
        return plan["asked"], assignment, ids
    asked, assignment, ids = planned("drop")
    assert asked["dropped"] == 1 and asked["samples"] == 3 and assignment["dropped"] == ["s1"]
    assert ids == [["s0"], ["s2", "s3"]]
    asked, assignment, ids = planned("own")
    assert "dropped" not in asked and "dropped" not in assignment
    assert ids == [["s0"], ["s1"], ["s2", "s3"]]

    # A schedule is of the batch as its plan packed it; a partition stays for microbatches of another size.
    job = ["--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4", "--batch", batch, "--json"]
    emulated = json.loads(pipeweaver("emulate", *job, "--schedule", tmp_path / "own"))
    assert emulated["asked"]["microbatches"] == 3 and emulated["asked"]["microbatch_tokens"] == 1000
    assert emulated["asked"]["headroom"] == 0.1  # as is what it kept free
    status, line = pipeweaver.fails("emulate", *job, "--schedule", tmp_path / "own", "--headroom", "3%")
    assert status == 2 and "whose times or memory are others" in line
    again = json.loads(pipeweaver("emulate", *job, "--partition", tmp_path / "own" / "partition.json",
                                  "--policy", "gpipe", "--microbatch-tokens", "7000"))
    assert again["asked"]["microbatches"] == 2
    assert pipeweaver.fails("emulate", *job, "--too-long", "cut")[1] == (
        "pipeweaver: --too-long: is 'cut', must be one of error, drop, own")


def test_a_data_set_in_a_batch_file_is_asked_about_and_steps_are_drawn_of_it(pipeweaver, tmp_path):
    batch = tmp_path / "all.jsonl"
    batch.write_text("".join(json.dumps({"id": f"s{k}", "text_tokens": 700 + k % 600,
                                         "images": [{"width": 448, "height": 448}] * (k % 3)}) + "\n"
                             for k in range(1200)))
    job = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", "--batch", batch]
    status, line = pipeweaver.fails("plan", *job, "--out", tmp_path / "no")
    assert status == 2 and f"--batch: {batch} has 1200 samples, " in line
    assert line.endswith("add --global-batch N to draw steps of N samples from it, or --global-batch 1200 if all of "
                         "them are one")
    pipeweaver("plan", *job, "--global-batch", "40", "--max-rounds", "0", "--out", tmp_path / "plan")
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    assert plan["asked"]["samples"] == 40
    assert plan["partition"]["chosen_on"] == f"{batch}, seeds 101-105"
    for rung in plan["ladder"]:
        if rung["command"] and "why_nothing" not in rung:
            said = json.loads(pipeweaver(*shlex.split(rung["command"])[1:], "--json"))
            assert said["step_ns"] == rung["step_ns"], rung["command"]
