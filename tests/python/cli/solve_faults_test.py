"""Bad and unusual input of solve: one clear line and the right exit status, or an answer; nothing half-written."""

import gzip
import json

import pytest
from cli_shared import small_problem


@pytest.fixture()
def problem(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(small_problem()))
    return path


def test_zero_lengths_and_sums_that_overflow_are_refused(pipeweaver, problem, tmp_path):
    made = small_problem()
    made["tasks"][1]["duration_ns"] = 0
    problem.write_text(json.dumps(made))
    assert pipeweaver.fails("solve", problem, "--out", tmp_path / "s.json") == (
        2, f"pipeweaver: {problem}: tasks[1].duration_ns: is 0, must be a whole number from 1 to "
           "9223372036854775807")
    for task in made["tasks"]:
        task["duration_ns"] = 2**62
    problem.write_text(json.dumps(made))
    assert pipeweaver.fails("solve", problem, "--out", tmp_path / "s.json") == (
        2, f"pipeweaver: {problem}: the sum of all durations, lags and tails exceeds 9223372036854775807")
    assert not (tmp_path / "s.json").exists()


def test_tasks_that_fit_alone_but_not_together_name_rank_bytes_and_tasks(pipeweaver, problem, tmp_path):
    """Both forwards of a rank come before both backwards, and hold 50 each; there is room for 90."""
    made = small_problem()
    made["ranks"] = [{"capacity_bytes": 100, "base_bytes": 10}]
    for task in made["tasks"]:
        task["rank"] = 0
    problem.write_text(json.dumps(made))
    status, line = pipeweaver.fails("solve", problem, "--out", tmp_path / "s.json")
    assert (status, line) == (4, f"pipeweaver: {problem}: rank 0: 10 B (10 bytes) short to run the tasks connected "
                                 "with task 0 'F0' even alone; nor does any other order fit")
    assert not (tmp_path / "s.json").exists()


def test_tasks_that_nothing_leads_to_are_run(pipeweaver, problem, tmp_path):
    made = small_problem()
    made["tasks"].append({"id": 4, "rank": 1, "kind": "X", "duration_ns": 7, "acquire_bytes": 0, "release_bytes": 0,
                          "label": "alone"})
    problem.write_text(json.dumps(made))
    pipeweaver("solve", problem, "--max-rounds", "3", "--out", tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["makespan_ns"] == 4010


@pytest.mark.parametrize("budget", [["--budget", "0s"], ["--max-rounds", "0"], ["--budget", "0s", "--max-rounds", "0"]])
def test_without_budget_the_best_start_is_the_answer(pipeweaver, problem, tmp_path, budget):
    pipeweaver("solve", problem, *budget, "--out", tmp_path / "s.json")
    solution = json.loads((tmp_path / "s.json").read_text())
    assert (solution["makespan_ns"], solution["rounds"]) == (4010, 0)


@pytest.mark.parametrize("options, words", [
    (["--policy", "1f1b", "--strategy", "dip"], "--policy, --strategy: at most one of the two makes sense"),
    (["--policy", "1f1b", "--warm", "w.json"], "--warm: does not go with --policy, which searches nothing"),
    (["--warm-problem", "p.json"], "--warm-problem: needs --warm, a solution of that problem"),
    (["--log", "OUT"], "--log: is 'OUT', the file of --out, allowed is another one"),
])
def test_options_that_contradict_each_other_are_refused(pipeweaver, problem, tmp_path, options, words):
    out = tmp_path / "s.json"
    assert pipeweaver.fails("solve", problem, "--out", out,
                            *[str(out) if one == "OUT" else one for one in options]) == (
        2, f"pipeweaver: {words.replace('OUT', str(out))}")
    assert not out.exists()


def test_a_problem_is_not_overwritten_by_its_solution(pipeweaver, problem):
    before = problem.read_text()
    assert pipeweaver.fails("solve", problem, "--out", problem) == (
        2, f"pipeweaver: --out: is '{problem}', the file of problem, allowed is another one")
    assert problem.read_text() == before


def test_a_solution_of_another_problem_is_carried_over_only_with_that_problem(pipeweaver, problem, tmp_path):
    pipeweaver("solve", problem, "--max-rounds", "3", "--out", tmp_path / "before.json")
    made = small_problem()
    made["tasks"][0]["duration_ns"] = 1500
    (tmp_path / "next.json").write_text(json.dumps(made))
    solve = ["solve", tmp_path / "next.json", "--warm", tmp_path / "before.json", "--max-rounds", "3", "--out",
             tmp_path / "s.json"]
    status, line = pipeweaver.fails(*solve)
    assert status == 2 and "before.json: problem_sha256: is '" in line
    assert not (tmp_path / "s.json").exists()
    pipeweaver(*solve, "--warm-problem", problem)
    assert json.loads((tmp_path / "s.json").read_text())["makespan_ns"] == 4510


def test_many_tasks_are_solved_without_rounds(pipeweaver, tmp_path):
    """60,000 tasks, memory for six of 15,000 microbatches."""
    made = small_problem()
    made["ranks"] = [{"capacity_bytes": 310, "base_bytes": 10}] * 2
    tasks, edges = made["tasks"], made["edges"]
    made["tasks"] = [{**task, "id": 4 * m + task["id"], "microbatch": m} for m in range(15_000) for task in tasks]
    made["edges"] = [[4 * m + a, 4 * m + b, lag] for m in range(15_000) for a, b, lag in edges]
    (tmp_path / "p.json").write_text(json.dumps(made))
    pipeweaver("solve", tmp_path / "p.json", "--max-rounds", "5", "--out", tmp_path / "s.json")
    solution = json.loads((tmp_path / "s.json").read_text())
    assert solution["rounds"] == 0 and max(solution["peak_bytes"]) <= 310
    assert solution["lower_bound_ns"] <= solution["makespan_ns"] <= 1.01 * solution["lower_bound_ns"]


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
