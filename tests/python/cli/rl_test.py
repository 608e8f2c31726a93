"""pipeweaver rl: a step of reinforcement learning in each layout, and the best split."""

import json

import pytest

MEASURED = ("rl", "--cluster", "h100-sxm:64", "--lengths", "0:256,50:2k,90:6k,100:16k", "--instance", "8",
            "--generation", "90s:64", "--inference", "12s:64", "--training", "60s:64", "--weights", "65GB",
            "--switching", "8s")
MODEL = ("rl", "--cluster", "h100-sxm:32", "--lengths", "0:256,100:2k", "--answers", "128")


def layouts(answer):
    return {one["layout"]: one for one in answer["layouts"]}


def test_measured_seconds_are_those_of_the_colocated_layout(pipeweaver):
    answer = json.loads(pipeweaver(*MEASURED, "--json"))
    colocated = layouts(answer)["colocated"]
    assert colocated["generation_ns"] == pytest.approx(90e9, rel=1e-6)
    assert colocated["work_ns"] == pytest.approx(72e9, rel=1e-6)
    assert colocated["idle_ns"]["weights"] == 65 / 20 * 1e9
    assert colocated["step_ns"] == pytest.approx(170e9 + 3.25e9, rel=1e-6)


def test_new_weights_come_by_the_links_where_nothing_else_is_slower(pipeweaver):
    answer = json.loads(pipeweaver(*MEASURED, "--weights-speed", "10TB/s", "--json"))
    # To each node once what its instance holds by 400 GB/s, to each GPU an eighth by 450 GB/s.
    by_links = pytest.approx(65 / 400 * 1e9 + 65 / 8 / 450 * 1e9, rel=1e-6)
    assert layouts(answer)["colocated"]["idle_ns"]["weights"] == by_links


def test_layouts_are_in_their_order(pipeweaver):
    """On policy streams and tails help; a step off policy batches are as fast as streams."""
    on_policy = layouts(json.loads(pipeweaver(*MEASURED, "--json")))
    assert list(on_policy) == ["colocated", "moved tail", "split", "streamed"]
    assert on_policy["streamed"]["step_ns"] < on_policy["split"]["step_ns"]
    assert on_policy["moved tail"]["step_ns"] < on_policy["colocated"]["step_ns"]
    off = layouts(json.loads(pipeweaver(*MEASURED, "--steps-off", "1", "--json")))
    assert off["colocated"] == on_policy["colocated"]
    assert off["split"]["step_ns"] < on_policy["split"]["step_ns"]
    assert off["streamed"]["step_ns"] <= off["split"]["step_ns"]
    assert list(off)[4:] == ["in flight"]


def test_in_flight_the_tail_costs_nothing(pipeweaver):
    """Where generation takes longest, one long answer of 64 keeps a step that waits for it, not one in flight."""
    ask = ("rl", "--cluster", "h100-sxm:16", "--lengths", "0:100,98:200,100:4k", "--instance", "8", "--generation",
           "90s:8", "--training", "9s:8", "--steps-off", "3", "--answers", "64", "--json")
    answer = layouts(json.loads(pipeweaver(*ask)))
    waiting, flying = answer["streamed"], answer["in flight"]
    assert flying["step_ns"] < 0.8 * waiting["step_ns"]
    assert flying["idle_ns"]["tail"] == 0


def test_overhead_is_added_to_each_step(pipeweaver):
    ask = (*MODEL, "--model", "qwen2.5-7b", "--json", "--overhead")
    none, some = (layouts(json.loads(pipeweaver(*ask, time)))["colocated"] for time in ("0s", "4s"))
    assert some["step_ns"] == none["step_ns"] + 4e9 and some["work_ns"] == none["work_ns"] + 4e9


def test_the_split_uses_all_gpus_for_time_and_fewer_dollars_for_usd(pipeweaver):
    fast = layouts(json.loads(pipeweaver(*MEASURED, "--price", "3", "--json")))["streamed"]
    cheap = layouts(json.loads(pipeweaver(*MEASURED, "--price", "3", "--objective", "usd", "--json")))["streamed"]
    assert fast["generating_gpus"] + fast["training_gpus"] == 64
    assert fast["usd"] == pytest.approx(64 * 3 * fast["step_ns"] / 3.6e12)
    assert cheap["usd"] <= fast["usd"] and cheap["step_ns"] >= fast["step_ns"]


def test_a_split_may_be_given(pipeweaver):
    """The best of all is none other than one of those that may be given."""
    best = layouts(json.loads(pipeweaver(*MEASURED, "--json")))
    given = {gpus: layouts(json.loads(pipeweaver(*MEASURED, "--generating", str(gpus), "--json")))
             for gpus in (8, 24, 48)}
    for layout in ("split", "streamed"):
        assert [one[layout]["generating_gpus"] for one in given.values()] == [8, 24, 48]
        assert min(one[layout]["step_ns"] for one in given.values()) >= best[layout]["step_ns"]
    assert given[8]["colocated"] == best["colocated"]
    mine = given[best["split"]["generating_gpus"]]["split"]  # with the longest first another split may be the best
    assert {key: mine[key] for key in mine if key != "longest_first_step_ns"} == \
        {key: best["split"][key] for key in mine if key != "longest_first_step_ns"}
    assert mine["longest_first_step_ns"] >= best["split"]["longest_first_step_ns"]


def test_a_model_is_priced_by_the_roofline(pipeweaver):
    ask = (*MODEL, "--model", "qwen2.5-7b", "--json", "--host")
    slow, fast = (json.loads(pipeweaver(*ask, "0ms", "--decode-share", share)) for share in ("0.6", "1"))
    slow_ns, fast_ns = (layouts(one)["colocated"]["generation_ns"] for one in (slow, fast))
    assert slow_ns == pytest.approx(fast_ns / 0.6, rel=0.01)
    hosts = json.loads(pipeweaver(*ask, "5ms", "--decode-share", "0.6"))
    # The longest answer has the middle of the last of 128 equal shares.
    longest = round(256 + (2048 - 256) * 127.5 / 128)
    assert layouts(hosts)["colocated"]["generation_ns"] == pytest.approx(slow_ns + longest * 5e6, rel=0.01)
    assert any("roofline" in note for note in slow["notes"])


def test_images_of_a_prompt_are_encoded_and_read(pipeweaver):
    """In front of each answer, in inference and in training; without any the encoder reads nothing, and says so."""
    ask = (*MODEL, "--model", "qwen2.5-vl-7b", "--json")
    none = json.loads(pipeweaver(*ask))
    some, more = (json.loads(pipeweaver(*ask, "--items", items)) for items in ("1x448px", "4x448px"))
    assert "encoders read nothing: --items was not given" in none["notes"]
    assert any("256 tokens of 1x448px in each prompt" in note for note in some["notes"])  # 448 / 28, squared
    steps = [layouts(one)["colocated"] for one in (none, some, more)]
    for part in ("generation_ns", "work_ns"):
        first, second, third = (step[part] for step in steps)
        assert first < second and third - second == pytest.approx(3 * (second - first), rel=0.2)
    text = json.loads(pipeweaver(*ask, "--prompt", str(512 + 256)))
    assert layouts(text)["colocated"]["work_ns"] < steps[1]["work_ns"]


def test_measured_generation_keeps_the_proportions_of_the_model(pipeweaver):
    """On as many GPUs it takes what was measured; fewer are enough the more of a token step is the host's."""
    ask = (*MODEL[:-1], "4096", "--model", "qwen2.5-7b", "--generation", "90s:32", "--json", "--decode-share")
    hosts, devices = (layouts(json.loads(pipeweaver(*ask, share))) for share in ("1", "0.1"))
    assert hosts["colocated"]["generation_ns"] == pytest.approx(90e9, rel=0.001)
    assert devices["colocated"]["generation_ns"] == pytest.approx(90e9, rel=0.001)
    assert hosts["split"]["generating_gpus"] < devices["split"]["generating_gpus"]


def test_another_kind_of_gpu_may_generate(pipeweaver):
    """Beside all layouts without it: the best is never worse."""
    ask = (*MODEL, "--model", "qwen2.5-7b", "--price", "3", "--objective", "usd", "--json")
    alone = json.loads(pipeweaver(*ask))["layouts"]
    both = json.loads(pipeweaver(*ask, "--generation-cluster", "h20-sxm:16", "--generation-price", "1"))["layouts"]
    assert both[:len(alone)] == alone
    others = both[len(alone):]
    assert [one["layout"] for one in others] == ["split", "streamed"]
    for one in others:
        assert one["generating_on"] == "h20-sxm" and one["generating_gpus"] <= 16 and one["training_gpus"] <= 32
        hours = one["step_ns"] / 3.6e12
        assert one["usd"] == pytest.approx(hours * (one["generating_gpus"] + 3 * one["training_gpus"]))
    text = pipeweaver(*ask[:-1], "--generation-cluster", "h20-sxm:16", "--generation-price", "1")
    assert "and 16 of h20-sxm that generate alone" in text and "\nstreamed, h20-sxm" in text


def test_a_published_step_can_be_asked(pipeweaver):
    """NeMo RL v0.6: GRPO of Qwen3-235B on 64 GB200 took 286 s."""
    answer = json.loads(pipeweaver("rl", "--model", "qwen3-235b-a22b", "--cluster", "gb200-nvl72:64", "--lengths",
                                   "mean:5709,longest:8192", "--prompt", "1", "--json"))
    assert layouts(answer)["colocated"]["step_ns"] == pytest.approx(286e9, rel=0.25)


def test_a_configuration_file_and_a_file_of_lengths_say_the_same(pipeweaver, tmp_path):
    (tmp_path / "lengths.txt").write_text("".join(f"{100 + 7 * i}\n" for i in range(64)))
    options = {"cluster": "h100-sxm:16", "lengths": str(tmp_path / "lengths.txt"), "answers": 64,
               "generation": "60s:16", "training": "50s:16", "weights": "15GB"}
    (tmp_path / "rl.yaml").write_text("".join(f"{key}: {value}\n" for key, value in options.items()))
    flags = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    assert pipeweaver("rl", "--config", tmp_path / "rl.yaml") == pipeweaver("rl", *flags)


def test_the_text_names_the_best_layout_and_what_nobody_said(pipeweaver):
    text = pipeweaver(*MEASURED)
    best = json.loads(pipeweaver(*MEASURED, "--json"))["best"]
    assert f"\nbest: {best}, " in text and "GPUs generate" in text and "USD" not in text
    assert "switching was not given" not in text
    assert "note: switching takes no time: --switching was not given" in pipeweaver(*MEASURED[:-2])
    assert "note: moved tails move in no time: --move was not given" in text
    assert "moved tails" not in pipeweaver(*MEASURED, "--move", "1s")
    assert "off policy" in pipeweaver(*MEASURED, "--steps-off", "2") and "on policy" in text


@pytest.mark.parametrize("arguments, status, says", [
    (["rl"], 2, "missing --cluster CLUSTER: the GPUs; --lengths FILE: tokens of answers, or quantiles; --model MODEL"),
    ([*MODEL], 2, "missing --model MODEL: or --generation TIME:GPUS and --training TIME:GPUS"),
    ([*MODEL, "--generation", "90s"], 2, "--generation: is '90s', must be TIME:GPUS, like 120s:64"),
    ([*MODEL, "--generation", "90s:12", "--training", "9s:8"], 2, "12 GPUs are no multiple of the 8 of an instance"),
    (["rl", "--cluster", "h100-sxm:8", "--model", "qwen2.5-7b", "--lengths", "0:9,50:5,100:6"], 2,
     "--lengths: is '50:5', must be above the one before it"),
    ([*MODEL, "--model", "qwen2.5-7b", "--objective", "usd"], 2, "usd goes with a price"),
    ([*MODEL, "--model", "qwen2.5-7b", "--instance", "64"], 2, "--instance: is 64, must be at most the 32 GPUs"),
    ([*MEASURED, "--generation-cluster", "h100-sxm:8"], 2, "--generation-cluster: goes with --model"),
    ([*MODEL, "--model", "qwen2.5-7b", "--generating", "8", "--generation-cluster", "h20-sxm:8"], 2,
     "--generating: does not go with --generation-cluster"),
    ([*MEASURED, "--generating", "12"], 2, "--generating: is 12, must be a multiple of the 8 GPUs of an instance"),
    ([*MEASURED, "--generating", "64"], 2, "--generating: is 64, must be a multiple of the 8 GPUs of an instance"),
    ([*MODEL, "--model", "wan2.1-t2v-14b"], 2, "is no language model"),
    ([*MEASURED, "--items", "1x448px"], 2, "--items: goes with --model, whose encoders read them"),
    ([*MODEL, "--model", "qwen2.5-vl-7b", "--items", "one"], 2, "--items: data set 'constant-512+one': allowed are"),
    ([*MODEL, "--model", "qwen2.5-7b", "--items", "1x448px"], 2, "--items: "),
    ([*MODEL, "--model", "deepseek-v3"], 4, "8 GPUs of h100_sxm do not hold deepseek-v3 and one answer"),
])
def test_what_cannot_be_is_one_line(pipeweaver, arguments, status, says):
    found, line = pipeweaver.fails(*arguments)
    assert found == status and says in line


def test_twice_the_same_bytes(pipeweaver):
    assert pipeweaver(*MEASURED, "--seed", "7") == pipeweaver(*MEASURED, "--seed", "7")
    assert pipeweaver(*MEASURED, "--seed", "7") != pipeweaver(*MEASURED, "--seed", "8")
