"""draw_gains.py: the tables that it makes of answers, and that the page beside it holds them."""

import json

import draw_gains
import pytest
from conftest import STUDIES

SETUP = draw_gains.SetUp("one", "some-model", 16, "vlm-mix", "--tp 4 --pp 4", batches=2)


def row(partition, policy, chunks, values, opponent=True, recompute=None):
    return {"partition": partition, "policy": policy, "chunks_per_rank": chunks, "opponent": opponent,
            "recompute": (recompute or {"none": len(values)}) if opponent else {}, "command": f"run {partition}",
            "applies_to": len(values), **ratios(values)}


def ratios(values):
    product = 1
    for value in values:
        product *= value
    return {"geometric_mean": product ** (1 / len(values)), "least": min(values), "most": max(values),
            "of_each": values}


@pytest.fixture()
def answer():
    """Three-phase is faster on the second batch; GPipe fits the first alone."""
    rows = [row("balanced", "interleaved", 4, [1.25, 1.25], recompute={"none": 1, "full": 1}),
            row("three-phase", "1f1b", 1, [1.21, 0.9]), row("balanced", "gpipe", 1, [1.5]),
            row("modules", "dual-queue", 3, [1.02, 1.02], opponent=False)]
    return draw_gains.pruned(
        {"words": "--model some-model", "model": "some-model", "batches": 2, "gap_median": 0.012, "gap_worst": 0.034,
         "partition": {"name": "modules", "chunks_per_rank": 3, "chosen_on": "vlm-mix, seeds 101-105", "notes": []},
         "step_ns": [1, 2], "job_opponent": rows[0], "comparisons": rows, "best_opponent": ratios([1.21, 0.9]),
         "static_order": ratios([1.01, 1.01]), "published": None,
         "robustness": [{"against": "the opponent", "batches": 2, "replays": 400, "wins": 399, "wins_share": 0.9975,
                         "gain_p10": 1.1, "gain_p50": 1.2, "gain_p90": 1.3}]})


def test_a_summary_names_the_opponent_and_of_how_many_batches_a_figure_is_that_is_not_of_all(answer):
    answer["static_order"] = ratios([1.01])
    line = list(draw_gains.summary([SETUP], {"one": answer}))[2]
    assert line == ("| some-model, 16 H100s, tp 4 pp 4 | 2 | [balanced, interleaved, 4 chunks, recompute none (1), "
                    "full (1)](#some-model-16-h100s-tp-4-pp-4) | 1.250x (1.250x to 1.250x) | "
                    "1.044x (0.900x to 1.210x) | 1.010x (1.010x to 1.010x of 1) | 1.2 %, 3.4 % |")


def test_order_and_robustness(answer):
    assert list(draw_gains.order_table([SETUP], {"one": answer}))[2] == (
        "| some-model, 16 H100s, tp 4 pp 4 | modules, 3 chunks | dual-queue: 1.020x (1.020x to 1.020x) | "
        "1.010x (1.010x to 1.010x) |")
    assert list(draw_gains.robustness([SETUP], {"one": answer}))[2] == (
        "| some-model, 16 H100s, tp 4 pp 4 | the opponent | 1.100x | 1.200x | 1.300x | 99.8 % of 400 |")


def test_a_regret_counts_the_batches_above_the_bar(monkeypatch):
    monkeypatch.setattr(draw_gains, "REGRET", (SETUP,))
    answer = {"words": "--model some-model", "batches": 3,
              "regret": {"mean": 1.0, "most": 1.02, "of_each": [0.98, 1.0, 1.02]},
              "partition": {"name": "modules", "chunks_per_rank": 3, "chosen_on": "vlm-mix, seeds 101-105"}}
    assert list(draw_gains.regret_table({"one": answer}))[2] == (
        "| some-model, 16 H100s, tp 4 pp 4 | modules, 3 chunks | 1.0000 | 1.0200 | 1 of 3 |")


def test_a_set_up_has_the_fastest_schedules_and_says_where_the_others_are(answer):
    lines = list(draw_gains.comparisons(SETUP, answer))
    assert lines[0] == "### some-model, 16 H100s, tp 4 pp 4" and "run balanced" in lines
    assert "The fastest of 3 schedules that fit all batches [(all)](data/gains/one.json); 1 more fit some:" in lines
    assert [line.split(" | ")[:2] for line in lines if "x) |" in line] == [
        ["| three-phase", "1f1b"], ["| balanced", "interleaved"], ["| modules", "dual-queue"]]
    assert not any("gpipe" in line for line in lines if line.startswith("| "))
    answer["comparisons"] += [{**answer["comparisons"][0], "geometric_mean": 2 + at} for at in range(9)]
    assert len([line for line in draw_gains.comparisons(SETUP, answer) if "x) |" in line]) == draw_gains.SHOWN + 1


def test_opponents_that_are_faster_on_some_batch_are_named(answer):
    lines = list(draw_gains.ahead([SETUP], {"one": answer}))
    assert len(lines) == 3
    assert lines[2].startswith("| some-model, 16 H100s, tp 4 pp 4 | three-phase, 1f1b, 1 chunk, recompute none | "
                               "1.044x")
    assert lines[2].endswith("| 1 of 2 |")
    answer["comparisons"] = [one for one in answer["comparisons"] if one["partition"] != "three-phase"]
    assert draw_gains.ahead([SETUP], {"one": answer}) == ["None, on any of the 2 batches."]


def test_the_page_is_what_the_tool_writes_from_the_answers_beside_it():
    text = draw_gains.page(draw_gains.read(draw_gains.KEPT))
    assert (STUDIES / draw_gains.PAGE).read_text() == text, "run studies/draw_gains.py --from studies/data/gains"


def test_the_links_to_commands_lead_to_headings():
    answers = draw_gains.read(draw_gains.KEPT)
    for setup in draw_gains.PUBLISHED:
        assert f"\n### {setup.title()}\n" in (STUDIES / draw_gains.PAGE).read_text()
        assert answers[setup.name]["words"].startswith(f"--model {setup.model} ")


def test_an_answer_of_a_job_without_a_pipeline_can_be_kept(pipeweaver, tmp_path):
    """More tensor-parallel GPUs, and so fewer replicas, than the plan's are opponents, too."""
    words = ("--model qwen2.5-vl-7b --cluster h100-sxm:8 --tp 2 --pp 1 --dataset vlm-mix --microbatches 2 --batches 1 "
             "--max-rounds 1")
    told = json.loads(pipeweaver("bench", "plan", *words.split(), "--json"))
    flat = {one["partition"] for one in told["comparisons"] if one["opponent"]}
    assert "no-pipeline tp 4" in flat and "no-pipeline tp 2" not in flat
    kept = draw_gains.pruned({**told, "words": words})
    draw_gains.write_answer(tmp_path / "kept.json", kept)
    assert json.loads((tmp_path / "kept.json").read_text()) == kept
    setup = draw_gains.SetUp("flat", "qwen2.5-vl-7b", 8, "vlm-mix", "--tp 2 --pp 1")
    assert any("no-pipeline" in line for line in draw_gains.comparisons(setup, kept))
