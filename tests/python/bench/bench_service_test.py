"""pipeweaver bench service in a tiny form: each part says what it measured, and what is not held is an exit status."""

import json
import subprocess
import sys

import pytest
from absent import left_out

TIMES = {"plans late, by more than", "collect past its deadline, p99", "memory of the last third, and before"}


def promises(pipeweaver, part, *options):
    """What the command says of a part: exit status, and the promises by what they are of."""
    done = pipeweaver.run("bench", "service", "--only", part, "--json", *options)
    told = json.loads(done.stdout)
    assert {one["part"] for one in told["promises"]} == {part}
    assert told["held"] == (done.returncode == 0), done.stderr
    assert done.returncode in (0, 4), done.stderr
    return done, {one["what"]: one for one in told["promises"]}


def is_timed(what):
    return any(what.startswith(one) for one in TIMES)


@pytest.mark.alone
def test_load_counts_checks_and_measures(pipeweaver):
    """What is in time is looked at below; all plans are there only where a session's steps get their time."""
    _, said = promises(pipeweaver, "load", "--sessions", "2", "--seconds", "3", "--microbatches", "4", "--offline", "1")
    assert all(one["held"] for what, one in said.items() if one["held"] is not None and not is_timed(what)), said
    assert said["plans there, of those submitted"]["figures"] == {"there": 6, "submitted": 6}
    assert said["plans refused by the second replay"]["figures"] == {"refused": 0, "checked": 6}
    assert said["collect past its deadline, p99"]["figures"]["median_ms"] > -500
    assert said["memory of the last third, and before"]["figures"]["last_mib"] > 10
    assert 0 <= said["mean gap"]["figures"]["gap"] < 1
    assert said["of 1 of them, and each of those alone"]["figures"]["alone"] >= 0


@pytest.mark.alone
def test_plans_of_two_jobs_are_in_time(pipeweaver):
    _, said = promises(pipeweaver, "load", "--sessions", "2", "--seconds", "3", "--microbatches", "4", "--offline", "0",
                       "--past", "500ms", "--growth", "50")  # memory of its second and third second
    assert all(one["held"] for one in said.values() if one["held"] is not None), said


@pytest.mark.alone
def test_what_is_not_held_is_said_and_gives_the_exit_status(pipeweaver):
    command = ["bench", "service", "--only", "load", "--sessions", "1", "--seconds", "1", "--microbatches", "4",
               "--offline", "0", "--least-plans", "1000000", "--past", "1h", "--growth", "100"]
    done = pipeweaver.run(*command, "--quiet")
    assert done.returncode == 4
    not_held = [line for line in done.stdout.splitlines() if line.endswith("NOT HELD")]
    assert len(not_held) == 1 and "1 of 1 " in not_held[0] and "at least 1000000" in not_held[0]
    assert done.stderr.splitlines()[-1].startswith("pipeweaver: 1 of ")
    assert pipeweaver.run(*command, "--least-plans", "1", "--quiet").returncode == 2  # given twice


def test_served_plans_are_those_of_plan_and_of_the_session_in_process(pipeweaver):
    done, said = promises(pipeweaver, "equal", "--batches", "2", "--max-rounds", "3", "--microbatches", "4")
    assert done.returncode == 0
    *equal, over_plan = [one["figures"] for one in said.values()]
    assert equal == [{"differ": 0, "parts": 10}] * 2 + [{"differ": 0, "parts": 2}]
    assert 0.5 < over_plan["served_over_plan"] < 2


def test_nothing_acknowledged_is_lost_in_kills(pipeweaver):
    done, said = promises(pipeweaver, "kill", "--kills", "3", "--microbatches", "4", "--seed", "2")
    assert done.returncode == 0, done.stderr
    figures = said["acknowledged or collected, and then lost"]["figures"]
    assert figures["lost"] == 0 and figures["sessions"] >= 9 and figures["parts"] > 0


def test_others_are_refused_and_wrong_tokens_are_not_let_in(pipeweaver):
    _, said = promises(pipeweaver, "token", "--tries", "20")
    assert said["0.0.0.0 refused without token and TLS"]["held"]
    assert said["right tokens not let in, wrong ones let in"]["figures"] == {"wrong": 0, "tries": 40}
    for what in ("right and wrong tokens, median", "wrong in the first letter, in the last"):
        assert said[what]["figures"]["noise_us"] > 0 and said[what]["figures"]["first_us"] > 0


def test_silent_connections_stay_and_plans_come(pipeweaver):
    _, said = promises(pipeweaver, "idle", "--connections", "300", "--microbatches", "4")
    assert said["silent and slow connections, still open"]["figures"] == {"open": 300, "connections": 300}
    assert said["plans absent beside them"]["held"] and said["server ended by SIGTERM"]["held"]


def test_training_is_left_out_without_a_python_and_said_so(pipeweaver):
    assert pipeweaver("bench", "service", "--only", "training").split() == (
        "training left out: --python, a Python with torch and pipeweaver".split())


def test_a_part_that_cannot_go_on_is_not_held(pipeweaver, tmp_path):
    done, said = promises(pipeweaver, "training", "--python", "python3", "--example", tmp_path / "none.py")
    assert done.returncode == 4 and "is not there" in said["could not go on"]["measured"]


def test_unknown_parts_are_named(pipeweaver):
    status, line = pipeweaver.fails("bench", "service", "--only", "lod")
    assert status == 2 and "unknown part 'lod'; did you mean 'load'?" in line
