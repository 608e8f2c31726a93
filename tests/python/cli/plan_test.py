"""pipeweaver plan: a whole folder, right figures in it, the same bytes on any number of threads."""

import html
import json
import subprocess

import pytest
from cli_shared import BATCH, ONE_DRAW, PLAN, digests


def test_a_plan_has_all_of_its_files(planned):
    names = set(digests(planned))
    assert names == {"plan.json", "assignment.json", "partition.json", "launch.json", "launch-assignment.json",
                     "report.html", "replica-000/problem.json.gz", "replica-000/solution.json",
                     "replica-000/actions.json", "replica-000/trace.json.gz", "torch/schedule.csv",
                     "torch/schedule.comms.csv", "torch/schedule.json", "torch/padding.json",
                     "torch/problem.json.gz", "torch/solution.json"}
    assert (planned / "run.json").exists()


@pytest.mark.parametrize("threads", [2, 16])
def test_result_files_do_not_depend_on_the_number_of_threads(pipeweaver, planned, tmp_path, threads):
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", threads, "--out", tmp_path / "other")
    assert digests(tmp_path / "other") == digests(planned)


def test_another_seed_gives_another_batch(pipeweaver, planned, tmp_path):
    pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--max-rounds", "1", "--seed", "2", "--out", tmp_path / "other")
    assert digests(tmp_path / "other")["assignment.json"] != digests(planned)["assignment.json"]


def test_the_plan_is_never_above_a_baseline_and_never_below_its_bound(planned):
    plan = json.loads((planned / "plan.json").read_text())
    assert plan["format"] == "pipeweaver-plan/1"
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(
        b["makespan_ns"] for b in plan["baselines"] if not b["opponent"])
    assert plan["makespan_ns"] < plan["step_ns"]
    assert 0 < plan["mfu"] < 1
    assert abs(sum(plan["share_of_time"]["by_basis"].values()) - 1) < 1e-9
    for rank in plan["replicas"][0]["memory"]:
        assert rank["peak_bytes"] <= rank["capacity_bytes"]
        assert rank["receive_buffers_needed_bytes"] <= rank["receive_buffers_bytes"]


def test_the_headline_is_the_last_rung_that_is_worth_its_change(pipeweaver, tmp_path):
    told = pipeweaver("plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", *BATCH,
                      *ONE_DRAW, "--target", "any", "--max-rounds", "1", "--json", "--out", tmp_path / "any")
    plan = json.loads(told)
    fastest = plan["ladder"][-1]
    assert fastest["rung"] == "schedule" and "why_nothing" not in fastest
    assert fastest["step_ns"] < plan["ladder"][-2]["step_ns"]
    worth = [rung for rung in plan["ladder"] if rung.get("worth", {"is_enough": rung["rung"] == "now"})["is_enough"]]
    headline = plan["headline"]
    assert (headline["rung"], headline["target"]) == (worth[-1]["rung"], "any")
    assert headline["step_ns"] == worth[-1]["step_ns"]
    easier = {rung["rung"]: rung["step_ns"] for rung in plan["ladder"]}
    for rung in plan["ladder"]:
        if worth := rung.get("worth"):
            enough = worth["gain"] >= 1.02 and worth["wins"] >= 0.95 * worth["draws"] > 0
            assert worth["is_enough"] == enough, rung
            assert worth["gain"] == pytest.approx(easier[worth["over"]] / rung["step_ns"])


def test_a_plan_says_how_long_it_takes_where_costs_are_wrong_and_whether_it_still_fits(planned):
    plan = json.loads((planned / "plan.json").read_text())
    told = plan["robustness"]
    assert told["makespan_p10_ns"] < told["makespan_p50_ns"] < told["makespan_p90_ns"]
    assert told["makespan_p50_ns"] == pytest.approx(plan["makespan_ns"], rel=0.05)
    assert 0 <= told["memory_exceeded"] <= told["replays"]
    for one in told["baselines"]:
        assert one["wins"] + one["losses"] <= told["replays"]


def test_a_robust_plan_says_what_it_gave_up_and_gained(pipeweaver, planned, tmp_path):
    usual = json.loads((planned / "plan.json").read_text())
    assert (usual["choice"]["rule"], usual["choice"]["within"]) == ("wins", 0.001)
    smallest = usual["choice"]["smallest_makespan_ns"]
    assert smallest <= usual["makespan_ns"] <= 1.001 * smallest
    told = pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--robust", "--verbose",
                      "--out", tmp_path / "one")
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "4", "--robust", "--out", tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    plan = json.loads((tmp_path / "one/plan.json").read_text())
    choice = plan["choice"]
    assert (choice["rule"], choice["within"]) == ("median", 0.01)
    assert choice["alternatives"] > 0
    assert choice["smallest_makespan_ns"] == usual["choice"]["smallest_makespan_ns"]
    assert choice["smallest_makespan_ns"] <= plan["makespan_ns"] <= 1.01 * choice["smallest_makespan_ns"]
    assert plan["makespan_ns"] <= min(
        b["makespan_ns"] for b in plan["baselines"] if not b["opponent"])
    if choice["over_smallest"] is None:
        assert plan["makespan_ns"] == choice["smallest_makespan_ns"]
    else:
        assert 0 < choice["over_smallest"]["wins"] <= choice["over_smallest"]["replays"] == 200
    line, = [line for line in told.splitlines() if "at most 1 % longer" in line][:1]
    assert line.startswith(f"{choice['alternatives']} other schedule")
    assert line in html.unescape((tmp_path / "one/report.html").read_text())
    (tmp_path / "c.yaml").write_text("robust: true\n")
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--config", tmp_path / "c.yaml", "--out", tmp_path / "three")
    assert digests(tmp_path / "three") == digests(tmp_path / "one")


def test_every_sample_and_item_is_assigned_once(planned):
    assignment = json.loads((planned / "assignment.json").read_text())
    samples, items, weight = [], [], 0
    for microbatch in assignment["replicas"][0]["microbatches"]:
        samples += [sample["id"] for sample in microbatch["samples"]]
        weight += microbatch["loss_weight"]
        for unit in microbatch["units"]:
            items += [(item["sample"], item["item"]) for item in unit["items"]]
            rows = [row for item in unit["items"] for row in item["rows"]]
            assert rows == sorted(rows)
    assert len(samples) == len(set(samples)) > 0
    assert len(items) == len(set(items)) > 0
    assert abs(weight - 1) < 1e-9


def test_replicas_share_a_batch_by_cost(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:64", "--tp", "8", "--pp", "4",
            "--dataset", "vlm-mix", "--microbatches", "8", *ONE_DRAW, "--packing", "given", "--partition", "dip",
            "--max-rounds", "1", "--json"]
    balanced = json.loads(pipeweaver(*rest, "--out", tmp_path / "balanced"))
    in_turn = json.loads(pipeweaver(*rest, "--assignment", "in-turn", "--out", tmp_path / "in-turn"))
    assert (balanced["assignment"]["method"], in_turn["assignment"]["method"]) == ("balanced", "in-turn")
    assert balanced["assignment"]["largest_load_ns"] < in_turn["assignment"]["largest_load_ns"]
    assert balanced["assignment"]["in_turn_largest_load_ns"] == in_turn["assignment"]["largest_load_ns"]
    assert balanced["makespan_ns"] < in_turn["makespan_ns"]
    replicas = json.loads((tmp_path / "balanced/assignment.json").read_text())["replicas"]
    assert [len(replica["microbatches"]) for replica in replicas] == [8, 8]
    weights = [one["loss_weight"] for replica in replicas for one in replica["microbatches"]]
    assert abs(sum(weights) - 1) < 1e-9
    samples = [one["id"] for replica in replicas for microbatch in replica["microbatches"]
               for one in microbatch["samples"]]
    assert len(samples) == len(set(samples)) == balanced["asked"]["samples"]


def test_json_answers_stand_alone_on_stdout(pipeweaver, tmp_path):
    answer = json.loads(pipeweaver(*PLAN, *BATCH, *ONE_DRAW, "--max-rounds", "1", "--json", "--out", tmp_path / "plan"))
    assert answer["format"] == "pipeweaver-plan/1"
    assert answer["run"]["threads"] >= 1
    for kind in ("models", "clusters", "devices", "networks", "datasets", "strategies", "policies", "targets"):
        assert json.loads(pipeweaver("list", kind, "--json"))


def test_a_shown_model_plans_like_the_named_one(pipeweaver, planned, tmp_path):
    (tmp_path / "mine.json").write_text(pipeweaver("show", "dip-vlm-m"))
    pipeweaver("plan", "--model", tmp_path / "mine.json", "--cluster", "h100-sxm:32", *BATCH, "--max-rounds", "20",
               "--out", tmp_path / "plan")
    named, shown = digests(planned), digests(tmp_path / "plan")
    for told in (named, shown):  # commands name the model as it was asked for
        for file in ("plan.json", "report.html"):
            told.pop(file)
    assert named == shown


def test_gpus_that_fill_no_whole_nodes_are_remarked(pipeweaver, tmp_path):
    def said(gpus):
        command = [pipeweaver.path, "plan", "--model", "dip-vlm-s", "--cluster", f"h100-sxm:{gpus}", "--tp", "2",
                   "--pp", "3", "--partition", "dip", *BATCH, "--replicas", "0", "--max-rounds", "1", "--out",
                   tmp_path / str(gpus)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stderr
    assert "30 GPUs are 3 nodes of 8 and 6 GPUs of another" in said(30)
    assert "of another" not in said(24)
    assert "of another" not in said(6)  # a part of one node


def test_a_smaller_plan_leaves_no_replica_of_the_larger_behind(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--tp", "8", "--pp", "4", *BATCH, *ONE_DRAW, "--max-rounds", "1",
            "--partition", "dip", "--out", tmp_path / "plan"]
    pipeweaver(*rest, "--cluster", "h100-sxm:64")
    assert (tmp_path / "plan/replica-001").is_dir()
    (tmp_path / "plan/mine.txt").write_text("a reader's own")
    pipeweaver(*rest, "--cluster", "h100-sxm:32")
    assert not (tmp_path / "plan/replica-001").exists()
    assert (tmp_path / "plan/replica-000/solution.json").exists() and (tmp_path / "plan/mine.txt").exists()


def test_one_ratio_of_the_schedule_for_pytorch_stands_everywhere(pipeweaver, tmp_path):
    rest = ["plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:64", "--tp", "8", "--pp", "4", *BATCH,
            "--max-rounds", "3", "--packing", "given", "--verbose", "--out", tmp_path / "plan",
            "--seed", "7"]  # of this seed the slowest replica's bound is not the largest
    table = pipeweaver(*rest)
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    torch = plan["torch"]
    assert torch["replica"] in (0, 1) and torch["replicas"] == 2
    assert torch["over_free_plan"] == pytest.approx(torch["makespan_ns"] / plan["makespan_ns"] - 1)
    ratio = 1 + torch["over_free_plan"]
    assert f"{ratio:.2f}x the plan's\n" in table
    assert f"{ratio:.3f}x the plan&#39;s<" in (tmp_path / "plan/report.html").read_text()
    assert {one["policy"] for one in torch["baselines"]} >= {"1f1b", "interleaved", "gpipe"}
    for policy in ("1f1b", "interleaved"):
        best = min(one["makespan_ns"] for one in torch["baselines"] if one["policy"] == policy)
        assert torch["makespan_ns"] <= best
        assert f"with the same padding {policy} takes {best * 1e-9:.3f} s" in table
    assert plan["lower_bound_ns"] == max(one["lower_bound_ns"] for one in plan["replicas"])
    slowest = max(plan["replicas"], key=lambda one: one["makespan_ns"])
    assert slowest["lower_bound_ns"] < plan["lower_bound_ns"]


def test_a_known_schedule_that_does_not_fit_the_largest_microbatch_is_no_opponent(pipeweaver, tmp_path):
    """It lies in a replica that has little else to do: of the most loaded ones alone a schedule without recomputation
    would be the fastest, and the plan."""
    pipeweaver("plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:128", "--tp", "4", "--pp", "1", "--zero", "2",
               "--bucket", "0B", "--dataset", "vlm-mix", "--global-batch", "512", "--packing", "balanced",
               "--max-rounds", "0", "--out", tmp_path / "plan", "--quiet")
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    here = [row for row in plan["baselines"] if row["opponent"] and row["partition"] == "no-pipeline tp 4 zero 2"]
    assert [row["recompute"].split(":")[0] for row in here] == ["blocks"]  # "none" fits all replicas but one
    assert plan["step_ns"] < here[0]["step_ns"]


def test_a_budget_that_is_over_leaves_one_round_of_a_search(pipeweaver, tmp_path):
    pipeweaver(*PLAN, *BATCH, "--budget", "1ms", "--out", tmp_path / "plan")
    own = json.loads((tmp_path / "plan/replica-000/solution.json").read_text())
    assert (own["rounds"], own["stop_reason"]) == (1, "budget")
    policy = tmp_path / "policy.json"
    pipeweaver("solve", tmp_path / "plan/replica-000/problem.json.gz", "--policy", "dual-queue", "--out", policy)
    assert own["makespan_ns"] < json.loads(policy.read_text())["makespan_ns"]
