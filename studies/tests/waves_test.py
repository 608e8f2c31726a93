"""pipeweaver_studies waves and shift: static plans and partitions while the share of images changes."""

import json
import math
import subprocess

import pytest

WAYS = ["ours", "dip", "static-first", "static-first-five", "static-waves", "static-1f1b", "opponent"]
WAVES = ["--steps", "8", "--microbatches", "2", "--max-rounds", "2"]
SHIFT = ["--model", "dip-vlm-s", "--batches", "2", "--sample", "2", "--microbatches", "2", "--max-rounds", "2"]


def without_clock(answer):
    return {key: value for key, value in answer.items() if key not in ("seconds", "threads", "host")}


@pytest.fixture(scope="module")
def waves(studies):
    return json.loads(studies("waves", *WAVES, "--json"))


@pytest.fixture(scope="module")
def shift(studies):
    return json.loads(studies("shift", *SHIFT, "--json"))


def test_items_rise_and_fall_in_two_waves(waves):
    steps = waves["steps"]
    assert [step["step"] for step in steps] == list(range(1, 9))
    for step in steps:
        phase = math.cos(2 * math.pi * (step["step"] - 1.5) / 4)
        assert step["items_wanted"] == pytest.approx(2 + 10 * (1 + phase))
        assert step["items"] == pytest.approx(step["items_wanted"], abs=3)  # of two microbatches
    assert [step["step"] for step in steps if step["text_heavy"]] == [3, 4, 7, 8]
    assert [step["step"] for step in steps if step["image_heavy"]] == [1, 2, 5, 6]


def test_means_are_of_the_steps_over_ours(waves):
    assert [way["name"] for way in waves["ways"]] == WAYS
    for way in waves["ways"]:
        ratios = [step["step_ns"][way["name"]] / step["step_ns"]["ours"] for step in waves["steps"]
                  if step["step_ns"][way["name"]]]
        over = way["over_ours"]
        assert over["steps"] == len(ratios) > 0
        assert over["all"] == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))
        assert over["least"] == pytest.approx(min(ratios)) and over["most"] == pytest.approx(max(ratios))


def test_a_static_chain_loses_and_loses_more_with_text(waves):
    over = {way["name"]: way["over_ours"] for way in waves["ways"]}
    assert over["static-1f1b"]["text_heavy"] > 1.2 and over["static-1f1b"]["image_heavy"] > 1.2


def test_the_same_rounds_give_the_same_steps_on_any_threads(studies, waves):
    again = json.loads(studies("waves", *WAVES, "--threads", "1", "--json"))
    assert without_clock(again)["steps"] == waves["steps"]


def test_a_stop_pays_after_its_cost_over_what_a_step_saves(studies, shift):
    [set_up] = shift["set_ups"]
    on = {(one["batches"], one["partition"]): one for one in set_up["on"]}
    assert len(on) == 6
    for (batches, partition), one in on.items():
        assert one["mean_ns"] == pytest.approx(sum(one["step_ns"]) / 2, abs=1)
        right = on[batches, batches]["mean_ns"]
        assert one["saved"] == pytest.approx(1 - right / one["mean_ns"], abs=1e-6)
        if one["saved"] > 1e-6:
            assert one["pays_after_steps"] == pytest.approx(600e9 / (one["mean_ns"] - right), abs=1.1)
        else:
            assert one["pays_after_steps"] is None
    shorter = json.loads(studies("shift", *SHIFT, "--stop-cost", "1min", "--json"))
    assert shorter["stop_cost_ns"] == 60 * 10**9
    for one, other in zip(shift["set_ups"][0]["on"], shorter["set_ups"][0]["on"]):
        assert one["step_ns"] == other["step_ns"]
        if one["pays_after_steps"]:
            assert other["pays_after_steps"] == pytest.approx(one["pays_after_steps"] / 10, abs=1)


@pytest.mark.parametrize("words, why", [
    (["waves", "--low", "22"], "--low: is 22, allowed is less than --crest, 22"),
    (["waves", "--cluster", "h800-sxm:32"], "has GPUs for 2 replicas"),
    (["waves", "--dataset", "laion-3b"], "laion-2b"),
    (["waves", "--dataset", "constant-4096"], "--dataset: in all samples"),
    (["shift", "--stop-cost", "10"], "stop-cost"),
])
def test_bad_options_say_what_is_allowed(studies, words, why):
    done = subprocess.run([studies.path, *words, "--max-rounds", "1"], capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1
