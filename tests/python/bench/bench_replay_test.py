"""pipeweaver bench replay: how fast the search times an order, beside a longest path written by hand."""

import json

import pytest
from cli_shared import small_problem


@pytest.fixture()
def problem(tmp_path):
    (tmp_path / "problems").mkdir()
    path = tmp_path / "problems" / "small.json"
    path.write_text(json.dumps(small_problem()))
    return path


@pytest.mark.alone
def test_rates_and_ratios_fit_each_other(pipeweaver, problem):
    answer = json.loads(pipeweaver("bench", "replay", problem, problem.parent, "--json"))
    assert [one["name"] for one in answer["instances"]] == [answer["instances"][0]["name"]] * 2
    for one in answer["instances"]:
        for key in ("by_hand_tasks_per_s", "replayed_tasks_per_s", "moves_per_s", "moves_in_full_per_s"):
            assert one[key] > 0
        # Medians of ratios, beside ratios of medians: alike, but for what else the machine did meanwhile.
        assert 0.25 < one["replay_over_by_hand"] * one["by_hand_tasks_per_s"] / one["replayed_tasks_per_s"] < 4
        replays = one["replayed_tasks_per_s"] / one["tasks"]
        assert 0.25 < one["moves_over_replay"] * replays / one["moves_per_s"] < 4
        assert 0.25 < one["moves_in_full_over_replay"] * replays / one["moves_in_full_per_s"] < 4
        # A limit can only spare work.
        assert one["moves_per_s"] > 0.25 * one["moves_in_full_per_s"]
        assert 0 <= one["moves_done_share"] <= 1
    ratios = [one["replay_over_by_hand"] for one in answer["instances"]]
    assert min(ratios) <= answer["replay_over_by_hand_median"] <= max(ratios)


def test_the_table_has_a_line_per_problem_and_the_medians(pipeweaver, problem):
    lines = pipeweaver("bench", "replay", problem).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:2] == ["problem", "tasks"]
    assert lines[3].startswith("median: a full replay is ")


def test_missing_operands_are_named(pipeweaver, tmp_path):
    assert pipeweaver.fails("bench", "replay") == (
        2, "pipeweaver: missing PROBLEMS: problem files or folders of them")
    assert pipeweaver.fails("bench", "replay", tmp_path / "none.json")[0] == 3
    assert pipeweaver.fails("bench", "replay", tmp_path)[0] == 2
