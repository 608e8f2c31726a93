"""pipeweaver validate: one row out for each row in, refusals with reasons, an error table."""

import csv
import json

import pytest
from conftest import ROOT

RUNS = ROOT / "examples" / "runs.csv"


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path, table):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.fixture()
def predicted(pipeweaver, tmp_path):
    """Runs `validate` on rows and returns what it writes."""

    def run(table):
        out = tmp_path / "out.csv"
        pipeweaver("validate", write(tmp_path / "in.csv", table), "--out", out)
        return rows(out)

    return run


def test_every_row_comes_back_in_order_with_eight_columns_more(predicted):
    given = rows(RUNS)
    answers = predicted(given)
    assert [{name: answer[name] for name in given[0]} for answer in answers] == given
    assert list(answers[0])[-8:] == ["predicted_step_time_s", "predicted_memory_gib", "memory_kind",
                                     "compared_memory_gib", "status", "reason", "recipe", "command"]
    assert [answer["status"] for answer in answers] == ["predicted"] * 3 + ["refused"]
    assert answers[3]["predicted_step_time_s"] == answers[3]["predicted_memory_gib"] == ""
    assert answers[3]["reason"] == "unknown: micro_batch"
    for answer in answers[:3]:
        assert float(answer["predicted_step_time_s"]) == pytest.approx(float(answer["step_time_s"]), rel=0.1)
    assert float(answers[2]["predicted_memory_gib"]) == pytest.approx(39.07, rel=0.005)
    assert answers[2]["memory_kind"] == "allocated"
    assert answers[2]["compared_memory_gib"] == answers[2]["predicted_memory_gib"]


def test_what_a_source_prints_as_its_peak_is_compared_with_what_is_allowed_for_it(predicted):
    row = dict(rows(RUNS)[2], gpu="H100", dtype="bf16", recompute="none")
    sources = ("NVIDIA/dgxc-benchmarking llama3.1/README.md", "vuiseng9/megatron-tutorials 02-tp-sp.md", "mine")
    by_kind = [(one["memory_kind"], float(one["compared_memory_gib"]) - float(one["predicted_memory_gib"]))
               for one in predicted([dict(row, source=source) for source in sources])]
    assert [kind for kind, _ in by_kind] == ["reserved", "on device", "allocated"]
    assert by_kind[0][1] > 1
    assert by_kind[1][1] > 3.5
    assert by_kind[2][1] == 0


def test_what_was_measured_changes_no_prediction_and_may_be_missing(predicted):
    given = rows(RUNS)
    bare = [{name: cell for name, cell in row.items()
             if name not in ("tflops_per_gpu", "step_time_s", "mfu", "memory_gib", "note", "source")} for row in given]
    wanted = [(one["predicted_step_time_s"], one["predicted_memory_gib"]) for one in predicted(given)]
    assert [(one["predicted_step_time_s"], one["predicted_memory_gib"]) for one in predicted(bare)] == wanted


def test_columns_may_stand_in_any_order(predicted):
    given = rows(RUNS)
    turned = [dict(reversed(row.items())) for row in given]
    assert [one["predicted_step_time_s"] for one in predicted(turned)] == [
        one["predicted_step_time_s"] for one in predicted(given)]


def test_the_architecture_comes_from_the_columns(predicted):
    given = rows(RUNS)[:3]
    fewer = [dict(row, layers=layers) for row, layers in zip(given, ("24", "64", "6"))]
    renamed = [dict(row, model="") for row in given]
    base, half, nameless = predicted(given), predicted(fewer), predicted(renamed)
    for one, other, same in zip(base, half, nameless):
        assert float(other["predicted_step_time_s"]) < 0.75 * float(one["predicted_step_time_s"])
        assert same["predicted_step_time_s"] == one["predicted_step_time_s"]
        assert "feed-forward" in same["reason"]


@pytest.mark.parametrize("column", ["seq", "gpu", "dtype", "micro_batch", "global_batch"])
def test_a_row_without_what_the_step_depends_on_is_refused(predicted, column):
    answers = predicted([dict(row, **{column: ""}) for row in rows(RUNS)[:3]])
    assert [answer["status"] for answer in answers] == ["refused"] * 3
    assert {answer["reason"] for answer in answers} == {f"unknown: {column}"}


def test_json_counts_every_row(pipeweaver):
    answer = json.loads(pipeweaver("validate", RUNS, "--json"))
    assert answer["format"] == "pipeweaver-validation/1"
    assert (answer["rows"], answer["predicted"], answer["refused"]) == (4, 3, 1)
    assert sum(source["rows"] for source in answer["sources"]) == 4
    assert answer["sources"][3]["refused"] == [{"reason": "unknown: micro_batch", "rows": 1}]
    assert answer["sources"][2]["predicted"][0]["memory"]["n"] == 1


def test_the_table_names_sources_and_refusals(pipeweaver):
    table = pipeweaver("validate", RUNS)
    assert "MAPE" in table.splitlines()[0]
    lines = [line for line in table.splitlines() if line.startswith(("a100_sxm", "h100_sxm", "b200"))]
    assert len(lines) == 8  # time of three sources, memory of one; the same of all together
    assert "1 of 4 rows refused" in table
    assert "unknown: micro_batch" in table


@pytest.mark.parametrize("change,message", [
    (lambda text: text.replace("hidden,", "width,", 1), "column 'hidden' is missing"),
    (lambda text: text.replace(",8192,", ",-8192,", 1), "hidden: is '-8192', allowed are numbers above 0"),
    (lambda text: text.replace("14.7134", "fast", 1), "step_time_s: is 'fast'"),
    (lambda text: text.replace(",,14.7134", ",", 1), "cells, the header has"),
    (lambda text: text.replace("note\n", "status\n", 1), "column 'status' is one that predictions add"),
    (lambda text: "", "is empty"),
])
def test_a_table_that_is_none_is_refused_in_one_line(pipeweaver, tmp_path, change, message):
    path = tmp_path / "bad.csv"
    path.write_text(change(RUNS.read_text()))
    status, line = pipeweaver.fails("validate", path, "--out", tmp_path / "out.csv")
    assert status == 2
    assert message in line
    assert not (tmp_path / "out.csv").exists()


def test_a_missing_file_is_an_input_output_error(pipeweaver, tmp_path):
    assert pipeweaver.fails("validate", tmp_path / "none.csv")[0] == 3


def test_the_shared_tables_keep_their_bars(pipeweaver, shared, tmp_path):
    out = tmp_path / "predictions.csv"
    answer = json.loads(pipeweaver("validate", shared / "data/runs/published_runs.csv", "--out", out, "--json"))
    answers = rows(out)
    assert len(answers) == answer["rows"] == len(rows(shared / "data/runs/published_runs.csv"))
    assert all(one["reason"] for one in answers if one["status"] == "refused")
    bars = {("vTrain", False): 8, ("Megatron sequence", False): 3.5, ("SimuMax", False): 3.5, ("SimuMax", True): 4.5}
    for source in answer["sources"]:
        for kind in source["predicted"]:
            for (name, experts), bar in bars.items():
                if source["source"].startswith(name) and kind["experts"] == experts:
                    assert kind["step_time"]["mape_percent"] <= bar


def test_multimodal_rows_are_as_close_as_the_guide_says_and_keep_every_sign(pipeweaver):
    answer = json.loads(pipeweaver("validate", ROOT / "examples" / "multimodal-runs.csv", "--json"))
    ratios = answer["ratios"]
    assert len(ratios) == 19
    for one in ratios:
        assert (one["measured"] < 1) == (one["predicted"] < 1), one
    kinds = [kind["step_time"] for kind in answer["all"]]
    rows = sum(kind["n"] for kind in kinds)
    assert sum(kind["n"] * kind.get("mape_percent", 0) for kind in kinds) / rows < 15
    text = pipeweaver("validate", ROOT / "examples" / "multimodal-runs.csv")
    assert "swift-none / swift-both" in text and "19 of 19 have the measured sign" in text


def test_a_ratio_to_a_row_that_is_not_there_is_refused(pipeweaver, tmp_path):
    table = [dict(row, id=str(n), against="") for n, row in enumerate(rows(RUNS))]
    table[1]["against"] = "9"
    _, error = pipeweaver.fails("validate", write(tmp_path / "in.csv", table))
    assert "no row has the id '9'" in error
