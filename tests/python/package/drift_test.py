"""Drift of a run from its plan, by simulation: who is slow, what has drifted, and no alarm on noise."""

import gzip
import json
import math
import random

import pytest
from absent import needed

drift = needed("pipeweaver.drift")
errors = needed("pipeweaver.errors")
Drift, Group, Times = drift.Drift, drift.Group, drift.Times

PLANNED_NS = 40_000_000


def step(draw, ranks, slow=None, modules=None, noise=0.03, passes=8):
    """A step in which every pass is off by a noise of its own; rank 0 has the vit beside the llm."""
    def measured(planned, factor):
        return round(sum(planned * factor * (1 + draw.gauss(0, noise)) for _ in range(passes)))

    sums = {}
    for rank in range(ranks):
        sums[rank] = {}
        for name in (("vit", "llm") if rank == 0 else ("llm",)):
            factor = (1.1 if rank == slow else 1) * (modules or {}).get(name, 1)
            for kind, planned in (("F", PLANNED_NS), ("B", 2 * PLANNED_NS)):
                sums[rank][Group(name, kind)] = Times(passes * planned, measured(planned, factor))
    return sums


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_a_rank_that_is_10_percent_slow_is_named_within_5_steps(ranks):
    seeds = 100
    named = 0
    for seed in range(seeds):
        draw = random.Random(seed)
        slow, watch = draw.randrange(ranks), Drift()
        found = [one for _ in range(5) for one in watch.add(step(draw, ranks, slow))]
        assert {one.rank for one in found} <= {slow}, "another rank, or a module, was named"
        named += bool(found)
        assert all(abs(one.factor - 1.1) < 0.06 for one in found)
    assert named >= 0.99 * seeds


@pytest.mark.parametrize("ranks, passes", [(2, 8), (4, 8), (16, 8), (4, 1), (16, 1)])
def test_noise_of_3_percent_raises_no_alarm(ranks, passes):
    """With one pass a step, all that a rank runs of a kind is off together."""
    for seed in range(10):
        draw, watch = random.Random(seed), Drift()
        assert not [one for _ in range(200) for one in watch.add(step(draw, ranks, passes=passes))]


def test_a_module_that_drifts_is_told_with_its_factor_and_once():
    for seed in range(100):
        draw, watch = random.Random(seed), Drift()
        for _ in range(10):
            assert watch.add(step(draw, 4)) == []
        found = [one for _ in range(20) for one in watch.add(step(draw, 4, modules={"vit": 1.3}))]
        assert found and {(one.rank, one.modules) for one in found} == {(None, "vit")}
        assert abs(found[-1].factor - 1.3) < 0.08 and len(found) <= 6, "told as it grows, then no more"
        assert [one for _ in range(20) for one in watch.add(step(draw, 4, modules={"vit": 1.3}))] == []


def test_a_module_that_has_become_faster_is_told_and_a_faster_rank_is_not():
    draw, watch = random.Random(7), Drift()
    found = [one for _ in range(5) for one in watch.add(step(draw, 4, modules={"llm": 0.8}))]
    assert {(one.rank, one.modules) for one in found} == {(None, "llm")}
    assert 0.75 < found[0].factor < 0.85
    assert str(found[0]).endswith("times what the plan says, over 2 steps: import the measurement and plan again")


def test_a_slow_rank_is_not_taken_for_its_modules():
    watch = Drift()
    found = [one for seed in range(5) for one in watch.add(step(random.Random(seed), 4, slow=2, noise=0.0001))]
    assert [str(one) for one in found] == ["rank 2 takes 1.100 times what its peers take for the same passes, over 2 "
                                           "steps"]


def folder_of(tmp_path):
    problem = {"stages": [{"stage": 0, "rank": 0, "parts": [{"module": "vit"}, {"module": "llm"}]}],
               "tasks": [{"stage": 0, "kind": "F", "duration_ns": 5}, {"stage": 0, "kind": "B", "duration_ns": 9}],
               "pairs": [{"forward": 0, "backward": 1, "modes": [{"forward_ns": 5, "backward_ns": 9},
                                                                 {"forward_ns": 5, "backward_ns": 14}]}]}
    (tmp_path / "problem.json.gz").write_bytes(gzip.compress(json.dumps(problem).encode()))
    (tmp_path / "solution.json").write_text(json.dumps({"mode": [1]}))
    return tmp_path


def test_planned_times_are_those_of_the_schedules_modes(tmp_path):
    planned = drift.PlannedTasks.read(folder_of(tmp_path))
    assert planned.sums([(0, 6), (1, 15)]) == {("vit+llm", "F"): (5, 6), ("vit+llm", "B"): (14, 15)}


def test_damaged_folders_are_refused_with_the_file(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "solution.json").write_text("{")
    with pytest.raises(errors.InputError, match="solution.json: is damaged"):
        drift.PlannedTasks.read(tmp_path)
    (tmp_path / "solution.json").write_text('{"mode": [2]}')
    with pytest.raises(errors.InputError, match="do not say the times of the plan"):
        drift.PlannedTasks.read(tmp_path)
    (tmp_path / "problem.json.gz").unlink()
    with pytest.raises(errors.FileError, match="problem.json.gz: cannot be read: No such file"):
        drift.PlannedTasks.read(tmp_path)


@pytest.mark.parametrize("damage", [lambda whole: whole[:20], lambda whole: whole[:12] + b"\xff" * 8 + whole[20:],
                                    lambda whole: whole[:-8] + bytes(8), lambda whole: b"PK" + whole[2:]])
def test_a_damaged_gzip_is_refused_with_the_file(tmp_path, damage):
    problem = folder_of(tmp_path) / "problem.json.gz"
    problem.write_bytes(damage(problem.read_bytes()))
    with pytest.raises(errors.InputError, match="problem.json.gz: is damaged: .*[a-z]"):
        drift.PlannedTasks.read(tmp_path)


def test_the_pages_line_for_other_runtimes_works():
    told = [one for _ in range(5) for one in Drift().add({0: {("llm", "F"): (100, 100)}})]
    watch = Drift()
    for _ in range(5):
        told += watch.add({0: {("llm", "F"): (100, 130)}, 1: {("llm", "F"): (100, 130)}})
    assert [(one.rank, one.modules, round(one.factor, 3)) for one in told] == [(None, "llm", 1.3)]


@pytest.mark.parametrize("times", [(100, math.nan), (math.inf, 100), (100, -1), (100,), 100, (100, "7"), None])
def test_times_that_are_none_are_refused_and_forgotten(times):
    watch = Drift()
    with pytest.raises(errors.InputError, match="are no times"):
        watch.add({0: {("llm", "F"): times}})
    for _ in range(5):
        assert watch.add({0: {("llm", "F"): (100, 100)}}) == []


@pytest.mark.parametrize("group", [("llm",), ("llm", "F", 3), ("llm", 1), None])
def test_groups_that_are_none_are_refused(group):
    with pytest.raises(errors.InputError, match="is no group, needed is"):
        Drift().add({0: {group: (100, 100)}})


def test_a_run_of_another_plan_is_told(tmp_path):
    planned = drift.PlannedTasks({"name": "a-r000", "tasks": [{"stage": 2, "kind": "F", "duration_ns": 5}]}, {})
    assert planned.why_not_run("a-r000", [(0, "F", 2)]) is None
    for name, one, why in (("a-r001", (0, "F", 2), "is of 'a-r000': it is another plan's or replica's"),
                           ("a-r000", (1, "F", 2), "the plan's folder has 1 tasks"),
                           ("a-r000", (0, "B", 2), "task 0 as B of stage 2, the plan's folder has F of stage 2"),
                           ("a-r000", (0, "F", 1), "task 0 as F of stage 1, the plan's folder has F of stage 2")):
        assert why in planned.why_not_run(name, [one])


def test_limits_that_cannot_be_are_refused():
    with pytest.raises(errors.InputError, match="window is 2 or more"):
        Drift(window=1)
