"""`pipeweaver check`: what it reads of other frameworks' spellings, and rules beside Megatron Core's own classes."""

import json
import subprocess

import pytest

BASE = ("--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
        "--micro-batch-size 1 --bf16 ")
DENSE_70B = ("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel --num-layers 80 "
             "--hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention "
             "--num-query-groups 8 --swiglu --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 "
             "--untie-embeddings-and-output-weights --disable-bias-linear --micro-batch-size 1 "
             "--global-batch-size 64 --bf16 --use-distributed-optimizer ")
PP2 = "--training.disable_cuda_graphs --parallelism.pipeline_parallel_degree 2 "


@pytest.fixture
def check(pipeweaver):
    """The answer to words, with its exit status."""
    def run(*words):
        done = subprocess.run([pipeweaver.path, "check", "--json", *map(str, words)], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr
    return run


@pytest.fixture
def rules(check):
    """The rules that Megatron-LM's arguments break."""
    def run(text, *more):
        return broken(check("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args", BASE + text, *more))
    return run


def broken(answered):
    status, answer = answered
    assert status in (0, 4, 5), answer
    return [rule["rule"] for rule in answer["broken"]]


def titan(check, text, *more):
    return check("--rules-only", "--cluster", "h100-sxm:8", "--model", "llama3-8b", "--torchtitan-args", text, *more)


@pytest.mark.parametrize("modules", ["moe_act --moe-grouped-gemm", "layernorm", "mlp", "shared_experts"])
def test_modules_that_a_model_may_not_have_take_nothing_off(check, modules):
    on = ("--cluster", "h100-sxm:64", "--megatron-args")
    plain = check(*on, DENSE_70B)[1]["memory"]
    status, answer = check(*on, DENSE_70B + "--recompute-granularity selective --recompute-modules " + modules)
    assert (status, answer["verdict"], answer["fits"]) == (5, "undecided", False)
    assert [(one["setting"], one["memory"]) for one in answer["open"]] == [("--recompute-modules", "less")]
    assert answer["memory"] == plain
    assert any(f"recomputation of {modules.split()[0]}" in one for one in answer["assumed"])


def test_a_model_by_name_may_have_the_positions(rules):
    assert rules("--mtp-num-layers 1") == ["mtp-positions"]
    words = ("--seq-length 1024 --micro-batch-size 1 --bf16 --mtp-num-layers 1", "--model", "llama3-8b")
    assert rules("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 " + words[0], *words[1:]) == []


def test_positions_are_required_where_no_model_has_them(check):
    text = BASE.replace("--max-position-embeddings 1024 ", "")
    assert broken(check("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args", text)) == ["positions"]


def test_torchtitan_is_read_as_its_command_line_is(check, tmp_path):
    stages = [["tok_embeddings", *(f"layers.{i}" for i in range(20))],
              [*(f"layers.{i}" for i in range(20, 32)), "norm", "lm_head"]]
    script = tmp_path / "run.sh"
    script.write_text("source torchtitan.sh\ntorchrun -m torchtitan.train --module llama3 --config llama3_8b "
                      '"${PIPEWEAVER_FLAGS[@]}"\n')
    names = " ".join(",".join(stage) for stage in stages)
    (tmp_path / "torchtitan.sh").write_text(
        f"PIPEWEAVER_FLAGS=(\n  {PP2}\n  --parallelism.module_fqns_per_model_part {names}\n"
        "  --training.seq_len 4096 --training.local_batch_size 8\n  activation-checkpoint:full\n)\n")
    status, answer = check("--rules-only", "--cluster", "h100-sxm:8", "--model", "llama3-8b", script)
    assert (status, answer["stages"], answer["hazards"]) == (0, [20, 12], [])
    text = json.dumps(stages).replace(" ", "")
    assert broken(titan(check, f"{PP2} --parallelism.module_fqns_per_model_part '{text}'")) == ["stages-by-pp"]


def test_torchtitans_checkpointing_changes_the_memory_and_is_the_change_that_is_named(check):
    on = ("--cluster", "h100-sxm:8", "--model", "llama3-8b", "--torchtitan-args")
    text = PP2 + ("--compile.enable --parallelism.pipeline_parallel_microbatch_size 4 --training.seq_len 8192 "
                  "--training.local_batch_size 16")
    status, answer = check(*on, text)
    assert status == 4 and answer["changes"][0]["change"] == "activation-checkpoint:full"
    assert check(*on, text + " activation-checkpoint:full")[0] == 0
    memory = check(*on, text + " activation-checkpoint:memory-budget")[1]["memory"]
    assert memory == check(*on, text + " activation-checkpoint:none")[1]["memory"]


@pytest.mark.parametrize("setting", ["parallelism.pipeline_parallel_degreee 2", "training.sequence 64",
                                     "activation_checkpoint.mode full"])
def test_settings_that_torchtitan_refuses_are_broken(check, setting):
    assert broken(titan(check, "--" + setting)) == ["known-settings"]
    assert broken(titan(check, "--training.steps 10 --training.dtype float32 --metrics.log_freq 1")) == []


@pytest.mark.parametrize("flag, known", [("tensor-model-parallel-sizes", "tensor-model-parallel-size"),
                                         ("pipline-model-parallel-size", "pipeline-model-parallel-size"),
                                         ("tensor-model-parallel", "tensor-model-parallel-size"),
                                         ("vocab-file", None), ("decoder-seq-length", None),
                                         ("moe-router-dtype", None), ("lr", None)])
def test_misspelled_flags_are_named(check, flag, known):
    words = ("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args", f"{BASE} --{flag} 8")
    said = [f"'{flag}' is not known; is '{known}' meant?"] if known else []
    assert check(*words)[1]["assumed"] == said


def test_what_the_later_version_takes(rules):
    later = ("--framework", "megatron-core:0.20.0")
    score = "--num-experts 8 --disable-bias-linear --moe-router-score-function sqrtsoftplus "
    assert rules(score) == ["router-score"]
    assert rules(score + "--moe-router-enable-expert-bias", *later) == []


def test_where_versions_differ_the_answer_rests_on_the_one_that_runs(check):
    on = ("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args",
          BASE + "--num-experts 8 --disable-bias-linear --moe-router-score-function sqrtsoftplus ")
    status, answer = check(*on)
    assert status == 5 and [one["setting"] for one in answer["open"]] == ["--framework"]
    assert check(*on, "--framework", "megatron-core:0.16.1")[0] == 4
    assert check(*on, "--framework", "megatron-core:0.20.0")[0] == 0


def test_delta_nets_of_the_later_version(rules):
    later = ("--framework", "megatron-core:0.20.0")
    delta = ("--linear-attention-freq 4 --linear-conv-kernel-dim 4 --linear-key-head-dim 64 --linear-value-head-dim 64 "
             "--linear-num-key-heads 4 --linear-num-value-heads 8 --experimental-attention-variant ")
    assert rules(delta + "gdn") == ["attention-variant"]
    assert rules(delta + "gdn --context-parallel-size 2", *later) == []
    assert rules(delta + "gdn2 --context-parallel-size 8", *later) == ["delta-nets"]


def test_heads_that_are_exchanged_are_shared_out_over_cp(rules):
    layout = "--tensor-model-parallel-size 2 --context-parallel-size 4 --cp-comm-type "
    assert rules(layout + "p2p --group-query-attention --num-query-groups 2") == []
    assert rules(layout + "a2a --group-query-attention --num-query-groups 2") == ["exchanged-heads"]
    assert rules(layout + "a2a") == []
    assert rules("--tensor-model-parallel-size 1 --context-parallel-size 8 --cp-comm-type a2a "
                 "--group-query-attention --num-query-groups 4") == ["exchanged-heads"]


PP4 = "--pipeline-model-parallel-size 4 "


@pytest.mark.parametrize("text, rule", [
    (PP4 + "--custom-pipeline-layers 1,2,3,2", None),
    (PP4 + "--custom-pipeline-layers 1,2,3,2 --decoder-first-pipeline-num-layers 1", "custom-layers"),
    (PP4 + "--custom-pipeline-layers 1,2,3,2 --pipeline-model-parallel-layout Et*2|t*2|t*2|t*2L", "custom-layers"),
    (PP4 + "--custom-virtual-pipeline-layers 1,1,1,1,1,1,1,1", "custom-virtual-layers"),
    (PP4 + "--custom-virtual-pipeline-layers 1,1,1,1,1,1,1,1 --num-virtual-stages-per-pipeline-rank 2 "
     "--global-batch-size 8", None),
    (PP4 + "--custom-pipeline-recompute-layers 20,1,2 --recompute-granularity full --recompute-method block",
     "custom-recompute-layers"),
    (PP4 + "--custom-pipeline-recompute-layers 2,1,2,0", "custom-recompute-layers"),
])
def test_loongforges_lists(rules, text, rule):
    assert rules(text) == ([rule] if rule else [])


def test_connections_that_a_script_sets(check, tmp_path):
    def asked(value, flags, gpus="h100-sxm:8"):
        script = tmp_path / "run.sh"
        script.write_text(f"export CUDA_DEVICE_MAX_CONNECTIONS={value}\ntorchrun pretrain_gpt.py {BASE} {flags}\n")
        return broken(check("--rules-only", "--cluster", gpus, script))
    tp = "--tensor-model-parallel-size 2"
    fsdp = "--use-torch-fsdp2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights"
    assert asked(8, tp) == ["max-connections"]
    assert asked(8, tp, "b200-sxm:8") == asked(1, tp) == asked(8, "") == asked(8, fsdp) == []
    assert asked(1, fsdp) == ["fsdp-connections"]


def test_ms_swifts_names(check):
    text = BASE.replace("--seq-length", "--max_length") + (
        "--pipeline_model_parallel_size 4 --virtual_pipeline_model_parallel_size 2 --global-batch-size 16 "
        "--microbatch_group_size_per_vp_stage 3")
    status, answer = check("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args", text)
    assert answer["layout"]["chunks"] == 2
    assert [rule["rule"] for rule in answer["broken"]] == ["group-size"]
    assert check("--rules-only", "--cluster", "h100-sxm:8", "--megatron-args", text[:-1] + "4")[0] == 0
