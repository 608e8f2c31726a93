"""pipeweaver groups: modules on GPUs of their own, beside shared GPUs."""

import json
import shlex
import sys

import pytest
from checkout import ROOT
from used import seconds_of_children, slowness

sys.path.insert(0, str(ROOT / "tools"))
import one_number  # noqa: E402

JOB = ("groups", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", "--global-batch", "32mb")


def asked(pipeweaver, *words):
    return json.loads(pipeweaver(*words, "--json"))


def test_the_best_split_is_that_of_its_own_gpus(pipeweaver):
    best = asked(pipeweaver, *JOB)["own"]
    split = ",".join(f"{one['group']}={one['gpus']}:tp{one['tp']}:pp{one['pp']}" for one in best["groups"])
    assert asked(pipeweaver, *JOB, "--groups", split)["own"] == best
    for other in ("vit=12,llm=4", "vit=15,llm=1", "vit=4,llm=12"):
        own = asked(pipeweaver, *JOB, "--groups", other)["own"]
        assert own is None or own["step_ns"] >= best["step_ns"]


def test_the_split_that_is_told_asks_for_it_again(pipeweaver, tmp_path):
    answer = asked(pipeweaver, *JOB)
    assert asked(pipeweaver, *JOB, "--groups", answer["split"])["own"] == answer["own"]
    keys = ("gpus", "tp", "cp", "pp", "dp", "zero")
    groups = [{"modules": [one["group"]], **{key: one[key] for key in keys}} for one in answer["own"]["groups"]]
    file = tmp_path / "split.json"
    file.write_text(json.dumps({"format": "pipeweaver-split/1", "groups": groups}))
    assert asked(pipeweaver, *JOB, "--groups", file)["own"] == answer["own"]


@pytest.mark.parametrize("groups, complaint", [
    ([{"modules": ["vit"]}, {"modules": ["llm"], "zero": 2}], "groups[1].zero"),
    ([{"modules": ["vit"]}, {"modules": ["llm"], "gpu": 2}], "gpu"),
    ([{"modules": []}, {"modules": ["llm"]}], "groups[0].modules"),
    ([{"modules": ["vit", "llm"]}, {"modules": ["llm"]}], "llm is named 2 times"),
    ([{"modules": ["vit"], "gpus": 4, "tp": 2, "pp": 1, "dp": 1}, {"modules": ["llm"]}], "its degrees need 2"),
])
def test_a_wrong_file_is_one_line(pipeweaver, tmp_path, groups, complaint):
    file = tmp_path / "split.json"
    file.write_text(json.dumps({"format": "pipeweaver-split/1", "groups": groups}))
    done = pipeweaver.run(*JOB, "--groups", file)
    assert done.returncode == 2 and complaint in done.stderr and done.stderr.count("\n") == 1


MIMO = ("groups", "--model", "qwen3.5-27b", "--cluster", "h100-sxm:17", "--dataset", "constant-1472+1x768px",
        "--microbatch-tokens", "2048", "--global-batch", "32")


def test_grids_of_the_published_layout_are_written(pipeweaver, tmp_path):
    """The variables of Megatron-Bridge's slurm_sft.sh, by its defaults."""
    script = tmp_path / "mimo.sh"
    pipeweaver(*MIMO, "--groups", "vit=1,llm=16:tp4:pp2", "--out", script)
    said = dict(line.removeprefix("export ").split("=") for line in script.read_text().splitlines()
                if line.startswith("export "))
    degrees = ("TP", "PP", "CP", "DP", "OFFSET")
    grids = {f"MIMO_{name}_{degree}": value for name, values in (("LANGUAGE", "4 2 1 2 0"), ("IMAGES", "1 1 1 1 16"))
             for degree, value in zip(degrees, values.split(), strict=True)}
    assert said == {**grids, "MICRO_BATCH_SIZE": "2"}


def test_a_split_without_grids_is_refused(pipeweaver, tmp_path):
    done = pipeweaver.run(*MIMO, "--groups", "vit+llm=16:tp4:pp2", "--out", tmp_path / "mimo.sh")
    assert done.returncode == 4 and "grids are for two groups" in done.stderr
    assert not (tmp_path / "mimo.sh").exists()


def test_a_step_is_a_problem_that_solve_takes(pipeweaver, tmp_path):
    """Its bound holds for the step that is printed; a search begins with known orders."""
    own = asked(pipeweaver, *JOB, "--problem", tmp_path / "problem.json")["own"]
    problem = json.loads((tmp_path / "problem.json").read_text())
    assert len(problem["ranks"]) == sum(one["pp"] for one in own["groups"])
    assert len(problem["tasks"]) == 2 * own["rounds"] * len(problem["ranks"])
    pipeweaver("solve", tmp_path / "problem.json", "--max-rounds", "20", "--quiet", "--out", tmp_path / "solved.json")
    solved = json.loads((tmp_path / "solved.json").read_text())
    assert solved["lower_bound_ns"] <= own["step_ns"]
    assert solved["lower_bound_ns"] <= solved["makespan_ns"] <= 1.1 * own["step_ns"]


@pytest.mark.parametrize("options", [
    "--dataset vlm-mix --microbatches 8",
    "--dataset vlm-mix --global-batch 64 --packing balanced --recipe megatron-core-plain --headroom 5%",
    f"--batch {ROOT}/examples/batch.jsonl --seed 7 --zero 0",
])
def test_a_plans_rung_is_what_its_command_prints(pipeweaver, tmp_path, options):
    plan = asked(pipeweaver, "plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4",
                 *options.split(), "--target", "any", "--max-rounds", "1", "--out", tmp_path / "plan")
    rung = plan["beyond"][-1]
    assert (rung["rung"], rung["target"]) == ("groups", None)
    words = shlex.split(rung["command"])
    assert words[:2] == ["pipeweaver", "groups"]
    own = asked(pipeweaver, *words[1:])["own"]
    assert own["step_ns"] == rung["step_ns"]
    assert max(one["peak_bytes"] for one in own["groups"]) == rung["peak_bytes"] <= rung["usable_bytes"]
    others = words[1:words.index("--groups")]
    assert own["step_ns"] <= 1.05 * asked(pipeweaver, *others)["own"]["step_ns"]


@pytest.mark.parametrize("batch", ["--dataset vlm-mix --global-batch 64", "--dataset vlm-mix --global-batch 32mb",
                                   f"--batch {ROOT}/examples/batch.jsonl"])
def test_megatron_mimo_launches_a_split_that_its_grids_say(pipeweaver, tmp_path, batch):
    """Its other rungs are Megatron's."""
    plans = [asked(pipeweaver, "plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "2",
                   *batch.split(), "--packing", "balanced", "--target", target, "--out", tmp_path / target)
             for target in ("megatron", "megatron-mimo")]
    steps = [[(rung["rung"], rung["step_ns"]) for rung in plan["ladder"]] for plan in plans]
    assert steps[0] == steps[1] and not any(rung["rung"] == "groups" for rung in plans[0]["beyond"])
    rung = plans[1]["beyond"][-1]
    assert (rung["rung"], rung["target"]) == ("groups", "megatron-mimo")
    own = asked(pipeweaver, *shlex.split(rung["command"])[1:])["own"]
    assert own["step_ns"] == rung["step_ns"]
    vit, llm = own["groups"]
    assert vit["pp"] == vit["zero"] == llm["zero"] == 1 and llm["dp"] % vit["dp"] == 0
    script = tmp_path / "megatron-mimo/megatron-mimo/mimo.sh"
    is_advised = rung.get("worth", {}).get("is_enough", False)
    assert (plans[1]["headline"]["rung"] == "groups") == is_advised
    if "why_nothing" in rung:  # shared GPUs are faster
        assert rung["files"] == [] and not script.exists()
        return
    assert rung["files"] == ["megatron-mimo/mimo.sh"]
    pipeweaver(*shlex.split(rung["command"])[1:], "--out", tmp_path / "mimo.sh")
    assert script.read_text() == (tmp_path / "mimo.sh").read_text()


# The published layout of 17 GPUs, which shared ones divide into 17 stages or replicas alone.
PLAN_OF_17 = ("plan", "--model", "qwen3.5-27b", "--cluster", "h100-sxm:17", "--tp", "1", "--pp", "17", "--dataset",
              "constant-1472+1x768px", "--microbatch-tokens", "2048", "--global-batch", "32", "--target",
              "megatron-mimo")


@pytest.fixture(scope="module")
def on_17(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("on-17") / "plan"
    text = pipeweaver(*PLAN_OF_17, "--out", folder).split("\nwritten to ")[0]
    return json.loads((folder / "plan.json").read_text()), folder, text


def test_a_split_that_wins_its_draws_is_advised(on_17):
    plan, folder, text = on_17
    rung, headline = plan["beyond"][-1], plan["headline"]
    worth = rung["worth"]
    steps = {one["rung"]: one["step_ns"] for one in plan["ladder"]}
    assert worth["gain"] == pytest.approx(steps[worth["over"]] / rung["step_ns"])
    assert worth["draws"] == 200 and worth["is_enough"] == (worth["wins"] >= 190)
    assert worth["is_enough"] and (headline["rung"], headline["step_ns"]) == ("groups", rung["step_ns"])
    assert headline["target"] == "megatron-mimo" and headline["compared"]["rung"] in steps
    assert f"groups wins {worth['wins']} of 200 draws" in " ".join(text.split())
    pages = {"terminal": one_number.terminal(text), "report": one_number.report((folder / "report.html").read_text())}
    assert one_number.unequal(plan, pages) == [] and one_number.unworthy(plan) == []


def peaks(groups):
    return {one["group"]: (one["gpus"], one["recompute"], one["peak_bytes"]) for one in groups}


def test_grids_of_a_plan_hold_what_was_planned(pipeweaver, on_17):
    plan, folder, _ = on_17
    own = asked(pipeweaver, *shlex.split(plan["beyond"][-1]["command"])[1:])["own"]
    checked = asked(pipeweaver, "check", "--cluster", "h100-sxm:17", folder / "megatron-mimo/mimo.sh")
    assert checked["fits"] and checked["constructs"] and checked["framework"] == "megatron-mimo:067f987d"
    assert peaks(checked["groups"]) == peaks(own["groups"])
    assert checked["memory"]["peak_bytes"] == max(one["peak_bytes"] for one in own["groups"])


@pytest.mark.parametrize("options", [
    "--global-batch 32mb --headroom 2% --groups vit=8:tp4:pp1:dp2:zero1,llm=8:tp4:pp1:dp2:zero1",
    "--global-batch 32mb --seed 3 --groups vit=8:tp8:pp1:dp1:zero1,llm=8:tp2:pp2:dp2:zero1",
    "--global-batch 32mb --groups vit=8:tp8:pp1:dp1:zero1,llm=8:tp2:pp4:dp1:zero1",
])
def test_grids_of_a_split_hold_what_it_does(pipeweaver, tmp_path, options):
    """With full recomputation, items of two replicas at once, stages that are cut by time."""
    script = tmp_path / "mimo.sh"
    own = asked(pipeweaver, *JOB[:7], *options.split(), "--out", script)["own"]
    assert any(one["recompute"] != "none" for one in own["groups"])
    checked = asked(pipeweaver, "check", "--cluster", "h100-sxm:16", script)
    assert checked["fits"] and peaks(checked["groups"]) == peaks(own["groups"])
    ranks = checked["memory"]["ranks"]
    assert len(ranks) == sum(one["pp"] for one in own["groups"])
    for rank in ranks:
        parts = ("weights", "gradients", "optimizer", "buffers", "activations", "transient")
        assert rank["peak_bytes"] == sum(rank[f"{part}_bytes"] for part in parts)


GRIDS = """export MIMO_LANGUAGE_TP=4 MIMO_LANGUAGE_PP=2 MIMO_LANGUAGE_CP=1 MIMO_LANGUAGE_DP=2 MIMO_LANGUAGE_OFFSET=0
export MIMO_IMAGES_TP=1 MIMO_IMAGES_PP=1 MIMO_IMAGES_CP=1 MIMO_IMAGES_DP=1 MIMO_IMAGES_OFFSET=16
export MICRO_BATCH_SIZE=2 GLOBAL_BATCH_SIZE=32 SEQ_LENGTH=2048
"""
ON_17 = ("check", "--cluster", "h100-sxm:17", "--model", "qwen3.5-27b")


def complaint_of(pipeweaver, *words):
    """Exit status and the line on stderr; of a verdict the text is on stdout."""
    done = pipeweaver.run(*words)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


def test_grids_of_ones_own_are_checked_with_what_they_train(pipeweaver, tmp_path):
    (tmp_path / "mimo.sh").write_text(GRIDS)
    status, line = complaint_of(pipeweaver, *ON_17, tmp_path / "mimo.sh")
    assert status == 5 and "--dataset" in line
    done = pipeweaver.run(*ON_17, "--dataset", "constant-1472+1x768px", tmp_path / "mimo.sh", "--json")
    checked = json.loads(done.stdout)
    assert [(one["group"], one["first_gpu"], one["gpus"]) for one in checked["groups"]] == [("vit", 16, 1),
                                                                                           ("llm", 0, 16)]
    assert checked["stages"] == [32, 32] and checked["memory"]["microbatches"] == 16
    assert done.returncode == (0 if checked["verdict"] in ("fits", "close") else 4)


def test_what_grids_have_not_is_one_line(pipeweaver, tmp_path):
    (tmp_path / "mimo.sh").write_text(GRIDS)
    job = (*ON_17, "--batch", ROOT / "examples/batch.jsonl", "--assigned", tmp_path / "mimo.sh")
    status, line = pipeweaver.fails(*job, tmp_path / "mimo.sh")
    assert status == 2 and "--assigned" in line


def test_grids_that_do_not_fit_say_what_they_are_short_of(pipeweaver, tmp_path):
    """16 bytes a parameter of 27 B and more on one GPU, as nothing is shared out."""
    grids = GRIDS.replace("LANGUAGE_TP=4", "LANGUAGE_TP=1").replace("LANGUAGE_PP=2", "LANGUAGE_PP=1")
    (tmp_path / "mimo.sh").write_text(grids.replace("OFFSET=16", "OFFSET=2"))
    job = ("--dataset", "constant-1472+1x768px", tmp_path / "mimo.sh")
    status, line = complaint_of(pipeweaver, *ON_17, *job)
    assert status == 4 and "does not fit" in line and "short" in line
    checked = json.loads(pipeweaver.run(*ON_17, *job, "--json").stdout)
    assert checked["memory"]["short_bytes"] == checked["memory"]["peak_bytes"] - checked["memory"]["usable_bytes"] > 0


@pytest.mark.parametrize("change, status, complaint", [
    ("MIMO_IMAGES_OFFSET=8", 4, "MIMO_IMAGES_OFFSET is 8, among ranks 0 to 15 of LANGUAGE; allowed is 16"),
    ("MIMO_LANGUAGE_SIZE=8", 4, "MIMO_LANGUAGE_SIZE is 8, but tp 4 x pp 2 x cp 1 x dp 2 are 16; allowed is 16"),
    ("MIMO_LANGUAGE_DP=1", 4, "MIMO_IMAGES_OFFSET is 16, but tp 4 x pp 2 x cp 1 x dp 1 of LANGUAGE are 8 ranks"),
    ("MIMO_IMAGES_DP=3 MICRO_BATCH_SIZE=6 GLOBAL_BATCH_SIZE=36", 4,
     "MIMO_LANGUAGE_DP is 2 and MIMO_IMAGES_DP 3; allowed are"),
    ("MIMO_LANGUAGE_PP=3 MIMO_IMAGES_OFFSET=24", 4, "ranks, the cluster has 17 GPUs"),
    ("MIMO_AUDIO_TP=1", 2, "MIMO_AUDIO_TP: there are no grids of a module 'AUDIO', allowed are LANGUAGE and IMAGES"),
    ("MIMO_IMAGES_TP=two", 2, "MIMO_IMAGES_TP: is 'two', must be a whole number"),
    ("PIPEWEAVER_PLANNED='{\"modle\":\"x\"}'", 2, "PIPEWEAVER_PLANNED"),
])
def test_grids_that_cannot_be_are_one_line(pipeweaver, tmp_path, change, status, complaint):
    (tmp_path / "mimo.sh").write_text(f"{GRIDS}export {change}\n")
    said = complaint_of(pipeweaver, *ON_17, "--dataset", "constant-1472+1x768px", tmp_path / "mimo.sh")
    assert said[0] == status and complaint in said[1]


def test_megatron_mimo_has_no_grids_for_a_generator(pipeweaver, tmp_path):
    plan = asked(pipeweaver, "plan", "--model", "dip-t2v-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "2",
                 "--dataset", "t2v-mix", "--microbatches", "4", "--target", "megatron-mimo", "--out", tmp_path / "plan")
    assert all(rung["rung"] != "groups" for rung in plan["beyond"])


@pytest.mark.parametrize("model, target", [("llama3-8b", "any"), ("dip-vlm-s", "torch-actions")])
def test_other_plans_have_no_such_rung(pipeweaver, tmp_path, model, target):
    plan = asked(pipeweaver, "plan", "--model", model, "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4",
                 "--dataset", "constant-4096", "--microbatches", "4", "--target", target, "--max-rounds", "1", "--out",
                 tmp_path / "plan")
    assert all(rung["rung"] != "groups" for rung in plan["beyond"])


def test_time_of_a_groups_stages_adds_up(pipeweaver):
    answer = asked(pipeweaver, *JOB)
    for placing in (answer["own"], answer["shared"]):
        assert placing["gpus"] == sum(one["gpus"] for one in placing["groups"]) <= 16
        for one in placing["groups"]:
            assert one["gpus"] == one["tp"] * one["cp"] * one["pp"] * one["dp"]
            assert sum(one["stages_ns"].values()) == one["pp"] * placing["step_ns"]
    assert answer["change"] == pytest.approx(answer["own"]["step_ns"] / answer["shared"]["step_ns"] - 1)


def test_a_language_model_alone_takes_what_emulate_says(pipeweaver):
    """One group on all GPUs, by another schedule problem and replay."""
    job = ("--model", "llama3-8b", "--cluster", "h100-sxm:16", "--dataset", "constant-8192", "--global-batch", "32")
    own = asked(pipeweaver, "groups", *job, "--groups", "llm=16:tp4:pp2")["own"]
    emulated = asked(pipeweaver, "emulate", *job, "--tp", "4", "--pp", "2", "--partition", "balanced",
                     "--recompute", "none")
    assert own["groups"][0]["recompute"] == "none"
    assert own["step_ns"] == pytest.approx(emulated["step_ns"], rel=0.002)
    peaks = [rank["memory"]["peak_bytes"] for rank in emulated["replicas"][0]["ranks"]]
    assert own["groups"][0]["peak_bytes"] == pytest.approx(max(peaks), rel=0.002)


def test_one_group_takes_as_long_as_shared_gpus(pipeweaver):
    job = ("--model", "llama3-8b", "--cluster", "h100-sxm:16", "--dataset", "constant-8192", "--global-batch", "32")
    assert pipeweaver("groups", *job).splitlines()[-1] == "on GPUs of their own a step is as long"


def test_a_layout_that_fits_emulate_fits_shared_gpus(pipeweaver):
    """What one pass keeps for its backward is not counted again in each mode."""
    job = (*JOB[1:7], "--global-batch", "64", "--tp", "8", "--pp", "2")
    shared = asked(pipeweaver, "groups", *job)["shared"]
    emulated = asked(pipeweaver, "emulate", *job, "--partition", "balanced", "--recompute", "selective",
                     "--policy", "1f1b")
    assert shared["step_ns"] <= 1.01 * emulated["step_ns"]


def test_a_batch_without_items_of_a_module_is_one_line(pipeweaver):
    job = ("groups", "--model", "qwen2.5-omni-7b", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix",
           "--global-batch", "16mb")
    done = pipeweaver.run(*job)
    assert done.returncode == 2 and "--groups: the batch has nothing for audio" in done.stderr
    assert asked(pipeweaver, *job, "--groups", "vit,audio+llm")["own"]


def test_json_and_text_say_the_same(pipeweaver):
    answer, text = asked(pipeweaver, *JOB), pipeweaver(*JOB)
    shorter = f"{100 * abs(answer['change']):.1f} % {'shorter' if answer['change'] <= 0 else 'longer'}"
    assert text.splitlines()[-1] == f"on GPUs of their own a step is {shorter}"


@pytest.mark.parametrize("words, complaint", [
    (("--groups", "vit=8,lm=8"), "no module is called 'lm': dip-vlm-s has vit, llm"),
    (("--groups", "vit=8"), "llm is named 0 times"),
    (("--groups", "vit=8,llm=9"), "need 17 GPUs, but the cluster has 16"),
    (("--groups", "vit=8:xp2,llm=8"), "xp2"),
    (("--groups", "vit=8:tp2:tp4,llm=8"), "vit has tp twice"),
    (("--groups", "vit=8:pp99,llm=8"), "layers, pp99 needs as many at least"),
    (("--recipe", "torch-fsdp2"), "must be 0 or 1 with groups of GPUs"),
    (("--groups", "vit=8:zero2,llm=8"), "must be a whole number from 0 to 1"),
    (("--groups", "vit=8,llm=8:tp2:pp1:dp2"), "llm has 8 GPUs, but its degrees need 4"),
    (("--groups", "vit=4,llm=12:tp8"), "llm has 12 GPUs, no multiple of the 8 of its degrees"),
    (("--zero", "auto"), "must be 0 or 1 with groups of GPUs"),
    (("--global-batch", "0"), "--global-batch"),
])
def test_what_cannot_be_asked_is_one_line(pipeweaver, words, complaint):
    done = pipeweaver.run(*JOB[:7], *words)
    assert done.returncode == 2 and complaint in done.stderr and done.stderr.count("\n") == 1


def test_what_fits_nowhere_is_said(pipeweaver):
    done = pipeweaver.run("groups", "--model", "dip-vlm-l", "--cluster", "h100-sxm:2", "--dataset", "vlm-mix")
    assert done.returncode == 4 and "neither in groups nor on shared GPUs" in done.stderr


PIXART = {"name": "like-pixart", "kind": "dit", "layers": 28, "hidden": 1152, "ffn": 4608, "heads": 16, "kv_heads": 16,
          "head_dim": 72, "gated": False, "attention": {"kind": "dense", "causal": False}, "cross_attention_dim": 1152,
          "text_tokens": 300, "in_channels": 16, "condition_dim": 4096, "embedders": 15667200}


def like_disttrain(folder, llm, width, generator):
    """A model and a batch of its sizes: 1,920 samples, each 16 images read and one of 512 pixels made."""
    model, batch = folder / "model.json", folder / "batch.jsonl"
    model.write_text(json.dumps({
        "format": "pipeweaver-model/1", "name": "like-disttrain",
        "modules": [{"name": "vit", "architecture": "vit-huge-14", "unit": "items", "modalities": ["image"]},
                    {"name": "llm", "architecture": llm, "unit": "microbatch", "modalities": ["text"]},
                    {"name": "dit", "architecture": generator[0], "unit": "items", "modalities": ["video"]}],
        "edges": [{"from": "vit", "to": "llm", "token_reduction": 1, "projector": {"in": 1280, "out": width}},
                  {"from": "llm", "to": "dit", "projector": {"in": width, "out": generator[1]}}],
        "image": {"patch": 14, "merge": 1, "fixed_pixels": 224},
        "video": {"width": 512, "height": 512, "spatial": 16, "frames_in": 1, "frames_out": 1, "fps": 1,
                  "max_seconds": 16},
        "most_items": 64}))
    sample = {"text_tokens": 4096, "images": [{"width": 224, "height": 224}] * 16,
              "videos": [{"tokens": 0, "patches": 1024, "role": "target"}]}
    batch.write_text("".join(json.dumps({"id": str(n), **sample}) + "\n" for n in range(1920)))
    return "groups", "--model", model, "--cluster", "a100-sxm:1296", "--batch", batch


def test_what_the_page_says_of_disttrains_smallest(pipeweaver, tmp_path):
    """docs/own-gpus.md, beside the published gain."""
    job = like_disttrain(tmp_path, "llama3-8b", 4096, (PIXART, 1152))
    at_tp8, best = (asked(pipeweaver, *job, *more) for more in (("--tp", "8", "--pp", "1", "--cut", "even"), ()))
    steps = [at_tp8["shared"]["step_ns"], best["shared"]["step_ns"], best["own"]["step_ns"]]
    said = [f"{step * 1e-9:.2f} s" for step in steps] + [f"{steps[0] / steps[2]:.2f}"]
    page = (ROOT / "docs/own-gpus.md").read_text().split("## Beside DistTrain")[1]
    assert said == [line.split("|")[2].strip() for line in page.splitlines() if line.startswith(("| shared", "| own"))]


@pytest.mark.alone
@pytest.mark.parametrize("llm, width", [("llama3-8b", 4096), ("llama2-13b", 5120), ("llama3-70b", 8192)])
def test_models_of_disttrains_sizes_are_split_in_seconds(pipeweaver, tmp_path, llm, width):
    """1,296 GPUs, 1,920 samples a step; the generator's U-Net is a transformer here."""
    job = like_disttrain(tmp_path, llm, width, ("wan2.1-t2v-1.3b", 1536))
    begun = seconds_of_children()
    answer = asked(pipeweaver, *job)
    assert seconds_of_children() - begun < 5 * slowness()  # on one thread, whatever else runs
    assert len(answer["own"]["groups"]) == 3 and answer["own"]["gpus"] <= 1296
