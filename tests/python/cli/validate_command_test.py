"""pipeweaver validate: every row's command is the emulation that predicted it.

Of the collected rows a sample, or, with PIPEWEAVER_ALL_ROWS or PIPEWEAVER_FULL set, each of them.
"""

import csv
import json
import os
import shlex

import pytest
from absent import left_out
from checkout import ROOT
from cli_shared import full


def predictions(pipeweaver, runs, out):
    pipeweaver("validate", runs, "--out", out)
    with open(out, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["status"] == "predicted"]


def check(pipeweaver, row):
    program, *arguments = shlex.split(row["command"])
    assert program == "pipeweaver"
    step = json.loads(pipeweaver(*arguments, "--json", "--threads", "1"))
    assert f"{step['step_ns'] * 1e-9:.9f}" == row["predicted_step_time_s"]
    if row["predicted_memory_gib"]:
        slowest = step["replicas"][step["slowest_replica"]]
        peak = max(rank["memory"]["peak_bytes"] for rank in slowest["ranks"])
        assert f"{peak / 2**30:.3f}" == row["predicted_memory_gib"]


def test_the_command_of_a_row_prints_the_same_step(pipeweaver, tmp_path):
    rows = predictions(pipeweaver, ROOT / "examples" / "runs.csv", tmp_path / "out.csv")
    assert len(rows) == 3
    for row in rows:
        check(pipeweaver, row)


def test_the_commands_of_multimodal_rows_print_the_same_steps(pipeweaver, tmp_path):
    rows = predictions(pipeweaver, ROOT / "examples" / "multimodal-runs.csv", tmp_path / "out.csv")
    assert len(rows) == 48
    for row in rows[::1 if os.environ.get("PIPEWEAVER_ALL_ROWS") or full() else 5]:
        check(pipeweaver, row)


@pytest.mark.parametrize("table, every", [("published_runs.csv", 7), ("vtrain_single_node_a100.csv", 31),
                                          ("measured_2026.csv", 13)])
def test_commands_of_the_collected_rows_print_the_same_steps(pipeweaver, shared, tmp_path, table, every):
    runs = shared / "data" / "runs" / table
    if not runs.is_file():
        left_out(f"the collected runs are not at {runs}")
    rows = predictions(pipeweaver, runs, tmp_path / "out.csv")
    assert rows
    for row in rows[::1 if os.environ.get("PIPEWEAVER_ALL_ROWS") or full() else every]:
        check(pipeweaver, row)
