"""The data plan where others run it: Megatron Core's schedulers, and PyTorch's loaders in a job that is killed."""

import contextlib
import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from absent import needed
from checkout import ROOT
from cli_shared import full
from megatron_names import newer_megatron  # noqa: F401

torch = needed("torch")
needed("pipeweaver")
data = needed("pipeweaver.data")

import example_ranks  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from pipeweaver import InputError  # noqa: E402
from pipeweaver.torch.sampler import BalancedBatchSampler, BalancedStream  # noqa: E402

DRAWN = 200 if full() else 60  # batches that a scheduler is given
COSTS = data.Costs((data.StageCosts(data.Quadratic(0.5, 9000.0, 1e5)), data.StageCosts(data.Quadratic(0.7, 9e3, 0.0))))


class Group:
    """A process group, as far as the scheduler looks."""

    def __init__(self, ranks):
        self.ranks = ranks

    def size(self):
        return self.ranks


def step_of(number):
    """Samples, tokens of a rank, data and context parallel ranks; a batch of few long ones and many short ones."""
    rng = random.Random(number)
    ranks = rng.choice([2, 4, 8, 16])
    lengths = [min(4096, int(rng.lognormvariate(6, 1)) + 1) for _ in range(rng.randint(4, 20) * ranks)]
    if number % 3 == 0:
        lengths += [rng.randint(4097, 8192) for _ in range(rng.randint(1, 4))]
    rng.shuffle(lengths)
    return list(enumerate(lengths)), 4096, ranks


def check_hybrid(scheduler, samples, groups, ids, ranks):
    """What Megatron Core 0.16.1 asserts of a schedule, and what its loop and process groups rest on."""
    lengths = dict(samples)
    once = set()
    for group, group_ids in zip(groups, ids):
        assert len(group) == len(group_ids) == ranks
        assert all(group_ids), "every rank has a sample of every group"
        assert group == [[lengths[id] for id in mine] for mine in group_ids]
        places = {}
        for rank, mine in enumerate(group_ids):
            for id in mine:
                places.setdefault(id, []).append(rank)
        for id, on in places.items():
            assert id not in once
            assert len(on) >= scheduler.gpus_needed(lengths[id])
            assert on == list(range(on[0], on[0] + len(on))) and on[0] % len(on) == 0 and len(on) & (len(on) - 1) == 0
            assert all(group_ids[rank] == group_ids[on[0]] for rank in on), "they run the same samples in one order"
        once.update(places)
    assert len(once) == len(samples)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_megatron_cores_checks_of_its_hybrid_scheduler_hold_for_ours(costs):
    needed("megatron.core.datasets.data_schedule")
    from megatron.core.datasets import data_schedule
    from megatron.core.pipeline_parallel.hybrid_cp_schedule import BalancedCPScheduler

    from pipeweaver.data import megatron_hybrid

    before, faster = data_schedule.BalancedCPScheduler, 0
    scheduler = megatron_hybrid.register(costs)
    try:
        assert data_schedule.BalancedCPScheduler is scheduler and issubclass(scheduler, BalancedCPScheduler)
    finally:
        data_schedule.BalancedCPScheduler = before
    for number in range(DRAWN):
        samples, most, ranks = step_of(number)
        ours = scheduler(max_seq_len_per_rank=most, dp_cp_group=Group(ranks))
        schedule = ours.get_groups_and_subsamples(samples, None)
        check_hybrid(ours, samples, *schedule, ranks)
        plain = BalancedCPScheduler(max_seq_len_per_rank=most, dp_cp_group=Group(ranks))
        theirs = None
        with contextlib.suppress(AssertionError, TypeError, IndexError):  # it has no answer to some
            theirs = plain.get_groups_and_subsamples(samples, None)
        if theirs is not None:
            assert ours.time_of(schedule) <= ours.time_of(theirs)
            faster += ours.time_of(schedule) < ours.time_of(theirs)
    assert faster > DRAWN * (100 if costs else 5) // 200


def test_a_hybrid_schedule_has_room_for_empty_samples():
    needed("megatron.core.datasets.data_schedule")
    scheduler = importlib.import_module("pipeweaver.data.megatron_hybrid").HybridScheduler
    samples = [(0, 0), (1, 5), (2, 9)]
    ours = scheduler(max_seq_len_per_rank=8, dp_cp_group=Group(4))
    check_hybrid(ours, samples, *ours.get_groups_and_subsamples(samples, None), 4)


@pytest.mark.parametrize("costs", [None, COSTS])
def test_megatron_cores_checks_of_its_packing_scheduler_hold_for_ours(newer_megatron, costs):  # noqa: F811
    importlib.import_module("pipeweaver.data.megatron_packing").register(costs)
    scheduler = newer_megatron.scheduler_map[newer_megatron.PackingSchedulerEnum["dp_balanced".upper()]]
    for number in range(DRAWN):
        rng = random.Random(number)
        cp, dp, group = rng.choice([1, 2]), rng.choice([2, 4, 8]), rng.choice([None, 2, 4])
        samples = [(id, min(4096 * cp, int(rng.lognormvariate(6, 1)) + 1)) for id in range(rng.randint(8, 40) * dp)]
        ours = scheduler(4096, cp, dp, group)
        groups = ours.get_groups_and_subsamples(samples)
        lengths, seen = dict(samples), []
        assert len(groups) % (group or 1) == 0
        for microbatch in groups:
            assert len(microbatch) == dp * cp
            for rank, ids in enumerate(microbatch):
                assert ids and ids == microbatch[rank // cp * cp]
                assert sum(lengths[id] for id in ids) <= 4096 * cp
            seen += [id for ids in microbatch[::cp] for id in ids]
        assert sorted(seen) == [id for id, _ in samples]
    assert ours.get_required_sample_keys() == ["tokens"]


def test_a_megatron_without_packing_schedulers_is_told_of_the_other():
    needed("megatron.core.datasets.data_schedule")
    with pytest.raises(ImportError, match="pipeweaver.data.megatron_hybrid"):
        importlib.import_module("pipeweaver.data.megatron_packing")


def steps_of(samples=60):
    return data.EpochSteps([1 + 7 * k % 50 for k in range(samples)], 2, 12, budget=64, seed=5)


def test_a_sampler_goes_on_where_it_was_saved():
    whole = BalancedBatchSampler(steps_of(), 1)
    all_of = [step for step in whole.steps()]
    first = BalancedBatchSampler(steps_of(), 1)
    taken = [step for _, step in zip(range(2), first.steps())]
    second = BalancedBatchSampler(steps_of(), 1)
    second.load_state_dict(first.state_dict())
    assert taken + list(second.steps()) == all_of
    again = BalancedBatchSampler(steps_of(), 1)
    again.load_state_dict({**first.state_dict(), "step": 2})
    assert list(again) == [list(one.samples) for step in all_of[2:] for one in step]
    assert len(again) == len(list(again))
    with pytest.raises(InputError, match="is not the one that was saved: samples: 61 in place of 60"):
        BalancedBatchSampler(steps_of(61), 1).load_state_dict(first.state_dict())
    with pytest.raises(InputError, match="replica: is 2, must be 0 to 1"):
        BalancedBatchSampler(steps_of(), 2)


def test_a_sampler_needs_no_compiled_part():
    script = """
import sys
sys.modules["pipeweaver._core"] = None
from pipeweaver.data import EpochSteps
from pipeweaver.torch.sampler import BalancedBatchSampler
print(sorted(sum(BalancedBatchSampler(EpochSteps([5, 6, 7], 1, 3), 0), [])))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0, 1, 2]\n"), done.stderr


@pytest.mark.parametrize("workers", [0, 3])
def test_a_stream_gives_the_samplers_microbatches_in_order_with_forked_workers(workers):
    sampler = BalancedBatchSampler(steps_of(), 0)
    stream = BalancedStream(sampler, lambda place: 10 * place)
    context = "fork" if workers else None
    found = list(DataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context=context))
    assert [samples for samples, _ in found] == [[10 * place for place in places] for places in sampler]
    assert [microbatch for _, microbatch in found] == [one for step in sampler.steps() for one in step]


def looped(loader, sampler):
    """The loop of the page, two epochs: what the loader gave, and what steps() said."""
    given, said = [], []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        batches = iter(loader)
        for step in sampler.steps():
            for microbatch in step:
                given.append(list(next(batches)))
                said.append(list(microbatch.samples))
        assert next(batches, None) is None
    return given, said


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("stream", [False, True])
def test_a_loop_over_steps_gets_the_batches_of_its_steps(workers, persistent, stream):
    sampler = BalancedBatchSampler(steps_of(), 0)
    options = {"num_workers": workers, "persistent_workers": persistent}
    if stream:
        source = BalancedStream(sampler, lambda place: place, lambda samples, microbatch: samples)
        loader = DataLoader(source, batch_size=None, **options)
    else:
        loader = DataLoader(range(60), batch_sampler=sampler, collate_fn=list, **options)
    given, said = looped(loader, sampler)
    assert given == said and sorted(sum(given[: len(given) // 2], [])) != list(range(60))


def test_persistent_workers_of_a_stream_say_that_they_need_an_epoch():
    sampler = BalancedBatchSampler(steps_of(), 0)
    loader = DataLoader(BalancedStream(sampler, lambda place: place), batch_size=None, num_workers=1,
                        persistent_workers=True)
    list(loader)
    with pytest.raises(InputError, match="set_epoch"):
        list(loader)


# A job after the other, each with a process group of its own.
RANK = """
import json, sys, torch.distributed as dist
from pipeweaver.data import EpochSteps
from pipeweaver.torch.sampler import BalancedBatchSampler
rank, store = int(sys.argv[1]), sys.argv[2]
said = {}
for case in sys.argv[3:]:
    dist.init_process_group("gloo", init_method=f"file://{store}-{case}", rank=rank, world_size=2)
    tokens = [5, 6, 7, 8, 9, 10] + ([11] if case == "length" and rank else [])
    if case == "sizes" and rank:
        tokens[3] = 80
    seed = rank if case == "seed" else 0
    replica = 0 if case == "replica" else rank + (case == "outside")
    if case == "short" and rank:
        tokens = tokens[:1]
    try:
        BalancedBatchSampler(lambda: EpochSteps(tokens, 2, 4, seed=seed), replica)
        said[case] = ""
    except Exception as error:
        said[case] = str(error) or repr(error)
    dist.destroy_process_group()
print(json.dumps(said))
"""
CASES = [
    ("length", "sampler: rank 1 differs from rank 0: samples: 7 in place of 6"),
    ("sizes", "sampler: rank 1 differs from rank 0: sizes are others"),
    ("seed", "sampler: rank 1 differs from rank 0: seed: 1 in place of 0"),
    ("short", "samples_per_step: steps of 1 samples are too small for 2 replicas"),
    ("outside", "replica: is 2, must be 0 to 1"),
    ("replica", "sampler: no rank is of replica 1, and 2 share the samples"),
    ("none", ""),
]


@pytest.fixture(scope="module")
def said_by_ranks(tmp_path_factory):
    """Per rank: case -> the error, or nothing. Two processes for all cases: most of their time is PyTorch's import."""
    store = str(tmp_path_factory.mktemp("ranks") / "store")
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), store, *(case for case, _ in CASES)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}) for rank in range(2)]
    answers = [rank.communicate(timeout=300) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], answers
    return [json.loads(out.splitlines()[-1]) for out, _ in answers]


@pytest.mark.parametrize("case, message", CASES)
def test_ranks_that_differ_end_before_the_first_step(said_by_ranks, case, message):
    for said in said_by_ranks:
        assert message in said[case] and bool(said[case]) == bool(message)


STEPS = 300 if full() else 80
LINE = re.compile(r"^replica (\d) step (\d+) loss (\S+) samples \[([0-9, ]*)\]$", re.MULTILINE)


def trained(checkpoint, steps, kill_after=None):
    """Lines of the example, whose ranks are killed with their loaders' workers once it has printed a step."""
    logs = [checkpoint.with_suffix(f".{time.monotonic_ns()}.{rank}") for rank in range(2)]
    for log in logs:
        log.touch()
    ranks = example_ranks.begun(ROOT, ROOT / "examples/train_ddp_sampler.py",
                                ["--steps", str(steps), "--checkpoint", str(checkpoint)], logs)
    end = time.monotonic() + 300
    while any(rank.is_alive() for rank in ranks) and time.monotonic() < end:
        if kill_after is not None and f"replica 0 step {kill_after} " in logs[0].read_text():
            break
        time.sleep(0.01)
    for rank in ranks:
        if rank.is_alive() and time.monotonic() >= end:
            os.kill(rank.pid, signal.SIGABRT)  # one that hangs says where
            rank.join(20)
        example_ranks.end(rank)
    text = "".join(log.read_text() for log in logs)
    assert kill_after is not None or all(rank.exitcode == 0 for rank in ranks), text[-3000:]
    return {(int(step), int(replica)): (float(loss), [int(place) for place in places.split(",")])
            for replica, step, loss, places in LINE.findall(text)}


def sequential(example, steps):
    """The losses of the same job in one process, each step as one sum over the step's samples."""
    texts = example.Texts()
    plans = data.EpochSteps(texts.sizes(), 2, example.SAMPLES_PER_STEP, budget=example.BUDGET, costs=example.COSTS,
                            seed=example.SEED)
    network = example.model()
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    losses = []
    for step in range(steps):
        plan = plans.plan(*divmod(step, len(plans)))
        places = sorted(place for mine in plan.replicas for one in mine for place in one.samples)
        loss = example.mean_loss(network, example.packed([texts[place] for place in places])[1])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, len(plans)


def test_a_ddp_job_killed_and_resumed_twice_trains_as_a_sequential_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    example = __import__("train_ddp_sampler")
    checkpoint = tmp_path / "job.pt"
    found = {}
    # Steps behind the last checkpoint run again, with the same samples.
    for kill_after in (STEPS // 4, STEPS * 5 // 8, None):
        lines = trained(checkpoint, STEPS, kill_after)
        first = min(step for step, _ in lines)
        assert first == 1 if not found else first > 1 and first % 10 == 1  # behind a checkpoint
        assert all(lines[key] == found[key] for key in lines if key in found)
        found.update(lines)
        if {(STEPS, 0), (STEPS, 1)} <= lines.keys():
            break  # it was faster than who was to kill it
    assert sorted(found) == [(step, replica) for step in range(1, STEPS + 1) for replica in (0, 1)]
    losses, epoch = sequential(example, STEPS)
    for first in range(0, STEPS - epoch + 1, epoch):
        places = [place for step in range(first + 1, first + epoch + 1) for r in (0, 1) for place in found[step, r][1]]
        assert sorted(places) == list(range(example.SAMPLES))
    assert [found[step, 0][0] for step in range(1, STEPS + 1)] == pytest.approx(losses, rel=1e-9)
    assert losses[-1] < losses[0] / 2
