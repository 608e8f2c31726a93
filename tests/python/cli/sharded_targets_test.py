"""`plan --target fsdp2` and `deepspeed`: what is written launches the rung, and `check` reads it with the
plan's memory."""

import json

import pytest

TEXT = ("qwen2.5-7b", [])
IMAGES = ("qwen2.5-vl-7b", [{"height": 448, "width": 448}])


def samples(images, count=150):
    return "".join(json.dumps({"id": f"s{k}", "text_tokens": 300 + 197 * (k * 7 % 13), "images": images * (k * 5 % 4)})
                   + "\n" for k in range(count))


@pytest.fixture
def planned(pipeweaver, tmp_path):
    """A plan's folder, its launched rung and how to check it."""
    def run(job, *words, target="fsdp2", cluster="h200-sxm:8"):
        model, images = job
        batch, plan = tmp_path / "batch.jsonl", tmp_path / "plan"
        batch.write_text(samples(images))
        asked = ["--model", model, "--cluster", cluster, "--batch", batch]
        done = pipeweaver.run("plan", *asked, "--target", target, "--quiet", "--out", plan, *words)
        assert done.returncode == 0, done.stderr
        launch = json.loads((plan / "launch.json").read_text())
        own = plan / "launch-assignment.json"
        return plan, launch, [*asked, "--assigned", own if own.exists() else plan / "assignment.json"]
    return run


def checked(pipeweaver, script, line, *words):
    script.write_text(line + "\n")
    done = pipeweaver.run("check", "--json", *words, script)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def launches(plan, target="fsdp2"):
    """The lines that the files are for."""
    files = plan / target
    swift = f"source {files}/swift.sh\nNPROC_PER_NODE=8 swift sft --model M --dataset d.jsonl"
    yours = "model_name_or_path=M template=T dataset=D output_dir=O"
    if target == "deepspeed":
        factory = f"llamafactory-cli train {files}/llama_factory.yaml deepspeed={files}/deepspeed.json {yours}"
        has_factory = (files / "llama_factory.yaml").exists()
        return [f'{swift} --deepspeed {files}/deepspeed.json "${{PIPEWEAVER_FLAGS[@]}}"', *[factory] * has_factory]
    return [f"accelerate launch --config_file {files}/accelerate.yaml src/train.py {files}/llama_factory.yaml {yours}",
            f'{swift} --fsdp {files}/fsdp.json "${{PIPEWEAVER_FLAGS[@]}}"']


@pytest.mark.parametrize("job", [TEXT, IMAGES])
@pytest.mark.parametrize("target, words, cluster", [
    ("fsdp2", [], "h200-sxm:8"),
    ("fsdp2", ["--zero", "2"], "h200-sxm:8"),
    ("fsdp2", ["--zero", "3"], "h100-sxm:8"),
    ("fsdp2", ["--microbatch-tokens", "4096"], "h100-sxm:16"),
    ("deepspeed", [], "h200-sxm:8"),
    ("deepspeed", ["--zero", "1", "--cp", "1"], "h200-sxm:8"),
    ("deepspeed", ["--zero", "2", "--cp", "1"], "h200-sxm:8"),
    ("deepspeed", ["--zero", "3"], "h100-sxm:8"),
    ("deepspeed", ["--microbatch-tokens", "4096"], "h100-sxm:16"),
])
def test_what_is_written_is_read_with_the_memory_of_the_plan(pipeweaver, planned, tmp_path, job, target, words,
                                                             cluster):
    plan, launch, asked = planned(job, *words, target=target, cluster=cluster)
    layout = launch["layout"]
    assert [layout[key] for key in ("tp", "pp", "ep")] == [1, 1, 1]
    assert layout["cp"] == 1 or (target == "deepspeed" and job == TEXT)
    for line in launches(plan, target):
        answer = checked(pipeweaver, tmp_path / "launch.sh", line, *asked)
        assert answer["verdict"] in ("fits", "close") and not answer["open"], answer
        assert [one["peak_bytes"] for one in answer["memory"]["ranks"]] == launch["peak_bytes"]
        assert [answer["layout"][key] for key in ("cp", "zero")] == [layout["cp"], layout["zero"]]
        assert answer["layout"]["microbatches"] == launch["microbatches"][0]


def test_memory_with_room_is_said_to_fit(pipeweaver, planned, tmp_path):
    plan, _, asked = planned(TEXT, "--microbatch-tokens", "4096")
    verdicts = [checked(pipeweaver, tmp_path / "launch.sh", line, *asked)["verdict"] for line in launches(plan)]
    assert verdicts == ["fits", "fits"]


def test_checkpoints_are_those_of_fsdp_alone(planned):
    plan, launch, _ = planned(TEXT, "--now", "full", cluster="h100-sxm:8")
    is_full = launch["recompute"] == "full"
    assert launch["recompute"] in ("none", "full")
    assert f"fsdp_activation_checkpointing: {str(is_full).lower()}\n" in (plan / "fsdp2/accelerate.yaml").read_text()
    assert json.loads((plan / "fsdp2/fsdp.json").read_text())["fsdp_config"]["activation_checkpointing"] is is_full
    assert "disable_gradient_checkpointing: true\n" in (plan / "fsdp2/llama_factory.yaml").read_text()
    assert "--gradient_checkpointing false\n" in (plan / "fsdp2/swift.sh").read_text()


@pytest.mark.parametrize("words, said", [
    (["--tp", "2"], "--tp: is 2, but with --target fsdp2 every GPU trains the whole model; allowed is 1"),
    (["--pp", "2"], "--pp: is 2, but with --target fsdp2 every GPU trains the whole model; allowed is 1"),
    (["--zero", "1"], "--zero: is 1, but --target fsdp2 launches 2 to 3 alone"),
])
def test_what_it_does_not_launch_is_refused(pipeweaver, tmp_path, words, said):
    done = pipeweaver.run("plan", "--model", "qwen2.5-7b", "--cluster", "h100-sxm:8", "--dataset", "constant-4096",
                          "--target", "fsdp2", "--out", tmp_path / "plan", *words)
    assert done.returncode == 2 and said in done.stderr


def test_another_stage_of_zero_takes_no_other_checkpoint(pipeweaver, planned):
    plan, launch, _ = planned(TEXT, "--cp", "1", target="deepspeed")
    ladder = {rung["rung"]: rung for rung in json.loads((plan / "plan.json").read_text())["ladder"]}
    assert launch["rung"] == "layout" and launch["layout"]["zero"] < 3
    said = f"launch with tp 1 x pp 1 x dp 8, zero {launch['layout']['zero']}, recompute {launch['recompute']} "
    assert ladder["layout"]["needs"] == said + "(gradient_checkpointing)"
    assert "reshard the checkpoint" not in (plan / "report.html").read_text()


def test_gpus_that_share_samples_of_text_are_launched_by_the_trainer_that_can(pipeweaver, planned, tmp_path):
    plan, launch, asked = planned(TEXT, "--now", "full", "--cp", "2", "--zero", "3", target="deepspeed",
                                  cluster="h100-sxm:8")
    lines = launches(plan, "deepspeed")
    assert (len(lines) == 1) == (launch["layout"]["cp"] > 1)
    answer = checked(pipeweaver, tmp_path / "launch.sh", lines[0], *asked)
    assert answer["layout"]["cp"] == launch["layout"]["cp"]
    assert answer["memory"]["peak_bytes"] == launch["peak_bytes"][0]


@pytest.mark.parametrize("target", ["fsdp2", "deepspeed"])
@pytest.mark.parametrize("zero", ["2", "3"])
@pytest.mark.parametrize("words", [["--freeze", "vit"], ["--freeze", "vit,projectors"],
                                   ["--freeze", "vit", "--lora", "16"], ["--lora", "8"],
                                   ["--train", "llm", "--lora", "8"]])
def test_frozen_parts_and_adapters_are_read_with_the_memory_of_the_plan(pipeweaver, planned, tmp_path, target, zero,
                                                                        words):
    plan, launch, asked = planned(IMAGES, "--zero", zero, "--cp", "1", *words, target=target)
    for line in launches(plan, target):
        answer = checked(pipeweaver, tmp_path / "launch.sh", line, *asked)
        assert answer["verdict"] in ("fits", "close") and not answer["open"], answer
        assert [one["peak_bytes"] for one in answer["memory"]["ranks"]] == launch["peak_bytes"]


@pytest.mark.parametrize("zero", ["2", "3"])  # below 3 gradients go with them, which no rung is launched with
def test_states_on_the_host_are_read_with_the_memory_of_the_plan(pipeweaver, planned, tmp_path, zero):
    plan, launch, asked = planned(TEXT, "--zero", zero, "--cp", "1", "--offload-optimizer", "100%", target="deepspeed")
    assert launch["layout"]["zero"] == 3 and launch["optimizer_bytes"] == {"gpu": 0, "host": 12}
    for line in launches(plan, "deepspeed"):
        answer = checked(pipeweaver, tmp_path / "launch.sh", line, *asked)
        assert [one["peak_bytes"] for one in answer["memory"]["ranks"]] == launch["peak_bytes"]


@pytest.mark.parametrize("target, words, why", [
    ("deepspeed", ["--zero", "2", "--lora", "8", "--lora-modules", "vit"], "'llm' is trained whole beside adapters"),
    ("deepspeed", ["--zero", "3", "--offload-optimizer", "50%"], "lie on the host all together, here a part of them"),
    ("fsdp2", ["--zero", "2", "--offload-optimizer", "100%"], "lie on the host with weights alone"),
    ("fsdp2", ["--zero", "2", "--lora", "8", "--lora-modules", "llm"], "'vit' is trained whole beside adapters"),
    ("fsdp2", ["--zero", "2", "--freeze", "vit", "--lora", "8", "--lora-targets", "qkv,output"],
     "adapters go with all linear layers"),
])
def test_what_its_files_do_not_say_has_a_reason(planned, target, words, why):
    plan, _, _ = planned(IMAGES, "--cp", "1", *words, target=target)
    said = (plan / "plan.json").read_text() + (plan / "report.html").read_text()
    assert not (plan / target).exists() and why.replace("'", "&#39;") in said or why in said
