"""Schedules that the command line makes for PyTorch run there, equal to a sequential run."""

import csv
import json

import pytest
import torch_run


def chain_problem(ranks, stages, microbatches, split):
    """A chain of stages, looped over the ranks, under PyTorch's rules, as a "pipeweaver-problem/1".

    Times differ by stage and microbatch, so that a search has something to choose; with `split` the backward is I and
    W, where stage 0 has nothing to send back: I takes 1 ns there and W is a full backward."""
    tasks, edges, number = [], [], {}

    def add(kind, stage, microbatch, duration, acquired, released):
        number[kind, stage, microbatch] = len(tasks)
        tasks.append({"id": len(tasks), "rank": stage % ranks, "kind": kind, "duration_ns": duration,
                      "acquire_bytes": acquired, "release_bytes": released, "label": f"{stage}{kind}{microbatch}",
                      "stage": stage, "microbatch": microbatch, "item": 0, "module": "chain"})

    for microbatch in range(microbatches):
        for stage in range(stages):
            forward = 1000 * (3 + stage % 3 + (stage + 2 * microbatch) % 4)
            add("F", stage, microbatch, forward, 10, 0)
            if split:
                add("I", stage, microbatch, forward if stage else 1, 0, 0)
                add("W", stage, microbatch, forward if stage else 2 * forward, 0, 10)
                edges.append([number["I", stage, microbatch], number["W", stage, microbatch], 0])
            else:
                add("B", stage, microbatch, 2 * forward, 0, 10)
    backward = "I" if split else "B"
    for microbatch in range(microbatches):
        for stage in range(stages):
            edges.append([number["F", stage, microbatch], number[backward, stage, microbatch], 0])
            if stage:
                edges.append([number["F", stage - 1, microbatch], number["F", stage, microbatch], 500])
                edges.append([number[backward, stage, microbatch], number[backward, stage - 1, microbatch], 500])
    return {"format": "pipeweaver-problem/1", "name": f"chain-{ranks}-{stages}-{microbatches}",
            "ranks": [{"capacity_bytes": 10 * microbatches * stages, "base_bytes": 0}] * ranks,
            "stages": [{"stage": s, "rank": s % ranks, "parts": [{"module": "chain"}]} for s in range(stages)],
            "tasks": tasks, "edges": edges}


def kinds_in(folder):
    """The kinds of action that the folder's schedule uses."""
    with open(folder / "schedule.csv", newline="") as file:
        return {cell.strip("0123456789") for row in csv.reader(file) for cell in row}


@pytest.mark.parametrize("ranks, stages, microbatches, split", [
    (2, 2, 6, False), (2, 4, 6, False), (4, 4, 8, False), (4, 8, 8, False),
    (2, 2, 6, True), (2, 4, 6, True), (4, 4, 8, True), (4, 8, 8, True)])
def test_a_solved_problem_runs_on_pytorch(tmp_path, pipeweaver, ranks, stages, microbatches, split):
    (tmp_path / "problem.json").write_text(json.dumps(chain_problem(ranks, stages, microbatches, split)))
    pipeweaver("solve", tmp_path / "problem.json", "--target", "torch-csv", "--max-rounds", "20", "--seed", "1",
               "--out", tmp_path / "solution.json")
    pipeweaver("emit", "--plan", tmp_path, "--target", "torch-csv", "--out", tmp_path / "csv")

    schedule = torch_run.read_folder(tmp_path / "csv")
    assert (schedule.ranks, schedule.stages, schedule.microbatches) == (ranks, stages, microbatches)
    # A search that never lets a W wait for later would prove nothing of split backwards.
    assert ({"F", "I", "W"} if split else {"F", "B"}) <= kinds_in(tmp_path / "csv")
    assert torch_run.check(tmp_path / "csv") <= torch_run.TOLERANCE


@pytest.mark.parametrize("gpus, pp, microbatches", [(32, 4, 16), (16, 2, 8)])
def test_a_planned_step_runs_on_pytorch(tmp_path, pipeweaver, gpus, pp, microbatches):
    pipeweaver("plan", "--model", "dip-vlm-m" if pp == 4 else "dip-vlm-s", "--cluster", f"h100-sxm:{gpus}", "--tp", "8",
               "--pp", pp, "--dataset", "vlm-mix", "--microbatches", microbatches, "--max-rounds", "20", "--seed", "1",
               "--out", tmp_path)

    schedule = torch_run.read_folder(tmp_path / "torch")
    assert (schedule.ranks, schedule.microbatches) == (pp, microbatches)
    assert torch_run.check(tmp_path / "torch") <= torch_run.TOLERANCE

    # The plan folder is what emit reads; what it writes is the same schedule.
    pipeweaver("emit", "--plan", tmp_path, "--target", "torch-csv", "--out", tmp_path / "csv")
    assert (tmp_path / "csv/schedule.csv").read_bytes() == (tmp_path / "torch/schedule.csv").read_bytes()
