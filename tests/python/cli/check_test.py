"""`pipeweaver check`: exit statuses, bad input, the answer for a program, and docs/check.md."""

import json
import subprocess

import check_page
import pytest

DENSE = ("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
         "--vocab-size 32000 --swiglu --ffn-hidden-size 11008 --micro-batch-size 1 --global-batch-size 64 --bf16 "
         "--use-distributed-optimizer ")
ON_8 = ["--cluster", "h100-sxm:8", "--megatron-args"]
LAYOUT = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel "


@pytest.fixture
def check(pipeweaver):
    def run(*words):
        return subprocess.run([pipeweaver.path, "check", *map(str, words)], capture_output=True, text=True)
    return run


def test_a_launch_that_constructs_and_fits_exits_with_0(check):
    done = check("--cluster", "h100-sxm:64", "--megatron-args", DENSE + LAYOUT, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["format"] == "pipeweaver-check/1"
    assert (answer["constructs"], answer["fits"], answer["broken"], answer["changes"]) == (True, True, [], [])
    assert answer["stages"] == [8, 8, 8, 8]
    assert answer["layout"] == {"tp": 4, "cp": 1, "pp": 4, "dp": 4, "ep": 1, "etp": 4, "chunks": 1, "microbatches": 16}
    ranks = answer["memory"]["ranks"]
    assert [rank["layers"] for rank in ranks] == [8, 8, 8, 8]
    for rank in ranks:
        parts = ("weights", "gradients", "optimizer", "buffers", "activations", "transient")
        assert rank["peak_bytes"] == sum(rank[f"{part}_bytes"] for part in parts)
    assert answer["memory"]["peak_bytes"] == max(rank["peak_bytes"] for rank in ranks)


def test_loongforges_ranks_hold_what_is_said_of_each(check):
    def ranks(recompute):
        done = check("--cluster", "h100-sxm:64", "--megatron-args", DENSE + LAYOUT + recompute, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)["memory"]["ranks"]
    block = "--recompute-granularity full --recompute-method block "
    said = ranks(block + "--custom-pipeline-recompute-layers 8,3,0,0")
    full, three, none = (ranks(block + f"--recompute-num-layers {n}") if n else ranks("") for n in (8, 3, 0))
    assert said == [full[0], three[1], none[2], none[3]]
    assert full[0]["peak_bytes"] < none[0]["peak_bytes"]
    # Of groups that all layers are in it says the sizes.
    uniform = "--recompute-granularity full --recompute-method uniform "
    assert ranks(uniform + "--custom-pipeline-recompute-layers 1,1,1,1") == ranks(uniform + "--recompute-num-layers 1")


def test_loongforges_list_is_of_encoders_too_and_no_verdict_rests_on_it(check):
    flags = ("--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --sequence-parallel --bf16 "
             "--use-distributed-optimizer --micro-batch-size 1 --global-batch-size 16 --seq-length 4096 "
             "--recompute-granularity full --recompute-method block ")

    def said(recompute):
        done = check("--cluster", "a100-sxm:32", "--model", "internvl2.5-78b", "--dataset", "vlm-mix",
                     "--megatron-args", flags + recompute, "--json")
        answer = json.loads(done.stdout)
        return "never recomputed" in done.stdout, "undecided" in done.stderr, answer["memory"]["ranks"][0]
    built = said("--recompute-num-layers 45")
    listed = said("--custom-pipeline-recompute-layers 45,26,21,12")
    assert (built[:2], listed[:2]) == ((True, False), (False, False))
    assert listed[2]["activations_bytes"] < built[2]["activations_bytes"] / 2


def test_what_does_not_construct_exits_with_4_and_names_the_rule(check):
    done = check("--cluster", "h100-sxm:64", "--megatron-args", DENSE + LAYOUT + "--num-layers 33", "--json")
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1 and "33 layers on 4 ranks" in done.stderr
    answer = json.loads(done.stdout)
    assert [rule["rule"] for rule in answer["broken"]] == ["rank-layers"]
    assert answer["broken"][0]["source"].startswith("megatron/training/arguments.py")
    assert (answer["constructs"], answer["fits"], answer["memory"]) == (False, None, None)


def test_what_does_not_fit_exits_with_4_and_the_first_change_makes_it_fit(check):
    long = DENSE + "--seq-length 32768 --max-position-embeddings 32768 "
    done = check("--cluster", "h100-sxm:8", "--megatron-args", long, "--json")
    assert done.returncode == 4 and "short" in done.stderr
    answer = json.loads(done.stdout)
    assert answer["fits"] is False
    memory = answer["memory"]
    assert memory["short_bytes"] == memory["peak_bytes"] - memory["usable_bytes"] > 0
    change = answer["changes"][0]["change"]
    done = check("--cluster", "h100-sxm:8", "--megatron-args", long + change)
    assert done.returncode == 0, done.stdout


def test_equal_launches_have_equal_answers_on_any_number_of_threads(check):
    words = ("--cluster", "h100-sxm:32", "--model", "qwen2.5-vl-7b", "--dataset", "vlm-mix", "--json",
             "--megatron-args", "--seq-length 8192 --micro-batch-size 1 --global-batch-size 64 "
             "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 "
             "--decoder-first-pipeline-num-layers 1 --bf16 --use-distributed-optimizer")
    assert check(*words, "--threads", 1).stdout == check(*words, "--threads", 3).stdout


@pytest.mark.parametrize("words, error", [
    ([], "; --cluster CLUSTER: `pipeweaver list clusters` names"),
    (["--cluster", "h100-sxm:8"], "missing FILE: a launch"),
    (["--cluster", "h100-sxm", "--megatron-args", "--num-layers 1"], "the number of GPUs is missing"),
    ([*ON_8, "--num-layers 1", "--torchtitan-args", "x"], "exactly one of them"),
    ([*ON_8, "--num-layers x"], "num-layers: is 'x', must be a whole number"),
    ([*ON_8, "--num-layers 0"], "num-layers: is '0', must be a whole number"),
    ([*ON_8, "--hidden-size 8"], "missing --num-layers: say it"),
    ([*ON_8, "--num-layers '1"], "a quote ' is not closed"),
    ([*ON_8, "--num-layers $N"], "variables belong in a script"),
    ([*ON_8, DENSE, "--framework", "megatron-core:1"], "must be one of megatron-core"),
    ([*ON_8, DENSE, "--framework", "torchtitan"], "says Megatron-LM's arguments"),
    ([*ON_8, DENSE, "--model", "llama3-8b"], "--ffn-hidden-size: is 11008"),
    ([*ON_8, DENSE.replace("--vocab-size 32000", "")], "missing --vocab-size: say it"),
    (["--cluster", "h100-sxm:8", "--torchtitan-args", "--training.seq_len 64"], "missing --model MODEL: torchtitan"),
    ([*ON_8, DENSE, "--set", "A=1"], "--set: goes with FILE"),
    ([*ON_8, " "], "says no setting of Megatron-LM's arguments"),
    ([*ON_8, DENSE + "--moe-layer-freq [0] --num-experts 8"], "of 1 layers"),
    ([*ON_8, DENSE, "--dataset", "constant-4097"],
     "has 4097 tokens, a microbatch of the launch holds 4096 (--seq-length)"),
    ([*ON_8, DENSE + "--micro-batch-size 2", "--dataset", "constant-8193"],
     "has 8193 tokens, a microbatch of the launch holds 8192 (--seq-length times --micro-batch-size)"),
    (["--cluster", "h100-sxm:8", "--model", "llama3-8b", "--dataset", "constant-513", "--torchtitan-args",
      "--training.seq_len 64"],
     "has 513 tokens, a microbatch of the launch holds 512 (training.seq_len times training.local_batch_size)"),
    ([*ON_8, LAYOUT, "--model", "flux.1-dev"], "no language model, whose rules these are; `pipeweaver emulate`"),
    (["--cluster", "h100-sxm:8", "--model", "flux.1-dev", "--torchtitan-args", "--training.seq_len 64"],
     "no language model, whose rules these are; `pipeweaver emulate`"),
])
def test_bad_input_is_one_line_and_exits_with_2(check, words, error):
    done = check(*words)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1 and error in done.stderr
    assert done.stdout == ""


def test_files_that_are_not_there_or_say_nothing(check, tmp_path):
    done = check("--cluster", "h100-sxm:8", tmp_path / "none.sh")
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    (tmp_path / "empty.sh").write_text("echo hello\n")
    done = check("--cluster", "h100-sxm:8", tmp_path / "empty.sh")
    assert done.returncode == 2 and "has no command" in done.stderr
    (tmp_path / "arrays.sh").write_text("FLAGS=(--num-layers 8 --bf16)\n")
    done = check("--cluster", "h100-sxm:8", tmp_path / "arrays.sh")
    assert done.returncode == 2 and "name the script that sources it" in done.stderr
    (tmp_path / "crlf.sh").write_bytes(b"torchrun pretrain_gpt.py \\\r\n --num-layers 8\r\n")
    done = check("--cluster", "h100-sxm:8", tmp_path / "crlf.sh")
    assert done.returncode == 2 and "has CRLF line ends" in done.stderr
    done = check("--cluster", "h100-sxm:8", "--model", "llama3-8b", tmp_path / "a.toml")
    assert done.returncode == 2 and "a.toml: is TOML, which is not read" in done.stderr


def test_a_script_and_its_variables(check, tmp_path):
    script = tmp_path / "train.sh"
    script.write_text(f"export CUDA_DEVICE_MAX_CONNECTIONS=1\nMODEL=({DENSE})\n"
                      "torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL[@]} --pipeline-model-parallel-size $PP\n")
    done = check("--cluster", "h100-sxm:8", script)
    assert done.returncode == 5 and "undecided: it rests on --pipeline-model-parallel-size" in done.stdout
    done = check("--cluster", "h100-sxm:8", "--set", "PP=4", script, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["layout"]["pp"] == 4 and answer["hazards"] == []


def test_hazards_of_a_launch_of_torchtitan(check):
    settings = ("--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B "
                "--training.local_batch_size 8 --training.seq_len 4096 --training.disable_cuda_graphs")
    done = check("--cluster", "h100-sxm:8", "--model", "llama3-8b", "--torchtitan-args", settings, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["stages"] == [8, 9, 8, 7]
    assert [hazard["hazard"] for hazard in answer["hazards"]] == ["early-receives"]


def test_the_page_has_the_answers_of_the_program_and_names_the_frameworks(pipeweaver):
    text = check_page.PAGE.read_text()
    for framework in check_page.frameworks(pipeweaver.path):
        assert f"`{framework}`" in text, framework
    shown = list(check_page.examples(text))
    assert len(shown) >= 2
    for command, answer in shown:
        printed, status = check_page.answer(pipeweaver.path, command)
        assert (printed, status) == (answer, 4), command


def test_a_script_is_read_with_what_it_sources(check, tmp_path):
    """As a plan's megatron.sh is: arrays in a file beside it."""
    (tmp_path / "flags.sh").write_text("FLAGS=(--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2)\n")
    script = tmp_path / "launch.sh"
    script.write_text('source flags.sh\n. missing.sh\ntorchrun pretrain_gpt.py "${FLAGS[@]}" ' + DENSE + "\n")
    done = check("--cluster", "h100-sxm:8", script, "--json")
    answer = json.loads(done.stdout)
    assert (answer["layout"]["tp"], answer["layout"]["pp"]) == (4, 2), answer
    assert any("'missing.sh' is not at hand" in note for note in answer["assumed"]), answer
    script.write_text(f"source none.sh\ntorchrun pretrain_gpt.py {DENSE.replace('--seq-length 4096', '')}\n")
    done = check("--cluster", "h100-sxm:8", script)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "missing --seq-length: say it" in done.stderr
    assert f"; {script}:1: 'none.sh' is not at hand" in done.stderr


PROVIDER = {"_target_": "megatron.bridge.models.Provider", "num_layers": 32, "hidden_size": 4096,
            "num_attention_heads": 32, "num_query_groups": 8, "ffn_hidden_size": 11008, "gated_linear_unit": True,
            "vocab_size": 32000, "seq_length": 4096, "add_bias_linear": False, "bf16": True,
            "cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te", "hidden_dropout": 0.0,
            "share_embeddings_and_output_weights": False, "tensor_model_parallel_size": 4, "sequence_parallel": True,
            "pipeline_model_parallel_size": 4, "num_layers_in_first_pipeline_stage": None, "pipeline_dtype":
            {"_target_": "torch.bfloat16", "_call_": False}, "recompute_modules": ["core_attn", "mlp"],
            "recompute_granularity": "selective"}


def test_a_configuration_that_megatron_bridge_wrote_is_read_as_its_overrides(check, tmp_path):
    """Of a container's sections, in YAML and JSON, and of a provider's fields alone."""
    train = {"micro_batch_size": 1, "global_batch_size": 64}
    ddp = {"use_distributed_optimizer": True}
    container = {"model": PROVIDER, "train": train, "ddp": ddp, "logger": {"log_interval": 1}, "peft": None}
    (tmp_path / "run_config.json").write_text(json.dumps(container))
    (tmp_path / "run_config.yaml").write_text(
        "\n".join(f"{section}:\n" + "\n".join(f"  {key}: {json.dumps(value)}" for key, value in fields.items())
                  for section, fields in container.items() if fields))
    plain = {key: value for key, value in PROVIDER.items() if not isinstance(value, (dict, list)) and key[0] != "_"}
    overrides = " ".join(
        [f"model.{key}={json.dumps(value).strip(chr(34))}" for key, value in plain.items()] +
        ["model.recompute_modules=[core_attn,mlp]", "train.micro_batch_size=1", "train.global_batch_size=64",
         "ddp.use_distributed_optimizer=true"])
    told = json.loads(check("--cluster", "h100-sxm:64", "--bridge-overrides", overrides, "--json").stdout)
    for name in ("run_config.json", "run_config.yaml"):
        done = check("--cluster", "h100-sxm:64", tmp_path / name, "--json")
        answer = json.loads(done.stdout)
        assert answer["memory"] == told["memory"] and answer["layout"] == told["layout"], done.stderr
        assert answer["assumed"] == told["assumed"]
    (tmp_path / "provider.json").write_text(json.dumps({**PROVIDER, **train, **ddp}))
    done = check("--cluster", "h100-sxm:64", tmp_path / "provider.json", "--json")
    assert json.loads(done.stdout)["memory"] == told["memory"], done.stderr


@pytest.mark.parametrize("text, why", [
    ("[1]", "is no object"),
    ("{}", "has no field of Megatron-Bridge's configuration"),
    ('{"model": {"num_layers": {"_target_": "x"}}}', "model.num_layers: is an object"),
    ('{"model": {"num_layers": "many"}}', "model.num_layers: is 'many'"),
])
def test_a_configuration_that_is_none_is_named(check, tmp_path, text, why):
    (tmp_path / "a.json").write_text(text)
    done = check("--cluster", "h100-sxm:8", tmp_path / "a.json")
    assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1
    assert "a.json" in done.stderr


def test_ms_swift_arguments_are_read_with_their_spellings(check, tmp_path):
    same = DENSE + LAYOUT + "--num-virtual-stages-per-pipeline-rank 2 --recompute-granularity full " \
        "--recompute-method uniform --recompute-num-layers 1 --cross-entropy-loss-fusion " \
        "--cross-entropy-fusion-impl te --hidden-dropout 0"
    swift = same.replace("--num-virtual-stages-per-pipeline-rank", "--virtual_pipeline_model_parallel_size")
    swift = swift.replace("--seq-length", "--max_length").replace("-parallel-size", "_parallel_size").replace(
        "--sequence-parallel", "--sequence_parallel true").replace("--swiglu", "--swiglu true").replace(
        "-loss-fusion", "-loss-fusion true")
    (tmp_path / "sft.sh").write_text(f"NPROC_PER_NODE=8 megatron sft {swift}\n")
    told = check("--cluster", "h100-sxm:64", "--megatron-args", same, "--json")
    read = check("--cluster", "h100-sxm:64", tmp_path / "sft.sh", "--json")
    assert json.loads(read.stdout)["memory"]["ranks"] == json.loads(told.stdout)["memory"]["ranks"], read.stderr


def test_a_setting_that_is_given_twice_is_named_where_its_values_differ(check, tmp_path):
    (tmp_path / "flags.sh").write_text("FLAGS=(--tensor-model-parallel-size 4 --bf16)\n")
    script = tmp_path / "launch.sh"
    script.write_text('source flags.sh\ntorchrun pretrain_gpt.py "${FLAGS[@]}" --tensor-model-parallel-size 2 ' + DENSE)
    done = check("--cluster", "h100-sxm:8", script, "--rules-only")
    assert "assumed: --tensor-model-parallel-size is given twice (4, 2): the last counts\n" in done.stdout
    assert "tp 2," in done.stdout and done.stdout.count("is given") == 1
    done = check("--cluster", "h100-sxm:8", "--rules-only", "--model", "llama3-8b", "--bridge-overrides",
                 "model.seq_length=1 model.seq_length=2 model.seq_length=4096 train.micro_batch_size=1")
    assert "assumed: model.seq_length is given 3 times (1, 2, 4096): the last counts\n" in done.stdout


def test_a_part_of_a_configuration_is_named_as_one(check, tmp_path):
    part = tmp_path / "megatron.yaml"
    part.write_text("model:\n  tensor_model_parallel_size: 4\ntrain:\n  micro_batch_size: 1\n")
    for words in ([], ["--model", "llama3-8b"]):
        done = check("--cluster", "h100-sxm:8", part, *words)
        assert done.returncode == 5 and "the recipe that megatron.yaml goes into sets it" in done.stdout


@pytest.mark.parametrize("command, option", [("check", "--now"), ("validate", "--today")])
def test_an_option_like_none_is_not_taken_for_another(pipeweaver, command, option):
    status, line = pipeweaver.fails(command, option, "today.sh")
    assert status == 2
    assert line.endswith(f"unknown option '{option}'; `pipeweaver {command} --help` names the known ones")
