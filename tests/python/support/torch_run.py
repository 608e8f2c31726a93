"""Runs a torch/ folder on PyTorch's pipeline runtime, a process per rank, and compares it with a sequential run.

A folder holds schedule.csv and schedule.json ("pipeweaver-torch/1"). The model is made up: one small MLP per stage, of
uneven sizes, in float64, so that equal means equal but for rounding. Every rank also runs the whole model sequentially
by itself and compares the gradients of its own stages and, on the last stage's rank, the losses.
"""

import csv
import json
import multiprocessing
import os
import pathlib
import queue
import tempfile
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

ROWS_PER_MICROBATCH = 3
TOLERANCE = 1e-10
LONGEST_RUN_S = 120
ONE_F_ONE_B_2 = ["0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3",
                 "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"]


class Mismatch(Exception):
    """The schedule did not run, or did not give what a sequential run gives."""


def write_folder(folder, rows, stage_to_rank, microbatches, order=None):
    """A torch/ folder as the emitter writes it; a row is a text of cells."""
    (folder / "schedule.csv").write_text("".join(",".join(row.split()) + "\n" for row in rows))
    stages = [{"stage": s, "rank": r, "parts": []} for s, r in enumerate(stage_to_rank)]
    (folder / "schedule.json").write_text(json.dumps({
        "format": "pipeweaver-torch/1", "pp_size": len(rows), "num_stages": len(stage_to_rank),
        "n_microbatches": microbatches, "stage_to_rank": stage_to_rank,
        "microbatch_order": order or list(range(microbatches)), "stages": stages, "predicted_makespan_ns": 1}))
    return folder


@dataclass
class Schedule:
    """A torch/ folder, read and checked against itself."""

    path: pathlib.Path
    ranks: int
    stages: int
    microbatches: int
    stage_to_rank: list
    microbatch_order: list


def read_folder(folder):
    """Reads schedule.json and requires that schedule.csv has its ranks, stages and placement."""
    folder = pathlib.Path(folder)
    said = json.loads((folder / "schedule.json").read_text())
    assert said["format"] == "pipeweaver-torch/1"
    schedule = Schedule(folder / "schedule.csv", said["pp_size"], said["num_stages"], said["n_microbatches"],
                        said["stage_to_rank"], said["microbatch_order"])
    with open(schedule.path, newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == schedule.ranks
    placed = {(int(cell.rstrip("0123456789")[:-1]), rank) for rank, row in enumerate(rows) for cell in row if cell}
    assert placed == set(enumerate(schedule.stage_to_rank))
    assert len(schedule.stage_to_rank) == schedule.stages
    assert sorted(schedule.microbatch_order) == list(range(schedule.microbatches))
    return schedule


def make_model(stages):
    """One MLP per stage; widths differ, neighbours fit."""
    torch.manual_seed(11)
    width = [4 + stage % 3 for stage in range(stages + 1)]
    return [torch.nn.Sequential(torch.nn.Linear(width[s], 3 + s % 4), torch.nn.Tanh(),
                                torch.nn.Linear(3 + s % 4, width[s + 1])).double() for s in range(stages)]


def make_batch(schedule, model):
    """Inputs and targets per original microbatch; all differ."""
    torch.manual_seed(12)
    inputs = torch.randn(schedule.microbatches, ROWS_PER_MICROBATCH, model[0][0].in_features, dtype=torch.float64)
    targets = torch.randn(schedule.microbatches, ROWS_PER_MICROBATCH, model[-1][-1].out_features, dtype=torch.float64)
    return inputs, targets


def loss_of(output, target):
    return ((output - target) ** 2).sum()


def run_sequentially(model, inputs, targets):
    """Loss per original microbatch; gradients stay in the model."""
    losses = []
    for value, target in zip(inputs, targets):
        for stage in model:
            value = stage(value)
        losses.append(loss_of(value, target))
        losses[-1].backward()
    return torch.stack(losses).detach()


def build_runtime(schedule, rank, model, group=None):
    """The runtime with this rank's stages, before it has a schedule."""
    mine = [s for s in range(schedule.stages) if schedule.stage_to_rank[s] == rank]
    stages = [PipelineStage(model[s], s, schedule.stages, torch.device("cpu"), group=group) for s in mine]
    return _PipelineScheduleRuntime(stages, schedule.microbatches, loss_fn=loss_of, scale_grads=False)


def run_scheduled(schedule, rank, model, inputs, targets):
    """One step of a new runtime on this rank; losses per position if the last stage is here, else None."""
    runtime = build_runtime(schedule, rank, model)
    runtime._load_csv(str(schedule.path))
    return run_step(runtime, schedule, rank, inputs, targets)


def run_step(runtime, schedule, rank, inputs, targets):
    """A step with the schedule that the runtime has; as run_scheduled()."""
    mine = [s for s in range(schedule.stages) if schedule.stage_to_rank[s] == rank]
    order = torch.tensor(schedule.microbatch_order)
    arguments = (inputs[order].flatten(0, 1),) if 0 in mine else ()
    if schedule.stages - 1 not in mine:
        runtime.step(*arguments)
        return None
    losses = []
    runtime.step(*arguments, target=targets[order].flatten(0, 1), losses=losses)
    return torch.stack(losses).detach()


def relative_error(found, expected):
    """Largest difference, relative to the largest expected value."""
    return float((found - expected).abs().max() / expected.abs().max())


def errors_on(schedule, rank):
    """{what: relative error} of all that this rank can compare."""
    reference, model = make_model(schedule.stages), make_model(schedule.stages)
    inputs, targets = make_batch(schedule, model)
    expected = run_sequentially(reference, inputs, targets)
    found = run_scheduled(schedule, rank, model, inputs, targets)
    return compared(schedule, rank, model, found, reference, expected)


def compared(schedule, rank, model, found, reference, expected):
    """{what: relative error} of the rank's losses, if it has any, and of its stages' gradients."""
    errors = {}
    if found is not None:
        errors["losses"] = relative_error(found, expected[torch.tensor(schedule.microbatch_order)])
    for stage in range(schedule.stages):
        if schedule.stage_to_rank[stage] != rank:
            continue
        for (name, own), other in zip(model[stage].named_parameters(), reference[stage].parameters()):
            errors[f"stage {stage} {name}"] = relative_error(own.grad, other.grad)
    return errors


def work(schedule, rank, rendezvous, answers):
    """A rank's process: puts (rank, errors) or (rank, text of what went wrong)."""
    try:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                                             world_size=schedule.ranks, timeout=timedelta(seconds=LONGEST_RUN_S // 2))
        answers.put((rank, errors_on(schedule, rank)))
        torch.distributed.destroy_process_group()
    except BaseException:
        answers.put((rank, traceback.format_exc()))
        raise SystemExit(1)


def collect(processes, answers):
    """Answers by rank until all have come or time is up; the first failure ends the wait."""
    found, deadline = {}, time.monotonic() + LONGEST_RUN_S
    while len(found) < len(processes) and time.monotonic() < deadline:
        try:
            rank, answer = answers.get(timeout=0.2)
        except queue.Empty:
            # A process that was aborted can tell nothing.
            if any(process.exitcode not in (None, 0) for process in processes):
                break
            continue
        found[rank] = answer
        if isinstance(answer, str):
            break
    return found


def check(folder):
    """Runs the folder's schedule; raises Mismatch unless losses and all gradients equal the sequential ones.

    Returns the largest relative error."""
    schedule = read_folder(folder)
    # The parent never computes, so forking it is safe and spares a second import of torch for each rank.
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as scratch:
        processes = [context.Process(target=work, args=(schedule, rank, f"{scratch}/store", answers), daemon=True)
                     for rank in range(schedule.ranks)]
        for process in processes:
            process.start()
        found = collect(processes, answers)
        complete = len(found) == len(processes) and not any(isinstance(answer, str) for answer in found.values())
        for process in processes:
            process.join(timeout=10 if complete else 0)
            process.kill()
            process.join()
    if not complete:
        raise Mismatch(f"ranks that answered: {found}, exit codes {[process.exitcode for process in processes]}")
    errors = {what: error for answer in found.values() for what, error in answer.items()}
    assert "losses" in errors and len(errors) == 1 + 4 * schedule.stages
    wrong = {what: error for what, error in errors.items() if not error <= TOLERANCE}
    if wrong:
        raise Mismatch(f"differs from the sequential run: {wrong}")
    return max(errors.values())
