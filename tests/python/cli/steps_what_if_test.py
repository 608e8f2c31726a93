"""What if times vary, and gradients travel in fewer bytes: `--robust jitter` and `--what-if gradients`."""

import json

import pytest
from checkout import ROOT
from cli_shared import BATCH, PLAN

STEP = ["emulate", *PLAN[1:], *BATCH, "--partition", "balanced"]
MEASURED = ROOT / "examples/measured"
REPLICAS = ["emulate", "--model", "llama3-8b", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "2", "--dataset",
            "constant-4096", "--microbatches", "8", "--policy", "1f1b"]


@pytest.fixture(scope="module")
def varied(pipeweaver):
    return pipeweaver(*STEP, "--robust", "jitter", "--json", "--threads", "1")


def test_steps_vary_around_the_emulated_one(varied):
    answer = json.loads(varied)
    jitter = answer["jitter"]
    assert jitter["asked"]["steps"] == 1000 and jitter["lists"]["steady_ns"] == answer["makespan_ns"]
    for way in ("lists", "ready_queue"):
        assert jitter[way]["p50_ns"] <= jitter[way]["p90_ns"] <= jitter[way]["p99_ns"]
    assert (jitter["one_f_one_b"] is None) == (jitter["why_no_1f1b"] is not None)
    for rank in jitter["slowed"]:
        assert answer["makespan_ns"] <= rank["makespan_ns"][0] <= rank["makespan_ns"][1] <= rank["makespan_ns"][2]
        assert rank["makespan_ns"][2] <= 1.31 * answer["makespan_ns"]
    assert 0 <= jitter["local_saves"] < 1 and 0 < jitter["stale_saves"] < 1


def test_threads_change_nothing_and_seeds_do(pipeweaver, varied):
    def of(*options):
        return json.loads(pipeweaver(*STEP, "--robust", "jitter", "--json", *options))["jitter"]

    assert of("--threads", "2") == json.loads(varied)["jitter"]
    assert of("--jitter", "5%")["lists"]["p90_ns"] > json.loads(varied)["jitter"]["lists"]["p90_ns"]


def test_a_plan_is_replayed_with_a_slow_rank(pipeweaver):
    def lists(*options):
        return json.loads(pipeweaver("replay", MEASURED, "--robust", "jitter", "--json", *options))["jitter"]["lists"]

    slow, other = lists("--slow", "10-30%"), lists("--slow", "10-30%", "--seed", "2")
    assert slow != other and slow["p50_ns"] > lists()["p50_ns"]
    text = pipeweaver("replay", MEASURED, "--robust", "jitter", "--slow", "1:20%")
    assert "if times vary: " in text and "without waiting, off the mean makespan: at most" in text


def gradients(pipeweaver, *options):
    answer = json.loads(pipeweaver(*REPLICAS, "--what-if", "gradients", "--json", *options))
    assert answer["base"] is None and answer["asked"]["what_if"] is None
    return answer, answer["gradients"]


def test_gradients_are_compressed_where_it_helps(pipeweaver):
    answer, found = gradients(pipeweaver)
    assert found["before"]["makespan_ns"] == answer["makespan_ns"] and found["before"]["compressed"] == 0
    assert {one["format"] for one in found["alone"]} == {"bf16", "fp8", "top-k 1 %"}
    for one in found["alone"]:
        assert found["any"]["makespan_ns"] <= one["makespan_ns"] <= answer["makespan_ns"]
    compressed = [bucket for rank in found["ranks"] for bucket in rank["buckets"] if bucket["format"] != "as it is"]
    assert len(compressed) == found["any"]["compressed"]
    assert "what if gradients travel in fewer bytes, in replica 0" in pipeweaver(*REPLICAS, "--what-if", "gradients")


def test_one_replica_has_no_gradients_to_compress(pipeweaver):
    alone = [*REPLICAS, "--what-if", "gradients"]
    alone[alone.index("h100-sxm:16")] = "h100-sxm:8"
    assert "none do, no weight has copies" in pipeweaver(*alone)


@pytest.mark.parametrize("command, status, words", [
    ([*STEP, "--robust", "often"], 2, "--robust: is 'often', must be jitter"),
    ([*STEP, "--jitter", "5%"], 2, "--jitter: goes with --robust jitter"),
    ([*STEP, "--robust", "jitter", "--jitter", "40%"], 2, "--jitter: is '40%', must be a percentage from 0% to 25%"),
    ([*STEP, "--robust", "jitter", "--slow", "30-10%"], 2, "--slow: is '30-10%', must be [RANK:]PERCENT"),
    ([*STEP, "--robust", "jitter", "--slow", "4:10%"], 2, "--slow: there is no rank 4, allowed are 0 to 3"),
    (["replay", MEASURED, "--seed", "2"], 2, "--seed: goes with --robust"),
    ([*REPLICAS, "--zero", "2", "--what-if", "gradients"], 2, "--what-if gradients: goes with ZeRO 0 and 1"),
])
def test_what_is_no_such_question_is_one_line(pipeweaver, command, status, words):
    found, line = pipeweaver.fails(*command)
    assert found == status and words in line
