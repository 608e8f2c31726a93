"""Every script runs: a short run, or its help where it needs minutes; the program says what it has."""

import csv
import xml.etree.ElementTree

import pytest
from conftest import STUDIES

SHORT = ("--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", "--microbatches", "2")


def is_picture(path):
    return xml.etree.ElementTree.parse(path).getroot().tag.endswith("svg")


def test_the_program_names_its_studies(studies):
    page = studies("--help")
    assert "pipeweaver_studies - " in page
    for name in ("ablation", "budget", "memory", "shift", "units", "waves"):
        assert f"\n  {name} " in page
        assert f"pipeweaver_studies {name} --" in studies(name, "--help")
    assert studies("--version").startswith("pipeweaver_studies ")
    assert studies.fails("wafes")[0] == 2


@pytest.mark.parametrize("name", ["draw_gains.py", "draw_replicas.py"])
def test_a_script_says_how_it_is_used(script, name):
    assert name in script(name, "--help")


@pytest.mark.parametrize("name, needed", [("bench_executor.py", "torch"), ("bench_online.py", "pipeweaver")])
def test_a_script_that_needs_a_package_says_how_it_is_used(script, name, needed):
    pytest.importorskip(needed)
    assert name in script(name, "--help")


def test_pages_are_what_their_answers_say(script):
    script("draw_gains.py", "--from", STUDIES / "data/gains", "--check")


def test_a_plan_is_drawn(pipeweaver, script, tmp_path):
    plan = tmp_path / "plan"
    pipeweaver("plan", *SHORT, "--max-rounds", "1", "--target", "torch-csv", "--out", plan)
    script("draw_plan.py", tmp_path, plan)
    script("draw_schedules.py", tmp_path / "schedules.svg", f"a <plan>={plan / 'replica-000'}")
    for name in ("batch", "partition", "bound", "plan", "schedules"):
        assert is_picture(tmp_path / f"{name}.svg"), name


def test_a_plan_of_many_tasks_is_drawn(pipeweaver, script, tmp_path):
    plan = tmp_path / "plan"
    pipeweaver("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--dataset", "vlm-mix", "--partition",
               "modules", "--max-rounds", "1", "--out", plan)
    assert 'class="time bars dense"' in (plan / "report.html").read_text()
    script("draw_plan.py", tmp_path, plan)
    assert (tmp_path / "plan.svg").read_text().count("rank 3") == 2


def test_emulation_and_replicas_are_drawn(pipeweaver, script, tmp_path):
    out = script("draw_scaling.py", tmp_path / "scaling.svg",
                 f"{pipeweaver.path} emulate --model dip-vlm-s --tp 4 --pp 4 "
                 "--dataset vlm-mix --microbatches 4 --cluster h100-sxm", 16, 32)
    assert out.startswith("| GPUs |") and "\n| 32 |" in out and is_picture(tmp_path / "scaling.svg")
    out = script("draw_replicas.py", tmp_path / "replicas.svg", "--program", pipeweaver.path, "--rounds", 1,
                 "--options", "--model dip-vlm-s --tp 8 --pp 8 --dataset vlm-mix --microbatches 2", 1, 2)
    assert "\n| 2 | 128 |" in out and is_picture(tmp_path / "replicas.svg")


def test_predictions_are_drawn_beside_what_was_measured(script, tmp_path):
    with open(tmp_path / "predictions.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("gpu", "step_time_s", "predicted_step_time_s"))
        rows.writerows((f"{gpu}-80gb", time, 1.1 * time) for gpu in ("a100", "h100") for time in (0.5, 2, 30))
    script("draw_validate.py", tmp_path / "runs.svg", f"published={tmp_path / 'predictions.csv'}")
    assert (tmp_path / "runs.svg").read_text().count("<circle") == 6 + 2


def test_tables_of_pages_come_from_the_program():
    """The cost tables' own evaluation, as the script asks for it."""
    import draw_costs
    assert draw_costs.find([], {"device": "a", "op": "b", "kind": "c", "left_out": "d"}, size="all") is None


def test_explained_products_have_the_color_of_their_largest_loss():
    import draw_explain
    losses = {"launch": 1.1, "memory": 1, "wave": 1.4, "alignment": 1, "kernel": 1.2}
    drawn = "".join(draw_explain.parts([{"n": n, "tflops_per_s": 150, "losses": losses} for n in (512, 4096)]))
    assert drawn.count("<circle") == 2 and drawn.count(f'fill="{draw_explain.COLORS["wave"]}"') == 2 + 1  # the legend
    # Half of the highest speed, at both ends of the axis.
    middle = draw_explain.TOP + draw_explain.HIGH / 2
    ends = (draw_explain.LEFT, draw_explain.LEFT + draw_explain.WIDE)
    assert all(f'cx="{x}" cy="{middle:.0f}"' in drawn for x in ends)


def test_quantiles_of_steps_are_those_of_the_seeds(script, tmp_path):
    command = ("pipeweaver emulate --model qwen2.5-vl-7b --cluster h100-sxm:8 --tp 1 --pp 2 --dp 4 --microbatches 1 "
               "--dataset uniform-100..900+1x448..900px --any-memory")
    (tmp_path / "rows.csv").write_text(f'id,command\none,"{command}"\n')
    lines = script("step_quantiles.py", tmp_path / "rows.csv", "one", "--steps", "5").splitlines()
    assert lines[0].split() == ["id", "mean", "p50", "p90", "p99", "max"]
    name, mean, p50, p90, p99, most = lines[1].split()
    assert name == "one"
    assert float(p50) <= float(p90) <= float(p99) == float(most)
    assert 0 < float(mean) < float(most)
