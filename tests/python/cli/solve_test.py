"""pipeweaver solve and replay: a search is repeated by its rounds, claims are held against a replay."""

import json


def test_a_time_limited_search_is_repeated_by_its_number_of_rounds(pipeweaver, planned, tmp_path):
    problem = planned / "replica-000/problem.json.gz"
    pipeweaver("solve", problem, "--budget", "200ms", "--out", tmp_path / "timed.json")
    timed = json.loads((tmp_path / "timed.json").read_text())
    pipeweaver("solve", problem, "--max-rounds", timed["rounds"], "--threads", "1", "--out", tmp_path / "counted.json")
    counted = json.loads((tmp_path / "counted.json").read_text())
    same = ("order", "mode", "signature")
    assert [counted[key] for key in same] == [timed[key] for key in same]


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
    assert line.endswith(f"false.json: makespan_ns: is {claimed['makespan_ns']}, the replay gives "
                         f"{answer['makespan_ns']}")


def test_a_policy_that_does_not_apply_says_why(pipeweaver, planned, tmp_path):
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--policy", "1f1b", "--out",
                                    tmp_path / "s.json")
    assert status == 4
    assert "the policy '1f1b' does not apply: " in line
    status, line = pipeweaver.fails("solve", planned / "replica-000/problem.json.gz", "--policy", "1fib", "--out",
                                    tmp_path / "s.json")
    assert status == 2
    assert "did you mean '1f1b'?" in line
