"""Ctrl-C and SIGTERM while a command searches, folders for what it writes, and searches that end by themselves."""

import json
import signal
import subprocess
import time

import pytest
from cli_shared import BATCH, ONE_DRAW, PLAN, full, small_problem

LONG = [*PLAN, "--dataset", "vlm-mix", "--microbatches", "16", "--max-rounds", "1000000000"]


def begin(pipeweaver, *arguments):
    """Begins the command; returns its process. It heeds an interrupt, too, where these tests run in the background."""
    return subprocess.Popen([str(pipeweaver.path), *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def ended(process):
    """What it printed until it ended; one that does not end within five minutes is killed, and the test fails."""
    try:
        return process.communicate(timeout=300)
    finally:
        process.kill()


def wait_for(path, seconds=300):
    """Until it is there."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.005)


def check_whole(pipeweaver, folder):
    """A plan's folder that is whole, and a schedule in it that runs; returns the plan."""
    plan = json.loads((folder / "plan.json").read_text())
    replica = folder / "replica-000"
    pipeweaver("replay", replica / "problem.json.gz", replica / "solution.json")
    assert {"run.json", "report.html", "assignment.json", "partition.json"} <= {one.name for one in folder.iterdir()}
    assert not list(folder.rglob("*.tmp"))
    return plan


# Before the search has a schedule, in it, and late; twenty moments in the full form.
MOMENTS = [0.2 * k for k in range(20)] if full() else [0.0, 0.9, 3.0]


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM] if full() else [signal.SIGTERM])
def test_the_first_signal_leaves_a_whole_folder_with_the_best_so_far(pipeweaver, tmp_path, after, sent):
    process = begin(pipeweaver, *LONG, "--out", tmp_path / "plan")
    wait_for(tmp_path / "plan")
    time.sleep(after)
    process.send_signal(sent)
    out, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert out
    plan = check_whole(pipeweaver, tmp_path / "plan")
    # "rounds": it met the bound before the signal, but for transfers that wait for ports.
    assert plan["replicas"][0]["stop_reason"] in ("stopped", "optimal", "rounds")
    assert len([line for line in told.splitlines() if line.startswith("interrupted")]) == 1
    best = min(one["makespan_ns"] for one in plan["baselines"] if not one["opponent"])
    assert plan["makespan_ns"] <= best


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_command_at_once(pipeweaver, tmp_path, second):
    # So large that what must still be done after the first signal takes longer than it takes to send the second.
    large = [word if word != "16" else "64" for word in LONG]
    process = begin(pipeweaver, *large, "--out", tmp_path / "plan")
    wait_for(tmp_path / "plan")
    process.send_signal(signal.SIGINT)
    # Two that come before the first is heeded are as one.
    assert any(line.startswith("interrupted: finishing") for line in process.stderr)
    process.send_signal(second)
    ended(process)
    assert process.returncode == -second
    assert not (tmp_path / "plan/plan.json").exists()


def test_an_interrupted_solve_writes_what_it_found(pipeweaver, planned, tmp_path):
    problem = planned / "replica-000/problem.json.gz"
    process = begin(pipeweaver, "solve", problem, "--max-rounds", "1000000000", "--out", tmp_path / "new/s.json")
    wait_for(tmp_path / "new")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, told = ended(process)
    assert process.returncode == 0, told
    solution = json.loads((tmp_path / "new/s.json").read_text())
    assert solution["stop_reason"] == "stopped"
    assert f"interrupted: the search ended after {solution['rounds']} round" in told
    pipeweaver("replay", problem, tmp_path / "new/s.json")


def test_an_interrupted_partition_is_the_best_so_far(pipeweaver, tmp_path):
    process = begin(pipeweaver, "partition", *PLAN[1:], "--dataset", "vlm-mix", "--microbatches", "16", "--out",
                    tmp_path / "new/part.json")
    wait_for(tmp_path / "new")
    process.send_signal(signal.SIGTERM)
    table, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert "ended before all searches were through" in table
    assert "interrupted: not all of the best candidates were tried on every batch and searched" in told
    pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--max-rounds", "1", "--partition", tmp_path / "new/part.json", "--out",
               tmp_path / "plan")


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(pipeweaver, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file/below"):
        began = time.monotonic()
        status, line = pipeweaver.fails(*LONG, "--out", out)  # its search would last for ever
        assert status == 3 and str(out) in line
        assert time.monotonic() - began < 60
    (tmp_path / "problem.json").write_text(json.dumps(small_problem()))
    status, line = pipeweaver.fails("solve", tmp_path / "problem.json", "--out", tmp_path / "file/s.json")
    assert status == 3 and str(tmp_path / "file") in line
    assert (tmp_path / "file").read_text() == "mine"


def test_a_command_that_fails_leaves_no_folder_of_its_own_and_others_files_alone(pipeweaver, tmp_path):
    wrong = [*PLAN, *BATCH, "--partition", "none-such"]
    assert pipeweaver.fails(*wrong, "--out", tmp_path / "a/b")[0] == 2
    assert not (tmp_path / "a").exists()
    (tmp_path / "empty").mkdir()
    assert pipeweaver.fails(*wrong, "--out", tmp_path / "empty")[0] == 2
    assert (tmp_path / "empty").is_dir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    assert pipeweaver.fails(*wrong, "--out", tmp_path / "mine/plan")[0] == 2
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_plan_ends_by_itself_when_little_is_left_to_gain(pipeweaver, tmp_path):
    """The budget is then only a cap."""
    began = time.monotonic()
    plan = json.loads(pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--budget", "10min", "--out", tmp_path / "plan", "--json"))
    assert time.monotonic() - began < 300
    replica = plan["replicas"][0]
    assert replica["stop_reason"] in ("no_gain", "optimal")
    again = json.loads(pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--budget", "10min", "--threads", "1", "--out",
                                  tmp_path / "again", "--json"))
    assert again["replicas"][0]["rounds"] == replica["rounds"]  # no clock ended it
    assert again["makespan_ns"] == plan["makespan_ns"]


def test_a_plan_that_is_given_no_time_leaves_nothing_out(pipeweaver, tmp_path):
    whole = json.loads(pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--out", tmp_path / "whole", "--json"))
    assert whole["run"]["budget_ns"] is None and whole["left_out"] == []
    assert whole["replicas"][0]["stop_reason"] in ("no_gain", "optimal")


def test_an_interrupted_study_goes_on_where_it_was(pipeweaver, tmp_path):
    study = tmp_path / "study.json"
    study.write_text(json.dumps({
        "format": "pipeweaver-study/1", "name": "long", "plan": {"dataset": "vlm-mix"}, "planned": 0,
        "axes": {"model": "dip-vlm-m", "cluster": ["h100-sxm", "h200-sxm"], "gpus": [64, 128, 192, 256],
                 "global-batch": 256}}))
    process = begin(pipeweaver, "capacity", study, "--out", tmp_path / "out", "--threads", "1", "--quiet")
    wait_for(tmp_path / "out/cells")
    process.send_signal(signal.SIGINT)
    out, told = ended(process)
    assert process.returncode == 4 and out == ""
    assert "interrupted: " in told and "of 8 cells were judged; they are in " in told
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/cells").iterdir()}
    assert 0 < len(kept) < 8 and not (tmp_path / "out/results.csv").exists()
    pipeweaver("capacity", study, "--out", tmp_path / "out", "--quiet")
    pipeweaver("capacity", study, "--out", tmp_path / "whole", "--quiet")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for path in (tmp_path / "whole").rglob("*"):
        if path.is_file() and path.name != "run.json":
            assert (tmp_path / "out" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()
