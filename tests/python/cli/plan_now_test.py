"""plan --target megatron on what a user runs today: equal numbers of microbatches, launch scripts, selective."""

import json
import shlex

import pytest
from cli_shared import ONE_DRAW

JOB = ("plan", "--model", "qwen2.5-vl-32b", "--cluster", "h100-sxm:64", "--dataset", "vlm-mix", *ONE_DRAW, "--target",
       "megatron", "--encoders", "split")  # whole, the encoder takes too much without recomputation
LAYOUT = ("--tp", 8, "--pp", 4)


def planned(pipeweaver, folder, *options, ends=("--max-rounds", 1)):
    done = pipeweaver.run(*JOB, *options, *ends, "--out", folder)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "plan.json").read_text()), done


def rungs_of(plan):
    return {rung["rung"]: rung for rung in plan["ladder"]}


@pytest.fixture(scope="module")
def of_samples(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("now") / "plan"
    return folder, *planned(pipeweaver, folder, *LAYOUT, "--global-batch", 60, ends=("--max-rounds", 1))


def test_the_marked_rung_of_a_batch_as_it_comes_has_files(of_samples):
    folder, plan, _ = of_samples
    launch = json.loads((folder / "launch.json").read_text())
    assert len(set(launch["microbatches"])) == 1 and len(launch["microbatches"]) == launch["layout"]["dp"]
    assert "megatron/megatron.sh" in rungs_of(plan)[launch["rung"]]["files"]
    assert plan["asked"]["equal_microbatches"]
    assert "packed" not in rungs_of(plan)["now"]["way"]


def test_without_equal_numbers_it_had_none(pipeweaver, tmp_path, of_samples):
    """The batch is one that tells: as it comes its microbatches are not so many for each replica."""
    _, plan, _ = of_samples
    done = pipeweaver.run("emulate", "--model", "qwen2.5-vl-32b", "--cluster", "h100-sxm:64", "--dataset", "vlm-mix",
                          *LAYOUT, "--global-batch", 60, "--json")
    count = json.loads(done.stdout)["asked"]["microbatches"]
    assert count % 2 == 1 and rungs_of(plan)["now"]["microbatches"] == count + 1


def test_commands_of_rungs_print_their_steps(pipeweaver, of_samples):
    _, plan, _ = of_samples
    for rung in plan["ladder"]:
        if not rung["command"] or "why_nothing" in rung:
            continue
        done = pipeweaver.run(*shlex.split(rung["command"])[1:], "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["step_ns"] == rung["step_ns"], rung["rung"]


def test_layers_of_ranks_are_printed_where_the_encoder_shares_the_first(pipeweaver, tmp_path):
    _, done = planned(pipeweaver, tmp_path / "plan", *LAYOUT, "--microbatches", 4, "--now", "1f1b,full",
                      "--layers", "10,18,18,18")
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("now "))
    assert "llm layers of each rank: 10,18x3" in [line.strip() for line in lines[at:at + 3]]


def test_a_packing_that_is_asked_for_marks_what_runs_now(pipeweaver, tmp_path):
    plan, _ = planned(pipeweaver, tmp_path / "plan", *LAYOUT, "--global-batch", 60, "--packing", "balanced")
    assert rungs_of(plan)["now"]["way"].endswith(", packed balanced")


def test_a_packing_that_runs_today_is_said_by_now_and_the_others_are_tried(pipeweaver, tmp_path):
    plan, done = planned(pipeweaver, tmp_path / "plan", *LAYOUT, "--global-batch", 60, "--now",
                         "first-stage,1f1b,full,packing:ffd")
    now = rungs_of(plan)["now"]
    assert now["way"] == "first-stage 1f1b, full, packed ffd" and plan["headline"]["now_is_said"]
    assert "best known today" not in done.stdout
    assert rungs_of(plan)["data"]["step_ns"] <= now["step_ns"]
    emulated = pipeweaver.run(*shlex.split(now["command"])[1:], "--json")
    assert json.loads(emulated.stdout)["step_ns"] == now["step_ns"]
    assert any((row["partition"], row["policy"], row["recompute"]) == ("first-stage", "1f1b", "full")
               for row in plan["baselines"] if row["opponent"])
    twice = pipeweaver.run(*JOB, *LAYOUT, "--global-batch", 60, "--packing", "balanced", "--now", "packing:ffd",
                           "--out", tmp_path / "twice")
    assert twice.returncode == 2
    assert "--now: packing:ffd is no way that this plan packs, allowed is balanced" in twice.stderr


def test_selective_of_megatron_is_core_attention_with_a_remark(pipeweaver, tmp_path):
    steps = {}
    for recompute in ("none", "selective"):
        plan, done = planned(pipeweaver, tmp_path / recompute, *LAYOUT, "--microbatches", 4, "--now",
                             f"first-stage,1f1b,{recompute}")
        now = rungs_of(plan)["now"]
        steps[recompute] = now["step_ns"], now["peak_bytes"]
        assert now["way"] == "first-stage 1f1b" + (", core-attention" if recompute == "selective" else "")
        assert ("remark" in now) == (recompute == "selective")
        assert ("selective of megatron is core-attention" in done.stdout) == (recompute == "selective")
    assert steps["selective"][0] > steps["none"][0]
    assert steps["selective"][1] == steps["none"][1]


SIZES = ("--num-layers 64 --hidden-size 5120 --ffn-hidden-size 27648 --num-attention-heads 40 --swiglu "
         "--group-query-attention --num-query-groups 8 --kv-channels 128 "
         "--seq-length 8192 --max-position-embeddings 8192 --untie-embeddings-and-output-weights "
         "--disable-bias-linear --bf16 --use-distributed-optimizer --micro-batch-size 1 "
         "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --hidden-dropout 0")


def script(folder, spread, rest=""):
    file = folder / "today.sh"
    file.write_text(f"TP=${{TP:-8}}\ntorchrun examples/multimodal/train.py {SIZES} --tensor-model-parallel-size $TP "
                    f"--sequence-parallel {spread} --global-batch-size 16 {rest}\n")
    return file


PIPELINE = "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 10"


def test_a_script_says_what_runs_today(pipeweaver, tmp_path):
    file = script(tmp_path, PIPELINE, "--recompute-granularity full --recompute-method block --recompute-num-layers 3")
    plan, done = planned(pipeweaver, tmp_path / "plan", "--now", file)
    same, _ = planned(pipeweaver, tmp_path / "same", *LAYOUT, "--zero", 1, "--microbatches", 8, "--now",
                      "1f1b,blocks:3", "--layers", "10,18,18,18")
    now = rungs_of(plan)["now"]
    assert now["way"] == "layers 10,18x3 1f1b, blocks:3"
    assert (plan["asked"]["tp"], plan["asked"]["pp"], plan["asked"]["dp"]) == (8, 4, 2)
    assert rungs_of(same)["now"]["step_ns"] == now["step_ns"]
    assert now["peak_bytes"] == rungs_of(same)["now"]["peak_bytes"]
    emulated = pipeweaver.run(*shlex.split(now["command"])[1:], "--json")
    assert json.loads(emulated.stdout)["step_ns"] == now["step_ns"]


def test_selective_of_a_script_is_as_check_reads_it(pipeweaver, tmp_path):
    file = script(tmp_path, PIPELINE, "--recompute-activations")
    plan, _ = planned(pipeweaver, tmp_path / "plan", "--now", file)
    assert rungs_of(plan)["now"]["way"] == "layers 10,18x3 1f1b, core-attention"


REFUSED = {
    "tp": (("--tp", 4), "--tp: is 4, but", 2),
    "zero": (("--zero", 3), "--zero: is 3, but", 2),
    "microbatches": (("--microbatches", 4), "--microbatches: is 4, but", 2),
    "global": (("--global-batch", "8mb"), "--global-batch: is 8mb, but", 2),
    "tokens": (("--microbatch-tokens", 4096), "--microbatch-tokens: is 4096, but", 2),
    "layers": (("--layers", "10,10,10,10"), "--layers: goes without --now", 2),
    "sizes": (("--model", "dip-vlm-s"), "is 64, but", 2),
    "set": (("--set", "TP"), "--set: is 'TP', must be NAME=VALUE", 2),
    "rule": (("--set", "TP=3"), "does not construct it", 4),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_contradicts_a_script_is_refused_in_one_line(pipeweaver, tmp_path, case):
    options, why, status = REFUSED[case]
    job = [part for part in JOB] if case != "sizes" else [*JOB[:1], *JOB[3:]]
    done = pipeweaver.run(*job, "--now", script(tmp_path, PIPELINE), *options, "--out", tmp_path / "plan")
    assert done.returncode == status, done.stderr
    assert why in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "plan").exists()


def test_a_script_that_is_not_there_is_an_error_of_its_own(pipeweaver, tmp_path):
    done = pipeweaver.run(*JOB, "--now", tmp_path / "none.sh", "--out", tmp_path / "plan")
    assert done.returncode == 3 and "none.sh" in done.stderr and len(done.stderr.splitlines()) == 1


def test_variables_go_with_a_script(pipeweaver, tmp_path):
    done = pipeweaver.run(*JOB, *LAYOUT, "--now", "1f1b", "--set", "TP=4", "--out", tmp_path / "plan")
    assert done.returncode == 2 and "--set: goes with --now FILE" in done.stderr


SAMPLE = '{{"id": "s{}", "text_tokens": 1000, "images": []}}\n'


def planned_of_file(pipeweaver, folder, samples, rest="", lines=None):
    batch = folder / "batch.jsonl"
    batch.write_text(lines or "".join(SAMPLE.format(k) for k in range(samples)))
    plan = folder / "plan"
    done = pipeweaver.run("plan", "--model", "qwen2.5-vl-32b", "--cluster", "h100-sxm:64", "--target", "megatron",
                          "--encoders", "split", "--batch", batch, "--now", script(folder, PIPELINE, rest),
                          "--max-rounds", 0, "--out", plan)
    assert done.returncode == 0, done.stderr
    return rungs_of(json.loads((plan / "plan.json").read_text()))["now"], done


def test_a_batch_file_counts_in_place_of_the_scripts_global_batch(pipeweaver, tmp_path):
    now, done = planned_of_file(pipeweaver, tmp_path, 32)
    assert (f"today.sh: --global-batch-size 16 is not taken: the batch is the 32 samples of {tmp_path}/batch.jsonl, "
            "16 more, in 4 microbatches; the script's has 16\n") in done.stderr
    assert now["microbatches"] == 4
    assert now["remark"].startswith("32 samples are packed into 4 microbatches; ")
    assert now["remark"].endswith("today.sh says no packing: with 1 in each it is slower")
    assert "says no packing" in " ".join(done.stdout.split())


def of_many_sizes(samples):
    image = {"height": 896, "width": 672}
    return "".join(json.dumps({"id": f"s{k}", "text_tokens": 300 + 37 * (k * 7 % 60), "images": [image] * (k * 5 % 4)})
                   + "\n" for k in range(samples))


def test_check_packs_a_batch_as_what_runs_now_and_says_so(pipeweaver, tmp_path):
    now, _ = planned_of_file(pipeweaver, tmp_path, 47, lines=of_many_sizes(47))
    done = pipeweaver.run("check", "--model", "qwen2.5-vl-32b", "--cluster", "h100-sxm:64", "--encoders", "split",
                          "--batch", tmp_path / "batch.jsonl", "--json", tmp_path / "today.sh")
    answer = json.loads(done.stdout)
    assert answer["memory"]["peak_bytes"] == now["peak_bytes"]
    assert answer["memory"]["microbatches"] * 2 == now["microbatches"]
    assert (f"47 samples are packed into {now['microbatches']} microbatches as they come and handed to the replicas in "
            "turn, equally many to each, as *now* of `plan --target megatron` has them; --assigned takes a plan's "
            "assignment of them") in answer["assumed"]


def test_check_of_the_planned_launch_takes_its_assignment_and_the_memory_is_the_plans(pipeweaver, tmp_path):
    planned_of_file(pipeweaver, tmp_path, 47, lines=of_many_sizes(47))
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    do = next(rung for rung in plan["ladder"] if rung["rung"] == plan["headline"]["rung"])
    own = [one for one in ("launch-assignment.json", "assignment.json") if (tmp_path / "plan" / one).exists()]
    monday = tmp_path / "monday.sh"
    monday.write_text(f"source {tmp_path}/plan/megatron/megatron.sh\n"
                      f'torchrun train.py {SIZES.replace("--micro-batch-size 1", "")} '
                      '"${PIPEWEAVER_FLAGS[@]}" "${PIPEWEAVER_SPLIT[@]}"\n')
    asked = ["check", "--model", "qwen2.5-vl-32b", "--cluster", "h100-sxm:64", "--encoders", "split", "--json", monday]
    batch = ["--batch", tmp_path / "batch.jsonl"]
    checked = pipeweaver.run(*asked, *batch, "--assigned", tmp_path / "plan" / own[0])
    assert json.loads(checked.stdout)["memory"]["peak_bytes"] == do["peak_bytes"], checked.stdout
    as_they_come = json.loads(pipeweaver.run(*asked, *batch).stdout)
    assert as_they_come["memory"]["peak_bytes"] != do["peak_bytes"]
    alone = pipeweaver.run(*asked, "--dataset", "vlm-mix", "--assigned", tmp_path / "plan" / own[0])
    said = "pipeweaver: --assigned: goes with --batch, whose samples it names\n"
    assert (alone.returncode, alone.stderr) == (2, said)


@pytest.mark.parametrize("rest", ["--sft", "--packing-buffer-size 64", "--use-packed-sequence"])
def test_a_script_that_packs_has_no_remark(pipeweaver, tmp_path, rest):
    now, done = planned_of_file(pipeweaver, tmp_path, 12, rest)
    assert "4 fewer, in 2 microbatches" in done.stderr and "remark" not in now


def test_a_folder_of_samples_is_named_with_what_makes_a_file_of_it(pipeweaver, tmp_path):
    images = tmp_path / "imgs"
    images.mkdir()
    done = pipeweaver.run("emulate", "--model", "qwen2.5-vl-7b", "--cluster", "h100-sxm:8", "--batch", images)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1
    assert f"is a folder, a file is needed; `python3 -m pipeweaver.data.convert {images}" in done.stderr


def test_a_known_model_that_begins_the_name_is_meant(pipeweaver):
    on = ("--cluster", "h100-sxm:8", "--tp", "4", "--pp", "2", "--dataset", "vlm-mix", "--microbatches", "2")
    status, line = pipeweaver.fails("emulate", "--model", "qwen2.5-vl-7b-mine", *on)
    assert status == 2 and line.endswith("did you mean 'qwen2.5-vl-7b'?")
    same = [json.loads(pipeweaver("emulate", "--model", name, *on, "--json"))["step_ns"]
            for name in ("qwen2.5-vl-7b-instruct", "qwen2.5-vl-7b")]
    assert same[0] == same[1]


SMALL = ("plan", "--model", "qwen2.5-vl-7b", "--dataset", "vlm-mix", "--microbatches", "2", "--target", "megatron",
         "--tp", "1", "--pp", "1")


def test_where_nothing_fits_in_the_layout_another_is_advised(pipeweaver, tmp_path):
    folder = tmp_path / "plan"
    said = pipeweaver(*SMALL, "--cluster", "h100-sxm:8", "--out", folder)
    assert "no ladder" not in said
    assert "now       nothing that megatron launches fits in tp 1 x pp 1 x dp 8; nearest is no-pipeline tp 1" in said
    plan = json.loads((folder / "plan.json").read_text())
    layout = rungs_of(plan)["layout"]
    assert plan["headline"]["rung"] == "layout" and plan["headline"]["over_now"] is None
    assert layout["over_now"] is None and not plan["is_searched"] and plan["step_ns"] == layout["step_ns"]
    assert any(step.startswith("reshard the checkpoint to ") for step in layout["steps"])
    assert (folder / "megatron/megatron.sh").exists() and (folder / "launch.json").exists()
    assert plan["why_none"].startswith("nothing that megatron launches fits in ") and plan["not_applicable"]
    again = json.loads(pipeweaver(*shlex.split(layout["command"])[1:], "--json"))
    assert again["step_ns"] == layout["step_ns"]


def test_where_nothing_fits_in_any_layout_there_is_no_plan(pipeweaver, tmp_path):
    status, line = pipeweaver.fails(*SMALL, "--cluster", "h100-sxm:1", "--out", tmp_path / "plan")
    assert status == 4 and "no layout fits the memory" in line and "comes closest: rank 0 is " in line
    assert "; with --encoders split, as other launchers can, " in line
    assert not (tmp_path / "plan").exists()


def test_where_less_kept_free_may_do_that_headroom_is_named(pipeweaver, tmp_path):
    words = ("plan", "--model", "gemma-3-4b", "--cluster", "h100-sxm:32", "--dataset", "vlm-mix", "--global-batch",
             "64mb", "--target", "fsdp2", "--max-rounds", "1", "--out", tmp_path / "plan")
    status, line = pipeweaver.fails(*words)
    assert status == 4 and " with 20 % kept free; " in line
    assert line.endswith(" other layouts of the same GPUs; --headroom 3% keeps less free")
    assert "\ndo  " in pipeweaver(*words, "--headroom", "3%")
