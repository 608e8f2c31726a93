"""emulate: a step of short passes says how long it takes where its host is waited for."""

import json
import shlex

import pytest

SHORT = ("emulate", "--model", "llama3-8b", "--cluster", "h100-sxm:8", "--tp", "8", "--pp", "1", "--microbatches", "4",
         "--dataset", "constant-1024")


def test_a_step_of_short_passes_has_both_ends(pipeweaver):
    lines = pipeweaver(*SHORT).splitlines()
    said = [line for line in lines if line.startswith("host: ")]
    assert len(said) == 1 and "as megatron-core-plain has it" in said[0] and "times as long" in said[0]
    answer = json.loads(pipeweaver(*SHORT, "--json"))
    near, far = answer["step_range_ns"]
    assert near == answer["step_ns"] and answer["host"]["step_ns"] > 1.1 * near
    assert abs(far - answer["host"]["far"] * answer["host"]["step_ns"]) <= 1
    both = f"step {near / 1e9:.6f} s to {far / 1e9:.6f} s, by how layers are launched: "
    assert any(line.startswith(both[:both.rindex(":")]) for line in lines)
    assert answer["host"]["waits_ns"] == max(answer["host"]["waits_ns_of_ranks"])
    assert 0 < answer["host"]["waits_ns"] < answer["host"]["step_ns"]


# Megatron-Bridge's log of a run of Llama 3.2 1B; NVIDIA-NeMo/Speech#14850, NVIDIA's own step and a user's. A sample a
# microbatch, as they were run: packed, there would be fewer.
@pytest.mark.parametrize("ask, measured_s", [
    (("--model", "llama3.2-1b", "--cluster", "h100-sxm:8", "--tp", "1", "--pp", "1", "--dataset", "constant-1024",
      "--microbatch-tokens", "1024"), (4.648,)),
    (("--model", "qwen3-30b-a3b", "--cluster", "h100-sxm:16", "--tp", "1", "--pp", "2", "--ep", "8", "--policy",
      "interleaved", "--chunks", "24", "--dataset", "constant-4096", "--microbatch-tokens", "4096"), (13.97, 24.4)),
])
def test_steps_that_were_measured_lie_between_the_ends(pipeweaver, ask, measured_s):
    near, far = json.loads(pipeweaver("emulate", *ask, "--global-batch", "512", "--json"))["step_range_ns"]
    for seconds in measured_s:
        assert near <= 1e9 * seconds <= far


def test_a_recipe_that_knows_its_host_says_what_a_layer_takes_of_it(pipeweaver):
    answer = json.loads(pipeweaver(*SHORT, "--recipe", "megatron-core-plain", "--json"))
    assert "host" not in answer
    assert "the host takes 1.880 ms for a layer's forward: shorter layers wait for it" in answer["assumed"]
    assert not any("never waited for" in one for one in answer["assumed"])


def test_a_step_of_long_passes_says_nothing(pipeweaver):
    long = [*SHORT, "--tp", "2"]
    del long[long.index("--tp"):long.index("--tp") + 2]
    assert "host" not in json.loads(pipeweaver(*long, "--json"))


def test_a_launch_that_is_said_has_one_step(pipeweaver):
    far = json.loads(pipeweaver(*SHORT, "--json"))["host"]["step_ns"]
    lines = pipeweaver(*SHORT, "--launched", "eager").splitlines()
    assert any(line.startswith(f"step {far / 1e9:.6f} s = makespan") for line in lines)
    said = [line for line in lines if line.startswith("host: ")]
    assert len(said) == 1 and "rank 0 waits" in said[0] and "1.880 ms of it for a layer's forward" in said[0]
    assert not any(line.startswith("host: ") for line in pipeweaver(*SHORT, "--launched", "graphs").splitlines())


def test_a_plan_whose_host_decides_has_both_ends_of_now_and_of_what_it_advises(pipeweaver, tmp_path):
    ask = ("plan", *SHORT[1:], "--target", "megatron", "--max-rounds", "1", "--out", tmp_path)
    lines = pipeweaver(*ask).splitlines()
    plan = json.loads((tmp_path / "plan.json").read_text())
    now = plan["ladder"][0]
    near, far = now["step_range_ns"]
    assert [line for line in lines if line.startswith(f"host      now takes {near / 1e9:.3f} s to {far / 1e9:.3f} s")]
    assert json.loads(pipeweaver(*shlex.split(now["command"])[1:], "--json"))["step_range_ns"] == [near, far]
    advised = [rung for rung in plan["ladder"] if rung["rung"] == plan["headline"]["rung"]]
    assert advised[0].get("step_range_ns") == plan["headline"].get("step_range_ns")
    assert not any(line.startswith("host  ") for line in pipeweaver(*ask, "--launched", "graphs").splitlines())
