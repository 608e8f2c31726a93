"""`pipeweaver check` says of random launches what Megatron Core 0.16.1 and torchtitan 0.3.0 say themselves."""

import json
import shlex
import subprocess

import drawn_launches
import launch_oracles
from cli_shared import full

CASES = 400 if full() else 200


def ask(pipeweaver, cluster, option, words, *more):
    """What check answers to a launch: (whether it constructs, its answer or its error)."""
    words = [option, shlex.join(words), "--rules-only", "--json", *more]
    done = subprocess.run([pipeweaver.path, "check", "--cluster", cluster, *words], capture_output=True, text=True)
    assert done.returncode in (0, 2, 4, 5), done.stderr
    return done.returncode == 0, json.loads(done.stdout) if done.stdout else done.stderr


def agree(verdicts, rules):
    """Both refuse some, for that many rules and more, and none differently."""
    differ = [f"case {seed}: framework: {theirs or 'constructs'}; check: {ours}"
              for seed, theirs, constructs, ours in verdicts if (theirs is None) != constructs]
    assert not differ, "\n".join(differ)
    refusals = sum(theirs is not None for _, theirs, _, _ in verdicts)
    assert len(verdicts) // 4 < refusals < 3 * len(verdicts) // 4
    assert len({rule["rule"] for _, _, _, ours in verdicts if isinstance(ours, list) for rule in ours}) >= rules


def megatron_case(pipeweaver, seed):
    case = drawn_launches.megatron(seed)
    layers, theirs = launch_oracles.megatron_verdict(dict(case["fields"]), case["gpus"], case["sequence"],
                                                     case["micro"], case["global"], case["vocabulary"])
    fields = {name: value for name, value in case["fields"].items() if name != "cpu_offloading"}
    words = drawn_launches.hydra(fields) + [
        f"model.seq_length={case['sequence']}", f"train.micro_batch_size={case['micro']}",
        f"train.global_batch_size={case['global']}", f"model.vocab_size={case['vocabulary']}"]
    constructs, ours = ask(pipeweaver, f"h100-sxm:{case['gpus']}", "--bridge-overrides", words)
    if theirs is None and constructs:
        assert ours["stages"] == layers, seed
    return seed, theirs, constructs, ours if isinstance(ours, str) else ours["broken"]


def test_it_agrees_with_megatron_cores_own_classes(pipeweaver):
    agree([megatron_case(pipeweaver, seed) for seed in range(CASES)], 28)


def argument_case(pipeweaver, seed):
    case, words = drawn_launches.arguments(seed)
    theirs = launch_oracles.argument_rule(case["fields"], case["gpus"], case["sequence"])
    layers = None
    if theirs is None:
        layers, theirs = launch_oracles.megatron_verdict(launch_oracles.as_validated(case["fields"]), case["gpus"],
                                                         case["sequence"], case["micro"], case["global"],
                                                         case["fields"]["tensor_model_parallel_size"])
    constructs, ours = ask(pipeweaver, f"h100-sxm:{case['gpus']}", "--megatron-args", words)
    if theirs is None and constructs:
        assert ours["stages"] == layers, seed
    return seed, theirs, constructs, ours if isinstance(ours, str) else ours["broken"]


def test_it_agrees_with_megatron_lms_arguments(pipeweaver):
    agree([argument_case(pipeweaver, seed) for seed in range(CASES // 2)], 18)


def titan_case(pipeweaver, seed):
    case = drawn_launches.titan(seed)
    modules, theirs = launch_oracles.titan_verdict(case["parallelism"], case["training"], case["gpus"],
                                                   drawn_launches.MODELS[case["model"]])
    constructs, ours = ask(pipeweaver, f"h100-sxm:{case['gpus']}", "--torchtitan-args",
                           drawn_launches.titan_flags(case), "--model", case["model"])
    if theirs is None and constructs and modules:
        assert ours["stages"] == [sum(name.startswith("layers.") for name in part) for part in modules], seed
    return seed, theirs, constructs, ours if isinstance(ours, str) else ours["broken"]


def test_it_agrees_with_torchtitans_own_functions(pipeweaver):
    agree([titan_case(pipeweaver, seed) for seed in range(CASES)], 13)
