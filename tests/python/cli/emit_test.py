"""What a plan hands to others: action lists, trace and schedule files, and pipeweaver emit, which writes them again."""

import gzip
import hashlib
import json
import subprocess
import sys

import pytest
from cli_shared import BATCH, PLAN


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
            elif action["op"] == "reduce":  # behind the stage's last backward
                assert [one for one in row[row.index(action):] if one["op"] in "BIW"
                        and one["stage"] in action["stages"]] == []
            else:
                assert action["task"] not in done
                done.add(action["task"])
        assert [stage for one in row if one["op"] == "reduce" for stage in one["stages"]] == [
            one["stage"] for one in reversed(actions["stages"]) if one["rank"] == rank]
    assert sent == received
    assert sum(len(tensors) for tensors in sent.values()) > 0


def test_lists_by_rank_are_the_whole_ones_and_their_size_is_said(pipeweaver, planned, tmp_path):
    done = subprocess.run([str(pipeweaver.path), *PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--actions",
                           "by-rank", "--out", str(tmp_path / "plan")], capture_output=True, text=True, check=True)
    whole = (planned / "replica-000/actions.json").read_bytes()
    folder = tmp_path / "plan/replica-000/actions"
    files = sorted(folder.iterdir())
    lists = [json.loads(gzip.decompress(file.read_bytes())) for file in files]
    assert [file.name for file in files] == [f"rank-{rank:03}.json.gz" for rank in range(len(lists))]
    assert [[{key: value for key, value in action.items() if key != "freed"} for action in one["actions"]]
            for one in lists] == json.loads(whole)["actions"]
    assert {one["lists_sha256"] for one in lists} == {hashlib.sha256(whole).hexdigest()}
    assert not (tmp_path / "plan/replica-000/actions.json").exists()
    assert f"{files[0]} (and {len(files) - 1} more), at most " in done.stdout + done.stderr
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "1", "--out", tmp_path / "plan")
    assert not folder.exists()


def test_losses_weigh_what_the_assignment_says(planned):
    actions = json.loads((planned / "replica-000/actions.json").read_text())
    microbatches = json.loads((planned / "assignment.json").read_text())["replicas"][0]["microbatches"]
    weights = {}
    for action in [action for row in actions["actions"] for action in row if "loss_weight" in action]:
        assert action["op"] == "F"
        weights[action["microbatch"]] = weights.get(action["microbatch"], 0) + action["loss_weight"]
    assert weights == pytest.approx({one["microbatch"]: one["loss_weight"] for one in microbatches})


def test_a_solved_problem_has_action_lists_without_shapes(pipeweaver, tmp_path):
    # Modes of a problem alone have no names: they are taken for none, half and full.
    planned = tmp_path / "planned"
    pipeweaver(*PLAN, *BATCH, "--recompute", "none,half,full", "--max-rounds", "5", "--out", planned)
    for name in ("problem.json.gz", "solution.json"):
        (tmp_path / name).write_bytes((planned / "replica-000" / name).read_bytes())
    pipeweaver("emit", "--plan", tmp_path, "--target", "torch-actions", "--out", tmp_path / "out")
    made = json.loads((tmp_path / "out/actions.json").read_text())
    plan = json.loads((planned / "replica-000/actions.json").read_text())
    assert made["most_alive"] == plan["most_alive"]
    assert {tensor["shape"] for tensor in made["tensors"]} == {None}
    ends = [[(t["kind"], *t["from"].values(), *t["to"].values()) for t in one["tensors"]] for one in (made, plan)]
    assert sorted(ends[0]) == sorted(ends[1])
    tasks = [[[a["task"] for a in row if "task" in a] for row in one["actions"]] for one in (made, plan)]
    assert tasks[0] == tasks[1]


def test_the_trace_is_what_the_solution_says(planned):
    trace = json.loads(gzip.decompress((planned / "replica-000/trace.json.gz").read_bytes()))
    solution = json.loads((planned / "replica-000/solution.json").read_text())
    problem = json.loads(gzip.decompress((planned / "replica-000/problem.json.gz").read_bytes()))
    by_label = {event["args"]["task"]: event for event in trace["traceEvents"]
                if event["ph"] == "X" and event["tid"] == 0}
    assert len(by_label) == len(problem["tasks"])
    for task in problem["tasks"]:
        assert by_label[task["label"]]["ts"] == pytest.approx(solution["start_ns"][task["id"]] / 1000, abs=1e-6)
    tails = [rank.get("tail_ns", 0) / 1000 for rank in problem["ranks"]]
    end = max(event["ts"] + event["dur"] + tails[event["pid"]] for event in by_label.values())
    assert end == pytest.approx(solution["makespan_ns"] / 1000, abs=1e-3)


def test_the_trace_keeps_the_rules_of_its_format(planned):
    """Nothing overlaps on a track, every arrow's ends lie in events, the last event ends with the step."""
    events = json.loads(gzip.decompress((planned / "replica-000/trace.json.gz").read_bytes()))["traceEvents"]
    problem = json.loads(gzip.decompress((planned / "replica-000/problem.json.gz").read_bytes()))
    plan = json.loads((planned / "plan.json").read_text())
    nanoseconds = lambda number: round(1000 * number)  # noqa: E731
    tracks, arrows = {}, {}
    for event in events:
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            tracks.setdefault((event["pid"], event["tid"]), []).append(
                (start, start + nanoseconds(event["dur"]), event))
        elif event["ph"] in "stf":
            arrows.setdefault(event["id"], []).append(event)
    for track in tracks.values():
        track.sort(key=lambda one: one[0])
        assert all(before[1] <= after[0] for before, after in zip(track, track[1:]))
    assert max(track[-1][1] for track in tracks.values()) == plan["step_ns"]

    def inside(arrow):
        at = nanoseconds(arrow["ts"])
        found = [event for start, end, event in tracks[arrow["pid"], arrow["tid"]] if start <= at < end]
        assert len(found) == 1
        return found[0]

    tasks = problem["tasks"]
    crossing = {number: edge for number, edge in enumerate(problem["edges"])
                if tasks[edge[0]]["rank"] != tasks[edge[1]]["rank"]}
    assert crossing and set(arrows) == set(crossing)
    for number, points in arrows.items():
        sender, receiver, lag = crossing[number]
        assert [one["ph"] for one in points] == (["s", "t", "f"] if lag else ["s", "f"])
        assert inside(points[0])["args"]["task"] == tasks[sender]["label"]
        assert points[-1]["bp"] == "e" and inside(points[-1])["args"]["task"] == tasks[receiver]["label"]
        if len(points) == 3:
            transfer = inside(points[1])
            assert (transfer["args"], nanoseconds(transfer["dur"])) == (
                {"of": tasks[sender]["label"], "for": tasks[receiver]["label"]}, lag)
    named = {(event["pid"], event["tid"]) for event in events if event.get("name") == "thread_name"}
    assert named == set(tracks)
    assert {event["args"]["name"] for event in events if event.get("name") == "process_name"} == {
        f"replica 0, rank {rank}" for rank in range(len(problem["ranks"]))}
    after = [event for track in tracks.values() for *_, event in track if event["tid"] == 1]
    assert sum(event["name"] == "optimizer" for event in after) == len(problem["ranks"])
    assert sum(event["name"] == "gradient reduction" for event in after) == sum(
        rank.get("tail_ns", 0) > 0 for rank in problem["ranks"])


def test_the_trace_says_in_words_what_is_computed_again(planned):
    events = json.loads(gzip.decompress((planned / "replica-000/trace.json.gz").read_bytes()))["traceEvents"]
    actions = json.loads((planned / "replica-000/actions.json").read_text())
    said = {action["task"]: action["recompute"]
            for row in actions["actions"] for action in row if "recompute" in action}
    labels = {task["label"]: task["id"] for task in json.loads(gzip.decompress(
        (planned / "replica-000/problem.json.gz").read_bytes()))["tasks"]}
    shown = {labels[event["args"]["task"]]: event["args"]["recompute"] for event in events
             if event["ph"] == "X" and "recompute" in event["args"]}
    assert shown == said and said


def test_the_referee_accepts_every_pair_of_a_plan(planned, shared):
    for folder in (planned / "replica-000", planned / "torch"):
        done = subprocess.run([sys.executable, shared / "tools/verify_schedule.py", folder / "problem.json.gz",
                               folder / "solution.json"], capture_output=True, text=True)
        assert done.stdout.startswith("ok makespan_ns="), done.stdout


def test_emit_writes_what_plan_wrote(pipeweaver, planned, tmp_path):
    torch = ["schedule.csv", "schedule.comms.csv", "schedule.json"]
    for target, names in {"torch-csv": torch, "torch-actions": ["actions.json"], "chrome-trace": ["trace.json.gz"]
                          }.items():
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
