"""emulate and plan --loader, --shapes: what is printed, the answer as JSON, and bad input in one line."""

import json
import shlex

import pytest
from cli_shared import BATCH, PLAN

STEP = ["emulate", *PLAN[1:], *BATCH]
LOADER = {"format": "pipeweaver-loader/1", "workers": 1, "stages": [{"name": "decode", "on": "core", "image_ns": 1}]}


def written(path, loader):
    path.write_text(json.dumps(loader))
    return path


def test_a_slow_loader_decides_the_step_and_a_queue_is_named_that_is_enough(pipeweaver, tmp_path):
    alone = json.loads(pipeweaver(*STEP, "--json"))
    stages = [{"name": "decode", "on": "core", "pack_ns": 2 * alone["step_ns"]}]
    slow = written(tmp_path / "slow.json", {**LOADER, "stages": stages})
    got = json.loads(pipeweaver(*STEP, "--loader", slow, "--json"))
    assert got["step_ns"] == alone["step_ns"] and "input" not in alone
    assert got["asked"]["loader"] == str(slow) and "loader" not in alone["asked"]
    microbatches = alone["asked"]["microbatches"] // alone["asked"]["dp"]
    assert got["input"]["step_ns"] == 2 * microbatches * alone["step_ns"]
    assert got["input"]["decides"] == "decode" and got["input"]["enough"]["workers"] == 2 * microbatches
    text = pipeweaver(*STEP, "--loader", slow)
    line = next(line for line in text.splitlines() if line.startswith("input: "))
    assert "decode decides" in line and f"enough: {2 * microbatches} workers" in line
    assert line not in pipeweaver(*STEP)


def test_a_queue_that_is_enough_is_not_called_too_small(pipeweaver, tmp_path):
    alone = json.loads(pipeweaver(*STEP, "--json"))
    packs = alone["asked"]["microbatches"] // alone["asked"]["dp"]
    stages = [{"name": "decode", "on": "core", "pack_ns": 80 * alone["step_ns"] // packs}]  # 80 workers keep up
    for workers, words in [(200, "this queue is enough; none is found of up to 64 workers with 16 packs ahead"),
                           (2, "not enough: 64 workers with 16 packs ahead")]:
        loader = written(tmp_path / "loader.json", {**LOADER, "workers": workers, "stages": stages})
        line = next(line for line in pipeweaver(*STEP, "--loader", loader).splitlines() if line.startswith("input: "))
        assert words in line and ("GPUs wait for no samples" in line) == (workers == 200)


def test_the_answer_is_the_same_on_any_number_of_threads(pipeweaver):
    one, two = (pipeweaver(*STEP, "--loader", "object-store", "--shapes", "2", "--threads", threads)
                for threads in ("1", "2"))
    assert one == two and "\ninput: loader object-store" in one and "\nshapes: " in one


@pytest.mark.parametrize("target", ["megatron", "torch-actions"])
def test_a_plan_says_what_its_advised_step_waits_for_as_emulate_says_it(pipeweaver, tmp_path, target):
    stages = [{"name": "decode", "on": "core", "sample_ns": 2 * 10**8}]
    loader = written(tmp_path / "slow.json", {**LOADER, "stages": stages})
    folder = tmp_path / "plan"
    asked = [*PLAN[:-4], "--tp", "4", "--pp", "4", *BATCH, "--target", target, "--max-rounds", "1", "--out", folder]
    text = pipeweaver(*asked, "--loader", loader)
    plan = json.loads((folder / "plan.json").read_text())
    rung = next(one for one in plan["ladder"] if one["rung"] == plan["headline"]["rung"])
    again = shlex.split(rung["command"])[1:] if rung["command"] else [
        "emulate", *PLAN[1:-4], "--tp", "4", "--pp", "4", *BATCH, "--schedule", folder, "--loader", loader]
    emulated = json.loads(pipeweaver(*again, "--json"))
    assert emulated["step_ns"] == rung["step_ns"] and emulated["input"] == plan["input"]
    assert plan["asked"]["loader"] == str(loader) and plan["input"]["decides"] == "decode"
    assert plan["assignment"]["by_loading"] is True  # by cost one of the replicas has more samples
    said = " ".join(text.split())
    assert f"input loader {loader}, 1 worker with 2 packs ahead a replica: step " in said and "enough: " in said
    assert "are without that wait of " in said
    assert "Input: loader" in (folder / "report.html").read_text()
    # Its schedule is of microbatches as its loader dealt them, whatever feeds it now.
    own = ["emulate", *PLAN[1:-4], "--tp", "4", "--pp", "4", *BATCH, "--schedule", folder, "--json"]
    for fed in ([], ["--loader", "object-store"]):
        assert json.loads(pipeweaver(*own, *fed))["step_ns"] == plan["step_ns"]


@pytest.mark.parametrize("loader, words", [
    ("nsf", "--loader: unknown loader 'nsf'; known are disk, nfs, object-store"),
    ({**LOADER, "workers": -1}, "workers: is -1, must be a whole number from 0 to 1024"),
    ({**LOADER, "format": "pipeweaver-loader/2"}, "pipeweaver-loader/2"),
    ({**LOADER, "stages": [{"name": "decode", "on": "gpu"}]}, "stages[0].on: is 'gpu'"),
    ({**LOADER, "stages": [{"name": "decode", "on": "core", "image_ms": 1}]}, "stages[0]"),
])
def test_a_loader_that_cannot_be_is_one_line(pipeweaver, tmp_path, loader, words):
    given = loader if isinstance(loader, str) else written(tmp_path / "bad.json", loader)
    status, line = pipeweaver.fails(*STEP, "--loader", given)
    assert status == 2 and words in line


def test_what_shapes_exclude_is_one_line(pipeweaver, tmp_path):
    assert pipeweaver.fails(*STEP, "--shapes", "0")[0] == 2
    status, line = pipeweaver.fails(*STEP, "--shapes", "2", "--schedule", tmp_path)
    assert status == 2 and "--shapes: goes without --schedule" in line
