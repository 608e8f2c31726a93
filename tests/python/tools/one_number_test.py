"""tools/one_number.py: terminal, JSON and report say one number for one thing, and it sees where they do not."""

import json
import re
import subprocess
import sys

import pytest
from checkout import ROOT
from cli_shared import full

sys.path.insert(0, str(ROOT / "tools"))
import one_number  # noqa: E402

PLAN = ("plan", "--model", "qwen2.5-vl-3b", "--cluster", "h100-sxm:8", "--tp", "2", "--pp", "2", "--dataset", "vlm-mix",
        "--microbatches", "4", "--target", "megatron", "--max-rounds", "0")


def test_drawn_plans_say_one_number_for_one_thing(pipeweaver):
    script = [sys.executable, ROOT / "tools/one_number.py", pipeweaver.path]
    short = ["--plans", "5", "--rounds", "0", "--microbatches", "4", "--every", "11"]
    done = subprocess.run(script + ([] if full() else short), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    planned, refused, wrong = map(int, re.search(r"^(\d+) plans, (\d+) refused, \d+ commands, (\d+) wrong", done.stdout,
                                                 re.MULTILINE).groups())
    assert planned + refused == 5 or full()
    assert wrong == 0
    refused_ones = re.findall(r"^\d+ megatron (\S+) .*: refused: ", done.stdout, re.MULTILINE)
    assert (planned, refused_ones) == (4, ["gemma-4-31b"]) or full()  # its encoders keep more than a GPU has


@pytest.fixture(scope="module")
def said(pipeweaver, tmp_path_factory):
    """plan.json, the terminal's text, the report."""
    folder = tmp_path_factory.mktemp("said") / "plan"
    text = pipeweaver(*PLAN, "--out", folder).split("\nwritten to ")[0]
    return json.loads((folder / "plan.json").read_text()), text, (folder / "report.html").read_text()


def unequal(plan, text, page):
    return one_number.unequal(plan, {"terminal": list(one_number.terminal(text)), "report":
                                     list(one_number.report(page))})


def test_another_number_on_one_of_the_pages_is_seen(said):
    plan, text, page = said
    assert unequal(plan, text, page) == []
    step = f"{plan['headline']['step_ns'] * 1e-9:.3f} s"
    wrong = f"{float(step[:-2]) + 0.001:.3f} s"
    assert step in text and unequal(plan, text.replace(step, wrong), page)
    rate = f"{plan['ladder'][0]['tokens_per_second_per_gpu']:.0f}"
    assert f">{rate}<" in page and unequal(plan, text, page.replace(f">{rate}<", f">{int(rate) + 1}<"))
    card = page.index("<dt>fullest rank</dt><dd><strong>") + len("<dt>fullest rank</dt><dd><strong>")
    assert unequal(plan, text, page[:card] + "9" + page[card:])
    assert unequal(plan, text.replace("do        ", "as        "), page) == []  # a page may leave it out
    rows = [line for line in text.splitlines() if not line.startswith("now ")]
    assert any("now step stands in report alone" in one for one in unequal(plan, "\n".join(rows), page))


@pytest.mark.parametrize("printed, exact, is_equal", [
    ("1.055 s", 1.0548, True), ("1.055 s", 1.0556, False), ("913.2 ms", 0.91316, True), ("121.55 GiB", 121.546 * 2**30,
                                                                                      True),
    ("14.1 %", 0.1409, True), ("14.1 %", 0.1416, False), ("3835", 3834.6, True), ("0.63 B", 631553280, True)])
def test_a_printed_number_is_the_exact_one_rounded(printed, exact, is_equal):
    assert one_number.agrees(printed, exact) == is_equal


def plan_of(*rungs, headline, compared=None):
    return {"ladder": list(rungs), "beyond": [], "headline": {"rung": headline, "compared": compared}}


def rung(name, over_now, **more):
    return {"rung": name, "over_now": over_now, **more}


def test_advice_that_is_not_worth_it_is_seen():
    def worth(gain, wins):
        return plan_of(rung("now", 1), rung("flags", gain, worth={"gain": gain, "wins": wins, "draws": 200}),
                       headline="flags")

    assert one_number.unworthy(worth(1.02, 190)) == []
    assert one_number.unworthy(worth(1.019, 200)) and one_number.unworthy(worth(1.3, 189))
    assert one_number.unworthy(plan_of(rung("now", 1), headline="now")) == []


def test_a_factor_over_padded_shapes_is_seen():
    padded = {"padding": {"tokens": 4096}}
    mixed = plan_of(rung("now", 1, **padded), rung("layout", 2.02), headline="layout")
    assert one_number.unnamed_padding(mixed, "padded to 4096 tokens")
    named = plan_of(rung("now", 1, **padded), rung("layout", None), headline="layout")
    assert one_number.unnamed_padding(named, "padded to 4096 tokens") == []
    assert one_number.unnamed_padding(named, "") == ["now is padded, and the terminal does not say so"]
    over = plan_of(rung("now", 1, **padded), rung("layout", None), headline="layout", compared={"rung": "now"})
    assert one_number.unnamed_padding(over, "padded to 4096 tokens")


@pytest.mark.parametrize("part, is_equal", [(0.25, True), (0.24, False)])
def test_a_part_of_padding_that_its_sizes_do_not_come_to_is_seen(part, is_equal):
    padded = rung("now", 1, padding={"tokens": 4096, "part_of_tokens": part}, command="pipeweaver emulate",
                  microbatches=8, step_ns=2_000_000_000, tokens_per_second_per_gpu=8 * 3072 / 16 / 2)
    plan = plan_of(padded, headline="now") | {"asked": {"gpus": 16}}
    assert (one_number.unequal_padding(plan) == []) == is_equal


def test_shapes_of_other_microbatches_than_those_that_are_fed_are_seen(tmp_path):
    def fed(*rows):
        return {"units": [{"module": "vit+llm", "items": [{"rows": [0, one]} for one in rows]}]}

    replicas = [{"microbatches": [fed(64, 32), fed(96), fed()]}, {"microbatches": [fed(16), {"units": []}]}]
    (tmp_path / "launch-assignment.json").write_text(json.dumps({"replicas": replicas}))
    plan = plan_of(rung("layout", 1.2, files=["launch-assignment.json"]), headline="layout")
    plan |= {"asked": {"model": "qwen2.5-vl-3b"}}
    assert one_number.other_shapes(plan, tmp_path) == []  # no room is said
    plan["headline"]["room"] = {"shapes": 3}  # 96, 16 and 0 positions
    assert one_number.other_shapes(plan, tmp_path) == []
    plan["headline"]["room"]["shapes"] = 4
    assert one_number.other_shapes(plan, tmp_path) == ["4 shapes are said, launch-assignment.json has 3"]
