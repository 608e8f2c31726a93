"""What ranks record while they run, compared with the plan: the executor's timings and traces, PyTorch's pipeline
runtime's traces, and a watch over steps."""

import json
import sys
import time
import types

import pytest
import torch
import torch.distributed as dist
from executor_package import Executor, package, read_actions
from executor_processes import Ranks
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.profiler import ProfilerActivity, profile

WIDTH, ROWS, MICROBATCHES, STEPS = 8, 4, 6, 5
FORWARD_S = 0.02  # beside which it is short how much later than asked a sleep ends on a busy machine
STAGES = "\n".join(["stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes",
                    *(f"{stage},{stage},{1e6 * FORWARD_S:.0f},{2e6 * FORWARD_S:.0f},,1024,1024,1024"
                      for stage in range(2)), ""])


class Sleep(torch.autograd.Function):
    """The identity, for so many seconds forward and twice as many backward."""

    @staticmethod
    def forward(ctx, value, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(2 * ctx.seconds)
        return gradient, None


class Chunk(torch.nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.linear, self.seconds = torch.nn.Linear(WIDTH, WIDTH), seconds

    def forward(self, x):
        return self.linear(Sleep.apply(x if x.requires_grad else self.linear(x), self.seconds))


def split(batch, unit):
    return batch[unit.microbatch]


def run_executor(rank, folder, out, seconds):
    """Steps on the executor, recorded and watched; what the watch told."""
    actions = read_actions(folder / "actions.json").with_shapes({0: (ROWS, WIDTH), 1: (ROWS, WIDTH)})
    executor = Executor(actions, {rank: Chunk(seconds[rank])}, split, torch.nn.functional.mse_loss, dtype=torch.float32,
                        timeout=300)
    batch = torch.randn(MICROBATCHES, ROWS, WIDTH)
    timings, told = package.Timings(executor), []
    watch = package.Watch(executor, folder, told.append)
    executor.step(batch)  # what is slow once alone
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        for _ in range(STEPS):
            result = executor.step(batch)
            timings.add(result)
            watch.step(result)
    timings.write(out / f"timings-{rank}.json.gz")
    trace.export_chrome_trace(str(out / f"executor-{rank}.json"))
    return [str(one) for one in told]


@pytest.fixture(scope="module")
def folder(pipeweaver, tmp_path_factory):
    """A plan of two stages that sleep."""
    place = tmp_path_factory.mktemp("stages")
    (place / "stages.csv").write_text(STAGES)
    pipeweaver("solve", "--stages", place / "stages.csv", "--microbatches", MICROBATCHES, "--max-rounds", 5, "--out",
               place / "plan")
    return place / "plan"


def compared(pipeweaver, folder, files):
    return json.loads(pipeweaver("replay", folder, "--json", "--measured", *files))


def slow_ranks(pipeweaver, folder, out, forward_s):
    """Which ranks are said to be slow where rank 1 sleeps twice as long: by the comparison of what the executor
    records, by that of its traces, by the traces without a plan (the longest), and by the watch."""
    out.mkdir()
    answers = Ranks(2, run_executor, folder, out, [forward_s, 2 * forward_s]).wait(240)
    assert sorted(answers) == [0, 1]
    assert all(isinstance(found, list) for found in answers.values()), answers

    own = compared(pipeweaver, folder, [out / f"timings-{rank}.json.gz" for rank in range(2)])
    traced = compared(pipeweaver, folder, [out / f"executor-{rank}.json" for rank in range(2)])

    assert own["steps"] == traced["steps"] == STEPS
    for found in (own, traced):
        assert found["measured_ns"] - found["planned_ns"] == found["run_ns"] + found["wait_ns"]
        assert all(entry["uncertainty_ns"] is not None for entry in found["clocks"]["ranks"])
    alone = json.loads(pipeweaver("replay", "--json", "--trace", *(out / f"executor-{rank}.json" for rank in range(2))))
    assert alone["replayed"]["step_ns"] == alone["recorded_ns"]
    assert answers[0] == answers[1], "every rank is told the same"
    told = [[line.startswith(f"rank {rank} takes ") for line in answers[0]] for rank in range(2)]
    return [*([rank["slow"] for rank in found["ranks"]] for found in (own, traced)),
            [rank["longest"] for rank in alone["ranks"]], [any(told[0]), any(told[1])]]


@pytest.mark.alone
def test_what_the_executor_records_is_compared_and_watched(pipeweaver, folder, tmp_path):
    """On a busy machine sleeps end late: of longer ones that is less."""
    found = {}
    for times in (1, 4, 8):
        found[times] = slow_ranks(pipeweaver, folder, tmp_path / str(times), times * FORWARD_S)
        if found[times] == [[False, True]] * 4:
            return
    pytest.fail(f"rank 1 alone is slow, and is not said to be: {found}")


def run_pytorch(rank, folder, out):
    """PyTorch's own runtime on the plan's schedule, traced."""
    stage = PipelineStage(Chunk(0 if rank else 0.03), rank, 2, torch.device("cpu"))
    schedule = _PipelineScheduleRuntime([stage], n_microbatches=MICROBATCHES, loss_fn=torch.nn.functional.mse_loss)
    schedule._load_csv(str(folder / "torch/schedule.csv"))
    batch = torch.randn(MICROBATCHES * ROWS, WIDTH)

    def step():
        schedule.step(batch) if rank == 0 else schedule.step(target=batch, losses=[])

    step()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        step()
    trace.export_chrome_trace(str(out / f"trace-{rank}.json"))


@pytest.mark.alone
def test_traces_of_pytorchs_own_runtime_are_compared(pipeweaver, folder, tmp_path):
    answers = Ranks(2, run_pytorch, folder, tmp_path).wait(240)
    assert answers == {0: None, 1: None}, answers

    found = compared(pipeweaver, folder / "torch", [tmp_path / "trace-1.json", tmp_path / "trace-0.json"])

    assert found["steps"] == 1 and len(found["tasks"]) == 2 * 2 * MICROBATCHES
    assert found["measured_ns"] - found["planned_ns"] == found["run_ns"] + found["wait_ns"]
    events = json.loads((tmp_path / "trace-1.json").read_text())["traceEvents"]
    with_waits = sum(1000 * event["dur"] for event in events if str(event.get("name")).startswith("PP:1F"))
    without = sum(task["measured_ns"] for task in found["tasks"] if task["label"].startswith("1F"))
    assert 0 < without < with_waits / 2, "a wait for the other rank is no part of a pass"


def test_timings_of_two_plans_do_not_mix(tmp_path):
    class Loaded:
        program = object()

    timings = package.Timings(Loaded)
    Loaded.program = object()
    with pytest.raises(package.PipeweaverError, match="the executor has loaded another plan"):
        timings.add(None)


def test_timings_keep_the_last_steps_where_asked():
    actions = types.SimpleNamespace(actions=())
    executor = types.SimpleNamespace(program=types.SimpleNamespace(actions=actions))
    timings = package.Timings(executor, last=2)
    for number in range(3):
        timings.add(types.SimpleNamespace(timings=[]))
    assert len(timings.steps) == 2
    with pytest.raises(package.PipeweaverError, match="last: is 0, a whole number from 1"):
        package.Timings(executor, last=0)


def of_replica_one(folder):
    """Times of a plan's folder, read as those of another replica."""
    planned = sys.modules["pipeweaver.drift"].PlannedTasks.read(folder)
    planned.name += "-r001"
    return planned


def watch_errors(rank, folder):
    """What a rank is told of a Watch that only rank 1 cannot load."""
    actions = read_actions(folder / "actions.json").with_shapes({0: (ROWS, WIDTH), 1: (ROWS, WIDTH)})
    executor = Executor(actions, {rank: Chunk(0)}, split, torch.nn.functional.mse_loss, dtype=torch.float32,
                        timeout=300)
    told = []

    def expect(planned):
        try:
            package.Watch(executor, planned)
            told.append(None)
        except package.PipeweaverError as error:
            told.append(str(error))

    expect(folder)
    expect(of_replica_one(folder) if rank == 1 else folder)
    expect(folder / "nothing" if rank == 1 else folder)
    return told


def test_a_watch_that_a_rank_cannot_load_is_refused_on_all(folder):
    answers = Ranks(2, watch_errors, folder).wait(240)
    assert sorted(answers) == [0, 1] and all(isinstance(one, list) for one in answers.values()), answers
    assert answers[0][0] is answers[1][0] is None
    assert "it is another plan's or replica's" in answers[1][1] and answers[0][1] == f"rank 1: {answers[1][1]}"
    assert "cannot be read: No such file" in answers[1][2] and answers[0][2] == f"rank 1: {answers[1][2]}"
