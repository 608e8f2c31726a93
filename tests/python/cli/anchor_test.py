"""--anchor: a measured launch corrects emulate, plan and check, and each answer says by how much."""

import json
import subprocess

import pytest
from cli_shared import ONE_DRAW

LAUNCH = {"model": "dip-vlm-s", "cluster": "mi300x:8", "tp": 2, "pp": 1, "dataset": "vlm-mix", "microbatches": 2,
          "recompute": "full"}
ASK = ["--model", "dip-vlm-s", "--dataset", "vlm-mix", "--microbatches", "2", "--tp", "2", "--pp", "1"]
MEGATRON = ("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --bf16 "
            "--max-position-embeddings 4096 --vocab-size 32000 --swiglu --ffn-hidden-size 11008 "
            "--micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer "
            "--tensor-model-parallel-size 4 --sequence-parallel")


@pytest.fixture
def anchor(pipeweaver, tmp_path):
    """Writes an anchor with a step of `times` the emulated one, and `more` GiB than the emulated peak."""
    plain = json.loads(pipeweaver("emulate", *ASK, "--cluster", "mi300x:8", "--recompute", "full", "--json"))
    peak = max(rank["memory"]["peak_bytes"] for replica in plain["replicas"] for rank in replica["ranks"])

    def write(times=1.3, more=2.0):
        path = tmp_path / "measured.json"
        path.write_text(json.dumps({"format": "pipeweaver-anchor/1", "about": "one node",
                                    "step_time_s": 1e-9 * round(times * plain["step_ns"]),
                                    "memory_gib": peak / 2**30 + more, "launch": LAUNCH}))
        return path, plain, peak
    return write


def test_the_anchored_launch_takes_what_was_measured_and_says_so(pipeweaver, anchor):
    path, plain, peak = anchor()
    ask = ("emulate", *ASK, "--cluster", "mi300x:8", "--recompute", "full", "--anchor", path)
    answer = json.loads(pipeweaver(*ask, "--json"))
    assert answer["step_ns"] == pytest.approx(1.3 * plain["step_ns"], rel=2e-4)
    assert answer["anchor"]["emulated_step_ns"] == plain["step_ns"]
    assert answer["anchor"]["kernels"] > 1.3
    assert answer["anchor"]["emulated_peak_bytes"] == peak and answer["anchor"]["beside_bytes"] == 2 * 2**30
    assert answer["modelled"] == {"device": "mi300x", "step_from": 0.8, "step_to": 1.3}
    line = [one for one in pipeweaver(*ask).splitlines() if one.startswith("anchored: ")]
    assert len(line) == 1 and "0.8 to 1.3 times what is emulated" in line[0] and "2.00 GiB more are held" in line[0]


def test_a_plan_on_more_nodes_is_anchored_and_its_commands_say_it(pipeweaver, anchor, tmp_path):
    path, _, _ = anchor()
    ask = ("plan", *ASK, "--cluster", "mi300x:16", *ONE_DRAW, "--max-rounds", "2")
    pipeweaver(*ask, "--out", tmp_path / "plain")
    text = pipeweaver(*ask, "--anchor", path, "--out", tmp_path / "anchored")
    assert "anchored: " in " ".join(text.split())
    plain, anchored = (json.loads((tmp_path / name / "plan.json").read_text()) for name in ("plain", "anchored"))
    assert 1.1 < anchored["step_ns"] / plain["step_ns"] < 1.5
    assert anchored["anchor"]["kernels"] > 1.3 and "anchor" not in plain
    commands = [rung["command"] for rung in anchored["ladder"] if rung.get("command")]
    assert commands and all(f"--anchor {path}" in command for command in commands)


def test_a_check_holds_what_the_anchor_took_more(pipeweaver, anchor):
    path, _, _ = anchor(times=1.0)

    def peak(*more):
        done = subprocess.run([pipeweaver.path, "check", "--cluster", "mi300x:8", "--json", "--megatron-args", MEGATRON,
                               *map(str, more)], capture_output=True, text=True)
        return json.loads(done.stdout)

    plain, anchored = peak(), peak("--anchor", path)
    assert anchored["memory"]["peak_bytes"] - plain["memory"]["peak_bytes"] == 2 * 2**30
    assert any(one.startswith("anchored: ") and "2.00 GiB more" in one for one in anchored["assumed"])


def test_a_recommendation_is_anchored_on_the_device_of_the_anchor_alone(pipeweaver, anchor):
    path, _, _ = anchor()
    ask = ("recommend", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--global-batch", "64", "--tokens", "30B",
           "--gpus", "32", "--cp", "1", "--max-rounds", "1", "--json")

    def rows(*more):
        found = json.loads(pipeweaver(*ask, "--clusters", "h100-sxm,mi300x", *more))["rows"]
        return {row["cluster"]: row for row in found}

    plain, anchored = rows(), rows("--anchor", path)
    for key in ("step_ns", "memory_bytes", "error_percent", "command"):
        assert anchored["h100-sxm"][key] == plain["h100-sxm"][key]
    assert 1.1 < anchored["mi300x"]["step_ns"] / plain["mi300x"]["step_ns"] < 1.5
    assert plain["mi300x"]["error_percent"] == pytest.approx(50)
    assert anchored["mi300x"]["error_percent"] == pytest.approx(30)
    assert f"--anchor {path}" in anchored["mi300x"]["command"] and "--anchor" not in anchored["h100-sxm"]["command"]
    status, line = pipeweaver.fails(*ask, "--clusters", "h100-sxm", "--anchor", path)
    assert status == 2 and line.endswith("is of mi300x, which no cluster of the study has; allowed are h100_sxm")


def test_what_is_no_anchor_is_one_line_and_exits_with_2(pipeweaver, anchor, tmp_path):
    path, _, _ = anchor()
    status, line = pipeweaver.fails("emulate", *ASK, "--cluster", "h200-sxm:8", "--anchor", path)
    assert status == 2 and "is of device mi300x, and h200_sxm is asked for" in line
    whole = json.loads(path.read_text())
    for key, value, says in (("step_time_s", "4s", "step_time_s: "), ("memory_gib", 1000, "memory_gib: is 1000"),
                             ("seconds", 4, "unknown key 'seconds'"), ("launch", {}, "launch: the key 'model'")):
        path.write_text(json.dumps({**whole, key: value}))
        status, line = pipeweaver.fails("emulate", *ASK, "--cluster", "mi300x:8", "--anchor", path)
        assert status == 2 and str(path) in line and says in line
