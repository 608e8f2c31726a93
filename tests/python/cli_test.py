"""The command line: right answers, one clear line for bad input, the same bytes on any number of threads."""

import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAN = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4"]
BATCH = ["--dataset", "vlm-mix", "--microbatches", "4"]


def digests(folder):
    """SHA-256 of every result file below the folder; run.json holds what was measured and is left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def small_problem():
    """Two ranks, one microbatch: F0 F1 B1 B0."""
    def task(number, rank, kind, acquire, release):
        return {"id": number, "rank": rank, "kind": kind, "duration_ns": 1000, "acquire_bytes": acquire,
                "release_bytes": release, "label": f"{kind}{rank}", "stage": rank, "microbatch": 0}
    return {"format": "pipeweaver-problem/1", "name": "small", "source": "by hand",
            "ranks": [{"capacity_bytes": 100, "base_bytes": 10}] * 2,
            "tasks": [task(0, 0, "F", 50, 0), task(1, 1, "F", 50, 0), task(2, 1, "B", 0, 50), task(3, 0, "B", 0, 50)],
            "edges": [[0, 1, 5], [1, 2, 0], [2, 3, 5], [0, 3, 0]]}


@pytest.fixture(scope="session")
def planned(pipeweaver, tmp_path_factory):
    """A plan made with a fixed number of rounds on one thread."""
    folder = tmp_path_factory.mktemp("plan") / "one"
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--out", folder)
    return folder


def test_a_plan_has_all_of_its_files(planned):
    names = set(digests(planned))
    assert names == {"plan.json", "assignment.json", "report.html",
                     "replica-000/problem.json.gz", "replica-000/solution.json", "replica-000/actions.json",
                     "replica-000/trace.json.gz", "torch/schedule.csv", "torch/schedule.json", "torch/padding.json",
                     "torch/problem.json.gz", "torch/solution.json"}
    assert (planned / "run.json").exists()


@pytest.mark.parametrize("threads", [2, 16])
def test_result_files_do_not_depend_on_the_number_of_threads(pipeweaver, planned, tmp_path, threads):
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", threads, "--out", tmp_path / "other")
    assert digests(tmp_path / "other") == digests(planned)


def test_another_seed_gives_another_batch(pipeweaver, planned, tmp_path):
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "1", "--seed", "2", "--out", tmp_path / "other")
    assert digests(tmp_path / "other")["assignment.json"] != digests(planned)["assignment.json"]


def test_the_plan_is_never_above_a_baseline_and_never_below_its_bound(planned):
    plan = json.loads((planned / "plan.json").read_text())
    assert plan["format"] == "pipeweaver-plan/1"
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(b["makespan_ns"] for b in plan["baselines"])
    assert plan["makespan_ns"] < plan["step_ns"]
    assert 0 < plan["mfu"] < 1
    assert abs(sum(plan["share_of_time"]["by_basis"].values()) - 1) < 1e-9
    for rank in plan["replicas"][0]["memory"]:
        assert rank["peak_bytes"] <= rank["capacity_bytes"]
        assert rank["receive_buffers_needed_bytes"] <= rank["receive_buffers_bytes"]


def test_a_robust_plan_says_what_it_gave_up_and_gained(pipeweaver, planned, tmp_path):
    usual = json.loads((planned / "plan.json").read_text())
    assert (usual["choice"]["rule"], usual["choice"]["within"]) == ("wins", 0.001)
    assert usual["choice"]["smallest_makespan_ns"] <= usual["makespan_ns"] <= 1.001 * usual["choice"]["smallest_makespan_ns"]
    told = pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--robust", "--out", tmp_path / "one")
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "4", "--robust", "--out", tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    plan = json.loads((tmp_path / "one/plan.json").read_text())
    choice = plan["choice"]
    assert (choice["rule"], choice["within"]) == ("median", 0.01)
    assert choice["alternatives"] > 0
    assert choice["smallest_makespan_ns"] == usual["choice"]["smallest_makespan_ns"]
    assert choice["smallest_makespan_ns"] <= plan["makespan_ns"] <= 1.01 * choice["smallest_makespan_ns"]
    assert plan["makespan_ns"] <= min(b["makespan_ns"] for b in plan["baselines"])
    if choice["over_smallest"] is None:
        assert plan["makespan_ns"] == choice["smallest_makespan_ns"]
    else:
        assert 0 < choice["over_smallest"]["wins"] <= choice["over_smallest"]["replays"] == 200
    line, = [line for line in told.splitlines() if "at most 1 % longer" in line][:1]
    assert line.startswith(f"{choice['alternatives']} other schedule")
    assert line in (tmp_path / "one/report.html").read_text()
    (tmp_path / "c.yaml").write_text("robust: true\n")
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--config", tmp_path / "c.yaml", "--out", tmp_path / "three")
    assert digests(tmp_path / "three") == digests(tmp_path / "one")


def test_every_sample_and_item_is_assigned_once(planned):
    assignment = json.loads((planned / "assignment.json").read_text())
    samples, items, weight = [], [], 0
    for microbatch in assignment["replicas"][0]["microbatches"]:
        samples += [sample["id"] for sample in microbatch["samples"]]
        weight += microbatch["loss_weight"]
        for unit in microbatch["units"]:
            items += [(item["sample"], item["item"]) for item in unit["items"]]
            rows = [row for item in unit["items"] for row in item["rows"]]
            assert rows == sorted(rows)
    assert len(samples) == len(set(samples)) > 0
    assert len(items) == len(set(items)) > 0
    assert abs(weight - 1) < 1e-9


def test_replicas_share_a_batch_by_cost(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:64", "--tp", "8", "--pp", "4", "--dataset", "vlm-mix",
            "--microbatches", "8", "--partition", "dip",
            "--max-rounds", "1", "--json"]
    balanced = json.loads(pipeweaver(*rest, "--out", tmp_path / "balanced"))
    in_turn = json.loads(pipeweaver(*rest, "--assignment", "in-turn", "--out", tmp_path / "in-turn"))
    assert (balanced["assignment"]["method"], in_turn["assignment"]["method"]) == ("balanced", "in-turn")
    assert balanced["assignment"]["largest_load_ns"] < in_turn["assignment"]["largest_load_ns"]
    assert balanced["assignment"]["in_turn_largest_load_ns"] == in_turn["assignment"]["largest_load_ns"]
    assert balanced["makespan_ns"] < in_turn["makespan_ns"]
    replicas = json.loads((tmp_path / "balanced/assignment.json").read_text())["replicas"]
    assert [len(replica["microbatches"]) for replica in replicas] == [8, 8]
    weights = [one["loss_weight"] for replica in replicas for one in replica["microbatches"]]
    assert abs(sum(weights) - 1) < 1e-9
    samples = [one["id"] for replica in replicas for microbatch in replica["microbatches"] for one in microbatch["samples"]]
    assert len(samples) == len(set(samples)) == balanced["asked"]["samples"]


def test_a_layout_is_chosen_where_it_is_asked_for(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", *BATCH, "--partition", "dip", "--max-rounds", "1"]
    plan = json.loads(pipeweaver(*rest, "--tp", "auto", "--json", "--threads", "1", "--out", tmp_path / "one"))
    tried = plan["layout_choice"]["tried"]
    assert len(tried) > 4
    assert [plan["asked"][key] for key in ("tp", "pp", "dp")] == [tried[0][key] for key in ("tp", "pp", "dp")]
    assert [one["ns_per_microbatch"] for one in tried] == sorted(one["ns_per_microbatch"] for one in tried)
    assert all(one["tp"] * one["pp"] * one["dp"] == 32 and one["microbatches"] == 4 * one["dp"] for one in tried)
    assert plan["asked"]["microbatches"] == tried[0]["microbatches"]
    assert {one["why"]: one["layouts"] for one in plan["layout_choice"]["refused"]}[
        "tp does not divide the 8 GPUs of a node"] == 3
    table = pipeweaver(*rest, "--tp", "auto", "--pp", "auto", "--dp", "auto", "--threads", "2", "--out", tmp_path / "two")
    assert f"layout: the fastest of {len(tried)} that fit" in table
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_model_without_a_published_layout_gets_one(pipeweaver, tmp_path):
    rest = ["plan", "--cluster", "h100-sxm:8", "--dataset", "laion-2b", "--microbatches", "2", "--max-rounds", "1", "--json",
            "--out", tmp_path / "plan"]
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    assert json.loads(pipeweaver(*rest, "--model", config))["layout_choice"]["tried"]
    fixed = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4", "--pp", "2"))
    assert fixed["layout_choice"] is None
    half = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4"))
    assert half["asked"]["tp"] == 4 and all(one["tp"] == 4 for one in half["layout_choice"]["tried"])
    # That of dip-vlm-s is for 16 GPUs and more.
    assert json.loads(pipeweaver(*rest, "--model", "dip-vlm-s"))["layout_choice"]["tried"]


def test_actions_receive_what_is_sent_in_the_same_order(planned):
    actions = json.loads((planned / "replica-000/actions.json").read_text())
    sent, received = {}, {}
    for rank, row in enumerate(actions["actions"]):
        done, arrived = set(), set()
        for action in row:
            if action["op"] == "send":
                sent.setdefault((rank, action["peer"]), []).append(action["tensor"])
            elif action["op"] == "receive":
                received.setdefault((action["peer"], rank), []).append(action["tensor"])
                arrived.add(action["tensor"])
            elif action["op"] == "wait":
                assert action["tensor"] in arrived
            else:
                assert action["task"] not in done
                done.add(action["task"])
    assert sent == received
    assert sum(len(tensors) for tensors in sent.values()) > 0


def test_the_trace_is_what_the_solution_says(planned):
    trace = json.loads(gzip.decompress((planned / "replica-000/trace.json.gz").read_bytes()))
    solution = json.loads((planned / "replica-000/solution.json").read_text())
    problem = json.loads(gzip.decompress((planned / "replica-000/problem.json.gz").read_bytes()))
    by_label = {event["args"]["task"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    assert len(by_label) == len(problem["tasks"])
    for task in problem["tasks"]:
        assert by_label[task["label"]]["ts"] == pytest.approx(solution["start_ns"][task["id"]] / 1000, abs=1e-6)
    end = max(event["ts"] + event["dur"] for event in by_label.values())
    assert end == pytest.approx(solution["makespan_ns"] / 1000, abs=1e-3)


def test_the_referee_accepts_every_pair_of_a_plan(planned, shared):
    for folder in (planned / "replica-000", planned / "torch"):
        done = subprocess.run([sys.executable, shared / "tools/verify_schedule.py", folder / "problem.json.gz",
                               folder / "solution.json"], capture_output=True, text=True)
        assert done.stdout.startswith("ok makespan_ns="), done.stdout


def test_json_answers_stand_alone_on_stdout(pipeweaver, tmp_path):
    answer = json.loads(pipeweaver(*PLAN, *BATCH, "--max-rounds", "1", "--json", "--out", tmp_path / "plan"))
    assert answer["format"] == "pipeweaver-plan/1"
    assert answer["run"]["threads"] >= 1
    for kind in ("models", "clusters", "devices", "datasets", "strategies", "policies", "targets"):
        assert json.loads(pipeweaver("list", kind, "--json"))


def test_a_time_limited_search_is_repeated_by_its_number_of_rounds(pipeweaver, planned, tmp_path):
    problem = planned / "replica-000/problem.json.gz"
    pipeweaver("solve", problem, "--budget", "200ms", "--out", tmp_path / "timed.json")
    timed = json.loads((tmp_path / "timed.json").read_text())
    pipeweaver("solve", problem, "--max-rounds", timed["rounds"], "--threads", "1", "--out", tmp_path / "counted.json")
    counted = json.loads((tmp_path / "counted.json").read_text())
    assert (counted["order"], counted["mode"], counted["signature"]) == (timed["order"], timed["mode"], timed["signature"])


def test_replay_confirms_a_solution_and_finds_a_false_claim(pipeweaver, planned, tmp_path):
    problem, solution = planned / "replica-000/problem.json.gz", planned / "replica-000/solution.json"
    claimed = json.loads(solution.read_text())
    answer = json.loads(pipeweaver("replay", problem, solution, "--json"))
    assert answer["makespan_ns"] == claimed["makespan_ns"]
    assert answer["signature"] == claimed["signature"]
    claimed["makespan_ns"] -= 1
    (tmp_path / "false.json").write_text(json.dumps(claimed))
    status, line = pipeweaver.fails("replay", problem, tmp_path / "false.json")
    assert status == 2
    assert line.endswith(f"false.json: makespan_ns: is {claimed['makespan_ns']}, the replay gives {answer['makespan_ns']}")


def test_a_shown_model_plans_like_the_named_one(pipeweaver, planned, tmp_path):
    (tmp_path / "mine.json").write_text(pipeweaver("show", "dip-vlm-m"))
    pipeweaver("plan", "--model", tmp_path / "mine.json", "--cluster", "h100-sxm:32", *BATCH, "--max-rounds", "20",
               "--out", tmp_path / "plan")
    assert digests(tmp_path / "plan") == digests(planned)


def test_a_hugging_face_configuration_plans_like_the_model_file_it_shows(pipeweaver, tmp_path):
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    rest = ["--cluster", "h100-sxm:8", "--tp", "4", "--pp", "2", "--dataset", "vlm-mix", "--microbatches", "4",
            "--max-rounds", "1"]
    pipeweaver("plan", "--model", config, *rest, "--out", tmp_path / "hf")
    (tmp_path / "mine.json").write_text(pipeweaver("show", config))
    pipeweaver("plan", "--model", tmp_path / "mine.json", *rest, "--out", tmp_path / "own")
    name = "replica-000/solution.json"
    assert digests(tmp_path / "hf")[name] == digests(tmp_path / "own")[name]


def test_a_batch_file_is_planned_and_a_configuration_file_read(pipeweaver, tmp_path):
    lines = [json.dumps({"id": f"s{i}", "text_tokens": 3000, "images": [{"width": 640, "height": 480}] * (i % 3)})
             for i in range(8)]
    (tmp_path / "batch.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.json").write_text(json.dumps({"model": "dip-vlm-m", "cluster": "h100-sxm:32", "tp": 8, "pp": 4,
                                                    "batch": str(tmp_path / "batch.jsonl"), "max-rounds": 1}))
    answer = json.loads(pipeweaver("plan", "--config", tmp_path / "plan.json", "--json", "--out", tmp_path / "plan"))
    assert answer["asked"]["samples"] == 8
    assert answer["asked"]["microbatches"] == 4


def test_emit_writes_what_plan_wrote(pipeweaver, planned, tmp_path):
    for target, names in {"torch-csv": ["schedule.csv", "schedule.json"], "torch-actions": ["actions.json"],
                          "chrome-trace": ["trace.json.gz"]}.items():
        pipeweaver("emit", "--plan", planned, "--target", target, "--out", tmp_path / target)
        for name in names:
            there = planned / ("torch" if target == "torch-csv" else "replica-000") / name
            here = tmp_path / target / ("" if target == "torch-csv" else "replica-000") / name
            assert here.read_bytes() == there.read_bytes()


PLAN_FAULTS = [
    (["--model", "dip-vlm-n"], 2, "unknown model 'dip-vlm-n'; did you mean 'dip-vlm-"),
    (["--cluster", "h100-sx:32"], 2, "unknown cluster 'h100-sx'; did you mean 'h100-sxm'?"),
    (["--cluster", "h100-sxm"], 2, "h100-sxm"),
    (["--cluster", "h100-sxm:many"], 2, "many"),
    (["--cluster", "h100-sxm:0"], 2, "0"),
    (["--cluster", "h100-sxm:99999999999999"], 2, "99999999999999"),
    (["--dataset", "vlm-mx"], 2, "unknown data set 'vlm-mx'; did you mean 'vlm-mix'?"),
    (["--microbatches", "0"], 2, "--microbatches: is '0', allowed are whole numbers from 1 to 100000"),
    (["--microbatches", "-3"], 2, "--microbatches: is '-3', allowed are whole numbers from 1 to 100000"),
    (["--microbatches", "many"], 2, "--microbatches: is 'many', allowed are whole numbers from 1 to 100000"),
    (["--microbatches", "99999999999999999999"], 2, "--microbatches: is '99999999999999999999', allowed are"),
    (["--tp", "3"], 2, "GPUs"),
    (["--cluster", "h100-sxm:4", "--tp", "1"], 4, "GiB short"),
    (["--dp", "2"], 2, "--tp 8 * --pp 4 * --dp 2 = 64 GPUs, the cluster 'h100-sxm' has 32"),
    (["--budget", "1"], 2, "--budget: '1' is not a time; write it like 2s, 300ms or 5us"),
    (["--budget", "-1s"], 2, "--budget: '-1s' is out of range for a time"),
    (["--partition", "best"], 2, "--partition: is 'best', allowed are dip, megatron, balanced"),
    (["--batch", "x.jsonl"], 2, "--batch, --dataset: exactly one of the two is needed"),
    (["--modle", "x"], 2, "unknown option '--modle'; did you mean '--model'?"),
    (["--tp", "some"], 2, "--tp: is 'some', allowed are auto and whole numbers from 1 to 1024"),
    (["--pp", "0"], 2, "--pp: is '0', allowed are auto and whole numbers from 1 to 1024"),
    (["--tp", "auto", "--pp", "5"], 2, "--tp auto --pp 5 --dp auto on 32 GPUs: the numbers given do not divide the GPUs"),
    (["--cluster", "h100-sxm:8", "--tp", "auto", "--pp", "auto"], 4,
     "--tp auto --pp auto --dp auto on 8 GPUs: no layout fits the memory; tp 8 x pp 1 x dp 1 comes closest: rank 0 is "),
    (["--assignment", "in turn"], 2, "--assignment: is 'in turn', allowed are balanced, in-turn"),
    (["--target", "torch"], 2, "--target: is 'torch', allowed are torch-actions, torch-csv"),
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


def test_an_unknown_command_names_the_nearest(pipeweaver):
    assert pipeweaver.fails("slove") == (2, "pipeweaver: unknown command 'slove'; did you mean 'solve'?")
    assert pipeweaver.fails("costdb", "qeury") == (2, "pipeweaver: unknown command 'qeury'; did you mean 'query'?")


def test_a_batch_line_that_is_not_json_names_file_and_line(pipeweaver, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":10}\n{"id":"b","text_tokens":\n')
    status, line = pipeweaver.fails(*PLAN, "--batch", batch, "--out", tmp_path / "plan")
    assert status == 2
    assert f"{batch}:2: " in line
    assert not (tmp_path / "plan").exists()


def write_batch(folder, samples):
    """A batch file of (text tokens, images); returns its path."""
    lines = [json.dumps({"id": f"s{i}", "text_tokens": text, "images": images}) for i, (text, images) in enumerate(samples)]
    (folder / "batch.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "batch.jsonl"


SCREEN = {"width": 640, "height": 480}


def test_an_image_larger_than_a_microbatch_is_refused_with_its_line(pipeweaver, tmp_path):
    batch = write_batch(tmp_path, [(100, [SCREEN]), (100, [SCREEN, {"tokens": 9000, "patches": 36000}])])
    assert pipeweaver.fails(*PLAN, "--batch", batch, "--out", tmp_path / "plan") == (
        2, f"pipeweaver: {batch}:2: sample 's1' has an item (image, number 1) of 9000 tokens, a microbatch of 'dip-vlm-m' "
        "holds 8192 (microbatch_tokens of its model file)")
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("samples, items", [([(3000, [])] * 6, 0), ([(0, [SCREEN] * 20)] * 6, 120)],
                         ids=["no image", "only images"])
def test_a_batch_of_one_kind_alone_is_planned(pipeweaver, tmp_path, samples, items):
    plan = json.loads(pipeweaver(*PLAN, "--batch", write_batch(tmp_path, samples), "--max-rounds", "1", "--json", "--out",
                                 tmp_path / "plan"))
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(b["makespan_ns"] for b in plan["baselines"])
    problem = json.loads(gzip.decompress((tmp_path / "plan/replica-000/problem.json.gz").read_bytes()))
    for module in ["llm", "vit"] if items else ["llm"]:
        assert any(module in task["module"] for task in problem["tasks"])
    assignment = json.loads((tmp_path / "plan/assignment.json").read_text())
    microbatches = assignment["replicas"][0]["microbatches"]
    assigned = {(one["sample"], one["item"]) for mb in microbatches for unit in mb["units"] for one in unit["items"]}
    assert len(assigned) == items
    # Without text there is no loss in the language model, and no weight to share out.
    assert abs(sum(mb["loss_weight"] for mb in microbatches) - (0 if items else 1)) < 1e-9


def test_a_batch_file_of_a_whole_data_set_is_refused_at_once_in_little_memory(pipeweaver, tmp_path):
    with open(tmp_path / "batch.jsonl", "w") as file:
        block = '{"id":"x","text_tokens":1}\n' * 1000
        for _ in range(1001):
            file.write(block)
    start = time.monotonic()
    # A process's peak memory includes what its parent held when it was started: a small parent measures.
    measure = ("import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:]); "
               "_, status, usage = os.wait4(child.pid, 0); print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)")
    child = subprocess.run([sys.executable, "-c", measure, str(pipeweaver.path), *PLAN, "--batch", tmp_path / "batch.jsonl",
                            "--out", tmp_path / "plan"], capture_output=True, text=True, check=True)
    code, peak_kib = map(int, child.stdout.split())
    assert code == 4
    assert child.stderr == (f"pipeweaver: {tmp_path / 'batch.jsonl'}:1000001: is one sample too many: a batch file is the batch of one "
                    "step, of at most 1000000 samples; write a file for each step\n")
    assert time.monotonic() - start < 3
    if "asan" not in str(pipeweaver.path) and "tsan" not in str(pipeweaver.path):
        assert peak_kib < 64 * 1024


def test_more_microbatches_than_can_be_planned_are_refused_before_anything_is_built(pipeweaver, tmp_path):
    start = time.monotonic()
    assert pipeweaver.fails(*PLAN, "--dataset", "laion-2b", "--microbatches", "6251", "--out", tmp_path / "plan") == (
        2, "pipeweaver: a replica has 6251 microbatches of 50008 tasks or more, allowed are 50000 tasks: take a smaller batch, "
        "or more replicas (--dp)")
    assert time.monotonic() - start < 10


LAYOUT_FAULTS = [
    (["h100-sxm:128", "--tp", "1", "--pp", "128"], 2, "--pp: 128 ranks are more than the 63 layers of module 'vit'"),
    (["h100-sxm:48", "--tp", "3", "--pp", "16"], 2,
     "--tp: 3 does not divide the 16 attention heads of module 'vit'; the next smaller that does is 2"),
    (["h100-sxm:64", "--tp", "8", "--pp", "1"], 2, "--dp: 8 replicas are more than the batch's 2 microbatches, and each needs one"),
]


@pytest.mark.parametrize("options, status, message", LAYOUT_FAULTS, ids=[" ".join(f[0]) for f in LAYOUT_FAULTS])
def test_a_layout_that_does_not_divide_the_model_or_batch_says_what_does(pipeweaver, tmp_path, options, status, message):
    batch = write_batch(tmp_path, [(3000, [])] * 4)
    assert pipeweaver.fails("plan", "--model", "dip-vlm-m", "--batch", batch, "--cluster", *options, "--out",
                            tmp_path / "plan") == (status, f"pipeweaver: {message}")


def test_a_model_that_does_not_fit_says_rank_bytes_and_what_would_fit(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--batch", write_batch(tmp_path, [(3000, [SCREEN])] * 8), "--out",
            tmp_path / "plan", "--cluster"]
    status, line = pipeweaver.fails(*rest, "h100-sxm:8", "--tp", "8", "--pp", "1")
    assert status == 4
    assert line.startswith("pipeweaver: rank 0: weights, gradients, optimizer state and buffers need ")
    assert " GiB short; " in line
    assert line.endswith("; 16 GPUs fit it as tp 8 x pp 2 x dp 1")
    assert pipeweaver(*rest, "h100-sxm:16", "--tp", "8", "--pp", "2", "--max-rounds", "1")
    status, line = pipeweaver.fails(*rest, "h100-sxm:16", "--tp", "4", "--pp", "1")
    assert status == 4 and " fits on these GPUs" in line


@pytest.mark.parametrize("text, message", [
    ('{"model_type":"mixtral"}', "model_type: the model type 'mixtral' cannot be used: mixtures of experts are not read"),
    ('{"model_type":"qwen22"}', "model_type: unknown model type 'qwen22'; did you mean 'qwen2'?"),
    ('{"model_type":"qwen2_5_vl"}', "the key 'vision_config' is missing"),
    ('{"architectures":["LlamaForCausalLM"]}', "the key 'model_type' is missing"),
])
def test_a_hugging_face_configuration_that_is_not_read_says_what_is_missing(pipeweaver, tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    status, line = pipeweaver.fails("plan", "--model", f"hf:{tmp_path / 'config.json'}", "--cluster", "h100-sxm:8", *BATCH,
                                    "--out", tmp_path / "plan")
    assert (status, line) == (2, f"pipeweaver: {tmp_path / 'config.json'}: {message}")


def test_an_unknown_key_of_a_configuration_names_the_nearest(pipeweaver, tmp_path):
    (tmp_path / "c.json").write_text('{"modle": "dip-vlm-m"}')
    status, line = pipeweaver.fails("plan", "--config", tmp_path / "c.json", "--out", tmp_path / "plan")
    assert status == 2
    assert line.endswith("c.json: unknown key 'modle'; did you mean 'model'?")


def set_cycle(problem): problem["edges"].append([3, 0, 0])
def set_twice(problem): problem["tasks"][2]["id"] = 1
def set_missing(problem): del problem["tasks"][3]
def set_nowhere(problem): problem["edges"].append([0, 9, 0])
def set_small(problem): problem["ranks"][1] = {"capacity_bytes": 59, "base_bytes": 10}
def set_unknown(problem): problem["rnaks"] = problem.pop("ranks")
def set_newer(problem): problem["format"] = "pipeweaver-problem/2"


PROBLEM_FAULTS = [
    (set_cycle, 2, "wait for each other in a cycle: 0 'F0'"),
    (set_twice, 2, "tasks[2].id: is 1, needed is the task's index 2"),
    (set_missing, 2, "there is no task 3, the last is 2"),
    (set_nowhere, 2, "edges[4]: there is no task 9, the last is 3"),
    (set_small, 4, "does not fit rank 1 even alone: 1 bytes short"),
    (set_unknown, 2, "unknown key 'rnaks'; did you mean 'ranks'?"),
    (set_newer, 2, "is 'pipeweaver-problem/2', this program reads 'pipeweaver-problem/1'"),
]


@pytest.mark.parametrize("change, status, words", PROBLEM_FAULTS, ids=[f[0].__name__ for f in PROBLEM_FAULTS])
def test_a_bad_problem_is_one_line_and_nothing_is_written(pipeweaver, tmp_path, change, status, words):
    problem = small_problem()
    change(problem)
    (tmp_path / "p.json").write_text(json.dumps(problem))
    got, line = pipeweaver.fails("solve", tmp_path / "p.json", "--out", tmp_path / "s.json")
    assert got == status
    assert words in line
    assert str(tmp_path / "p.json") in line
    assert not (tmp_path / "s.json").exists()


def test_a_truncated_gzip_file_is_bad_input(pipeweaver, tmp_path):
    packed = gzip.compress(json.dumps(small_problem()).encode())
    (tmp_path / "p.json.gz").write_bytes(packed[:-9])
    status, line = pipeweaver.fails("solve", tmp_path / "p.json.gz", "--out", tmp_path / "s.json")
    assert status == 2
    assert line.endswith("p.json.gz: gzip data is cut short")


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


def test_what_a_target_cannot_express_names_the_rule(pipeweaver, planned, tmp_path):
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--target", "torch-csv", "--out",
                                    tmp_path / "s.json")
    assert status == 4
    assert "PyTorch" in line
    status, line = pipeweaver.fails("emit", "--plan", planned, "--target", "torch-cvs", "--out", tmp_path / "csv")
    assert status == 2
    assert line.endswith("unknown target 'torch-cvs'; did you mean 'torch-csv'?")


def test_a_policy_that_does_not_apply_says_why(pipeweaver, planned, tmp_path):
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--policy", "1f1b", "--out",
                                    tmp_path / "s.json")
    assert status == 4
    assert "the policy '1f1b' does not apply: " in line
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--policy", "1fib", "--out",
                                    tmp_path / "s.json")
    assert status == 2
    assert "did you mean '1f1b'?" in line


def test_bench_plan_compares_with_every_policy_the_best_one_and_wrong_costs(pipeweaver):
    bench = ["bench", *PLAN, *BATCH, "--batches", "2", "--max-rounds", "2"]
    told = json.loads(pipeweaver(*bench, "--json"))
    assert told["batches"] == 2
    best = told["best_policy"]
    assert 1 <= best["least"] <= best["geometric_mean"] <= best["most"]
    full = [row for row in told["comparisons"] if row["applies_to"] == 2]
    assert best["least"] == min(row["least"] for row in told["comparisons"])
    assert best["geometric_mean"] <= min(row["geometric_mean"] for row in full)

    pairs = [(row["partition"], row["policy"]) for row in told["robustness"]]
    assert sorted(pairs) == [("dip", "dual-queue"), ("megatron", "1f1b"), ("megatron", "interleaved")]
    for row in told["robustness"]:
        assert row["batches"] == 2 and row["replays"] == 400
        assert 0 < row["gain_p10"] < row["gain_p50"] < row["gain_p90"]
        assert row["wins_share"] == row["wins"] / row["replays"]
        # Nine of ten replays gain p10 or more; the median is near the gain under the costs themselves.
        plain = min(other["geometric_mean"] for other in full
                    if (other["partition"], other["policy"]) == (row["partition"], row["policy"]))
        assert row["gain_p50"] == pytest.approx(plain, rel=0.05)
        if row["gain_p10"] > 1.01:
            assert row["wins_share"] >= 0.85

    table = pipeweaver(*bench)
    assert f"| the best | of each batch | | 2 | {best['geometric_mean']:.3f}x |" in table
    for row in told["robustness"]:
        assert (f"| {row['partition']} | {row['policy']} | 2 | {row['gain_p10']:.3f}x | {row['gain_p50']:.3f}x | "
                f"{row['gain_p90']:.3f}x | {100 * row['wins_share']:.1f} % |") in table


def test_a_hugging_face_file_without_its_prefix_says_how_to_write_it(pipeweaver, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    rest = ["--cluster", "h100-sxm:8", *BATCH, "--out", tmp_path / "out"]
    status, line = pipeweaver.fails("plan", "--model", path, *rest)
    assert status == 2 and line.endswith(f"{path}: is a Hugging Face configuration, no model file: write hf:{path}")
    for name in ("Qwen/Qwen2.5-VL-7B-Instruct", "hf:Qwen/Qwen2.5-VL-7B-Instruct"):
        status, line = pipeweaver.fails("plan", "--model", name, *rest)
        assert status == 2 and "nothing is downloaded" in line and "hf:FILE" in line


@pytest.mark.parametrize("line", ['{"id":"b","text_tokens":7', '{"id":"b","text_to', '{"id":"b","images":[{"width":1'])
def test_a_line_that_was_cut_is_said_to_end_too_early(pipeweaver, tmp_path, line):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":7}\n' + line)
    status, message = pipeweaver.fails("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--batch", batch,
                              "--out", tmp_path / "out")
    assert status == 2 and f"{batch}:2: is not JSON" in message and message.endswith("it ends too early")


def test_what_an_image_may_have_is_listed_with_tokens_and_patches(pipeweaver, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id":"a","text_tokens":7,"images":[{"zzzzzz":1}]}\n')
    status, message = pipeweaver.fails("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--batch", batch,
                              "--out", tmp_path / "out")
    assert status == 2 and "tokens" in message and "patches" in message and "width" in message


def test_gpus_that_fill_no_whole_nodes_are_remarked(pipeweaver, tmp_path):
    def said(gpus):
        command = [pipeweaver.path, "plan", "--model", "dip-vlm-s", "--cluster", f"h100-sxm:{gpus}", "--tp", "2", "--pp", "3",
                   "--partition", "dip", *BATCH, "--max-rounds", "1", "--out", tmp_path / str(gpus)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stderr
    assert "30 GPUs are 3 nodes of 8 and 6 GPUs of another" in said(30)
    assert "of another" not in said(24)
    assert "of another" not in said(6)  # a part of one node


def test_a_smaller_plan_leaves_no_replica_of_the_larger_behind(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--tp", "8", "--pp", "4", *BATCH, "--max-rounds", "1", "--partition", "dip",
            "--out", tmp_path / "plan"]
    pipeweaver(*rest, "--cluster", "h100-sxm:64")
    assert (tmp_path / "plan/replica-001").is_dir()
    (tmp_path / "plan/mine.txt").write_text("a reader's own")
    pipeweaver(*rest, "--cluster", "h100-sxm:32")
    assert not (tmp_path / "plan/replica-001").exists()
    assert (tmp_path / "plan/replica-000/solution.json").exists() and (tmp_path / "plan/mine.txt").exists()


def test_one_ratio_of_the_schedule_for_pytorch_stands_everywhere(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:64", "--tp", "8", "--pp", "4", *BATCH, "--max-rounds", "3",
            "--seed", "4", "--out", tmp_path / "plan"]  # of this seed the slowest replica's bound is not the largest
    table = pipeweaver(*rest)
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    torch, replica = plan["torch"], plan["replicas"][0]
    assert torch["replica"] == 0
    assert torch["over_free_plan"] == pytest.approx(torch["makespan_ns"] / replica["makespan_ns"] - 1)
    ratio = 1 + torch["over_free_plan"]
    assert f"{ratio:.2f}x the plan's for this replica" in table
    assert f"{ratio:.3f}x the plan&#39;s for this replica" in (tmp_path / "plan/report.html").read_text()
    assert {one["policy"] for one in torch["baselines"]} >= {"1f1b", "interleaved", "gpipe"}
    for policy in ("1f1b", "interleaved"):
        best = min(one["makespan_ns"] for one in torch["baselines"] if one["policy"] == policy)
        assert torch["makespan_ns"] <= best
        assert f"with the same padding {policy} takes {best * 1e-9:.3f} s" in table
    assert plan["lower_bound_ns"] == max(one["lower_bound_ns"] for one in plan["replicas"])
    slowest = max(plan["replicas"], key=lambda one: one["makespan_ns"])
    assert slowest["lower_bound_ns"] < plan["lower_bound_ns"]


@pytest.mark.parametrize("name, cluster", [("llama-3-8b", "h100-sxm:8"), ("qwen2.5-32b", "h100-sxm:32"),
                                           ("qwen2.5-vl-7b", "h100-sxm:8"), ("qwen2.5-vl-72b", "h100-sxm:64"),
                                           ("internvl2.5-38b", "h100-sxm:64")])
def test_public_configurations_plan_as_they_are(pipeweaver, tmp_path, name, cluster):
    images = "vl" in name
    samples = [(500 + 157 * i, [{"width": 448, "height": 448 + 56 * (i % 5)}] if images else []) for i in range(24)]
    plan = json.loads(pipeweaver("plan", "--model", f"hf:{ROOT / 'tests/data/hf' / (name + '.json')}", "--cluster", cluster,
                                 "--batch", write_batch(tmp_path, samples), "--max-rounds", "1", "--json", "--out",
                                 tmp_path / "plan"))
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(b["makespan_ns"] for b in plan["baselines"])
