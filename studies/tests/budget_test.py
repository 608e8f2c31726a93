"""pipeweaver_studies budget: strategies beside each other on equal problems, after more and more time."""

import json
import math

import pytest

STRATEGIES = ["default", "dip"]


def budget(studies, *options):
    return json.loads(studies("budget", "--microbatches", "4", *options, "--json"))


def test_every_strategy_searches_the_same_problems(pipeweaver, studies, tmp_path):
    answer = budget(studies, "--model", "dip-vlm-s", "--batches", "2", "--max-rounds", "3", "--problems", tmp_path)
    assert [problem["name"] for problem in answer["problems"]] == ["dip-vlm-s-1", "dip-vlm-s-2"]
    for problem in answer["problems"]:
        assert [run["strategy"] for run in problem["runs"]] == STRATEGIES
        assert problem["best_known_ns"] == min(run["makespan_ns"] for run in problem["runs"])
        for run in problem["runs"]:
            times = [one["seconds"] for one in run["improvements"]]
            makespans = [one["makespan_ns"] for one in run["improvements"]]
            assert 0 < times[0] and times == sorted(times)
            assert makespans == sorted(set(makespans), reverse=True)
            assert makespans[-1] == run["makespan_ns"] >= problem["lower_bound_ns"]
        # What was written is what was searched: the same rounds give the same again.
        solved = tmp_path / "solution.json"
        for run in problem["runs"]:
            pipeweaver("solve", tmp_path / f"{problem['name']}.json", "--strategy", run["strategy"], "--max-rounds",
                       "3", "--out", solved)
            assert json.loads(solved.read_text())["makespan_ns"] == run["makespan_ns"]


def test_a_cell_is_a_mean_over_all_problems_of_its_row_or_says_how_many_have_no_schedule(studies):
    answer = budget(studies, "--batches", "1", "--strategies", "default,dip", "--budget", "40ms")
    names = ["dip-vlm-s", "dip-vlm-m", "dip-vlm-l", "dip-t2v-s", "dip-t2v-l"]
    assert [row["set_up"] for row in answer["rows"]] == [name for name in [*names, "all"] for _ in range(2)]
    for row in answer["rows"]:
        problems = [problem for problem in answer["problems"] if row["set_up"] in (problem["model"], "all")]
        runs = [(problem["best_known_ns"], run) for problem in problems for run in problem["runs"]
                if run["strategy"] == row["strategy"]]
        assert row["problems"] == len(problems)
        assert row["last_first_seconds"] == max(run["improvements"][0]["seconds"] for _, run in runs)
        assert [cell["budget_ns"] for cell in row["cells"]] == [10_000_000, 30_000_000, 40_000_000]
        for cell in row["cells"]:
            known = [[one["makespan_ns"] for one in run["improvements"] if one["seconds"] * 1e9 <= cell["budget_ns"]]
                     for _, run in runs]
            assert cell["with_schedule"] == sum(map(bool, known))
            if not all(known):
                assert cell["over_best_known"] is None
                continue
            logs = [math.log(makespans[-1] / best) for makespans, (best, _) in zip(known, runs)]
            assert cell["over_best_known"] == pytest.approx(math.exp(sum(logs) / len(logs)))


def test_the_table_names_every_budget_up_to_the_largest(studies):
    table = studies("budget", "--model", "dip-t2v-s", "--microbatches", "2", "--strategies", "dip",
                       "--budget", "200ms")
    assert "| 10 ms | 30 ms | 100 ms | 200 ms |" in table
    assert "| dip-t2v-s | dip | 1 |" in table and "| all |" not in table


@pytest.mark.parametrize("wrong, said", [
    ("dip,dxp", "--strategies: unknown strategy 'dxp'; did you mean 'dip'?"),
    ("dip,dip", "--strategies: names 'dip' twice"),
    ("", "--strategies: unknown strategy ''"),
])
def test_a_wrong_list_of_strategies_is_refused(studies, wrong, said):
    status, error = studies.fails("budget", "--strategies", wrong)
    assert status == 2 and said in error
