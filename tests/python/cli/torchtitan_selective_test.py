"""plan --target torchtitan: its `selective` is second-products in layouts, rungs, files and what is read of them."""

import json

import pytest

# With ZeRO 3 and few tokens weights are waited for: beside that products run again for nothing, and plans have it.
MODEL = ("--model", "llama3-8b", "--cluster", "h100-sxm:8", "--dataset", "constant-4096", "--microbatch-tokens", 4096)
JOB = (*MODEL, "--microbatches", 2, "--tp", 4, "--pp", 1, "--zero", 3)


def test_layouts_are_judged_with_it(pipeweaver, tmp_path):
    plan = json.loads(pipeweaver("plan", *MODEL, "--layout", "auto", "--global-batch", 16, "--target", "torchtitan",
                                 "--max-rounds", 1, "--json", "--out", tmp_path / "plan"))
    judged = {one["recompute"] for one in plan["layout_choice"]["tried"]}
    assert "second-products" in judged and "selective" not in judged


@pytest.fixture(scope="module")
def planned(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("titan") / "plan"
    done = pipeweaver.run("plan", *JOB, "--target", "torchtitan", "--now", "megatron,1f1b,selective",
                          "--max-rounds", 1, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads((folder / "plan.json").read_text()), done.stdout


def test_now_is_what_torchtitan_does_by_that_word(pipeweaver, planned):
    _, plan, text = planned
    now = plan["ladder"][0]
    assert now["way"].endswith(", second-products") and "--recompute second-products" in now["command"]
    assert now["remark"] == ("selective of torchtitan is second-products: every second product of a block runs again, "
                             "too")
    assert "selective of torchtitan is second-products" in " ".join(text.split())


def test_the_plan_that_has_it_is_read_again(pipeweaver, tmp_path, planned):
    folder, plan, _ = planned
    assert json.loads((folder / "partition.json").read_text())["memory_modes"] == ["second-products"]
    done = pipeweaver.run("emulate", *JOB, "--recipe", "torchtitan", "--schedule", folder, "--assigned",
                          folder / "assignment.json", "--json")
    assert done.returncode == 0, done.stderr
    held = [[rank["memory"]["peak_bytes"] for rank in one["ranks"]] for one in json.loads(done.stdout)["replicas"]]
    assert held == [[rank["peak_bytes"] for rank in one["memory"]] for one in plan["replicas"]]
    pipeweaver("emit", "--plan", folder, "--target", "chrome-trace", "--out", tmp_path / "trace")
    status, line = pipeweaver.fails("plan", *JOB, "--recipe", "torchtitan", "--partition", folder / "partition.json",
                                    "--out", tmp_path / "again")
    assert status == 2 and "--partition: its memory_modes have second-products, of whole steps alone" in line
