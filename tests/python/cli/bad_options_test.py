"""Bad options: one clear line with the right exit status, and nothing is written."""

import json

import pytest
from cli_shared import BATCH, PLAN, small_problem

def recipe(**members):
    return json.dumps({"format": "pipeweaver-recipe/1", "name": "mine", **members})


NO_NETWORK = json.dumps({"format": "pipeweaver-cluster/1", "name": "mine", "device": "h100_sxm", "gpus_per_node": 8,
                         "gpus": 32, "node_link_bytes_per_s": 450_000_000_000})
NO_NODE_LINK = json.dumps({"format": "pipeweaver-cluster/1", "name": "mine", "device": "h100_sxm", "gpus_per_node": 8,
                           "gpus": 32, "network_bytes_per_s": 400_000_000_000})

# Of every command that takes a recipe and a cluster.
RECIPE_FAULTS = [
    (["--recipe", "megatron-cor"], "unknown recipe 'megatron-cor'; did you mean 'megatron-core'?"),
    (["--recipe", recipe(data_paralel={})], "--recipe: unknown key 'data_paralel'; did you mean 'data_parallel'?"),
    (["--recipe", recipe(host={"action": 1})], "--recipe: host: unknown key 'action'; did you mean 'action_ns'?"),
    (["--recipe", recipe(data_parallel={"zero": 2, "bucket_bytes": 1000})],
     "--recipe: data_parallel.bucket_bytes: goes with zero 0 and 1; with 2 gradients are reduced in every backward"),
    (["--recipe", recipe(precision={"lm": "fp8"})],
     "recipe mine: precision.lm: unknown module 'lm'; did you mean 'llm'? Known are vit, llm"),
    (["--cluster", "a100-sxm:32", "--recipe", recipe(precision={"default": "fp8"})],
     "in fp8, which a100_sxm has no products of; allowed is bf16"),
    (["--precision", "int3"], "--precision: is 'int3', must be one of bf16, fp8, fp8_block, nvfp4, fp32"),
    (["--precision", "vit=bf16,lm=fp8"], "precision.lm: unknown module 'lm'; did you mean 'llm'? Known are vit, llm"),
    (["--precision", "llm=nvfp4"], "which h100_sxm has no products of; allowed are bf16, fp8, fp8_block"),
    (["--precision", "llm:0-999=fp8"], "precision.llm:0-999: module 'llm' has layers 0 to "),
    (["--zero", "2", "--bucket", "40MB"], "--bucket: goes with --zero 0 and 1"),
    (["--zero", "4"], "--zero: is '4', must be a whole number from 0 to 3"),
    (["--action", "2s"], "--action: is '2s', must be a time up to 1s"),
    (["--cluster", NO_NETWORK], "--cluster: network_bytes_per_s: is missing; 32 GPUs in nodes of 8 need it, allowed "),
    (["--cluster", NO_NODE_LINK],
     "--cluster: node_link_bytes_per_s: is missing; 32 GPUs in nodes of 8 need it, allowed "),
]

PLAN_FAULTS = [
    (["--model", "dip-vlm-n"], 2, "unknown model 'dip-vlm-n'; did you mean 'dip-vlm-"),
    (["--model", "hf:"], 2, "--model: hf: names no file, allowed is a config.json behind it, or its folder"),
    (["--cluster", "h100-sx:32"], 2, "unknown cluster 'h100-sx'; did you mean 'h100-sxm'?"),
    (["--cluster", "h100-sxm"], 2, "h100-sxm"),
    (["--cluster", "h100-sxm:many"], 2, "many"),
    (["--cluster", "h100-sxm:0"], 2, "0"),
    (["--cluster", "h100-sxm:99999999999999"], 2, "99999999999999"),
    (["--dataset", "vlm-mx"], 2, "unknown data set 'vlm-mx'; did you mean 'vlm-mix'?"),
    (["--microbatches", "0"], 2, "--microbatches: is '0', must be a whole number from 1 to 100000"),
    (["--microbatches", "-3"], 2, "--microbatches: is '-3', must be a whole number from 1 to 100000"),
    (["--microbatches", "many"], 2, "--microbatches: is 'many', must be a whole number from 1 to 100000"),
    (["--microbatches", "99999999999999999999"], 2, "--microbatches: is '99999999999999999999', must be"),
    (["--tp", "3"], 2, "GPUs"),
    (["--cluster", "h100-sxm:4", "--tp", "1", "--microbatches", "1"], 4, "GiB short"),
    (["--dp", "2"], 2, "--tp 8 * --pp 4 * --dp 2 = 64 GPUs, the cluster 'h100-sxm' has 32"),
    (["--target", "megatron", "--zero", "2"], 2, "--zero: is 2, but --target megatron launches 0 to 1 alone; allowed "
     "with 2 are --target torch-actions, torch-csv, torchtitan, fsdp2, deepspeed, any"),
    (["--target", "torchtitan", "--zero", "1"], 2, "--zero: is 1, but --target torchtitan launches 0 and 2 to 3 alone; "
     "allowed with 1 are --target torch-actions, torch-csv, megatron, megatron-mimo, deepspeed, any"),
    (["--target", "torchtitan", "--zero", "0", "--cp", "2"], 2, "--zero: is 0, but --target torchtitan launches 0 with "
     "--cp 1 and an --ep that divides --tp, and 2 to 3 alone; "
     "allowed with 0 are --target torch-actions, torch-csv, megatron, megatron-mimo, any"),
    (["--target", "torchtitan", "--context", "all-to-all"], 2,
     "--context: is all-to-all, but --target torchtitan exchanges no heads; allowed is ring"),
    (["--cp", "0"], 2, "--cp: is '0', must be auto or a whole number from 1 to 1024"),
    (["--cp", "3"], 2, "--tp 8 * --cp 3 * --pp 4 = 96 GPUs do not divide the cluster's 32"),
    (["--cp", "2", "--dp", "1"], 2, "--tp 8 * --cp 2 * --pp 4 * --dp 1 = 64 GPUs, the cluster 'h100-sxm' has 32"),
    (["--cluster", "h100-sxm:128", "--cp", "4"], 2,
     "--cp: tp 8 * cp 4 = 32 does not divide the 16 attention heads of module 'vit'; the next smaller that does those "
     "of every module is --cp "),
    (["--cp", "3", "--tp", "auto"], 2,
     "--tp auto --pp 4 --dp auto --cp 3 on 32 GPUs: the numbers given do not divide the GPUs"),
    (["--ep", "2"], 2, "--ep: 2 GPUs have nothing to share out: the model 'dip-vlm-m' has no experts; allowed is 1"),
    (["--context", "spiral"], 2, "--context: is 'spiral', must be one of all-to-all, ring"),
    (["--budget", "1"], 2, "--budget: '1' is not a time; write it like 2s, 300ms or 5us"),
    (["--budget", "-1s"], 2, "--budget: '-1s' is out of range for a time"),
    (["--partition", "best"], 2, "--partition: is 'best', must be one of dip, modules, megatron, balanced"),
    (["--batch", "x.jsonl"], 2, "--batch, --dataset: exactly one of the two is needed"),
    (["--modle", "x"], 2, "unknown option '--modle'; did you mean '--model'?"),
    (["--tp", "some"], 2, "--tp: is 'some', must be auto or a whole number from 1 to 1024"),
    (["--pp", "0"], 2, "--pp: is '0', must be auto or a whole number from 1 to 1024"),
    (["--tp", "auto", "--pp", "5"], 2,
     "--tp auto --pp 5 --dp auto on 32 GPUs: the numbers given do not divide the GPUs"),
    (["--cluster", "h100-sxm:8", "--tp", "auto", "--pp", "auto"], 4,
     "--tp auto --pp auto --dp auto on 8 GPUs: no layout fits the memory; tp 8 x pp 1 x dp 1 comes closest: "
     "rank 0 is "),
    (["--headroom", "3"], 2, "--headroom: is '3', must be auto, 0 or a percentage up to 50%, like 3%"),
    (["--tokens", "300 B"], 2, "--tokens: is '300 B', must be a number of tokens up to 10000T, like 300B"),
    (["--price", "0"], 2, "--price: is '0', must be a number above 0 up to 10000 USD, like 2.5"),
    (["--headroom", "51%"], 2, "--headroom: is '51%', must be auto, 0 or a percentage up to 50%, like 3%"),
    (["--headroom", "-1%"], 2, "--headroom: is '-1%', must be auto, 0 or a percentage up to 50%, like 3%"),
    (["--assignment", "in turn"], 2, "--assignment: is 'in turn', must be one of balanced, in-turn"),
    (["--target", "torch"], 2, "--target: is 'torch', must be one of torch-actions, torch-csv"),
]


@pytest.mark.parametrize("change, status, words", PLAN_FAULTS, ids=[" ".join(change) for change, _, _ in PLAN_FAULTS])
def test_a_bad_option_is_one_line_and_nothing_is_written(pipeweaver, tmp_path, change, status, words):
    arguments = [*PLAN, *BATCH]
    for name, value in zip(change[::2], change[1::2]):
        if name in arguments:
            arguments[arguments.index(name) + 1] = value
        else:
            arguments += [name, value]
    got, line = pipeweaver.fails(*arguments, "--out", tmp_path / "plan")
    assert got == status
    assert words in line
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("command", [["plan"], ["emulate"], ["layers"], ["costdb", "needs"]], ids=" ".join)
@pytest.mark.parametrize("change, words", RECIPE_FAULTS, ids=[words for _, words in RECIPE_FAULTS])
def test_a_recipe_that_cannot_be_is_one_line_of_every_command(pipeweaver, tmp_path, command, change, words):
    arguments = [*command, *PLAN[1:], *BATCH]
    for name, value in zip(change[::2], change[1::2]):
        if name in arguments:
            arguments[arguments.index(name) + 1] = value
        else:
            arguments += [name, value]
    out = [] if command == ["layers"] else ["--out", tmp_path / "out"]
    status, line = pipeweaver.fails(*arguments, *out)
    assert status == 2
    assert words in line
    assert not (tmp_path / "out").exists()


def test_a_file_is_named_with_the_key_that_is_wrong_in_it(pipeweaver, tmp_path):
    (tmp_path / "r.yaml").write_text("format: pipeweaver-recipe/1\nname: mine\ndata_parallel: {zreo: 2}\n")
    status, line = pipeweaver.fails(*PLAN, *BATCH, "--recipe", tmp_path / "r.yaml", "--out", tmp_path / "plan")
    assert (status, line) == (
        2, f"pipeweaver: {tmp_path}/r.yaml:3: data_parallel: unknown key 'zreo'; did you mean 'zero'?")
    (tmp_path / "c.json").write_text(NO_NETWORK)
    status, line = pipeweaver.fails("emulate", "--model", "dip-vlm-m", "--cluster", tmp_path / "c.json", *BATCH)
    assert status == 2
    assert line.startswith(
        f"pipeweaver: {tmp_path}/c.json: network_bytes_per_s: is missing; 32 GPUs in nodes of 8 need it")


@pytest.mark.parametrize("command, more", [
    ("plan", "--out DIR: a folder for the plan"), ("partition", "--out FILE: a file for the partition"),
    ("emulate", None)])
def test_all_that_is_missing_is_named_in_one_line(pipeweaver, command, more):
    missing = ["missing --model MODEL: `pipeweaver list models` names the known ones",
               "--cluster CLUSTER: `pipeweaver list clusters` names the known ones",
               "--batch FILE or --dataset DATASET: the samples of a step", *([more] if more else [])]
    assert pipeweaver.fails(command) == (2, "pipeweaver: " + "; ".join(missing))
    status, line = pipeweaver.fails(command, "--model", "dip-vlm-m", "--dataset", "vlm-mix")
    assert (status, line) == (2, "pipeweaver: missing " + "; ".join([missing[1], *missing[3:]]))


def test_an_option_is_given_once_and_with_a_value(pipeweaver):
    for command in ("plan", "emulate", "recommend"):
        assert pipeweaver.fails(command, "--model", "llama3-8b", "--model", "llama3-8b") == (
            2, "pipeweaver: --model: is given 2 times, allowed is once")
        assert pipeweaver.fails(command, "--seed") == (2, "pipeweaver: --seed: has no value, N is needed")


def test_an_unknown_command_names_the_nearest(pipeweaver):
    assert pipeweaver.fails("slove") == (2, "pipeweaver: unknown command 'slove'; did you mean 'solve'?")
    assert pipeweaver.fails("costdb", "qeury") == (2, "pipeweaver: unknown command 'qeury'; did you mean 'query'?")


def test_an_unknown_key_of_a_configuration_names_the_nearest(pipeweaver, tmp_path):
    (tmp_path / "c.json").write_text('{"modle": "dip-vlm-m"}')
    status, line = pipeweaver.fails("plan", "--config", tmp_path / "c.json", "--out", tmp_path / "plan")
    assert status == 2
    assert line.endswith("c.json: unknown key 'modle'; did you mean 'model'?")


def test_missing_input_and_unwritable_output_are_io_errors(pipeweaver, tmp_path):
    status, line = pipeweaver.fails("solve", tmp_path / "none.json", "--out", tmp_path / "s.json")
    assert status == 3
    assert line.endswith("none.json: cannot be read: No such file or directory")
    (tmp_path / "p.json").write_text(json.dumps(small_problem()))
    (tmp_path / "file").write_text("")
    status, line = pipeweaver.fails("solve", tmp_path / "p.json", "--out", tmp_path / "file/s.json")
    assert status == 3
    status, line = pipeweaver.fails(*PLAN, *BATCH, "--max-rounds", "1", "--out", tmp_path / "file/plan")
    assert status == 3
    assert (tmp_path / "file").read_text() == ""
