"""How encoders lie: as frameworks build them, under a target and by name."""

import json

import pytest

JOB = ("--model", "qwen2.5-vl-7b", "--cluster", "h200-sxm:16", "--tp", "4", "--pp", "2", "--dataset", "vlm-mix",
       "--microbatches", "4")
WHOLE = ("vit: whole on each tensor parallel GPU, all images on each context parallel group, never recomputed, as "
         "megatron-bridge builds it")


def emulated(pipeweaver, *options):
    return json.loads(pipeweaver("emulate", *JOB, "--recompute", "full", "--any-memory", "--json", *options))


def test_an_encoder_that_lies_whole_takes_longer_and_holds_more(pipeweaver):
    split, whole = emulated(pipeweaver), emulated(pipeweaver, "--encoders", "megatron-bridge")
    assert whole["step_ns"] > split["step_ns"]
    assert WHOLE in whole["asked"]["assumed"] and not any("vit:" in one for one in split["asked"]["assumed"])
    assert emulated(pipeweaver, "--target", "megatron")["step_ns"] == whole["step_ns"]
    assert emulated(pipeweaver, "--target", "megatron", "--encoders", "split")["step_ns"] == split["step_ns"]


def test_a_plan_says_how_they_lie_and_its_commands_print_the_steps(pipeweaver, tmp_path):
    said = pipeweaver("plan", *JOB, "--target", "megatron", "--max-rounds", "0", "--out", tmp_path / "plan")
    assert "encoders" in said and "as megatron-bridge builds it" in " ".join(said.split())
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    assert WHOLE in plan["asked"]["assumed"]
    for rung in plan["ladder"]:
        if rung["command"] and "why_nothing" not in rung:
            assert "--encoders megatron-bridge" in rung["command"]
            again = json.loads(pipeweaver(*rung["command"].split()[1:], "--json"))
            assert again["step_ns"] == rung["step_ns"], rung["rung"]


@pytest.mark.parametrize("words, error", [
    (["--encoders", "some"], "--encoders: is 'some', must be one of as-built, split, megatron-bridge"),
    (["--encoders", "torchtitan"], "--encoders: how torchtitan builds the encoders of 'qwen2.5-vl-7b' (qwen2_5_vl) was "
                                   "not read"),
    (["--target", "megatron", "--cp", "2"], "--cp: megatron-bridge builds 'qwen2.5-vl-7b' for 1 context parallel group "
                                            "at most"),
])
def test_what_is_not_built_so_is_refused_in_one_line(pipeweaver, words, error):
    status, line = pipeweaver.fails("emulate", *JOB, *words)
    assert status == 2 and error in line


def test_a_recommendation_says_how_they_lie_and_its_commands_do(pipeweaver):
    ask = ("recommend", "--model", "qwen2.5-vl-7b", "--dataset", "vlm-mix", "--global-batch", "64", "--tokens", "1B",
           "--clusters", "h200-sxm", "--gpus", "16", "--target", "megatron", "--max-rounds", "0")
    assert f"\nencoders: {WHOLE}\n" in pipeweaver(*ask, "--cp", "1")
    rows = json.loads(pipeweaver(*ask, "--cp", "1", "--encoders", "split", "--json"))["rows"]
    assert rows and all("--encoders split" in row["command"] for row in rows)


def test_flags_deal_images_where_that_is_faster_and_their_files_do(pipeweaver, tmp_path):
    said = pipeweaver("plan", "--model", "qwen3-vl-4b", "--cluster", "h100-sxm:8", "--tp", "2", "--pp", "2", "--cp",
                      "2", "--dataset", "vlm-mix", "--microbatches", "8", "--target", "megatron", "--max-rounds", "0",
                      "--out", tmp_path / "plan")
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    rungs = {rung["rung"]: rung for rung in plan["ladder"]}
    flags, head = rungs["flags"], rungs[plan["headline"]["rung"]]
    assert "images dealt" in flags["way"] and "model.vision_dp_when_cp=true" in flags["needs"]
    assert flags["step_ns"] < rungs["data"]["step_ns"] and "--deal-images" not in rungs["data"]["command"]
    again = json.loads(pipeweaver(*flags["command"].split()[1:], "--json"))
    assert "--deal-images" in flags["command"] and again["step_ns"] == flags["step_ns"]
    assert "images dealt" in head["way"] and "images dealt" in said
    for file in ("megatron.sh", "megatron.yaml"):
        assert "vision_dp_when_cp" in (tmp_path / "plan/megatron" / file).read_text()
    assert json.loads((tmp_path / "plan/launch.json").read_text())["deals_images"] == "model.vision_dp_when_cp=true"
    assert (tmp_path / "plan/launch-assignment.json").exists()


def test_flags_do_not_recompute_encoders_where_that_is_faster_and_their_files_do_so(pipeweaver, tmp_path):
    pipeweaver("plan", "--model", "qwen2.5-vl-7b", "--cluster", "h200-sxm:8", "--tp", "2", "--pp", "2", "--dataset",
               "vlm-mix", "--microbatches", "8", "--target", "megatron", "--encoders", "ms-swift", "--max-rounds", "0",
               "--out", tmp_path / "plan")
    rungs = {rung["rung"]: rung for rung in json.loads((tmp_path / "plan/plan.json").read_text())["ladder"]}
    flags = rungs["flags"]
    assert "encoders not recomputed" in flags["way"] and "--vit-gradient-checkpointing false" in flags["needs"]
    assert flags["step_ns"] < rungs["data"]["step_ns"] and "--encoder-recompute" not in rungs["data"]["command"]
    again = json.loads(pipeweaver(*flags["command"].split()[1:], "--json"))
    assert "--encoder-recompute never" in flags["command"] and again["step_ns"] == flags["step_ns"]
    launch = json.loads((tmp_path / "plan/launch.json").read_text())
    assert launch["encoder_recompute"] == "never"
    assert launch["encoder_switch"] == "--vit-gradient-checkpointing false"
    assert "\n  --vit-gradient-checkpointing false\n" in (tmp_path / "plan/megatron/megatron.sh").read_text()
    other = tmp_path / "plan/launch.json"
    other.write_text(json.dumps(launch | {"encoder_switch": "--vision; rm"}))
    status, line = pipeweaver.fails("emit", "--plan", tmp_path / "plan", "--target", "megatron", "--out",
                                    tmp_path / "a")
    assert status == 2 and "encoder_switch" in line and "--recompute-vision" in line
