"""solve --log: improvements by round, the same whatever the threads."""

import json

import pytest
from cli_shared import small_problem


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Eight microbatches of unequal length on two ranks: more than the starts solve."""
    made = small_problem()
    tasks, edges = made["tasks"], made["edges"]
    made["tasks"], made["edges"], made["ranks"] = [], [], [{"capacity_bytes": 160, "base_bytes": 10}] * 2
    for m in range(8):
        first = len(made["tasks"])
        for task in tasks:
            made["tasks"].append({**task, "id": first + task["id"], "microbatch": m, "label": f"{task['label']}.{m}",
                                  "duration_ns": 1000 + 371 * m * (task["id"] + 1) % 997})
        made["edges"] += [[first + a, first + b, lag] for a, b, lag in edges]
    path = tmp_path_factory.mktemp("log") / "problem.json"
    path.write_text(json.dumps(made))
    return path


def rows(path):
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    assert lines[0] == ["round", "evaluations", "best_ns", "bound_ns", "gap", "found_by"]
    return lines[1:]


@pytest.mark.parametrize("strategy", ["default", "dip"])
def test_improvements_are_logged_alike_on_any_threads(pipeweaver, problem, tmp_path, strategy):
    def solve(name, *options):
        solution, log = tmp_path / f"{name}.json", tmp_path / f"{name}.tsv"
        pipeweaver("solve", problem, "--strategy", strategy, *options, "--out", solution, "--log", log)
        return json.loads(solution.read_text()), log
    one, log = solve("one", "--max-rounds", "40", "--threads", "1")
    _, two = solve("two", "--max-rounds", "40", "--threads", "2")
    _, short = solve("short", "--max-rounds", "3")
    assert log.read_bytes() == two.read_bytes()
    assert log.read_text().startswith(short.read_text())
    lines = rows(log)
    assert lines[0][0] == "0" and int(lines[-1][0]) <= 40
    best = [int(line[2]) for line in lines]
    assert best == sorted(set(best), reverse=True)
    assert best[-1] == one["makespan_ns"]
    for line in lines:
        assert float(line[4]) == pytest.approx(int(line[2]) / int(line[3]) - 1, abs=1e-6)


@pytest.mark.parametrize("strategy", ["default", "dip"])
def test_the_report_of_a_search_is_the_same_on_any_threads(pipeweaver, problem, tmp_path, strategy):
    def page(name, *options):
        pipeweaver("solve", problem, "--strategy", strategy, "--max-rounds", "30", "--out", tmp_path / "solution.json",
                   "--report", tmp_path / name, *options)
        return (tmp_path / name).read_bytes()
    one = page("one.html", "--threads", "1")
    assert page("two.html", "--threads", "2") == one
    assert page("other.html", "--seed", "2") != one
    assert b'<section id="search">' in one and b"Before" in one and b"After" in one


def test_a_report_needs_a_search(pipeweaver, problem, tmp_path):
    assert pipeweaver.fails("solve", problem, "--policy", "gpipe", "--out", tmp_path / "a",
                            "--report", tmp_path / "b") == (
        2, "pipeweaver: --report: does not go with --policy, which searches nothing")
    table = tmp_path / "stages.csv"
    table.write_text("stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
                     "0,0,1,2,,1,1,1\n")
    assert pipeweaver.fails("solve", "--stages", table, "--microbatches", "2", "--out", tmp_path / "a",
                            "--report", tmp_path / "b") == (
        2, "pipeweaver: --report: does not go with --stages, which writes report.html into --out")
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()


def test_robust_is_for_plans_and_says_why(pipeweaver, problem, tmp_path):
    assert pipeweaver.fails("solve", problem, "--robust", "--out", tmp_path / "a") == (
        2, "pipeweaver: --robust: problem files and stage times carry no estimate of their errors; `pipeweaver plan` "
           "has them")


def test_a_log_needs_a_search(pipeweaver, problem, tmp_path):
    assert pipeweaver.fails("solve", problem, "--policy", "gpipe", "--out", tmp_path / "a",
                            "--log", tmp_path / "b") == (
        2, "pipeweaver: --log: does not go with --policy, which searches nothing")
    assert not (tmp_path / "a").exists()


def test_of_equal_makespans_the_smaller_peak_is_taken_and_then_memory_keeps_it(pipeweaver, tmp_path):
    """One rank, three microbatches: any order takes as long, and short tasks first would hold all three."""
    problem = {**small_problem(), "ranks": [{"capacity_bytes": None, "base_bytes": 10}], "tasks": [], "edges": []}
    for m in range(3):
        for kind, time, taken, given in (("F", 1000, 50, 0), ("B", 2000, 0, 50)):
            problem["tasks"].append({"id": len(problem["tasks"]), "rank": 0, "kind": kind, "duration_ns": time,
                                     "acquire_bytes": taken, "release_bytes": given, "label": f"{kind}.{m}",
                                     "stage": 0, "microbatch": m})
        problem["edges"].append([2 * m, 2 * m + 1, 0])
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem))

    def solve(name, *options):
        pipeweaver("solve", path, *options, "--out", tmp_path / name)
        return json.loads((tmp_path / name).read_text())
    first, then = solve("first"), solve("then", "--then", "memory", "--threads", "1")
    assert (first["makespan_ns"], first["peak_bytes"]) == (9000, [60])
    assert (then["makespan_ns"], then["peak_bytes"], then["rounds"]) == (9000, [60], first["rounds"])
    assert solve("again", "--then", "memory", "--threads", "2") == then
    pipeweaver("replay", path, tmp_path / "then")
    assert pipeweaver.fails("solve", path, "--policy", "gpipe", "--then", "memory", "--out", tmp_path / "no") == (
        2, "pipeweaver: --then: does not go with --policy, which searches nothing")
