"""Capacity studies: what a document spans, what bounds leave out, shards and merging, what is wrong with a study."""

import csv
import json
import shlex

import pytest
from cli_shared import SCREEN, write_batch

SMALL = {
    "format": "pipeweaver-study/1", "name": "small", "tokens": "100B", "plan": {"dataset": "vlm-mix", "max-rounds": 1},
    "axes": {"model": "dip-vlm-s", "cluster": ["h100-sxm", "h200-sxm"], "gpus": [16, 32], "global-batch": 128},
    "layouts": {"tp": [1, 2, 4, 8]}, "prices": {"h100-sxm": 2.5, "h200-sxm": 3.2}, "planned": 1,
}


@pytest.fixture
def study(tmp_path):
    def written(file="study.json", **changes):
        path = tmp_path / file
        path.write_text(json.dumps({**SMALL, **changes}))
        return path
    return written


@pytest.fixture
def capacity(pipeweaver):
    """What the command prints, or the line that it fails with."""
    def called(*arguments, status=0):
        command = ("capacity", *map(str, arguments), "--quiet")
        if status == 0:
            return pipeweaver(*command)
        found, line = pipeweaver.fails(*command)
        assert found == status
        return line
    return called


def results(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "run.json"}


def best_of_cells(folder):
    """By cell: the least step, and the layout that has it."""
    best = {}
    for row in results(folder):
        if row["status"] == "judged":
            found = (float(row["step_s"]), *(row[key] for key in ("tp", "cp", "pp", "dp", "ep", "zero")))
            best[row["cell"]] = min(found, best.get(row["cell"], found))
    return best


def test_bounds_leave_out_no_best_of_four_hundred_points(study, capacity, tmp_path):
    axes = {**SMALL["axes"], "gpus": [16, 32, 64]}
    capacity(study(axes=axes, planned=0, shown=3), "--out", tmp_path / "bounds")
    capacity(study(axes=axes, planned=0, bounds=False), "--out", tmp_path / "exhaustive")
    exhaustive, by_bounds = results(tmp_path / "exhaustive"), results(tmp_path / "bounds")
    assert len(exhaustive) == len(by_bounds) >= 400
    assert {row["status"] for row in exhaustive} == {"judged", "refused"}
    judged = [row for row in by_bounds if row["status"] == "judged"]
    assert len(judged) < sum(row["status"] == "judged" for row in exhaustive) * 0.8
    assert best_of_cells(tmp_path / "bounds") == best_of_cells(tmp_path / "exhaustive")
    # And no bound is above what was judged by more than the margin that cuts of a sample have.
    for row in exhaustive:
        if row["status"] == "judged":
            assert float(row["bound_s"]) <= 1.05 * float(row["step_s"])


def test_shards_merge_to_the_bytes_of_the_whole_and_run_once(study, capacity, tmp_path):
    path = study(axes={**SMALL["axes"], "global-batch": 32}, layouts={**SMALL["layouts"], "cp": 1})
    capacity(path, "--out", tmp_path / "whole")
    for shard in range(3):
        capacity(path, "--shard", f"{shard}/3", "--out", tmp_path / f"part-{shard}")
        assert not (tmp_path / f"part-{shard}" / "results.csv").exists()
    capacity("merge", *(tmp_path / f"part-{shard}" for shard in range(3)), "--out", tmp_path / "merged")
    assert files(tmp_path / "whole") == files(tmp_path / "merged")

    # In one folder, a second time, on other threads: nothing is judged again, and the bytes are the same.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "whole" / "cells").iterdir()}
    capacity(path, "--out", tmp_path / "whole", "--threads", "1")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "whole" / "cells").iterdir()}
    assert files(tmp_path / "whole") == files(tmp_path / "merged")
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["points"] == 0


def test_another_price_keeps_what_was_judged(study, capacity, tmp_path):
    capacity(study(planned=0), "--out", tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    capacity(study(planned=0, prices={"h100-sxm": 9, "h200-sxm": 1}), "--out", tmp_path / "out")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}


def test_merging_says_what_is_missing_and_refuses_what_is_not_the_studys(study, capacity, tmp_path):
    path = study()
    capacity(path, "--shard", "0/2", "--out", tmp_path / "half")
    error = capacity("merge", tmp_path / "half", "--out", tmp_path / "merged", status=4)
    assert "2 of 4 cells are missing, the first is 1" in error and not (tmp_path / "merged").exists()
    capacity(study("other.json", name="other"), "--shard", "1/2", "--out", tmp_path / "other")
    error = capacity("merge", tmp_path / "half", tmp_path / "other", "--out", tmp_path / "merged", status=2)
    assert "other/study.json: is another study than small" in error
    assert "is of the study 'other'" in capacity(path, "--out", tmp_path / "other", status=2)
    capacity(path, "--shard", "1/2", "--out", tmp_path / "rest")
    error = capacity("merge", tmp_path / "half", tmp_path / "rest", "--out", tmp_path / "other", status=2)
    assert "is of the study 'other'" in error
    capacity(path, "--shard", "1/2", "--out", tmp_path / "half")
    cell = sorted((tmp_path / "half" / "cells").iterdir())[2]
    whole = cell.read_text()
    for damaged in (whole[:200], whole.replace('"step_ns"', '"step"', 1), whole.replace('"key":"', '"key":"0', 1)):
        cell.write_text(damaged)
        error = capacity("merge", tmp_path / "half", "--out", tmp_path / "merged", status=2)
        assert cell.name in error
    assert "no folder of a study" in capacity("merge", tmp_path / "none", "--out", tmp_path / "x", status=2)


@pytest.mark.parametrize("changes, message", [
    ({"axes": {**SMALL["axes"], "colour": [1]}}, "axes: unknown key 'colour'"),
    ({"axes": {**SMALL["axes"], "gpus": "many"}}, "axes.gpus: is 'many', must be a count"),
    ({"axes": {**SMALL["axes"], "gpus": []}}, "axes.gpus: has no value, so the study has no point"),
    ({"axes": {**SMALL["axes"], "gpus": [16, 16]}}, "axes.gpus: has '16' twice"),
    ({"axes": {**SMALL["axes"], "groups": ["shared", "vit=8"]}},
     "axes.groups[1]: is 'vit=8', must be one of shared, own"),
    ({"axes": {**SMALL["axes"], "groups": ["own", "own"]}}, "axes.groups: has 'own' twice"),
    ({"plan": {"dataset": "vlm-mix", "groups": "own"}}, "plan: unknown key 'groups'"),
    ({"axes": {**SMALL["axes"], "cluster": "h100-sxm:16"}}, "GPUs stand under `gpus`"),
    ({"axes": {key: value for key, value in SMALL["axes"].items() if key != "gpus"}}, "axes: has no `gpus`"),
    ({"axes": {key: value for key, value in SMALL["axes"].items() if key != "global-batch"}}, "has no `global-batch`"),
    ({"plan": {"dataset": "vlm-mix", "model": "dip-vlm-s"}}, "plan.model and axes.model contradict each other"),
    ({"plan": {"dataset": "vlm-mix", "tp": 4}}, "plan: unknown key 'tp'"),
    ({"layouts": {"tp": [64]}}, "layouts and axes.gpus contradict each other"),
    ({"layouts": {"tp": []}}, "layouts.tp: is empty"),
    ({"limit": 10}, "points, allowed are 10: say `limit: "),
    ({"constraints": {"days": 30}, "tokens": 0}, "tokens: is '0'"),
    ({"constraints": {"budget-usd": 10}, "prices": {"h100-sxm": 2}}, "constraints.budget-usd and axes.cluster"),
    ({"constraints": {"weeks": 3}}, "constraints: unknown key 'weeks'"),
    ({"prices": {"h100-sxm": -1}}, "prices.h100-sxm: is -1"),
    ({"prices": {"h100": 2}}, "prices: 'h100' is no cluster of the study, known are h100-sxm, h200-sxm"),
    ({"faulty": "many"}, "faulty: is 'many', must be a part of the nodes"),
    ({"plan": {"dataset": "vlm-mixx"}}, "vlm-mixx"),
    ({"plan": {"dataset": "vlm-mix", "recipe": "none"}}, "recipe"),
    ({"plan": {"dataset": "vlm-mix", "batch": "b.jsonl"}}, "--batch, --dataset: exactly one of the two is needed"),
    ({"axes": {**SMALL["axes"], "model": "dip-vlm-x"}}, "dip-vlm-x"),
    ({"colour": 1}, "unknown key 'colour'; known are format, name"),
])
def test_what_is_wrong_with_a_study_is_said_in_a_line(study, capacity, tmp_path, changes, message):
    error = capacity(study(**changes), "--out", tmp_path / "out", status=2)
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments, message", [
    (["--shard", "2/2"], "--shard: is '2', must be a whole number from 0 to 1"),
    (["--shard", "1"], "--shard: is '1', must be a shard and their number"),
    (["more.json"], "more.json: is one operand too many"),
])
def test_what_is_wrong_with_the_command_is_said_in_a_line(study, capacity, tmp_path, arguments, message):
    assert message in capacity(study(), *arguments, "--out", tmp_path / "out", status=2)


def test_constraints_that_nothing_meets_name_the_nearest_and_what_binds(study, pipeweaver, tmp_path):
    def nothing(path):
        done = pipeweaver.run("capacity", path, "--out", tmp_path / "out", "--quiet")
        assert done.returncode == 4 and len(done.stderr.splitlines()) == 1
        return done.stderr

    error = nothing(study(constraints={"days": 0.5}))
    assert "no point meets the constraints; 32 x h200-sxm comes closest, and days bind: it takes at least" in error
    # 1 M tokens take minutes: no time at all would be within what is allowed.
    error = nothing(study(tokens="1M", constraints={"days": 1e-6}))
    assert float(error.split("it takes at least ")[1].split(",")[0]) > 1e-6 and "allowed are 1e-06" in error
    error = nothing(study(constraints={"days": 300, "budget-usd": 30_000}, planned=0))
    assert "budget-usd binds: it takes at least" in error and "allowed are 30000" in error
    free = json.loads(pipeweaver("capacity", study(planned=0), "--out", tmp_path / "out", "--json", "--quiet"))
    cheapest = free["rows"][0]
    error = nothing(study(constraints={"days": 300, "budget-usd": 0.99 * cheapest["usd"]}, planned=0))
    nearest = f"{cheapest['gpus']} x {cheapest['cluster']} comes closest, and budget-usd binds: it takes "
    assert "no row meets the constraints; " + nearest + f"{cheapest['usd']:.0f}, allowed are" in error


def test_a_row_is_planned_as_its_command_plans_it(study, capacity, pipeweaver, tmp_path):
    axes = {**SMALL["axes"], "cluster": "h100-sxm", "gpus": [32]}
    answer = json.loads(capacity(study(axes=axes, prices={}), "--out", tmp_path / "out", "--json"))
    row = answer["rows"][0]
    script = (tmp_path / "out" / "rows" / "01.sh").read_text().splitlines()
    assert script[1].startswith(row["command"])
    command = row["command"].split()[1:]
    pipeweaver(*command, "--out", str(tmp_path / "plan"), "--quiet")
    plan = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert plan["step_ns"] == pytest.approx(row["step_ns"], rel=0.03)
    point = json.loads(capacity(tmp_path / "out" / "rows" / "01.yaml", "--out", tmp_path / "one", "--json"))
    assert [one["step_ns"] for one in point["rows"]] == [row["step_ns"]]
    assert point["points"] == {"judged": 1, "bounded": 0, "refused": 0}


@pytest.mark.parametrize("plan", [{}, {"target": "megatron-mimo"}])
def test_a_row_in_groups_of_gpus_is_what_its_command_prints(study, capacity, pipeweaver, tmp_path, plan):
    axes = {**SMALL["axes"], "cluster": "h100-sxm", "gpus": 16, "groups": ["shared", "own", "auto"], "global-batch": 32}
    changes = {"axes": axes, "plan": {**SMALL["plan"], **plan}, "prices": {}, "planned": 0}
    capacity(study(**changes), "--out", tmp_path / "out")
    rows = {row["options"]["groups"]: row for row in json.loads((tmp_path / "out/answer.json").read_text())["rows"]}
    own = rows["own"]
    assert own["layout"] is None and own["split"].startswith("vit=") and rows["shared"]["split"] is None
    assert rows["auto"]["step_ns"] == min(rows["shared"]["step_ns"], own["step_ns"])
    words = shlex.split(own["command"])
    assert words[:2] == ["pipeweaver", "groups"]
    said = json.loads(pipeweaver(*words[1:], "--json"))
    assert said["split"] == own["split"] and said["own"]["step_ns"] == own["flags_step_ns"]
    assert max(one["peak_bytes"] for one in said["own"]["groups"]) == own["memory_bytes"]
    # The row as a study of its own.
    place = own["row"]
    script = (tmp_path / f"out/rows/{place:02}.sh").read_text()
    assert script.endswith(own["command"] + "\n")
    capacity(tmp_path / f"out/rows/{place:02}.yaml", "--out", tmp_path / "one")
    one, = json.loads((tmp_path / "one/answer.json").read_text())["rows"]
    assert (one["split"], one["step_ns"]) == (own["split"], own["step_ns"])
    assert one["why_not_planned"] == "no order is searched on groups of GPUs"


def test_what_is_damaged_is_judged_again_and_rows_of_an_earlier_answer_go(study, capacity, tmp_path):
    capacity(study(planned=0), "--out", tmp_path / "out")
    before = files(tmp_path / "out")
    cell = sorted((tmp_path / "out/cells").iterdir())[0]
    cell.write_text(cell.read_text()[:100])
    capacity(study(planned=0), "--out", tmp_path / "out")
    assert files(tmp_path / "out") == before
    assert (tmp_path / "out/rows/04.sh").exists()
    axes = {**SMALL["axes"], "gpus": [32]}  # its cells are there already
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/cells").iterdir()}
    capacity(study(planned=0, axes=axes), "--out", tmp_path / "out")
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "out/cells").iterdir()}
    assert sorted(path.name for path in (tmp_path / "out/rows").iterdir()) == ["01.sh", "01.yaml", "02.sh", "02.yaml"]


def test_a_study_without_a_name_has_a_folder_of_its_own(study, capacity, tmp_path):
    path = study(planned=0)
    nameless = {key: value for key, value in json.loads(path.read_text()).items() if key != "name"}
    path.write_text(json.dumps(nameless))
    capacity(path, "--out", tmp_path / "out")
    capacity(path, "--out", tmp_path / "out")
    path.write_text(json.dumps({**nameless, "planned": 1}))
    assert "is of another study" in capacity(path, "--out", tmp_path / "out", status=2)


def test_what_ends_early_says_so_and_cells_that_cannot_be_asked_are_named(study, capacity, tmp_path):
    error = capacity(study(), "--out", tmp_path / "out", "--budget", "1ms", status=4)
    assert "out of time: 0 of 4 cells were judged; they are in " in error
    assert "0 of 2 cells" in capacity(study(), "--shard", "0/2", "--out", tmp_path / "out", "--budget", "1ms", status=4)
    axes = {**SMALL["axes"], "model": ["dip-vlm-s", "dip-t2v-s"], "cluster": "h100-sxm", "gpus": 16}
    said = capacity(study(axes=axes, planned=0, plan={"dataset": "t2v-mix"}, prices={}), "--out", tmp_path / "two")
    assert "not asked: model dip-vlm-s: " in said


def test_recommend_answers_and_says_what_is_wrong(pipeweaver, tmp_path):
    ask = ["recommend", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--global-batch", "128", "--quiet",
           "--cp", "1", "--max-rounds", "1"]
    answer = json.loads(pipeweaver(*ask, "--tokens", "100B", "--days", "60", "--gpus", "16,32", "--clusters",
                                   "h100-sxm,a100-sxm", "--prices", "h100-sxm=2", "--faulty", "0.02", "--json"))
    rows = answer["rows"]
    assert {row["cluster"] for row in rows} == {"h100-sxm", "a100-sxm"}
    first = rows[answer["answers"]["fewest"] - 1]
    assert first["meets"] and first["faults"]["usable_gpus"] < first["gpus"]
    assert first["gpu_hours"] == pytest.approx(first["days"] * 24 * first["gpus"])
    step = first["step_ns"] * 1e-9
    assert first["tokens_per_second_per_gpu"] * first["gpus"] * 86400 * first["days"] == pytest.approx(1e11, rel=1e-3)
    assert step > 0 and "--tokens 100B" in first["command"]
    for more, message in [
            (["--tokens", "0"], "pipeweaver: --tokens: is '0'"),
            (["--tokens", "1B", "--gpus", "8,8"], "pipeweaver: --gpus: has '8' twice"),
            (["--tokens", "1B", "--clusters", "h100-sxm:8"], "pipeweaver: --clusters: is 'h100-sxm:8', must be a name"),
            (["--tokens", "1B", "--budget-usd", "5"], "pipeweaver: --budget-usd, --clusters: "),
            (["--tokens", "1B", "--too-long", "cut"], "pipeweaver: --too-long: is 'cut', must be one of error"),
            (["--tokens", "1B", "--gpus", "32-16"], "--gpus: is '16', must be a whole number from 32"),
            (["--tokens", "1B", "--prices", "2.5"], "--prices: is '2.5', must be CLUSTER=USD"),
            (["--tokens", "1B", "--prices", "h100-sxm=2,h100-sxm=3"], "--prices: has h100-sxm twice"),
            (["--tokens", "1B", "--prices", "h100=2"], "pipeweaver: --prices: 'h100' is no cluster of the study"),
            (["--tokens", "1B", "--clusters", ","], "pipeweaver: --clusters: has an empty value"),
            (["--tokens", "1B", "--groups", "vit=8"], "groups: is 'vit=8', must be one of shared, own, auto"),
            (["--gpus", "16"], "missing --tokens TOKENS: of the whole")]:
        status, line = pipeweaver.fails(*ask, *more)
        assert status == 2 and message in line


def test_what_is_wrong_on_each_cluster_alike_is_wrong_in_the_options(pipeweaver, tmp_path):
    ask = ["recommend", "--model", "dip-vlm-s", "--quiet", "--tokens", "1B", "--gpus", "16,32", "--clusters",
           "h100-sxm,a100-sxm", "--out", tmp_path / "out"]
    batch = write_batch(tmp_path, [(300, [SCREEN])] * 8)
    status, line = pipeweaver.fails(*ask, "--batch", batch, "--global-batch", "9")
    assert status == 2 and line.startswith("pipeweaver: --global-batch: is 9, but ")
    status, line = pipeweaver.fails(*ask, "--dataset", "vlm-mix", "--precision", "foo")
    assert status == 2 and line.startswith("pipeweaver: --precision: is 'foo', must be one of ")
    assert not (tmp_path / "out").exists()


def test_recommend_packs_as_it_is_told(pipeweaver):
    ask = ["recommend", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--global-batch", "128", "--quiet", "--tokens",
           "1B", "--max-rounds", "1", "--gpus", "16", "--cp", "1", "--clusters", "h100-sxm", "--json"]
    rows = json.loads(pipeweaver(*ask, "--microbatch-tokens", "4096", "--too-long", "drop"))["rows"]
    assert rows
    for words in (" --microbatch-tokens 4096 ", " --too-long drop "):
        assert all(words in row["command"] + " " for row in rows)
    assert "too-long: is 'cut'" in pipeweaver.fails(*ask, "--too-long", "cut")[1]


def test_recommend_takes_how_layers_are_launched(pipeweaver):
    ask = ["recommend", "--model", "dip-vlm-s", "--dataset", "vlm-mix", "--global-batch", "128", "--quiet", "--tokens",
           "1B", "--max-rounds", "1", "--gpus", "16", "--cp", "1", "--clusters", "h100-sxm", "--json"]
    rows = json.loads(pipeweaver(*ask, "--launched", "graphs"))["rows"]
    assert rows and all(" --launched graphs " in row["command"] + " " for row in rows)
    assert not any("step_range_ns" in row for row in rows)
    assert "launched: is 'fast', must be graphs or eager" in pipeweaver.fails(*ask, "--launched", "fast")[1]
