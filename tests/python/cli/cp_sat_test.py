"""CP-SAT as an oracle: problems beyond what trying everything can solve. The search and CP-SAT must not contradict."""

import concurrent.futures
import json

import pytest
from absent import needed
from cli_shared import full
from random_problems import random_problem

needed("ortools")
import cp_sat  # noqa: E402


@pytest.fixture(scope="module")
def solve(pipeweaver, tmp_path_factory):
    """Solves a problem on one thread with a number of rounds; the solution, or the line that refuses it."""
    folder = tmp_path_factory.mktemp("cp-sat")

    def run(problem, rounds):
        path, out = folder / f"{problem['name']}.json", folder / f"{problem['name']}.solution.json"
        path.write_text(json.dumps(problem))
        done = pipeweaver.run("solve", path, "--max-rounds", rounds, "--threads", 1, "--out", out)
        if done.returncode == 4:  # no schedule fits; all else but 0 is a failure of the program
            return done.stderr
        assert done.returncode == 0, (problem["name"], done.returncode, done.stderr)
        return json.loads(out.read_text())
    return run


def on_two(job, problems):
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        return list(both.map(job, problems))


def test_both_prove_the_same_optimum(solve, pipeweaver, tmp_path):
    """A quarter of the problems has no more memory than a schedule of low peaks needs."""
    count = 100 if full() else 40
    def one(seed):
        problem = random_problem(seed, tight=1 if seed % 4 == 0 else None)
        return problem, cp_sat.optimum(problem), solve(problem, rounds=120)
    proven = 0
    for problem, oracle, ours in on_two(one, range(count)):
        name = problem["name"]
        assert oracle.status != "infeasible" and "makespan_ns" in ours, (name, oracle, ours)
        if oracle.solution is not None:  # its schedule is one for the program, too: both mean the same
            (tmp_path / "p.json").write_text(json.dumps(problem))
            (tmp_path / "s.json").write_text(json.dumps(oracle.solution))
            replayed = json.loads(pipeweaver("replay", tmp_path / "p.json", tmp_path / "s.json", "--json"))
            assert ours["lower_bound_ns"] <= replayed["makespan_ns"] <= oracle.makespan, name
        if oracle.status == "optimal":
            assert ours["lower_bound_ns"] <= oracle.makespan == ours["makespan_ns"], name
            proven += ours["stop_reason"] == "optimal"
    assert proven >= 0.85 * count


def test_a_schedule_is_found_where_there_is_one(solve):
    """A capacity less than what is known to suffice may be too small."""
    def one(seed):
        problem = random_problem(seed, tight=(1.05, 1, 0.99)[seed % 3])
        ours = solve(problem, rounds=30)
        return problem, ours, None if "makespan_ns" in ours else cp_sat.feasible(problem, effort=0.5)
    count = 120 if full() else 48
    found, refused, unknown = 0, 0, 0
    for problem, ours, oracle in on_two(one, range(1000, 1000 + count)):
        found += oracle is None
        if oracle is None:
            continue
        assert oracle.status != "feasible", (problem["name"], ours)
        assert "tight-0.99" in problem["name"], ours
        refused += oracle.status == "infeasible"
        unknown += oracle.status == "unknown"
    assert found >= count * 2 / 3 and refused >= count / 6 and unknown <= count / 6
