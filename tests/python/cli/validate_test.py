"""pipeweaver validate: one row out for each row in, refusals with reasons, an error table."""

import csv
import json

import pytest
from checkout import ROOT

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


def test_every_row_comes_back_in_order_with_nine_columns_more(predicted):
    given = rows(RUNS)
    answers = predicted(given)
    assert [{name: answer[name] for name in given[0]} for answer in answers] == given
    assert list(answers[0])[-9:] == ["predicted_step_time_s", "compared_step_time_s", "predicted_memory_gib",
                                     "memory_kind", "compared_memory_gib", "status", "reason", "recipe", "command"]
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


@pytest.mark.parametrize("old,new,message", [
    (",8192,", ",-8192,", "hidden: is '-8192', must be a number above 0"),
    ("14.7134", "fast", "step_time_s: is 'fast'"),
])
def test_a_cell_that_cannot_be_read_refuses_its_row_and_is_the_exit_status(pipeweaver, tmp_path, old, new, message):
    path, out = tmp_path / "bad.csv", tmp_path / "out.csv"
    path.write_text(RUNS.read_text().replace(old, new, 1))
    done = pipeweaver.run("validate", path, "--out", out)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "2 of 4 rows refused" in done.stdout
    answers = rows(out)
    assert [one["status"] for one in answers] == ["refused", "predicted", "predicted", "refused"]
    assert message in answers[0]["reason"]
    pipeweaver("validate", RUNS, "--out", tmp_path / "good.csv")
    assert answers[1:] == rows(tmp_path / "good.csv")[1:]


def test_rates_are_compared_as_the_time_is(pipeweaver, tmp_path):
    """A row with its time as tokens/s, TFLOP/s and MFU has the same error; without a convention there is none."""
    row = rows(RUNS)[0]
    tokens = int(row["seq"]) * int(row["global_batch"])
    # arXiv 2104.04473, equation 3: everything recomputed, attention over the whole square.
    layers, hidden, seq, vocab = int(row["layers"]), int(row["hidden"]), int(row["seq"]), 51200
    flops = 96 * tokens * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))
    seconds, gpus = float(row["step_time_s"]), int(row["gpus"])
    more = dict(row, flops="", tokens_per_s="", tokens_per_s_per_gpu="")
    empty = dict(more, step_time_s="")
    table = [more, dict(empty, tokens_per_s=f"{tokens / seconds:.6f}"),
             dict(empty, tokens_per_s_per_gpu=f"{tokens / seconds / gpus:.9f}"),
             dict(empty, tflops_per_gpu=f"{flops / seconds / gpus / 1e12:.9f}", flops="hardware"),
             dict(empty, mfu=f"{flops / seconds / gpus / 312e12:.12f}", flops="hardware"),
             dict(empty, mfu="0.5")]
    pipeweaver("validate", write(tmp_path / "in.csv", table), "--out", tmp_path / "out.csv")
    answers = rows(tmp_path / "out.csv")
    for one in answers[:5]:
        assert float(one["compared_step_time_s"]) == pytest.approx(seconds, rel=1e-3)
    assert answers[5]["compared_step_time_s"] == ""
    assert "the column flops does not say" in answers[5]["reason"]


OWN = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "2", "--dp", "2", "--dataset",
       "vlm-mix", "--microbatches", "4"]


def test_a_run_of_ones_own_stands_beside_its_prediction(pipeweaver):
    emulated = json.loads(pipeweaver("emulate", *OWN, "--json"))
    step = emulated["step_ns"]
    peak = max(rank["memory"]["peak_bytes"] for one in emulated["replicas"] for rank in one["ranks"])
    measured = ["--measured", f"{step * 12 // 10}ns", "--memory", f"{peak + 2**30}B"]
    answer = json.loads(pipeweaver("validate", *measured, *OWN, "--json"))
    assert answer["format"] == "pipeweaver-own-run/1"
    assert answer["step"]["predicted_ns"] == step
    assert answer["step"]["error"] == pytest.approx(1 / 1.2 - 1, abs=1e-6)
    assert sum(part["time_ns"] for part in answer["parts"]) == step
    for part in answer["parts"]:
        assert (part["explains_at"] - 1) * part["time_ns"] == pytest.approx(0.2 * step, rel=1e-3)
    assert answer["memory"]["predicted_bytes"] == peak
    assert sum(part["bytes"] for part in answer["memory"]["parts"]) == peak
    assert sum(one["share"] for one in answer["support"]) == pytest.approx(1)
    assert answer["assumed"] == emulated["assumed"] + emulated["asked"]["assumed"]
    text = pipeweaver("validate", *measured, *OWN)
    assert "-16.7 %" in text.splitlines()[1]
    assert "explains the difference alone at" in text
    assert "bubble" in text


@pytest.mark.parametrize("arguments,message", [
    ([], "missing RUNS.csv: a file of runs, or --measured TIME of your own"),
    ([RUNS, "--measured", "3s"], "RUNS.csv: goes without --measured"),
    ([RUNS, "--memory", "3GiB"], "--memory: is of a run of your own: --measured is missing"),
    ([RUNS, "--model", "dip-vlm-s"], "--model: is of a run of your own: --measured is missing"),
    (["--measured", "0s", *OWN], "--measured: is '0s', must be a time above 0"),
    (["--measured", "4", *OWN], "--measured: "),
    (["--measured", "4s", *OWN, "--out", "x.csv"], "--out: is for RUNS.csv, not for --measured"),
])
def test_a_run_of_ones_own_that_contradicts_itself_is_refused(pipeweaver, arguments, message):
    status, line = pipeweaver.fails("validate", *arguments)
    assert status == 2
    assert message in line


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
