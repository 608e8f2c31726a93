"""`pipeweaver check` on launches as people have them: right, or undecided with what it rests on. Each line of
tests/data/field/cases.txt is one; the inputs are written anew, facts of their sources are kept."""

import json
import shlex

import pytest
from checkout import ROOT

FIELD = ROOT / "tests/data/field"
STATUS = {None: 0, "fits": 0, "close": 0, "does-not-fit": 4, "does-not-construct": 4, "undecided": 5}
GIB = 2**30


def cases():
    for line in (FIELD / "cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            expected, _, words = line.partition("|")
            yield pytest.param(expected.strip(), shlex.split(words), id=shlex.split(words)[-1][:40])


def check(pipeweaver, words):
    files = [FIELD / word if str(word).endswith((".sh", ".yaml")) else word for word in words]
    done = pipeweaver.run("check", "--json", *files)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert STATUS[answer["verdict"]] == done.returncode
    return answer


def script(pipeweaver, folder, text, *words):
    (folder / "launch.sh").write_text(text)
    return check(pipeweaver, [*words, folder / "launch.sh"])


def opened(answer):
    return [one["setting"] for one in answer["open"]]


@pytest.mark.parametrize("expected, words", list(cases()))
def test_a_launch_of_the_field_is_right_or_undecided(pipeweaver, expected, words):
    answer = check(pipeweaver, words)
    peak = answer["memory"]["peak_bytes"] / GIB if answer["memory"] else 0
    if expected.startswith("peak:"):
        low, high = map(float, expected.removeprefix("peak:").split("-"))
        assert answer["verdict"] == "undecided" or low <= peak <= high, (answer["verdict"], peak)
    else:
        assert answer["verdict"] in expected.split("/"), (answer["verdict"], peak)
    if answer["verdict"] == "undecided":
        assert answer["open"] and all(one["setting"] and one["why"] for one in answer["open"])


def test_what_is_not_supported_is_refused_by_its_name(pipeweaver):
    status, line = pipeweaver.fails("check", "--cluster", "h100-sxm:64", FIELD / "verl_megatron_actor.sh")
    assert status == 2 and "launches verl, which is not read" in line


SWIFT = ("NPROC_PER_NODE=8 megatron sft --model M --dataset d.jsonl --tensor_model_parallel_size 2 --max_length 4096 "
         "--micro_batch_size 1 --global_batch_size 16 ")


def test_ms_swifts_defaults_give_way_to_what_is_said(pipeweaver, tmp_path):
    on = ["--cluster", "h100-sxm:8", "--model", "qwen2.5-7b"]

    def memory(more):
        return script(pipeweaver, tmp_path, SWIFT + more, *on)["memory"]["ranks"][0]
    usual = memory("")
    assert memory("--bf16 true --use_distributed_optimizer true") == usual
    assert memory("--fp16 true") == usual
    assert memory("--use_distributed_optimizer false")["optimizer_bytes"] == 4 * usual["optimizer_bytes"]
    assert memory("--recompute_granularity none")["activations_bytes"] >= usual["activations_bytes"]
    assert memory("--recompute_granularity full --recompute_method uniform --recompute_num_layers 1")[
        "activations_bytes"] < usual["activations_bytes"]


def test_what_is_frozen_has_no_gradients_and_adapters_alone_are_trained(pipeweaver, tmp_path):
    on = ["--cluster", "h100-sxm:8", "--model", "qwen2.5-vl-7b", "--dataset", "vlm-mix"]

    def gradients(more):
        return script(pipeweaver, tmp_path, SWIFT + more, *on)["memory"]["ranks"][0]["gradients_bytes"]
    frozen = gradients("")
    assert gradients("--freeze_vit true --freeze_aligner true") == frozen < gradients("--freeze_vit false")
    assert gradients("--freeze_llm true --freeze_vit false --freeze_aligner false") < frozen // 5
    small = gradients("--tuner_type lora --lora_rank 8 --target_modules all-linear")
    assert 0 < small < frozen // 50
    twice = gradients("--train_type lora --lora_rank 16 --target_modules all-linear")
    assert twice == pytest.approx(2 * small, rel=0.1)
    assert gradients("--tuner_type lora --lora_rank 8 --target_modules linear_qkv") < small


def test_a_part_of_the_optimizer_on_the_host_leaves_the_rest(pipeweaver, tmp_path):
    on = ["--cluster", "h100-sxm:8", "--model", "qwen2.5-7b"]

    def optimizer(more):
        return script(pipeweaver, tmp_path, SWIFT + more, *on)["memory"]["ranks"][0]["optimizer_bytes"]
    assert optimizer("--optimizer_cpu_offload true") == 0
    assert optimizer("--optimizer_cpu_offload true --optimizer_offload_fraction 0.5") == optimizer("") / 2


@pytest.mark.parametrize("flag, verdict", [
    ("--rlhf_type ppo", "undecided"),          # other models beside it
    ("--rlhf_type dpo", "close"),              # a reference model is counted
    ("--offload_model true", "fits"),          # takes off alone: what fits does so with it
    ("--vision_model_type internvit", "undecided"),  # the model that is named has no encoder
    ("--freeze_parameters_ratio 0", "fits"),
    ("--fp32_residual_connection true", "undecided"),  # inputs of layers are twice as large
    ("--fp32_residual_connection false", "fits"),
    ("--log_interval 5", "fits"),
])
def test_a_flag_that_is_not_followed_stands_beside_no_verdict_that_it_could_turn(pipeweaver, tmp_path, flag, verdict):
    answer = script(pipeweaver, tmp_path, SWIFT + flag, "--cluster", "h100-sxm:8", "--model", "qwen2.5-7b")
    assert answer["verdict"] == verdict
    name = "--" + flag.split()[0].removeprefix("--").replace("_", "-")
    assert opened(answer) == ([name] if verdict == "undecided" else [])


def test_what_says_nothing_of_memory_is_counted_and_listed_when_asked(pipeweaver, tmp_path):
    file = tmp_path / "launch.sh"
    file.write_text(SWIFT + "--log_interval 5 --save_interval 7 --rlhf_type ppo\n")
    on = ["--cluster", "h100-sxm:8", "--model", "qwen2.5-7b", file]
    said = pipeweaver.run("check", *on).stdout.splitlines()
    assert said[0].startswith("undecided: it rests on --rlhf-type; as far as it is counted it fits: ")
    assert said[-1] == "4 settings say nothing of memory as far as known; --verbose lists them"
    listed = pipeweaver.run("check", *on, "--verbose").stdout.splitlines()[-1]
    assert listed == "4 settings say nothing of memory as far as known: model, dataset, log-interval, save-interval"


BRIDGE = "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe mine "


def test_a_rule_that_no_value_of_the_recipe_mends_is_broken(pipeweaver, tmp_path):
    sizes = "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=32 "
    on = ["--cluster", "h100-sxm:32", "--model", "llama3-8b", "--rules-only"]
    answer = script(pipeweaver, tmp_path, BRIDGE + sizes + "model.tensor_model_parallel_size=2 "
                    "model.pipeline_model_parallel_size=6", *on)
    assert answer["verdict"] == "does-not-construct" and answer["broken"][0]["rule"] == "groups-world"
    answer = script(pipeweaver, tmp_path, BRIDGE + sizes + "model.tensor_model_parallel_size=2 "
                    "model.pipeline_model_parallel_size=4 model.context_parallel_size=8", *on)
    assert answer["verdict"] == "does-not-construct"


def test_a_size_that_the_recipe_has_is_asked_for(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, BRIDGE + "model.tensor_model_parallel_size=2", "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "undecided" and answer["memory"] is None
    assert opened(answer) == ["model.num_layers", "model.seq_length", "train.micro_batch_size"]
    assert "--model" in answer["open"][0]["give"]


def test_what_a_known_recipe_sets_is_taken_and_gives_way_to_the_launch(pipeweaver, tmp_path):
    run = "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe qwen3_8b_sft_config "
    on = ["--cluster", "h100-sxm:8"]
    answer = script(pipeweaver, tmp_path, run, *on)
    assert answer["layout"]["tp"] == 4 and answer["verdict"] in ("fits", "close") and answer["open"] == []
    assert any("as Megatron-Bridge 0.6.0 has it" in one for one in answer["assumed"])
    assert "model 'Qwen/Qwen3-8B' is taken as qwen3-8b of the catalogue" in answer["assumed"]
    answer = script(pipeweaver, tmp_path, run + "-tp 2 model.context_parallel_size=2", *on)
    assert (answer["layout"]["tp"], answer["layout"]["cp"]) == (2, 2)


def test_a_rule_that_a_known_recipe_breaks_is_broken(pipeweaver, tmp_path):
    run = "python scripts/training/run_recipe.py --recipe qwen3_8b_sft_config -pp 5 -tp 1"
    answer = script(pipeweaver, tmp_path, run, "--cluster", "h100-sxm:40", "--rules-only")
    assert answer["verdict"] == "does-not-construct" and answer["open"] == []


def test_sizes_that_a_known_recipe_does_not_say_are_asked_for(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, "python scripts/training/run_recipe.py --recipe olmoe_7b_sft_config",
                    "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "undecided" and opened(answer) == ["model.num_layers"]


def test_a_recipe_that_is_not_known_is_what_the_answer_rests_on(pipeweaver, tmp_path):
    launch = "python scripts/training/run_recipe.py --recipe mine"
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "undecided" and "recipe 'mine' sets it" in answer["open"][0]["why"]


def test_a_registry_configuration_is_known_by_its_name(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, "MODULE=llama3 CONFIG=llama3_8b ./run_train.sh --training.seq_len 4096",
                    "--cluster", "h100-sxm:8")
    assert answer["verdict"] in ("fits", "close") and answer["layout"]["dp"] == 8
    assert any("as torchtitan 0.3.0 has it" in one for one in answer["assumed"])


@pytest.mark.parametrize("value, given", [("$TP", "TP=2"), ("${TP}", "TP=2"), ("$(cat degrees)", None)])
def test_what_the_script_leaves_to_its_caller_is_undecided_until_it_is_said(pipeweaver, tmp_path, value, given):
    launch = (f"torchrun pretrain_gpt.py --tensor-model-parallel-size {value} --micro-batch-size 1 "
              "--seq-length 4096 --bf16\n")
    on = ["--cluster", "h100-sxm:8", "--model", "llama3-8b", "--rules-only"]
    answer = script(pipeweaver, tmp_path, launch, *on)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--tensor-model-parallel-size"]
    assert f"'{value}'" in answer["open"][0]["why"] and "--set" in answer["open"][0]["give"]
    if given:
        assert script(pipeweaver, tmp_path, launch, *on, "--set", given)["layout"]["tp"] == 2
        status, line = pipeweaver.fails("plan", *on[:4], "--target", "megatron", "--now", tmp_path / "launch.sh",
                                        "--out", tmp_path / "plan")
        assert status == 2 and "say it with --set NAME=VALUE" in line


def test_what_a_branch_sets_is_as_it_is_read(pipeweaver, tmp_path):
    file = tmp_path / "launch.sh"
    file.write_text("TP=1\nif grep -q big /etc/hosts; then TP=3; fi\ntorchrun pretrain_gpt.py --micro-batch-size 1 "
                    "--seq-length 4096 --bf16 --tensor-model-parallel-size $TP\n")
    said = pipeweaver.run("check", "--cluster", "h100-sxm:8", "--model", "llama3-8b", "--rules-only", file).stdout
    assert said.startswith("undecided: it rests on TP; as it is read it does not construct")


def test_the_first_line_says_what_is_assumed(pipeweaver, tmp_path):
    file = tmp_path / "launch.sh"
    file.write_text("torchrun pretrain_gpt.py --seq-length 8192 --micro-batch-size 4 --global-batch-size 64\n")
    said = pipeweaver.run("check", "--cluster", "h100-sxm:8", "--model", "llama3-8b", file).stdout.splitlines()[0]
    assert said.startswith("does not fit: ") and said.endswith("; assumed 32-bit values")


def test_a_model_that_the_launch_names_is_the_catalogues(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, SWIFT.replace("--model M", "--model Qwen/Qwen2.5-7B-Instruct"), "--cluster",
                    "h100-sxm:8", "--dataset", "constant-4096")
    same = script(pipeweaver, tmp_path, SWIFT, "--cluster", "h100-sxm:8", "--model", "qwen2.5-7b", "--dataset",
                  "constant-4096")
    assert answer["memory"] == same["memory"]
    assert "model 'Qwen/Qwen2.5-7B-Instruct' is taken as qwen2.5-7b of the catalogue" in answer["assumed"]


def test_samples_beside_text_are_asked_for(pipeweaver, tmp_path):
    launch = SWIFT.replace("--model M", "--model Qwen2.5-VL-7B-Instruct")
    answer = script(pipeweaver, tmp_path, launch.replace("4096", "131072"), "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "undecided" and opened(answer) == ["--dataset"]
    # Not where the longest fit.
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "fits"
    assert any("longest that --seq-length allows, 4096 tokens" in one for one in answer["assumed"])


def test_a_microbatch_of_few_samples_may_hold_less_than_its_tokens(pipeweaver, tmp_path):
    text = (FIELD / "bridge_vlm_recipe_sft.sh").read_text()
    words = ["--cluster", "h100-sxm:8", "--model", "qwen2.5-vl-7b", "--dataset", "vlm-mix"]
    larger = text.replace("micro_batch_size=1", "micro_batch_size=8")
    answer = script(pipeweaver, tmp_path, larger, *words)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--assigned"]
    assert script(pipeweaver, tmp_path, text, *words)["verdict"] == "close"
    alone = script(pipeweaver, tmp_path, larger, *words[:3], "qwen2.5-7b")
    assert "--assigned" not in opened(alone)  # text is padded or packed to the length that the launch says


@pytest.mark.parametrize("model, more", [
    ("Qwen/Qwen2.5-72B-Instruct", ""),                          # the length of its samples is not said
    ("Qwen/Qwen2.5-72B-Instruct", "--max_length 4096"),         # samples may be shorter: weights alone do not fit
    ("Qwen/Qwen2.5-VL-72B-Instruct", "--max_length 4096")])     # and hold images
def test_what_does_not_fit_with_the_shortest_samples_does_not_fit(pipeweaver, tmp_path, model, more):
    launch = (f"NPROC_PER_NODE=8 megatron sft --model {model} --dataset d.jsonl --tensor_model_parallel_size 8 "
              f"--sequence_parallel true --micro_batch_size 1 --global_batch_size 16 --freeze_vit false {more}\n")
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8")
    assert answer["verdict"] == "does-not-fit" and answer["open"] == []
    knows_length = more and "VL" not in model
    assert knows_length or any("it does not fit with these already" in one for one in answer["assumed"])
    # On more GPUs it depends on them.
    assert script(pipeweaver, tmp_path, launch, "--cluster", "b200-sxm:64")["verdict"] != "does-not-fit"


@pytest.mark.parametrize("text", [
    'if [[ -n "$A" ]]; then X=4; else X=2; fi',
    'if [ "$B" -gt 1 ]; then X=2; elif [ $B -gt 0 ]; then X=8; else X=4; fi',
    'X=2; [[ -n "$A" ]] && X=4',
    'X=2; [[ -z "$A" ]] || X=4',
    'X=4; [ -z "$A" ] && X=2',
    'X=$(echo "2;8" | tr ";" "\\n" | sed "s/8//" | xargs)',
    'X=$(seq 2 2)',
    'for C in "2,1" "4,2"; do IFS="," read -r X P <<< "$C"; done',
    'if [ $B = 3 ] && [ -n "$A" ]; then X=4; else X=2; fi',
    'if [ $B = 2 ]; then X=2; else if [ -z "$A" ]; then X=8; fi; fi',
    'if [ $B = 2 ]; then if [ -n "$A" ]; then X=8; else X=2; fi; else X=4; fi',
])
def test_branches_and_pipes_of_plain_text_are_followed(pipeweaver, tmp_path, text):
    launch = f"A=\nB=2\n{text}\ntorchrun pretrain_gpt.py --tensor-model-parallel-size $X --seq-length 4096 " \
        "--micro-batch-size 1 --bf16\n"
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8", "--model", "llama3-8b", "--rules-only")
    assert answer["layout"]["tp"] == 2
    assert not any("in a branch" in one for one in answer["assumed"])


def test_a_model_that_is_named_has_the_width_of_its_heads(pipeweaver, tmp_path):
    launch = ("NPROC_PER_NODE=8 megatron sft --dataset d.jsonl --max_length 4096 --micro_batch_size 1 "
              "--global_batch_size 8 --expert_model_parallel_size 8\n")
    on = ["--cluster", "h100-sxm:8", "--model", "glm-4.7-flash", "--rules-only"]  # 2048 columns, 20 latent heads
    assert script(pipeweaver, tmp_path, launch, *on)["verdict"] != "does-not-construct"


@pytest.mark.parametrize("option, rests", [("op", []), ("2", ["--activation_checkpoint.selective_ac_option"])])
def test_torchtitans_checkpointing_by_operators_is_followed_and_by_layers_is_not(pipeweaver, tmp_path, option, rests):
    launch = ("CONFIG_FILE=./torchtitan/models/llama3/train_configs/llama3_8b.toml ./run_train.sh "
              "--training.local_batch_size 2 --training.seq_len 8192 --training.compile "
              f"--activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option {option}\n")
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8", "--model", "llama3-8b")
    assert opened(answer) == rests


def test_a_yaml_file_may_have_deepspeeds_settings_in_place_of_a_file_of_its_own(pipeweaver, tmp_path):
    file = tmp_path / "full.yaml"

    def layout(deepspeed):
        file.write_text("model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\n"
                        "dataset: a\ntemplate: qwen\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\n"
                        f"deepspeed: {deepspeed}\n")
        return check(pipeweaver, ["--cluster", "h100-sxm:8", "--model", "qwen2.5-7b", file])["layout"]
    assert layout("{zero_optimization: {stage: 2}, bf16: {enabled: auto}}")["zero"] == 2
    assert layout("examples/deepspeed/ds_z2_config.json")["zero"] == 2


def test_what_runs_today_trains_what_the_script_trains(pipeweaver, tmp_path):
    file = tmp_path / "today.sh"
    file.write_text(SWIFT + "--tuner_type lora --lora_rank 8 --target_modules all-linear "
                    "--pipeline_model_parallel_size 2\n")
    pipeweaver("plan", "--model", "qwen2.5-vl-7b", "--cluster", "h100-sxm:8", "--target", "megatron", "--dataset",
               "vlm-mix", "--now", file, "--max-rounds", 0, "--out", tmp_path / "plan")
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    assert "--encoders ms-swift" in plan["ladder"][0]["command"]
    assert all(rank["optimizer_bytes"] < 0.1 * GIB < rank["weights_bytes"]
               for replica in plan["replicas"] for rank in replica["memory"])


def test_a_launch_for_another_number_of_gpus_says_so(pipeweaver, tmp_path):
    flags = ("pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
             "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 --vocab-size 32000\n")
    for head, says in (("torchrun --nproc_per_node 8 --nnodes=4 ", "32 GPUs (--nproc_per_node 8, --nnodes 4)"),
                       ("N=2\ntorchrun --nproc-per-node $((N*2)) ", "4 GPUs (--nproc-per-node 4)"),
                       ("deepspeed --num_gpus 4 ", "4 GPUs (--num_gpus 4)")):
        answer = script(pipeweaver, tmp_path, head + flags, "--cluster", "h100-sxm:8")
        assert f"says {says}; judged on the 8 of --cluster" in answer["conflict"]
    for head in ("torchrun --nproc_per_node 8 ", "torchrun --nproc_per_node $GPUS ", "srun python "):
        assert script(pipeweaver, tmp_path, head + flags, "--cluster", "h100-sxm:8")["conflict"] is None


def ms_swift_with(pipeweaver, tmp_path, more):
    return script(pipeweaver, tmp_path, SWIFT + more, "--cluster", "h100-sxm:8", "--model", "qwen2.5-7b")


def test_adapters_need_no_other_copy_of_the_weights(pipeweaver, tmp_path):
    lora = "--tuner_type lora --lora_rank 8 --target_modules all-linear --micro_batch_size "
    pairs, alone = (ms_swift_with(pipeweaver, tmp_path, lora + more)["memory"]["peak_bytes"]
                    for more in ("1 --rlhf_type dpo", "2"))
    assert pairs == alone
    copied, pairs = (ms_swift_with(pipeweaver, tmp_path, f"--rlhf_type {kind}")["memory"]["ranks"][0]
                     for kind in ("dpo", "rm"))
    assert copied["weights_bytes"] == 2 * pairs["weights_bytes"]
    assert copied["peak_bytes"] - pairs["peak_bytes"] == pairs["weights_bytes"]
    assert ms_swift_with(pipeweaver, tmp_path, "--rlhf_type rm")["verdict"] == "fits"


@pytest.mark.parametrize("name, known", [("meta-llama/Llama-3.1-8B-Instruct", "llama3-8b"),
                                         ("/models/Qwen2.5-7B-Instruct/", "qwen2.5-7b"),
                                         ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b"),
                                         ("Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl-8b"),
                                         ("OpenGVLab/InternVL3_5-38B", "internvl3.5-38b"), ("my/own", "")])
def test_a_model_of_the_catalogue_is_known_by_the_name_of_its_weights(pipeweaver, tmp_path, name, known):
    answer = script(pipeweaver, tmp_path, SWIFT.replace("--model M", f"--model {name}"), "--cluster", "h100-sxm:8")
    assert (f"is taken as {known} of the catalogue" in "".join(answer["assumed"])) == bool(known)


DENSE = ("pretrain_gpt.py --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
         "--micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 131072 ")


def peak(pipeweaver, tmp_path, text):
    answer = script(pipeweaver, tmp_path, text, "--cluster", "h100-sxm:8")
    return answer["memory"]["peak_bytes"]


def test_what_the_loss_and_dropout_keep_is_as_the_flags_say(pipeweaver, tmp_path):
    """Of 4,096 x 131,072 logits: 2, 6 or 11 bytes; masks: a byte for two values of each layer and position."""
    text = DENSE + "--num-layers 8 --hidden-dropout "
    fused = "0 --cross-entropy-loss-fusion --cross-entropy-fusion-impl "
    least = peak(pipeweaver, tmp_path, text + fused + "te")
    logits = 4096 * 131072
    assert peak(pipeweaver, tmp_path, text + "0") - least == pytest.approx(4 * logits, rel=0.1)
    assert peak(pipeweaver, tmp_path, text + fused + "native") - least == pytest.approx(9 * logits, rel=0.1)
    masks = peak(pipeweaver, tmp_path, text + "0.1") - peak(pipeweaver, tmp_path, text + "0")
    assert masks == pytest.approx(2 * 4096 * 4096 * 8, rel=0.1)


def test_megatron_bridge_fuses_its_loss_by_megatron_cores_own_kernel(pipeweaver, tmp_path):
    """GPTModelProvider of 0.3 to 0.6 turns the fusion on and leaves cross_entropy_fusion_impl at "native"."""
    sizes = "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=8 "
    on = ["--cluster", "h100-sxm:8", "--model", "llama3-8b"]

    def answer(more):
        return script(pipeweaver, tmp_path, BRIDGE + sizes + more, *on)
    by = "model.cross_entropy_fusion_impl="
    default, native, engines = (answer(more)["memory"] for more in ("", by + "native", by + "te"))
    assert default == native
    assert default["peak_bytes"] - engines["peak_bytes"] == pytest.approx(9 * 4096 * 128256, rel=0.1)


@pytest.mark.parametrize("samples, measured", [(16, 43.45), (32, 70.79)])
def test_an_eager_loss_keeps_what_was_measured(pipeweaver, samples, measured):
    """Qwen3-32B on FSDP4 x TP8, eager (torchtitan PR#1690): GiB of a GPU."""
    text = pipeweaver("emulate", "--cluster", "h100-sxm:32", "--model", "qwen3-32b", "--recipe", "torch-fsdp2-eager",
                      "--tp", 8, "--pp", 1, "--dp", 4, "--zero", 3, "--recompute", "full", "--dataset", "constant-4096",
                      "--microbatch-tokens", 4096 * samples, "--microbatches", 1, "--any-memory", "--json")
    rank = json.loads(text)["replicas"][0]["ranks"][0]
    assert rank["memory"]["peak_bytes"] / GIB == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("size, layers", [("small", 4), ("big", 8), ("biggest", 8), ("other", 2)])
def test_of_a_case_the_arm_counts_that_its_word_has(pipeweaver, tmp_path, size, layers):
    head = (f'S={size}\ncase "$S" in\n  small) L=4 ;;\n  (large | big*)\n    L=8\n    ;;\n  *) L=2;;\nesac\n'
            'case $UNKNOWN in a) M=1;; esac\n')
    answer = script(pipeweaver, tmp_path, head + "torchrun " + DENSE + "--num-layers $L", "--cluster", "h100-sxm:8")
    assert answer["stages"] == [layers]


@pytest.mark.parametrize("text", ['CMD="torchrun ${F[@]}"\neval $CMD', 'CMD="torchrun ${F[*]} $EXTRA"\n$CMD',
                                  "torchrun ${F[@]} $EXTRA", 'torchrun "${G[@]}" --num-layers 4 --swiglu $EXTRA'])
def test_arrays_are_joined_and_parted_as_bash_does(pipeweaver, tmp_path, text):
    head = f'G=({DENSE})\nF=("${{G[@]}}" "--num-layers 4" "--swiglu")\n'
    answer = script(pipeweaver, tmp_path, head + text, "--cluster", "h100-sxm:8")
    assert answer["stages"] == [4]
    assert any("taken as empty" in one for one in answer["assumed"]) == ("$EXTRA" in text)


def test_types_have_their_bytes_by_either_name(pipeweaver, tmp_path):
    aware = DENSE + "--num-layers 8 --use-distributed-optimizer --use-precision-aware-optimizer "
    assert peak(pipeweaver, tmp_path, aware + "--exp-avg-dtype fp32") == peak(
        pipeweaver, tmp_path, aware + "--exp-avg-dtype torch.float32")
    assert peak(pipeweaver, tmp_path, aware + "--exp-avg-dtype bf16") < peak(pipeweaver, tmp_path, aware)
    (tmp_path / "bad.sh").write_text(aware + "--exp-avg-dtype int3")
    status, line = pipeweaver.fails("check", "--cluster", "h100-sxm:8", tmp_path / "bad.sh")
    assert status == 2 and "is 'int3', allowed are fp32, bf16, fp16, fp8" in line


def test_a_dump_has_types_as_objects(pipeweaver, tmp_path):
    text = (FIELD / "bridge_dump_two_lengths.yaml").read_text()
    (tmp_path / "run_config.yaml").write_text(
        text + "optimizer:\n  exp_avg_dtype:\n    _target_: torch.float32\n    _call_: false\n")
    assert check(pipeweaver, ["--cluster", "h100-sxm:8", tmp_path / "run_config.yaml"])["verdict"] in ("fits", "close")


def test_gradients_of_torchtitans_pipelines_are_whole(pipeweaver):
    """Llama 3.1 405B on 512 H100s took 72.7 and 82.5 GiB (torchtitan, benchmarks/llama3_h100_202412)."""
    settings = ("--training.local_batch_size 32 --training.seq_len 8192 activation-checkpoint:full "
                "--parallelism.tensor_parallel_degree 8 --parallelism.pipeline_parallel_degree 8 "
                "--training.disable_cuda_graphs --parallelism.pipeline_parallel_schedule ")
    for schedule in ("1F1B", "Interleaved1F1B"):
        answer = check(pipeweaver, ["--cluster", "h100-sxm:512", "--model", "llama3.1-405b", "--torchtitan-args",
                                    settings + schedule])
        assert answer["verdict"] != "fits" and answer["memory"]["peak_bytes"] > 45 * GIB


def test_core_attention_of_linear_layers_is_judged(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, SWIFT.replace("--model M", "--model Qwen/Qwen3.5-27B"), "--cluster",
                    "h100-sxm:8", "--dataset", "constant-4096")
    assert answer["memory"] and answer["verdict"] in ("fits", "close", "does-not-fit", "undecided")


def test_a_model_in_a_folder_at_hand_is_that_of_its_configuration(pipeweaver, tmp_path):
    (tmp_path / "Mine").mkdir()
    (tmp_path / "Mine/config.json").write_text((ROOT / "tests/data/hf/qwen3-4b.json").read_text())
    launch = SWIFT.replace("--model M", f"--model {tmp_path}/Mine")
    answer = script(pipeweaver, tmp_path, launch, "--cluster", "h100-sxm:8")
    same = script(pipeweaver, tmp_path, SWIFT, "--cluster", "h100-sxm:8", "--model", f"hf:{tmp_path}/Mine")
    assert answer["memory"] and answer["memory"] == same["memory"]
    assert f"model '{tmp_path}/Mine' is read from its config.json" in answer["assumed"]


def test_what_ran_out_of_memory_in_other_versions_is_not_said_to_fit(pipeweaver, tmp_path):
    # ms-swift#8169: the vocabulary's logits at 128k positions, on 8 GPUs of 141 GB
    long = ("NPROC_PER_NODE=8 MAX_PIXELS=786432 megatron sft --model Qwen/Qwen3.5-0.8B --dataset train.jsonl "
            "--train_type lora --lora_rank 16 --target_modules all-linear --freeze_llm false --freeze_vit true "
            "--tensor_model_parallel_size 2 --sequence_parallel true --micro_batch_size 1 --global_batch_size 32 "
            "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --max_length ")
    on = ["--cluster", "h200-sxm:8"]
    assert script(pipeweaver, tmp_path, long + "131072", *on)["verdict"] in ("undecided", "does-not-fit")
    assert script(pipeweaver, tmp_path, long + "8192", *on)["verdict"] == "fits"
    # ms-swift#4989: the scores of images' patches, on 8 GPUs of 96 GB
    image = ("NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --dataset data.json --lora_rank 8 "
             "--freeze_aligner true --torch_dtype bfloat16 --deepspeed zero3 --per_device_train_batch_size 1 "
             "--gradient_accumulation_steps 4 --gradient_checkpointing true --max_length 5000 ")
    on = ["--cluster", "h20-sxm:8"]
    answer = script(pipeweaver, tmp_path, image, *on)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--attn_impl"]
    assert script(pipeweaver, tmp_path, image + "--attn_impl flash_attn", *on)["verdict"] == "fits"


def test_torchtitans_pipelines_before_0_3_made_no_graphs(pipeweaver, tmp_path):
    pipeline = "--parallelism.pipeline_parallel_degree 2 --training.local_batch_size 8 --training.seq_len 4096"
    on = ["--rules-only", "--cluster", "h100-sxm:8", "--model", "llama3-8b"]
    for launch in ("CONFIG_FILE=mine.toml ./run_train.sh ", "torchrun -m torchtitan.train --model.name llama3 "):
        assert script(pipeweaver, tmp_path, launch + pipeline, *on)["broken"] == []
    now = script(pipeweaver, tmp_path, "torchrun -m torchtitan.train " + pipeline, *on)
    assert [one["rule"] for one in now["broken"]] == ["cuda-graphs"]


def test_a_script_whose_batch_follows_its_nodes_is_undecided_on_several(pipeweaver, tmp_path):
    """Its launcher sets how many nodes there are; a batch that does not follow them stays too small."""
    launch = "NNODES=${WORLD_SIZE:-1}\nBATCH=$((4 * NNODES))\nNPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B " \
        "--dataset own --tensor_model_parallel_size 4 --micro_batch_size 1 --global_batch_size $BATCH --max_length 512 "
    on = ["--rules-only", "--cluster"]
    assert script(pipeweaver, tmp_path, launch, *on, "h100-sxm:8")["verdict"] != "does-not-construct"
    answer = script(pipeweaver, tmp_path, launch, *on, "h100-sxm:64")
    assert answer["verdict"] == "undecided" and opened(answer) == ["--set"]
    assert "nobody sets WORLD_SIZE it starts 8 GPUs" in answer["open"][0]["why"]
    told = script(pipeweaver, tmp_path, launch, *on, "h100-sxm:64", "--set", "WORLD_SIZE=8")
    assert told["broken"] == []
    for said, other in (("${WORLD_SIZE:-1}", "1"), ("$((4 * NNODES))", "4")):  # one node, or a batch of all nodes
        alone = script(pipeweaver, tmp_path, launch.replace(said, other), *on, "h100-sxm:64")
        assert alone["verdict"] == "does-not-construct"


def test_a_first_stage_of_encoders_alone_is_judged_with_images(pipeweaver, tmp_path):
    """ms-swift#9823 has such a layout; text alone would leave the stage empty."""
    launch = "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen2.5-VL-7B-Instruct --dataset own --max_length 4096 " \
        "--pipeline_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 16 --recompute_granularity full " \
        "--recompute_method uniform --recompute_num_layers 1 --pipeline_model_parallel_layout "
    answer = script(pipeweaver, tmp_path, launch + "'E|t*14|t*7|t*7L'", "--cluster", "h100-sxm:4")
    assert answer["stages"] == [0, 14, 7, 7] and answer["verdict"] in ("fits", "close", "undecided")
