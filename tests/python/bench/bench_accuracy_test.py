"""pipeweaver bench accuracy: errors by device, number format and stack, beside those of another build."""

import csv
import json

import pytest
from checkout import ROOT

RUNS = ROOT / "examples" / "runs.csv"


@pytest.fixture()
def before(pipeweaver, tmp_path):
    """What another build would have written: the first row half as long, the third refused, the fourth predicted."""
    out = tmp_path / "before.csv"
    pipeweaver("validate", RUNS, "--out", out)
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows[0]["predicted_step_time_s"] = str(float(rows[0]["predicted_step_time_s"]) / 2)
    rows[2]["predicted_step_time_s"] = ""
    rows[3]["predicted_step_time_s"] = "1.5"
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return out


def test_groups_are_of_a_device_a_format_and_a_stack(pipeweaver):
    answer = json.loads(pipeweaver("bench", "accuracy", RUNS, "--json"))
    assert (answer["rows"], answer["predicted"]) == (4, 3)
    found = [(one["device"], one["products"], one["stack"], one["now"]["n"]) for one in answer["stacks"]]
    assert found == [("a100_sxm", "bf16", "megatron-2022", 1), ("b200", "bf16", "megatron-core", 1),
                     ("h100_sxm", "fp8", "megatron-core-overlap", 1)]
    assert [one["stack"] for one in answer["devices"]] == [""] * 3
    errors = [abs(one["error"]) for one in answer["farthest"]]
    assert len(errors) == 3 and errors == sorted(errors, reverse=True)
    # As validate says it of each row.
    validated = json.loads(pipeweaver("validate", RUNS, "--json"))
    wanted = {kind["device"]: kind["step_time"] for one in validated["sources"] for kind in one["predicted"]}
    for one in answer["stacks"]:
        assert one["now"]["bias_percent"] == wanted[one["device"]]["bias_percent"]


def test_another_build_is_held_against_this_one_on_the_rows_of_both(pipeweaver, before):
    answer = json.loads(pipeweaver("bench", "accuracy", RUNS, "--before", before, "--json"))
    by_device = {one["device"]: one for one in answer["stacks"]}
    a100 = by_device["a100_sxm"]
    assert a100["before"]["n"] == a100["now_of_both"]["n"] == 1
    halved = (1 + a100["now"]["bias_percent"] / 100) / 2 - 1
    assert a100["before"]["bias_percent"] == pytest.approx(100 * halved, abs=1e-5)
    h100 = by_device["h100_sxm"]
    assert h100["before"]["bias_percent"] == pytest.approx(h100["now_of_both"]["bias_percent"], abs=1e-5)
    assert "before" not in by_device["b200"]
    assert answer["now_alone"] == [f"{RUNS}:4"] and answer["before_alone"] == [f"{RUNS}:5"]

    text = pipeweaver("bench", "accuracy", RUNS, "--before", before, "--worst", "3")
    assert "1 rows are predicted now alone, 1 before alone:" in text
    assert text.count("(before ") == 2


def test_tables_of_other_runs_are_refused(pipeweaver, before, tmp_path):
    status, line = pipeweaver.fails("bench", "accuracy", RUNS, RUNS, "--before", before)
    assert status == 2 and "allowed is one for each of 2" in line
    text = before.read_text()
    short = tmp_path / "short.csv"
    short.write_text(text.rsplit("\n", 2)[0] + "\n")
    status, line = pipeweaver.fails("bench", "accuracy", RUNS, "--before", short)
    assert status == 2 and "has 3 rows" in line
    other = tmp_path / "other.csv"
    other.write_text(text.replace("GPT-39.1B", "GPT-39.2B", 1))
    status, line = pipeweaver.fails("bench", "accuracy", RUNS, "--before", other)
    assert status == 2 and "model: is another run's" in line
    status, line = pipeweaver.fails("bench", "accuracy")
    assert status == 2 and "missing RUNS.csv: tables" in line
