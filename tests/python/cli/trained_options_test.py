"""`--freeze`, `--lora` and `--offload-optimizer` without a model file: what Megatron's files say of them, and what
`recommend` takes."""

import json

import pytest

IMAGE = {"height": 448, "width": 448}
JOB = ["--model", "qwen2.5-vl-7b", "--cluster", "h200-sxm:8"]


@pytest.fixture
def planned(pipeweaver, tmp_path):
    """A plan's folder, its launched rung, the batch and its assignment."""
    def run(*words, target="megatron"):
        batch, plan = tmp_path / "batch.jsonl", tmp_path / "plan"
        batch.write_text("".join(json.dumps({"id": f"s{k}", "text_tokens": 300 + 197 * (k * 7 % 13),
                                             "images": [IMAGE] * (k * 5 % 4)}) + "\n" for k in range(60)))
        done = pipeweaver.run("plan", *JOB, "--batch", batch, "--target", target, "--quiet", "--out", plan, *words)
        assert done.returncode == 0, done.stderr
        own = plan / "launch-assignment.json"
        return (plan, json.loads((plan / "launch.json").read_text()),
                ["--batch", batch, "--assigned", own if own.exists() else plan / "assignment.json"])
    return run


def peaks(pipeweaver, script, line, *asked):
    script.write_text(line + "\n")
    answer = json.loads(pipeweaver.run("check", "--json", *JOB, *asked, script).stdout)
    assert answer["verdict"] in ("fits", "close") and not answer["open"], answer
    return [one["peak_bytes"] for one in answer["memory"]["ranks"]]


@pytest.mark.parametrize("words", [["--freeze", "vit"], ["--freeze", "vit", "--lora", "16"], ["--lora", "16"],
                                   ["--offload-optimizer", "50%"]])
def test_what_is_written_for_megatron_is_read_with_the_memory_of_the_plan(pipeweaver, planned, tmp_path, words):
    plan, launch, asked = planned("--tp", "2", "--pp", "2", "--dp", "2", *words)
    tokens = launch["most_tokens"] + launch["most_tokens"] % 2
    bridge = (f'source {plan}/megatron/megatron.sh\npython run_recipe.py "${{PIPEWEAVER_BRIDGE[@]}}" '
              f"model.seq_length={tokens} dataset.seq_length={tokens}")
    assert peaks(pipeweaver, tmp_path / "launch.sh", bridge, *asked) == launch["peak_bytes"]


def test_ms_swift_is_told_what_is_trained(pipeweaver, planned, tmp_path):
    plan, launch, asked = planned("--tp", "1", "--pp", "1", "--freeze", "vit", "--lora", "16")
    line = (f"source {plan}/megatron/megatron.sh\nmegatron sft --model Qwen/Qwen2.5-VL-7B-Instruct --packing true "
            f'--max_length {launch["most_tokens"]} --recompute_granularity none "${{PIPEWEAVER_FLAGS[@]}}" '
            '"${PIPEWEAVER_TUNING_SWIFT[@]}"')
    if launch["layout"]["pp"] == 1 and launch["recompute"] == "none":
        assert peaks(pipeweaver, tmp_path / "launch.sh", line, *asked, "--encoders", "megatron-bridge") == \
            launch["peak_bytes"]
    assert "--tuner_type lora --lora_rank 16" in (plan / "megatron/megatron.sh").read_text()


@pytest.mark.parametrize("command", [["emulate", "--dataset", "vlm-mix", "--tp", "2", "--pp", "2"],
                                     ["recommend", "--dataset", "vlm-mix", "--tokens", "1B"]])
@pytest.mark.parametrize("words, said", [
    (["--freeze", "audio"], "--freeze: is 'audio', must be one of vit, llm, projectors"),
    (["--freeze", "vit", "--train", "llm"], "--train, --freeze: allowed is one of the two"),
    (["--lora-targets", "qkv"], "--lora-targets: goes with --lora RANK"),
    (["--lora", "0"], "lora: is"),
    (["--offload-optimizer", "120%"], "offload-optimizer: is '120%', must be 0 or a percentage up to 100%"),
    (["--offload-optimizer", "0.5"], "offload-optimizer: is '0.5', must be 0 or a percentage"),
])
def test_what_they_cannot_mean_is_refused(pipeweaver, command, words, said):
    more = ["--model", "qwen2.5-vl-7b", *(["--cluster", "h200-sxm:8"] if command[0] == "emulate" else [])]
    done = pipeweaver.run(*command, *more, *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_adapters_and_states_on_the_host_take_less(pipeweaver):
    def fullest(*words):
        answer = json.loads(pipeweaver("emulate", *JOB, "--dataset", "vlm-mix", "--microbatches", "4", "--tp", "2",
                                       "--pp", "2", "--recompute", "full", "--json", *words))
        return max(rank["memory"]["peak_bytes"] for replica in answer["replicas"] for rank in replica["ranks"])
    assert fullest("--lora", "16") < fullest("--freeze", "vit") < fullest()
    assert fullest("--offload-optimizer", "50%") < fullest()


def test_states_on_the_host_that_a_target_does_not_launch_are_named(pipeweaver, tmp_path):
    words = ["plan", "--model", "qwen2.5-0.5b", "--cluster", "h100-sxm:8", "--dataset", "constant-1024",
             "--microbatches", "2", "--tp", "1", "--pp", "1", "--zero", "1", "--offload-optimizer", "100%", "--target",
             "deepspeed", "--now", "full", "--out", tmp_path / "plan"]
    assert pipeweaver.fails(*words) == (
        4, "pipeweaver: --now: --offload-optimizer: below ZeRO 3 deepspeed puts gradients on the host, too, which "
           "plans do not")
