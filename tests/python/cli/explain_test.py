"""pipeweaver explain: what a rank or a task of a plan waits for, and what would shorten that."""

import gzip
import json

import pytest
from checkout import ROOT

MEASURED = ROOT / "examples/measured"
# Rank 0 runs A (10 us), waits, runs C (20 us) and has a tail of 4 us; rank 1 runs B (30 us) in between. A's result
# travels 5 us, B's 3 us: A 0-10, B 15-45, C 48-68, makespan 72.
RANK, TASK = {"capacity_bytes": None, "base_bytes": 0}, {"acquire_bytes": 0, "release_bytes": 0, "module": "m"}
PROBLEM = {"format": "pipeweaver-problem/1", "name": "three", "ranks": [{**RANK, "tail_ns": 4000}, RANK], "tasks": [
    {"id": 0, "rank": 0, "kind": "F", "duration_ns": 10000, "label": "A", **TASK},
    {"id": 1, "rank": 1, "kind": "F", "duration_ns": 30000, "label": "B", **TASK},
    {"id": 2, "rank": 0, "kind": "B", "duration_ns": 20000, "label": "C", **TASK}],
    "edges": [[0, 1, 5000], [1, 2, 3000]]}
SOLUTION = {"format": "pipeweaver-solution/1", "problem": "three", "order": [[0, 2], [1]]}


@pytest.fixture
def three(tmp_path):
    for name, content in (("problem", PROBLEM), ("solution", SOLUTION)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def asked(pipeweaver, *options):
    return json.loads(pipeweaver("explain", *options, "--json"))


def test_a_waiting_rank_is_explained_back_to_the_begin(pipeweaver, three):
    found = asked(pipeweaver, three, "--at", "0:20us")

    assert found["makespan_ns"] == 72000
    assert found["at"] == {"rank": 0, "time_ns": 20000, "doing": "waits", "from_ns": 10000, "to_ns": 48000}
    assert [(one["label"], one["behind"]) for one in found["chain"]] == [
        ("C", {"task": 1, "lag_ns": 3000, "why": "needs"}), ("B", {"task": 0, "lag_ns": 5000, "why": "needs"}),
        ("A", None)]
    best = found["shorter"][0]  # A and B by a tenth: C begins 1 us + 3 us earlier
    assert (best["change"], best["earlier_ns"], best["makespan_ns"]) == ("pass", 4000, 68000)


def test_a_task_is_named_by_label_or_number_and_files_stand_for_a_folder(pipeweaver, three):
    by_label = asked(pipeweaver, three, "--task", "B")
    files = (three / "problem.json", three / "solution.json")

    assert by_label == asked(pipeweaver, *files, "--task", "1")
    assert by_label["about"]["start_ns"] == 15000 and by_label["shorter"][0]["shorter_ns"] == 3000


def test_the_text_says_what_the_rank_waits_for(pipeweaver, three):
    text = pipeweaver("explain", three, "--at", "0:20us")

    assert "rank 0 at 20.00 us: waits 38.00 us (10.00 us to 48.00 us) before C" in text
    assert "others are not searched" in text and "no transfer to B from rank 0" in text
    assert max(map(len, pipeweaver("explain", MEASURED).splitlines())) <= 100


def test_a_rank_that_is_done_waits_for_others_until_all_are(pipeweaver, three):
    assert "is done; others take 27.00 us (45.00 us to 72.00 us) more" in pipeweaver("explain", three, "--at", "1:50us")
    for time in ("72us", "1h"):
        said = pipeweaver("explain", three, "--at", f"1:{time}")
        assert "is done, and so are all others: the schedule ends at 72.00 us" in said


@pytest.mark.parametrize(("at", "doing", "begins", "ends"), [
    ("1:0s", "waits", 0, 15000),       # in the gap before its first task
    ("0:10us", "waits", 10000, 48000),  # what ends then does not run any more
    ("0:48us", "runs", 48000, 68000),   # what begins then runs
    ("0:68us", "ends", 68000, 72000),   # its tail
    ("0:72us", "is done", 72000, 72000),
    ("1:45us", "is done", 45000, 72000),
])
def test_a_time_belongs_to_what_begins_then(pipeweaver, three, at, doing, begins, ends):
    found = asked(pipeweaver, three, "--at", at)["at"]
    assert (found["doing"], found["from_ns"], found["to_ns"]) == (doing, begins, ends)


def test_each_replica_of_a_plan_is_explained(pipeweaver, tmp_path, three):
    for number, folder in enumerate(("replica-000", "replica-001")):
        (tmp_path / "plan" / folder).mkdir(parents=True)
        later = {**PROBLEM, "tasks": [{**one, "duration_ns": one["duration_ns"] * (1 + number)}
                                      for one in PROBLEM["tasks"]]}
        (tmp_path / "plan" / folder / "problem.json.gz").write_bytes(gzip.compress(json.dumps(later).encode()))
        (tmp_path / "plan" / folder / "solution.json").write_text(json.dumps(SOLUTION))

    ends = [asked(pipeweaver, tmp_path / "plan", *which)["makespan_ns"]
            for which in ((), ("--replica", 0), ("--replica", 1))]
    assert ends == [72000, 72000, 132000]  # 20 + 5 + 60 + 3 + 40 + 4
    status, said = pipeweaver.fails("explain", tmp_path / "plan", "--replica", 2)
    assert status == 2 and "has no replica-002" in said and said.count("\n") <= 1


def test_a_long_name_is_cut_between_characters(pipeweaver, three):
    text = json.dumps(PROBLEM).replace('"label": "B"', f'"label": {json.dumps("é" * 16)}')
    (three / "problem.json").write_text(text)
    assert "é" * 10 + "... 10 % shorter" in [one["text"] for one in asked(pipeweaver, three)["shorter"]]


def test_without_a_question_the_waits_of_all_ranks_are_listed(pipeweaver):
    found = asked(pipeweaver, MEASURED)

    assert found["at"] is None and found["about"] is None
    assert [one["rank"] for one in found["waits"]] == [0, 1]
    assert found["makespan_ns"] == json.loads(pipeweaver("replay", MEASURED, "--json"))["makespan_ns"]
    lasts = sum(one["end_ns"] - one["start_ns"] for one in found["chain"])
    lags = sum(one["behind"]["lag_ns"] for one in found["chain"] if one["behind"])
    assert lasts + lags + found["tail_ns"] == found["makespan_ns"]


def test_a_plan_from_stage_times_is_explained(pipeweaver, tmp_path):
    pipeweaver("solve", "--stages", ROOT / "examples/stages.csv", "--microbatches", 6, "--max-rounds", 1, "--quiet",
               "--out", tmp_path / "plan")
    found = asked(pipeweaver, tmp_path / "plan", "--at", "0:1h")

    assert found["at"]["doing"] == "is done" and found["about"] is None
    assert found["at"]["to_ns"] == found["makespan_ns"] and found["chain"][-1]["behind"] is None


@pytest.mark.parametrize(("options", "line"), [
    ([], "missing PLAN"),
    ([MEASURED, "--at", "7:1ms"], "--at: is '7:1ms', must be RANK:TIME like 0:1.2ms, with a rank from 0 to 1"),
    ([MEASURED, "--at", "0"], "--at: is '0', must be RANK:TIME"),
    ([MEASURED, "--at", "0:soon"], "--at: "),
    ([MEASURED, "--task", "m0.vit0.s1.X"], "--task: is 'm0.vit0.s1.X', must be a task's label like 'm0.vit0.s1.F'"),
    ([MEASURED, "--at", "0:1ms", "--task", "3"], "--task: goes without --at"),
    ([MEASURED / "problem.json.gz", "--at", "0:1ms"], "missing SOLUTION"),
    ([MEASURED, "--replica", "3"], "--replica: is 3"),
], ids=lambda value: " ".join(map(str, value))[-40:] if isinstance(value, list) else None)
def test_what_cannot_be_asked_is_said_in_one_line(pipeweaver, options, line):
    status, said = pipeweaver.fails("explain", *options)
    assert status == 2 and line in said
