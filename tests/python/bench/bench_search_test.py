"""pipeweaver bench search: a folder of problems beside every policy and strategy."""

import gzip
import json

import pytest
from cli_shared import small_problem


@pytest.fixture()
def folder(tmp_path):
    """One problem plain, one zipped with more microbatches, and files that are no problems."""
    place = tmp_path / "problems"
    place.mkdir()
    (place / "small.json").write_text(json.dumps(small_problem()))
    other = small_problem()
    other["name"] = "other-2"
    for task in other["tasks"][:]:
        other["tasks"].append({**task, "id": task["id"] + 4, "microbatch": 1, "label": task["label"] + "'"})
    other["edges"] += [[a + 4, b + 4, lag] for a, b, lag in other["edges"][:]]
    (place / "other.json.gz").write_bytes(gzip.compress(json.dumps(other).encode()))
    (place / "other.solution.json").write_text("not even JSON")
    (place / "notes.json").write_text('{"format": "something/1"}')
    return place


def test_every_problem_is_searched_and_compared(pipeweaver, folder):
    answer = json.loads(pipeweaver("bench", "search", folder, "--max-rounds", "3", "--json"))
    other, small = answer["instances"]
    assert (small["name"], other["name"]) == ("small", "other-2")
    assert small["makespan_ns"] == small["lower_bound_ns"] == 4 * 1000 + 2 * 5
    assert small["gap"] == 0 and small["stop_reason"] == "optimal"
    # The capacity is one microbatch: the second begins when the first has ended.
    assert other["makespan_ns"] == 2 * small["makespan_ns"]
    policies = {one["policy"]: one for one in other["policies"]}
    assert policies["dual-queue"]["makespan_ns"] == other["makespan_ns"]
    assert "short" in policies["gpipe"]["why_not"] and "makespan_ns" not in policies["gpipe"]
    assert 0 <= other["seconds_to_1_percent"] <= other["seconds"]
    assert [one["class"] for one in answer["classes"]] == ["other", "small"]
    assert "best_known_ns" not in small


def test_reference_values_are_shown_beside_it(pipeweaver, folder):
    (folder / "reference_values.json").write_text(json.dumps({
        "format": "pipeweaver-reference/1",
        "instances": [{"name": "small", "class": "mine", "best_known_ns": 4010, "lower_bound_ns": 2005,
                       "dual_queue_ns": 4411}]}))
    answer = json.loads(pipeweaver("bench", "search", folder, "--max-rounds", "1", "--json"))
    small = answer["instances"][1]
    assert small["over_best_known"] == 0
    assert small["bound_over_reference"] == 1
    assert small["dual_queue_over_ours"] == pytest.approx(0.1)
    mine = answer["classes"][1]
    assert (mine["class"], mine["instances"], mine["optimal"], mine["gap_worst"]) == ("mine", 1, 1, 0)
    table = pipeweaver("bench", "search", folder, "--max-rounds", "1")
    assert "other-2" in table and "mine" in table


def test_dip_and_the_default_meet_on_equal_problems(pipeweaver):
    answer = json.loads(pipeweaver("bench", "dip", "--model", "dip-vlm-s", "--batches", "2", "--microbatches", "4",
                                   "--max-rounds", "3", "--json"))
    first, second = answer["batches"]
    assert (first["seed"], second["seed"]) == (1, 2)
    assert first["lower_bound_ns"] != second["lower_bound_ns"]
    for one in answer["batches"]:
        assert one["default"]["rounds"] == one["dip"]["rounds"] == 3
        assert one["default"]["makespan_ns"] >= one["lower_bound_ns"] <= one["dip"]["makespan_ns"]
        assert one["ratio"] == pytest.approx(one["dip"]["makespan_ns"] / one["default"]["makespan_ns"])
    summary, = answer["set_ups"]
    ratios = [one["ratio"] for one in answer["batches"]]
    assert (summary["name"], summary["batches"]) == ("dip-vlm-s", 2)
    assert summary["ratio_worst"] == min(ratios) and summary["ratio_best"] == max(ratios)
    assert summary["ratio_mean"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert summary["dip_better"] == sum(ratio < 0.997 for ratio in ratios)
    table = pipeweaver("bench", "dip", "--model", "dip-t2v-s", "--batches", "1", "--microbatches", "2",
                       "--max-rounds", "1")
    assert "| dip-t2v-s | 1 |" in table and "| all |" not in table
    assert pipeweaver.fails("bench", "dip", "--model", "dip-vlm-x")[0] == 2


def test_a_missing_folder_is_named(pipeweaver, tmp_path):
    assert pipeweaver.fails("bench", "search") == (
        2, "pipeweaver: missing FOLDER: a folder with problem files (pipeweaver-problem/1)")
    assert pipeweaver.fails("bench", "search", tmp_path / "none")[0] == 3
    assert pipeweaver.fails("bench", "search", tmp_path) == (
        2, f"pipeweaver: {tmp_path}: has no problem file (pipeweaver-problem/1)")
