"""What a plan hands to others: action lists, trace and schedule files, and pipeweaver emit, which writes them again."""

import gzip
import json
import subprocess
import sys

import pytest


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


def test_emit_writes_what_plan_wrote(pipeweaver, planned, tmp_path):
    for target, names in {"torch-csv": ["schedule.csv", "schedule.json"], "torch-actions": ["actions.json"],
                          "chrome-trace": ["trace.json.gz"]}.items():
        pipeweaver("emit", "--plan", planned, "--target", target, "--out", tmp_path / target)
        for name in names:
            there = planned / ("torch" if target == "torch-csv" else "replica-000") / name
            here = tmp_path / target / ("" if target == "torch-csv" else "replica-000") / name
            assert here.read_bytes() == there.read_bytes()


def test_what_a_target_cannot_express_names_the_rule(pipeweaver, planned, tmp_path):
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--target", "torch-csv", "--out",
                                    tmp_path / "s.json")
    assert status == 4
    assert "PyTorch" in line
    status, line = pipeweaver.fails("emit", "--plan", planned, "--target", "torch-cvs", "--out", tmp_path / "csv")
    assert status == 2
    assert line.endswith("unknown target 'torch-cvs'; did you mean 'torch-csv'?")
