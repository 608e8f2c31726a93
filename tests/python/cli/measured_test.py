"""A recorded run beside its plan on the command line: replay --measured, costdb import --measured, and plans that get
better by it."""

import json
import random
import sqlite3

import pytest
from cli_shared import ONE_DRAW
from measured_run import planned_ns, record, solved, starts_of

JOB = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", 4, "--pp", 4, "--dataset", "vlm-mix",
       "--microbatches", 6]
# Of one replica, which is all: without opponents.
PLAN = [*JOB, *ONE_DRAW, "--replicas", 0, "--partition", "modules", "--max-rounds", 30]


@pytest.fixture(scope="module")
def run_plan(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "plan"
    pipeweaver("plan", *PLAN, "--out", folder)
    return folder


def slower_vit(draw=None, by=1.3, slow=None):
    def truth(task, ns):
        noise = 1 + draw.gauss(0, 0.03) if draw else 1
        return ns * noise * (by if task["module"] == "vit" else 1) * (1.1 if task["rank"] == slow else 1)
    return truth


def test_a_run_as_planned_differs_in_nothing(pipeweaver, run_plan, tmp_path):
    files = record(run_plan / "replica-000", tmp_path, lambda task, ns: ns, steps=1)
    found = json.loads(pipeweaver("replay", run_plan, "--json", "--measured", *files))
    assert found["format"] == "pipeweaver-comparison/1"
    assert found["run_ns"] == found["wait_ns"] == 0 and found["measured_ns"] == found["planned_ns"]
    assert not any(rank["slow"] for rank in found["ranks"])
    for entry in found["clocks"]["ranks"]:  # the ranks' clocks are a second apart
        truth = (found["clocks"]["reference"] - entry["rank"]) * 10**9
        assert abs(entry["offset_ns"] - truth) <= entry["uncertainty_ns"]


def test_the_slow_rank_and_the_slow_module_are_told(pipeweaver, run_plan, tmp_path):
    files = record(run_plan / "replica-000", tmp_path, slower_vit(random.Random(1), slow=2), steps=5)
    found = json.loads(pipeweaver("replay", run_plan, "--json", "--measured", *files))
    assert [rank["rank"] for rank in found["ranks"] if rank["slow"]] == [2]
    assert abs(found["ranks"][2]["factor"] - 1.1) < 0.02
    assert found["planned_ns"] + found["run_ns"] + found["wait_ns"] == found["measured_ns"]
    assert sum(group["on_step_ns"] for group in found["groups"]) == found["run_ns"]
    errors = {(group["modules"], group["kind"]): group["error"] for group in found["groups"]}
    assert 0.25 < errors["vit", "F"] < 0.40 and -0.05 < errors["llm", "F"] < 0.06
    text = pipeweaver("replay", run_plan / "replica-000", "--measured", *files)
    assert "slow: rank 2 takes 1." in text and "longer passes +" in text


def step_under_truth(folder, factors):
    """What the plan's schedule takes where a vit pass takes 1.3 times what the tables say; the plan had `factors`."""
    problem, solution = solved(folder / "replica-000")
    durations = planned_ns(problem, solution)
    for number, task in enumerate(problem["tasks"]):
        right = 1.3 if task["module"] == "vit" else 1
        durations[number] = round(durations[number] * right / factors.get((task["module"], task["kind"] == "F"), 1))
    return starts_of(problem, solution, durations)[1]


def factors_in(database):
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT module, pass, factor_ppm FROM pass_factor").fetchall()
    return {(module, direction == "forward"): ppm / 1e6 for module, direction, ppm in rows}


def test_after_one_import_a_plan_is_as_good_as_with_the_right_times(pipeweaver, run_plan, tmp_path):
    files = record(run_plan / "replica-000", tmp_path, slower_vit(random.Random(2)))
    own, right = tmp_path / "own.sqlite", tmp_path / "right.sqlite"
    printed = pipeweaver("costdb", "import", *files, "--measured", run_plan, "--out", own)
    assert "dip-vlm-s on h100_sxm, 3 steps" in printed
    found = factors_in(own)
    assert set(found) == {(module, forward) for module in ("vit", "llm") for forward in (True, False)}
    for (module, _), factor in found.items():
        assert abs(factor - (1.3 if module == "vit" else 1)) < 0.02, found

    right.write_bytes(own.read_bytes())
    with sqlite3.connect(right) as connection:
        connection.execute("UPDATE pass_factor SET factor_ppm = CASE module WHEN 'vit' THEN 1300000 ELSE 1000000 END")
    for database in (own, right):
        pipeweaver("plan", *PLAN, "--costs", database, "--out", tmp_path / database.stem)
    again = step_under_truth(tmp_path / "own", found)
    best = step_under_truth(tmp_path / "right", factors_in(right))
    assert again <= 1.03 * best, (again, best)


def test_factors_of_later_runs_multiply_with_those_before(pipeweaver, run_plan, tmp_path):
    own = tmp_path / "own.sqlite"
    files = record(run_plan / "replica-000", tmp_path, slower_vit(), steps=1)
    pipeweaver("costdb", "import", *files, "--measured", run_plan, "--out", own)
    pipeweaver("plan", *PLAN, "--costs", own, "--out", tmp_path / "again")
    files = record(tmp_path / "again" / "replica-000", tmp_path, slower_vit(by=1.1), steps=1)
    pipeweaver("costdb", "import", *files, "--measured", tmp_path / "again", "--into", own)
    assert factors_in(own)["vit", True] == pytest.approx(1.43, abs=0.001)
    assert factors_in(own)["llm", False] == pytest.approx(1, abs=0.001)
    status, line = pipeweaver.fails("costdb", "import", *files, "--measured", tmp_path / "again", "--into", own)
    assert status == 2 and "is not the database that the plan was made with, or has changed since" in line


def test_what_is_no_run_of_the_plan_is_refused(pipeweaver, run_plan, tmp_path):
    files = record(run_plan / "replica-000", tmp_path, slower_vit(), steps=1)

    def refused(*arguments):
        status, line = pipeweaver.fails(*arguments)
        assert status == 2, line
        return line

    assert "nothing recorded is of rank 3" in refused("replay", run_plan, "--measured", *files[:3])
    assert "--replica: is 1" in refused("replay", run_plan / "replica-000", "--replica", 1, "--measured", *files)
    assert "--model names 'dip-vlm-m'" in refused("replay", run_plan, "--model", "dip-vlm-m", "--measured", *files)
    changed = json.loads(pipeweaver("show", "dip-vlm-s"))
    changed["modules"][0]["trainable"] = not changed["modules"][0].get("trainable", True)
    (tmp_path / "model.json").write_text(json.dumps(changed))
    older = refused("costdb", "import", *files, "--measured", run_plan, "--model", tmp_path / "model.json", "--out",
                    tmp_path / "own.sqlite")
    assert "the plan is older than the model" in older
    other = json.loads(files[1].read_text())
    other["steps"][0]["actions"][0]["microbatch"] = 9
    files[1].write_text(json.dumps(other))
    assert "ran microbatch 9, the plan has microbatches 0-5" in refused("replay", run_plan, "--measured", *files)
    files = record(run_plan / "replica-000", tmp_path, slower_vit(), steps=1)
    other = json.loads(files[1].read_text())
    files[1].write_text(json.dumps({**other, "ranks": 99}))
    assert "timings-1.json: ranks: is 99, the plan has 4" in refused("replay", run_plan, "--measured", *files)
    files[1].write_text(json.dumps(other))
    early = json.loads(files[3].read_text())
    for key in ("start_ns", "end_ns"):
        early["steps"][0]["actions"][0][key] -= 2 * 10**9
    files[3].write_text(json.dumps(early))
    assert "whatever the clocks of the ranks" in refused("replay", run_plan, "--measured", *files)
    files[1].write_text("{}")
    assert "is no trace" in refused("replay", run_plan, "--measured", *files)
    assert not (tmp_path / "own.sqlite").exists()


def test_options_that_say_nothing_of_a_schedule_are_refused(pipeweaver, run_plan, tmp_path):
    place = run_plan / "replica-000"
    pair = (place / "problem.json.gz", place / "solution.json")
    files = record(place, tmp_path, slower_vit(), steps=1)
    for arguments, why in (((run_plan, "--model", "dip-vlm-m"), "--model names 'dip-vlm-m'"),
                           ((*pair, "--replica", 7), "--replica: goes with a plan's folder, or with --measured"),
                           ((*pair, "--model", "dip-vlm-s"), "--model: goes with a plan's folder"),
                           ((*pair, "--model", "dip-vlm-s", "--measured", *files), "--model: goes with a plan's")):
        status, line = pipeweaver.fails("replay", *arguments)
        assert status == 2 and why in line, line
    assert "makespan" in pipeweaver("replay", run_plan, "--model", "dip-vlm-s")


def test_a_plan_of_a_global_batch_is_imported(pipeweaver, tmp_path):
    plan = tmp_path / "plan"
    pipeweaver("plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", 4, "--pp", 2, "--dp", 2, "--dataset",
               "vlm-mix", "--global-batch", 40, "--packing", "given", "--partition", "modules", "--max-rounds", 5,
               "--out", plan)
    assert json.loads((plan / "plan.json").read_text())["asked"]["microbatches"] % 2, "one more on a replica"
    files = record(plan / "replica-001", tmp_path, slower_vit(), steps=1, replica=1)
    pipeweaver("costdb", "import", *files, "--measured", plan, "--replica", 1, "--out", tmp_path / "own.sqlite")
    assert factors_in(tmp_path / "own.sqlite")["vit", True] == pytest.approx(1.3, abs=0.001)


def test_factors_that_no_database_holds_are_not_written(pipeweaver, run_plan, tmp_path):
    def refused(plan, by, *arguments):
        files = record(plan / "replica-000", tmp_path, slower_vit(by=by), steps=1)
        status, line = pipeweaver.fails("costdb", "import", *files, "--measured", plan, *arguments)
        assert status == 2, line
        return line

    own = tmp_path / "own.sqlite"
    line = refused(run_plan, 5000, "--out", own)
    assert "forward of vit would have a factor of 4999.99, allowed are 0.001 to 1000" in line
    assert not own.exists()
    files = record(run_plan / "replica-000", tmp_path, slower_vit(by=500), steps=1)
    pipeweaver("costdb", "import", *files, "--measured", run_plan, "--out", own)
    again, before = tmp_path / "again", own.read_bytes()
    pipeweaver("plan", *PLAN, "--costs", own, "--out", again)
    assert "with those before, allowed are 0.001 to 1000" in refused(again, 50, "--into", own)
    assert own.read_bytes() == before
