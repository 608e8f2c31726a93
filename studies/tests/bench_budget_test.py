"""bench_budget.py: what it measures, and the page and the picture that it writes."""

import json
import math
import shutil
import xml.etree.ElementTree

import bench_budget
import pytest
from conftest import STUDIES


def run(name, *improvements):
    return {"strategy": name, "makespan_ns": improvements[-1][1] if improvements else None,
            "improvements": [{"seconds": seconds, "makespan_ns": makespan} for seconds, makespan in improvements]}


def problem(model, *runs):
    return {"name": f"{model}-1", "model": model, "seed": 1, "tasks": 100, "runs": list(runs)}


def answer(*problems, budget=60):
    return {"budget_ns": int(budget * 1e9), "threads": 2, "cp_sat": None, "words": [], "problems": list(problems)}


@pytest.fixture()
def two():
    """On the second ours is late, and the solver finds nothing."""
    return answer(problem("a", run("default", (0.02, 110), (0.5, 100)), run("dip", (0.01, 130), (2, 120)),
                          run("cp-sat", (5, 200))),
                  problem("b", run("default", (0.2, 1000)), run("dip", (0.05, 1500), (20, 1100)), run("cp-sat")))


def test_a_mean_is_of_all_problems_or_none(two):
    mean = lambda strategy, seconds: bench_budget.mean_of_all(two["problems"], strategy, seconds)  # noqa: E731
    assert mean("default", 0.1) is None and mean("dip", 0.01) is None and mean("cp-sat", 60) is None
    assert mean("default", 0.2) == pytest.approx(math.sqrt(1.1 * 1.0))
    assert mean("dip", 10) == pytest.approx(math.sqrt(1.2 * 1.5))
    lines = list(bench_budget.table(two, [(two["problems"],)]))
    assert "| 10 ms | 30 ms | 100 ms | 300 ms | 1 s | 3 s | 10 s | 30 s | 60 s |" in lines[0]
    assert lines[2].startswith("| default | 200 ms | none on 2 of 2 | none on 1 of 2 | none on 1 of 2 | 1.0488 (2) | "
                               "1.0000 (2)")
    assert lines[4].startswith("| cp-sat | - |") and lines[4].endswith("| none on 1 of 2 |")
    assert len({line.count("|") for line in lines}) == 1


def test_the_answer_says_what_it_needs(two):
    said = "\n".join(bench_budget.verdict(two))
    assert said.startswith("**No**: after 100 ms ours has a schedule for 1 of 2 problems of 2 set-ups")
    assert "from 200 ms on." in said
    assert "| a | 1 | 20 ms | 20 ms |" in said and "| b | 1 | 200 ms | 200 ms |" in said
    two["problems"][1]["runs"][0] = run("default", (0.05, 1000))
    assert "\n".join(bench_budget.verdict(two)).startswith("**Yes**: after 100 ms ours is 1.0488")
    two["problems"][1]["runs"][0] = run("default", (0.05, 4000), (0.7, 1000))
    assert "\n".join(bench_budget.verdict(two)).startswith("**No**: after 100 ms ours is 2.0")
    two["budget_ns"] = int(1e9)
    assert "\n".join(bench_budget.verdict(two)).startswith("Not asked")


def test_page_and_picture_are_written(script, tmp_path):
    """With CP-SAT where it is installed."""
    page, picture, kept = tmp_path / "page.md", tmp_path / "picture.svg", tmp_path / "kept.json"
    shutil.copy(STUDIES / "search-budget.md", page)

    def tool(*words):
        script("bench_budget.py", "--page", page, "--picture", picture, *words)
    tool("--budget", "0.3", "--json", kept, "--model", "dip-vlm-s", "--microbatches", "2")
    measured, text = json.loads(kept.read_text()), page.read_text()
    names = [one["strategy"] for one in measured["problems"][0]["runs"]]
    assert names == ["default", "dip"] + (["cp-sat"] if measured["cp_sat"] else [])
    assert all(text.count(f"\n| dip-vlm-s | {name} |") == 1 and text.count(f"\n| {name} |") == 1 for name in names)
    assert "studies/bench_budget.py --budget 0.3 --model dip-vlm-s --microbatches 2" in text
    assert "(1) |" in text and "Not asked" in text
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")
    first = text, picture.read_text()
    tool("--from", kept)
    assert (page.read_text(), picture.read_text()) == first
