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
    return folder, json.loads((folder / "plan.json").read_text()), done.stdout, done.stderr


def test_what_the_executor_does_not_run_is_said_where_its_lists_are_named(planned):
    folder, _, _, remark = planned
    refused = "pipeweaver.torch does not run second-products"
    assert f"with tensors and peers; {refused}: --also torch-actions plans what it runs\n" in remark
    assert f"your own executor: {refused}" in (folder / "report.html").read_text()


def test_a_schedule_beside_it_has_what_the_executor_runs(pipeweaver, tmp_path):
    done = pipeweaver.run("plan", *JOB, "--target", "torchtitan", "--also", "torch-actions", "--now",
                          "megatron,1f1b,selective", "--max-rounds", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "does not run" not in done.stderr
    lists = [json.loads(file.read_text()) for file in tmp_path.glob("replica-*/actions.json")]
    passes = [one for each in lists for rank in each["actions"] for one in rank if "recompute" in one]
    assert passes and {one["recompute"] for one in passes} <= {"none", "half", "full"}


def test_blocks_without_second_products_are_said_to_have_none(pipeweaver, tmp_path):
    done = pipeweaver.run("plan", "--model", "deepseek-v2-lite", "--cluster", "h200-sxm:8", "--dataset",
                          "constant-4096", "--microbatch-tokens", 4096, "--microbatches", 2, "--tp", 1, "--pp", 1,
                          "--ep", 4, "--zero", 2, "--target", "torchtitan", "--now", "megatron,1f1b,selective",
                          "--max-rounds", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "plan.json").read_text())["ladder"][0]["remark"] == (
        "selective of torchtitan is second-products: of these blocks it is counted as norms and activation functions "
        "alone")


def test_now_is_what_torchtitan_does_by_that_word(pipeweaver, planned):
    _, plan, text, _ = planned
    now = plan["ladder"][0]
    assert now["way"].endswith(", second-products") and "--recompute second-products" in now["command"]
    assert now["remark"] == ("selective of torchtitan is second-products: every second product of plain attention and "
                             "dense feed-forwards runs again, too")
    assert "selective of torchtitan is second-products" in " ".join(text.split())


def test_the_plan_that_has_it_is_read_again(pipeweaver, tmp_path, planned):
    folder, plan, _, _ = planned
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
