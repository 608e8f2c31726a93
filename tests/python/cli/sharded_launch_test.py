"""`pipeweaver check` on launches of sharded trainers: LLaMA-Factory, ms-swift on DeepSpeed or FSDP, VeOmni, NeMo
AutoModel and scripts of Hugging Face's Trainer. Public outcomes are kept; the launches are written anew."""

import json

import pytest
from checkout import ROOT

FIELD = ROOT / "tests/data/field"
HF = ROOT / "tests/data/hf"
STATUS = {None: 0, "fits": 0, "close": 0, "does-not-fit": 4, "does-not-construct": 4, "undecided": 5}
GIB = 2**30


def check(pipeweaver, *words):
    done = pipeweaver.run("check", "--json", *words)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert STATUS[answer["verdict"]] == done.returncode
    return answer


def script(pipeweaver, folder, text, *words, name="launch.sh"):
    (folder / name).write_text(text)
    return check(pipeweaver, *words, folder / name)


def peak(answer):
    return answer["memory"]["peak_bytes"] / GIB


def opened(answer):
    return [one["setting"] for one in answer["open"]]


VL72, IMAGES = ["--model", "qwen2.5-vl-72b"], ["--dataset", "constant-1500+1x448px"]
MOE = ["--model", f"hf:{HF}/qwen3-vl-30b-a3b.json", "--dataset", "constant-2000+2x360px"]
VL78, TILES = ["--model", "internvl2.5-78b"], ["--dataset", "constant-1000+6x448px"]


@pytest.mark.parametrize("right, words", [
    # LLaMA-Factory#5553, #6270, #5590
    ("does-not-fit", ["--cluster", "a100-sxm:4", *VL72, FIELD / "factory_72b_full.yaml"]),
    ("does-not-fit", ["--cluster", "a100-sxm:4", *VL72, *IMAGES, FIELD / "factory_72b_full.yaml"]),
    ("does-not-fit/close/undecided", ["--cluster", "a100-sxm:16", *VL72, FIELD / "factory_72b_full.sh"]),
    ("does-not-fit/close", ["--cluster", "a100-sxm:16", *VL72, *IMAGES, FIELD / "factory_72b_full.sh"]),
    ("fits/close", ["--cluster", "a100-sxm:24", *VL72, *IMAGES, FIELD / "factory_72b_full.sh"]),
    # Qwen3-VL#2053
    ("does-not-fit/close", ["--cluster", "h100-sxm:32", *MOE, FIELD / "qwen3_vl_30b_zero2.sh"]),
    # InternVL#516
    ("does-not-fit", ["--cluster", "a100-sxm:8", *VL78, FIELD / "internvl_76b_full.sh"]),
    ("fits/close", ["--cluster", "a100-sxm:32", *VL78, *TILES, FIELD / "internvl_76b_full.sh"]),
    ("fits/close", ["--cluster", "a100-sxm:8", *VL78, *TILES, "--set",
                    "TUNING=--freeze_llm True --use_llm_lora 16", FIELD / "internvl_76b_full.sh"]),
])
def test_what_ran_fits_and_what_did_not_is_not_said_to(pipeweaver, right, words):
    assert check(pipeweaver, *words)["verdict"] in right.split("/")


@pytest.mark.parametrize("liger, taken", [("true", 42), ("false", 54)])
def test_a_packed_run_takes_what_was_measured(pipeweaver, liger, taken):
    answer = check(pipeweaver, "--cluster", "a100-sxm:4", "--set", f"LIGER={liger}", FIELD / "swift_zero3_packed.sh")
    assert answer["verdict"] == "fits" and answer["launched_by"] == "ms-swift on DeepSpeed or FSDP"
    assert answer["layout"]["zero"] == 3 and answer["layout"]["microbatches"] == 2
    assert peak(answer) == pytest.approx(taken * 1e9 / GIB, rel=0.2)


@pytest.mark.parametrize("file, cluster, layout", [
    ("veomni_ulysses.yaml", "h100-sxm:8", {"cp": 2, "dp": 4, "zero": 3, "microbatches": 2}),
    ("automodel_packed.yaml", "h100-sxm:8", {"cp": 1, "dp": 8, "zero": 3, "microbatches": 1}),
])
def test_a_configuration_alone_is_a_launch(pipeweaver, file, cluster, layout):
    answer = check(pipeweaver, "--cluster", cluster, "--model", "llama3-8b" if "auto" in file else "qwen3-8b",
                   FIELD / file)
    assert answer["verdict"] == "fits"
    assert {key: answer["layout"][key] for key in layout} == layout


FACTORY = "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\nbf16: true\n" \
    "cutoff_len: 4096\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 1\n"
ON = ["--cluster", "h100-sxm:8"]


def factory(pipeweaver, folder, more, *words):
    return script(pipeweaver, folder, FACTORY + more, *ON, *words, name="train.yaml")


def test_a_file_and_the_words_behind_it_are_one_launch(pipeweaver, tmp_path):
    (tmp_path / "train.yaml").write_text(FACTORY)
    alone = check(pipeweaver, *ON, tmp_path / "train.yaml")
    by_command = script(pipeweaver, tmp_path, "FORCE_TORCHRUN=1 llamafactory-cli train train.yaml", *ON)
    assert by_command["memory"] == alone["memory"]
    shorter = script(pipeweaver, tmp_path, "llamafactory-cli train train.yaml cutoff_len=2048", *ON)
    of_both = [one["memory"]["ranks"][0]["activations_bytes"] for one in (shorter, alone)]
    assert 0 < of_both[0] < of_both[1]
    missing = script(pipeweaver, tmp_path, "llamafactory-cli train other.yaml bf16=true", *ON)
    assert missing["verdict"] == "undecided" and "the configuration" in opened(missing)


def test_what_copies_share_out_lies_on_each_in_parts(pipeweaver, tmp_path):
    def rank(more):
        return factory(pipeweaver, tmp_path, more)["memory"]["ranks"][0]
    one, two, three = (rank(f"deepspeed: ds_z{stage}_config.json\n") for stage in (0, 2, 3))
    assert two["weights_bytes"] == one["weights_bytes"] > 7 * three["weights_bytes"]
    assert one["gradients_bytes"] > 7 * two["gradients_bytes"]
    assert one["optimizer_bytes"] > 7 * two["optimizer_bytes"]
    assert rank("deepspeed: ds_z2_offload_config.json\n")["optimizer_bytes"] == 0


def test_accelerates_file_says_who_shards(pipeweaver, tmp_path):
    (tmp_path / "train.yaml").write_text(FACTORY)
    (tmp_path / "fsdp.yaml").write_text(
        "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_reshard_after_forward: true\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n")
    launch = "accelerate launch --config_file fsdp.yaml src/train.py train.yaml"
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["layout"]["zero"] == 3 and answer["verdict"] == "fits"
    both = script(pipeweaver, tmp_path, launch + " deepspeed=ds_z3_config.json", *ON)
    assert both["verdict"] == "does-not-construct" and both["broken"][0]["rule"] == "one-sharding"


def test_a_file_that_is_not_at_hand_is_asked_for(pipeweaver, tmp_path):
    answer = factory(pipeweaver, tmp_path, "deepspeed: my/own.json\n")
    assert answer["verdict"] == "undecided" and opened(answer) == ["--deepspeed"]
    assert "'my/own.json' is not at hand" in answer["open"][0]["why"]
    (tmp_path / "own.json").write_text('{"zero_optimization": {"stage": 3}}')
    assert factory(pipeweaver, tmp_path, "deepspeed: my/own.json\n")["layout"]["zero"] == 3


@pytest.mark.parametrize("more, setting", [
    ("stage: ppo\n", "--stage"),           # other models beside it
    ("use_asft_loss: true\n", "--use_asft_loss"),  # a second copy of the model
    ("use_dora: true\nfinetuning_type: lora\n", "--use_dora"),
    ("fp8: true\n", "--fp8"),
    ("optim: some_optimizer\n", "--optim"),
    ("pipeline_model_parallel_size: 4\n", "--pipeline_model_parallel_size"),  # USE_MCA=1 behind the same file
])
def test_what_is_not_followed_makes_it_undecided(pipeweaver, tmp_path, more, setting):
    text = "".join(line + "\n" for line in FACTORY.splitlines() if line.split(":")[0] not in more)
    answer = script(pipeweaver, tmp_path, text + "deepspeed: ds_z3_config.json\n" + more, *ON, name="train.yaml")
    assert answer["verdict"] == "undecided" and opened(answer) == [setting]


def test_what_takes_off_alone_leaves_fits(pipeweaver, tmp_path):
    assert factory(pipeweaver, tmp_path, "deepspeed: ds_z3_config.json\nuse_unsloth_gc: true\n")["verdict"] == "fits"


SWIFT = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset own --deepspeed zero3 "


def test_the_longest_sample_of_data_that_is_known_is_a_length(pipeweaver, tmp_path):
    launch = SWIFT.replace("--dataset own", "--dataset swift/self-cognition#500")
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] == "fits"  # 131 tokens, and 512 for what its template may add
    says = "no sample of 'swift/self-cognition' has more than 643 tokens"
    assert any(one.startswith(says) for one in answer["assumed"])
    answer = script(pipeweaver, tmp_path, launch.replace("#500", " own.jsonl"), *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--max_length"]


def test_data_that_is_known_to_be_text_says_what_a_model_of_images_reads(pipeweaver, tmp_path):
    launch = "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen3.5-4B --max_length 1024 " \
        "--deepspeed zero3 --use_vllm true --vllm_mode server --dataset "
    assert opened(script(pipeweaver, tmp_path, launch + "own", *ON)) == ["--dataset"]
    assert script(pipeweaver, tmp_path, launch + "modelscope/gsm8k", *ON)["verdict"] == "fits"


def test_a_length_that_is_not_said_is_asked_for_unless_nothing_fits(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, SWIFT + "--tuner_type full", *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--max_length"]
    assert "--dataset or --batch" in answer["open"][0]["give"]
    samples = [*ON, "--dataset", "constant-1024"]
    whole = script(pipeweaver, tmp_path, SWIFT + "--tuner_type full", *samples)
    assert whole["verdict"] == "fits"
    assert peak(whole) == peak(script(pipeweaver, tmp_path, SWIFT + "--tuner_type full --max_length 1024", *samples))
    lora = SWIFT + "--tuner_type lora --attn_impl flash_attn "
    for more, is_of_samples in ("", True), ("--packing true", False):  # packs are as long as all of their samples
        answer = script(pipeweaver, tmp_path, lora + more, *ON)
        assert answer["verdict"] == "undecided" and opened(answer) == ["--max_length"]
        assert ("it fits while none has more than" in answer["open"][0]["why"]) == is_of_samples
    large = SWIFT.replace("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-72B") + "--tuner_type full"
    answer = script(pipeweaver, tmp_path, large, *ON, "--model", "qwen2.5-72b")
    assert answer["verdict"] == "does-not-fit"
    assert any("does not fit with these already" in one for one in answer["assumed"])


def test_samples_that_may_be_shorter_leave_what_does_not_fit_open(pipeweaver, tmp_path):
    launch = SWIFT + "--tuner_type full --max_length 32768 --per_device_train_batch_size 4 --attn_impl flash_attn "
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--batch"]
    assert script(pipeweaver, tmp_path, launch + "--packing true", *ON)["verdict"] == "does-not-fit"


def test_packing_takes_flash_attention_in_ms_swift(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, SWIFT + "--packing true --max_length 4096", *ON)
    assert answer["verdict"] == "does-not-construct" and answer["broken"][0]["rule"] == "packing-attention"


def test_one_process_of_ms_swift_puts_a_model_on_several_gpus(pipeweaver, tmp_path):
    launch = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset own --max_length 2048 "
    answer = script(pipeweaver, tmp_path, "CUDA_VISIBLE_DEVICES=0,1 " + launch, "--cluster", "h100-sxm:2")
    assert answer["verdict"] == "undecided" and opened(answer) == ["NPROC_PER_NODE"]
    for text, gpus in (("NPROC_PER_NODE=2 " + launch, 2), (launch, 1), (launch + "--deepspeed zero3", 2)):
        assert script(pipeweaver, tmp_path, text, "--cluster", f"h100-sxm:{gpus}")["verdict"] == "fits"
    other = script(pipeweaver, tmp_path, "NPROC_PER_NODE=2 " + launch, "--cluster", "h100-sxm:4")
    assert "says 2 GPUs (NPROC_PER_NODE=2); judged on the 4 of --cluster" in other["conflict"]


def test_a_head_of_another_task_is_not_the_vocabularys(pipeweaver, tmp_path):
    launch = SWIFT + "--max_length 2048 --task_type "
    answer = script(pipeweaver, tmp_path, launch + "embedding", *ON)  # of several sequences a sample
    assert answer["verdict"] == "undecided" and opened(answer) == ["--task_type"]
    for task in ("causal_lm", "seq_cls --num_labels 1"):  # a head of classes holds less
        assert script(pipeweaver, tmp_path, launch + task, *ON)["verdict"] == "fits"
    classes = script(pipeweaver, tmp_path, launch + "seq_cls", *ON)
    words = script(pipeweaver, tmp_path, launch + "causal_lm", *ON)
    logits = 16 * 2048 * 152064 / GIB  # in 16 bits and in 32, their log-softmax and the gradients of both
    assert peak(words) - peak(classes) > 0.9 * logits
    answer = script(pipeweaver, tmp_path, launch + "seq_cls --tuner_type full --model Qwen/Qwen2.5-72B-Instruct", *ON)
    assert answer["verdict"] == "does-not-fit"


def test_veomni_keeps_another_model_for_preferences(pipeweaver, tmp_path):
    text = (FIELD / "veomni_ulysses.yaml").read_text().replace("train_path: own,", "train_path: own, data_type: KIND,")
    words = [*ON, "--model", "qwen3-8b"]
    pairs = script(pipeweaver, tmp_path, text.replace("KIND", "dpo"), *words, name="dpo.yaml")
    plain = script(pipeweaver, tmp_path, text.replace("KIND", "plaintext"), *words, name="text.yaml")
    assert plain["verdict"] == pairs["verdict"] == "fits"
    # Another copy in 16 bits, shared out over the 8 GPUs.
    assert pairs["memory"]["peak_bytes"] > plain["memory"]["peak_bytes"] + 2 * 8.19e9 / 8


def test_a_script_of_ones_own_decides_what_it_does_not_say(pipeweaver, tmp_path):
    launch = "deepspeed --num_gpus 8 mine/train.py --deepspeed ds_z3_config.json --bf16 True --max_length 2048 " \
        "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] == "undecided" and "--gradient_checkpointing" in opened(answer)
    assert "the script mine/train.py may set it" in answer["open"][0]["why"]
    assert script(pipeweaver, tmp_path, launch + "--gradient_checkpointing True", *ON)["verdict"] == "fits"


def test_a_model_that_no_catalogue_has_is_asked_for(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, SWIFT.replace("Qwen2.5-7B", "Own-7B") + "--max_length 2048", *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--model"]
    near = script(pipeweaver, tmp_path, SWIFT.replace("Qwen2.5-7B", "Qwen3-VL-9B") + "--max_length 2048", *ON)
    assert near["open"][0]["give"] == "name the model with --model (the nearest in the catalogue is qwen3-vl-2b)"


def test_names_of_public_launches_say_which_model_was_taken(pipeweaver, tmp_path):
    for named, taken in (("tiiuae/Falcon3-7B-Instruct", "falcon3-7b"),  # a model of its own
                         ("HuggingFaceTB/SmolLM-1.7B-Instruct", "smollm2-1.7b"),  # equal sizes
                         ("own/SmolLM2-1.7B/model.safetensors", "smollm2-1.7b")):  # a file in a model's folder
        launch = SWIFT.replace("Qwen/Qwen2.5-7B-Instruct", named) + "--max_length 2048"
        answer = script(pipeweaver, tmp_path, launch, *ON)
        assert answer["verdict"] == "fits"
        assert f"model '{named}' is taken as {taken} of the catalogue" in answer["assumed"]


def test_names_of_ms_swift_until_2_6_say_the_model(pipeweaver, tmp_path):
    """ms-swift#860: a model of 7 B whole on one A100 of 80 GB is out of memory."""
    launch = "CUDA_VISIBLE_DEVICES=0 swift sft --sft_type full --dataset own.jsonl "
    for more, taken in (("--model_type qwen1half-7b-chat", "qwen1.5-7b"),
                        ("--model_type own --model_id_or_path mine/Qwen2-VL-7B-Instruct", "qwen2-vl-7b")):
        answer = script(pipeweaver, tmp_path, launch + more, "--cluster", "a100-sxm:1")
        assert any(f"is taken as {taken} of the catalogue" in one for one in answer["assumed"])
        assert answer["verdict"] != "fits"


def test_sequences_of_ms_swift_go_round_a_ring_where_key_heads_do_not_divide(pipeweaver, tmp_path):
    """3602360a swift/sequence_parallel: key heads are shared out among the greatest common divisor; else a ring."""
    launch = "NPROC_PER_NODE=6 swift sft --model Qwen/Qwen3-8B --dataset own --deepspeed zero3 " \
        "--attn_impl flash_attn --max_length 24576 --packing true --tuner_type full --use_liger_kernel true " \
        "--sequence_parallel_size "
    on = ["--cluster", "h100-sxm:6"]
    six = script(pipeweaver, tmp_path, launch + "6", *on)
    assert six["layout"]["cp"] == 6 and six["verdict"] in ("fits", "close")
    two = script(pipeweaver, tmp_path, launch + "2", *on)
    assert six["memory"]["ranks"][0]["activations_bytes"] < two["memory"]["ranks"][0]["activations_bytes"]
    padded = script(pipeweaver, tmp_path, launch.replace("--packing true", "") + "6", *on, "--rules-only")
    assert [one["rule"] for one in padded["broken"]] == ["ring-padding"]


def test_a_trainer_that_accelerate_starts_is_ones_own_by_any_flag(pipeweaver, tmp_path):
    """trl#597: Llama 2 7B whole, in 32 bits, on 7 replicas of 80 GB is out of memory."""
    (tmp_path / "replicas.yaml").write_text("distributed_type: MULTI_GPU\nmixed_precision: 'no'\nnum_processes: 7\n")
    launch = "accelerate launch --config_file replicas.yaml mine/sft.py --model_name mine/llama2-7B-hf/ " \
        "--gradient_accumulation_steps 2 "
    on = ["--cluster", "a100-sxm:7"]
    answer = script(pipeweaver, tmp_path, launch, *on)
    assert answer["launched_by"] == "Hugging Face's Trainer" and answer["verdict"] in ("undecided", "does-not-fit")
    assert any("is taken as llama2-7b of the catalogue" in one for one in answer["assumed"])
    (tmp_path / "replicas.yaml").write_text("distributed_type: MEGATRON_LM\nmixed_precision: 'no'\nnum_processes: 7\n")
    split = script(pipeweaver, tmp_path, launch, *on)  # by degrees that are not read
    assert split["verdict"] == "undecided" and split["open"][0]["setting"] == "accelerate launch"


def test_another_trainer_behind_the_same_command_is_refused(pipeweaver, tmp_path):
    (tmp_path / "train.yaml").write_text(FACTORY)
    (tmp_path / "launch.sh").write_text("USE_MEGATRON_BRIDGE=1 llamafactory-cli train train.yaml\n")
    status, line = pipeweaver.fails("check", *ON, tmp_path / "launch.sh")
    assert status == 2 and "makes another trainer of LLaMA-Factory, which is not read" in line


V1 = "model: Qwen/{model}\nmodel_class: llm\ndist_config:\n  name: fsdp2\ncutoff_len: 2048\nmicro_batch_size: 1\n" \
    "init_config:\n  name: init_on_meta\n"


def test_a_file_that_several_commands_train_is_decided_where_they_agree(pipeweaver, tmp_path):
    file = tmp_path / "train.yaml"
    file.write_text(V1.format(model="Qwen3-0.6B"))
    small = json.loads(pipeweaver.run("check", "--json", *ON, file).stdout)
    assert small["launched_by"] == "LLaMA-Factory v1" and small["verdict"] == "fits"
    file.write_text(V1.format(model="Qwen3-32B"))
    large = json.loads(pipeweaver.run("check", "--json", *ON, file).stdout)
    (tmp_path / "sft.sh").write_text("USE_V1=1 llamafactory-cli sft train.yaml\n")
    (tmp_path / "dpo.sh").write_text("USE_V1=1 llamafactory-cli dpo train.yaml\n")
    sft, dpo = (json.loads(pipeweaver.run("check", "--json", *ON, tmp_path / f"{name}.sh").stdout)
                for name in ("sft", "dpo"))
    assert dpo["memory"]["peak_bytes"] > sft["memory"]["peak_bytes"]
    same = sft["verdict"] == dpo["verdict"] or sft["verdict"] == "does-not-fit"
    assert large["verdict"] == (sft["verdict"] if same else "undecided")
    assert [one["setting"] for one in large["open"]] == ([] if same else ["the command"])


def test_a_trainer_of_megatron_core_behind_the_same_command_is_read(pipeweaver, tmp_path):
    (tmp_path / "train.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\ncutoff_len: 4096\n"
        "packing: true\nbf16: true\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 4\n"
        "tensor_model_parallel_size: 2\nsequence_parallel: true\nuse_distributed_optimizer: true\n"
        "recompute_granularity: full\n")
    (tmp_path / "launch.sh").write_text("USE_MCA=1 llamafactory-cli train train.yaml\n")
    done = pipeweaver.run("check", "--json", *ON, tmp_path / "launch.sh")
    answer = json.loads(done.stdout)
    assert answer["launched_by"] == "LLaMA-Factory on Megatron Core"
    assert answer["layout"]["tp"] == 2 and answer["layout"]["microbatches"] == 4
    assert answer["verdict"] == "fits", answer


def test_a_diffusion_transformer_is_left_undecided(pipeweaver, tmp_path):
    text = (FIELD / "veomni_ulysses.yaml").read_text()
    answer = script(pipeweaver, tmp_path, text, *ON, "--model", "wan2.1-t2v-1.3b", name="wan.yaml")
    assert answer["verdict"] == "undecided" and opened(answer) == ["--model"]
    assert "is no language model" in answer["open"][0]["why"]


CHOSEN = """case "$1" in
    small) MODEL=Qwen/Qwen2.5-7B-Instruct ;;
    large) MODEL=Qwen/Qwen2.5-72B-Instruct ;;
esac
"""


def test_what_does_not_fit_by_a_branch_alone_is_undecided(pipeweaver, tmp_path):
    launch = CHOSEN + SWIFT.replace("Qwen/Qwen2.5-7B-Instruct", "$MODEL") + "--tuner_type full --max_length 2048"
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["MODEL"]
    said = script(pipeweaver, tmp_path, launch, *ON, "--set", "MODEL=Qwen/Qwen2.5-72B-Instruct")
    assert said["verdict"] == "does-not-fit"
    other = "if [ -n \"$RUN\" ]; then OUT=runs; fi\n" + SWIFT.replace("7B-Instruct", "72B-Instruct") + \
        "--tuner_type full --max_length 2048 --output_dir $OUT"
    assert script(pipeweaver, tmp_path, other, *ON)["verdict"] == "does-not-fit"


def test_torchtitans_model_of_several_modules_asks_for_its_samples(pipeweaver, tmp_path):
    launch = "torchrun --nproc_per_node=8 -m torchtitan.train --module qwen3_5 --config qwen35_9b"
    answer = script(pipeweaver, tmp_path, launch + " --training.seq_len 131072", *ON)
    assert answer["verdict"] == "undecided" and opened(answer) == ["--dataset"]
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] in ("fits", "close")  # the longest that fill the configuration's length


def test_a_setting_with_several_reasons_is_named_once_in_the_first_line(pipeweaver, tmp_path):
    (tmp_path / "launch.sh").write_text(
        "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe nemotron_3_nano_pretrain_config "
        "model.seq_length=8192 train.micro_batch_size=1 train.global_batch_size=16 peft.dim=8 "
        "'peft.target_modules=[linear_qkv,x_proj,dt_proj]'\n")
    text = pipeweaver.run("check", *ON, "--model", "nemotron-3-nano-30b-a3b", tmp_path / "launch.sh").stdout
    assert text.splitlines()[0].count("peft.target_modules") == 1 and text.count("peft.target_modules") == 3


def test_automodel_shares_gradients_and_names_targets_by_patterns(pipeweaver, tmp_path):
    text = (FIELD / "automodel_packed.yaml").read_text().replace("global_batch_size: 8", "global_batch_size: 16")

    def answer(text):
        return script(pipeweaver, tmp_path, text, *ON, "--model", "llama3-8b", name="recipe.yaml")

    shared = answer(text.replace("tp_size: 1,", "tp_size: 1, defer_fsdp_grad_sync: false,"))
    assert peak(shared) < peak(answer(text)) - 10
    peft = text + "peft: {dim: 8, target_modules: TARGETS}\n"
    named = answer(peft.replace("TARGETS", "[q_proj, o_proj, up_proj, down_proj]"))
    assert named["verdict"] == "fits"
    for pattern in ("'*_proj'", "'*.layers.*_proj'"):
        assert peak(answer(peft.replace("TARGETS", pattern))) == peak(named)
    unknown = answer(peft.replace("TARGETS", "[dt_proj]"))
    assert unknown["verdict"] == "undecided" and opened(unknown) == ["--peft.target_modules"]


def test_a_loss_in_sixteen_bits_keeps_half_of_the_logits(pipeweaver, tmp_path):
    text = (FIELD / "automodel_packed.yaml").read_text().replace("linear_ce.FusedLinear", "masked_ce.Masked")

    def of(loss):
        recipe = text.replace("MaskedCrossEntropy", "MaskedCrossEntropy" + loss)
        return peak(script(pipeweaver, tmp_path, recipe, *ON, "--model", "llama3-8b", name="recipe.yaml"))

    logits = 8 * 4096 * 128256 / GIB
    assert of("") - of(", fp32_upcast: false") == pytest.approx(logits, rel=0.1)
    assert of(", fp32_upcast: true") == of("")


def test_automodel_leaves_experts_that_no_other_gpu_has_as_they_are(pipeweaver, tmp_path):
    text = (FIELD / "automodel_packed.yaml").read_text().replace("global_batch_size: 8", "global_batch_size: 16")
    text = text.replace("meta-llama/Meta-Llama-3-8B", "Qwen/Qwen3-30B-A3B").replace("tp_size: 1,", "ep_size: 8,")
    rank, = script(pipeweaver, tmp_path, text, *ON, name="recipe.yaml")["memory"]["ranks"]
    experts = 48 * 128 * 3 * 2048 * 768 // 8  # of 48 layers, each with 128 of three matrices
    rest = 8 * (rank["optimizer_bytes"] // 4 - experts)  # two moments of 16 bits
    assert rank["weights_bytes"] == 2 * experts + 2 * rest + 2 * rest // 8  # and shards beside the gathered ones
    assert rank["gradients_bytes"] == 2 * experts + 4 * rest


def test_samples_that_are_not_said_are_counted_as_the_longest_and_the_answer_says_so(pipeweaver, tmp_path):
    said = "samples are not said: all are counted as the longest that --max_length allows, 4096 tokens"
    pairs = SWIFT.replace("swift sft", "swift rlhf --rlhf_type kto") + "--tuner_type lora --max_length 4096 "
    megatron = ("NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B-Instruct --dataset d.jsonl --max_length 4096 "
                "--tensor_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 16 ")
    for launch, says in (pairs, said), (megatron, said.replace("--max_length", "--seq-length")):
        assert says in script(pipeweaver, tmp_path, launch, *ON)["assumed"]
        assert f"\nassumed: {says}\n" in pipeweaver("check", *ON, tmp_path / "launch.sh")
        for more, words in ("--packing true", []), ("", ["--dataset", "constant-512"]):
            answer = script(pipeweaver, tmp_path, launch + more, *ON, *words)
            assert not any("samples are not said" in one for one in answer["assumed"])


def test_what_nothing_cuts_is_undecided_with_the_length_that_fits(pipeweaver, tmp_path):
    text = (FIELD / "automodel_packed.yaml").read_text().replace("sequence_size: 4096", "sequence_size: 0")
    text = text.replace("global_batch_size: 8, local_batch_size: 1", "global_batch_size: 64, local_batch_size: 8")
    chat = "nemo_automodel.components.datasets.llm.chat_dataset.ChatDataset"

    def answer(more, *words):
        recipe = text + f"dataset: {{_target_: {chat}, seq_length: 2048{more}}}\n"
        return script(pipeweaver, tmp_path, recipe, *ON, "--model", "llama3-8b", *words, name="recipe.yaml")

    whole = answer("")
    assert whole["verdict"] == "undecided" and opened(whole) == ["--dataset.seq_length"]
    why = whole["open"][0]["why"]
    most = int(why.split()[-2])
    assert why == f"longer samples are not cut to it: it fits while none has more than {most} tokens"
    assert answer("", "--dataset", f"constant-{most}")["verdict"] == "fits"
    assert answer("", "--dataset", f"constant-{2 * most}")["verdict"] != "fits"
    cut = answer(", truncation: true")
    assert cut["verdict"] == "fits" and peak(cut) == pytest.approx(peak(answer("", "--dataset", "constant-2048")))


def test_images_of_samples_that_are_padded_to_a_length_are_bounded_by_it(pipeweaver, tmp_path):
    text = (FIELD / "automodel_packed.yaml").read_text().replace("sequence_size: 4096", "sequence_size: 0")

    def answer(length, *words):
        collate = f"dataloader: {{collate_fn: {{max_length: {length}}}}}\n"
        return script(pipeweaver, tmp_path, text + collate, *ON, "--model", "qwen2.5-vl-7b", *words, name="recipe.yaml")

    fits = answer(2048)
    assert fits["verdict"] == "fits"
    assert peak(answer(2048, "--dataset", "constant-64+1x448px")) <= peak(fits)
    # As long as text alone does not fit, images beside it do not either.
    large = answer(524288)
    assert large["verdict"] == "does-not-fit" and any("524288 tokens of text" in one for one in large["assumed"])


def test_a_file_alone_does_not_say_who_shards(pipeweaver, tmp_path):
    text = FACTORY.replace("cutoff_len: 4096", "cutoff_len: 1024")
    answer = script(pipeweaver, tmp_path, text, *ON, name="train.yaml")
    assert answer["verdict"] == "undecided" and opened(answer) == ["accelerate launch --config_file"]
    launched = script(pipeweaver, tmp_path, "llamafactory-cli train train.yaml\n", *ON)
    assert launched["verdict"] == "does-not-fit"


def test_mimos_examples_are_refused_by_name(pipeweaver, tmp_path):
    (tmp_path / "launch.sh").write_text("torchrun --nproc_per_node 8 mimo/megatron_mimo_training_llava.py "
                                        "--micro-batch-size 4 --freeze-llm true false\n")
    status, line = pipeweaver.fails("check", *ON, tmp_path / "launch.sh")
    assert status == 2 and "launches Megatron-Bridge's examples/megatron_mimo, which is not read" in line


IMAGES_OF = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --dataset own --attn_impl flash_attn "


def test_what_fits_with_the_longest_samples_fits_whatever_they_hold(pipeweaver, tmp_path):
    answer = script(pipeweaver, tmp_path, IMAGES_OF + "--max_length 2048", *ON)
    assert answer["verdict"] == "fits" and answer["open"] == []
    assert any("all are counted as the longest that --max_length allows, 2048 tokens of" in one
               for one in answer["assumed"])
    # Samples of images that fill the length hold no more.
    images = script(pipeweaver, tmp_path, IMAGES_OF + "--max_length 2048", *ON, "--dataset", "constant-64+1x1232px")
    assert peak(images) <= peak(answer)
    # Images are kept whole, and where the longest do not fit it depends on what there is.
    for more in ("--max_length 2048 --truncation_strategy left",
                 "--max_length 65536 --tuner_type full --deepspeed zero2"):
        answer = script(pipeweaver, tmp_path, IMAGES_OF + more, *ON)
        assert answer["verdict"] == "undecided" and opened(answer) == ["--dataset"]
    # So are those of prompts, which GRPO cuts unless it is told to delete them.
    answers = IMAGES_OF.replace("swift sft", "swift rlhf") + ("--rlhf_type grpo --use_vllm true --vllm_mode server "
                                                              "--max_length 2048")
    assert opened(script(pipeweaver, tmp_path, answers, *ON)) == ["--dataset"]
    assert script(pipeweaver, tmp_path, answers + " --truncation_strategy delete", *ON)["verdict"] == "fits"


def test_pairs_of_answers_are_two_sequences_and_adapters_need_no_other_model(pipeweaver, tmp_path):
    words = SWIFT.replace("swift sft", "swift rlhf") + "--max_length 2048 --deepspeed zero3 "
    lora = script(pipeweaver, tmp_path, words + "--rlhf_type dpo --per_device_train_batch_size 2", *ON)
    unsaid = script(pipeweaver, tmp_path, words + "--per_device_train_batch_size 2", *ON)
    assert unsaid["memory"] == lora["memory"]  # `swift rlhf` is dpo
    alone = script(pipeweaver, tmp_path, words.replace("rlhf", "sft") + "--per_device_train_batch_size 4", *ON)
    assert lora["verdict"] == "fits" and peak(lora) == peak(alone)
    single = script(pipeweaver, tmp_path, words + "--rlhf_type kto --per_device_train_batch_size 4", *ON)
    assert peak(single) == peak(alone)
    full = words + "--tuner_type full --rlhf_type "
    # 7,615,616,512 parameters of Qwen2.5-7B in 16 bits, an eighth of them on a GPU.
    refers, orpo = (script(pipeweaver, tmp_path, full + kind, *ON) for kind in ("dpo", "orpo"))
    named = script(pipeweaver, tmp_path, full + "dpo --ref_model Qwen/Qwen2.5-7B-Instruct", *ON)
    assert (named["verdict"], peak(named)) == (refers["verdict"], peak(refers))
    assert (peak(refers) - peak(orpo)) * GIB == pytest.approx(2 * 7_615_616_512 / 8, rel=1e-4)


def test_pairs_are_learned_of_logits_whatever_kernels_there_are(pipeweaver, tmp_path):
    # 2 x 4096 positions of 152,064 entries; fused kernels make none of them for sft.
    liger = "enable_liger_kernel: true\ndeepspeed: ds_z3_config.json\npref_loss: orpo\n"
    pairs = script(pipeweaver, tmp_path, FACTORY.replace("sft", "dpo") + liger, *ON, name="train.yaml")
    alone = script(pipeweaver, tmp_path, FACTORY.replace("batch_size: 1", "batch_size: 2") + liger, *ON,
                   name="train.yaml")
    assert peak(pairs) > peak(alone) + 5


def test_joined_pairs_are_no_longer_than_two_sequences(pipeweaver, tmp_path):
    words = (SWIFT.replace("swift sft", "swift rlhf") + "--max_length 2048 --packing true --attn_impl flash_attn "
             "--rlhf_type ")
    joined = script(pipeweaver, tmp_path, words + "dpo", *ON)
    assert joined["verdict"] == "fits"
    assert peak(joined) == peak(script(pipeweaver, tmp_path, words.replace("2048", "4096") + "kto", *ON))


def test_an_engine_on_the_same_gpus_takes_its_share(pipeweaver, tmp_path):
    words = (SWIFT.replace("swift sft", "swift rlhf") + "--rlhf_type grpo --max_length 1024 --deepspeed zero2 "
             "--use_vllm true --vllm_mode ")

    def of(more):
        return script(pipeweaver, tmp_path, words + more, *ON)
    server = of("server")
    assert server["verdict"] == "fits"
    awake = [peak(of(f"colocate --vllm_gpu_memory_utilization {share}")) for share in ("0.1", "0.2", "0.3")]
    assert awake[2] - awake[1] == pytest.approx(awake[1] - awake[0], rel=1e-6)
    assert awake[0] - peak(server) == pytest.approx(awake[1] - awake[0], rel=1e-6)
    asleep = [peak(of(f"colocate --vllm_gpu_memory_utilization {share} --sleep_level 1")) for share in ("0.05", "0.2")]
    assert (asleep[0] - peak(server)) * GIB == pytest.approx(774 * 2**20, rel=1e-6)  # what an engine holds asleep
    assert peak(server) < asleep[1] < awake[1]  # beside the weights while it generates, not beside a step
    # DeepSpeed keeps flat buffers of 16-bit weights (7,615,616,512 parameters) and of masters where both are freed.
    beside = "colocate --vllm_gpu_memory_utilization 0.6 --sleep_level 1 --tuner_type full --beta 0"
    freed, held = (peak(of(beside + more)) for more in (" --offload_model true --offload_optimizer true", ""))
    assert (held - freed) * GIB == pytest.approx(8 * 7_615_616_512 / 8, rel=1e-3)
    # Answers behind the prompts; of several turns they may be longer, and without an engine the trainer generates.
    assert peak(of("server --max_completion_length 4096")) > peak(server)
    assert peak(of("colocate --vllm_gpu_memory_utilization 0.05 --sleep_level 1 --max_completion_length 4096 "
                   "--vllm_max_model_len 1536")) == asleep[0]
    # A server has a length of its own.
    longer = "server --max_completion_length 4096"
    assert peak(of(longer + " --vllm_max_model_len 1536")) == peak(of(longer))
    # What does not fit by the share may: it may be counted otherwise. Weights alone that do not fit never do.
    large = of("colocate --vllm_gpu_memory_utilization 0.3 --sleep_level 1 --model Qwen/Qwen2.5-72B-Instruct")
    assert large["verdict"] == "does-not-fit" and large["open"] == []
    answer = of("colocate --vllm_gpu_memory_utilization 0.95")
    assert answer["verdict"] == "undecided" and "--vllm_gpu_memory_utilization" in opened(answer)
    for more, setting in (("server --multi_turn_scheduler math", "--multi_turn_scheduler"),
                          ("server --use_vllm false", "--use_vllm")):
        answer = of(more)
        assert answer["verdict"] == "undecided" and opened(answer) == [setting]


def test_adapters_of_latent_attention_are_counted(pipeweaver, tmp_path):
    launch = "NPROC_PER_NODE=8 swift sft --model deepseek-ai/DeepSeek-V2-Lite --dataset own --max_length 2048"
    answer = script(pipeweaver, tmp_path, launch, *ON)
    assert answer["verdict"] in ("fits", "close") and "--lora_rank" not in opened(answer)
    megatron = (launch.replace("swift sft", "megatron sft") + " --tuner_type lora --lora_rank 8 "
                "--expert_model_parallel_size 4 --micro_batch_size 1 --global_batch_size 16")
    answer = script(pipeweaver, tmp_path, megatron, *ON)
    assert answer["verdict"] in ("fits", "close") and "--lora-rank" not in opened(answer)


def test_weights_of_fewer_bits_hold_no_more_than_of_sixteen(pipeweaver, tmp_path):
    launch = "NPROC_PER_NODE={} swift sft --model Qwen/Qwen2.5-{}-Instruct-AWQ --dataset own --max_length 2048"
    assert script(pipeweaver, tmp_path, launch.format(8, "7B"), *ON)["verdict"] == "fits"
    answer = script(pipeweaver, tmp_path, launch.format(1, "72B"), "--cluster", "h100-sxm:1")
    assert answer["verdict"] == "undecided" and opened(answer) == ["--model"]
