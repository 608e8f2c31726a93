"""emulate: a step of short passes says how long it takes where its host is waited for."""

import json

SHORT = ("emulate", "--model", "llama3-8b", "--cluster", "h100-sxm:8", "--tp", "8", "--pp", "1", "--microbatches", "4",
         "--dataset", "constant-1024")


def test_a_step_of_short_passes_has_both_ends(pipeweaver):
    lines = pipeweaver(*SHORT).splitlines()
    said = [line for line in lines if line.startswith("host: ")]
    assert len(said) == 1 and "as megatron-core-plain has it" in said[0] and "times as long" in said[0]
    answer = json.loads(pipeweaver(*SHORT, "--json"))
    assert answer["host"]["step_ns"] > 1.1 * answer["step_ns"]
    assert 0 < answer["host"]["waits_ns"] < answer["host"]["step_ns"]


def test_a_recipe_that_knows_its_host_says_what_a_layer_takes_of_it(pipeweaver):
    answer = json.loads(pipeweaver(*SHORT, "--recipe", "megatron-core-plain", "--json"))
    assert "host" not in answer
    assert "the host takes 1.880 ms for a layer's forward: shorter layers wait for it" in answer["assumed"]
    assert not any("never waited for" in one for one in answer["assumed"])


def test_a_step_of_long_passes_says_nothing(pipeweaver):
    long = [*SHORT, "--tp", "2"]
    del long[long.index("--tp"):long.index("--tp") + 2]
    assert "host" not in json.loads(pipeweaver(*long, "--json"))
