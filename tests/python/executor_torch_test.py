"""The executor's losses and gradients are those of one process, on random plans."""

import gc

import executor_models as models
import pytest
import torch
import torch.distributed as dist
from executor_plans import plan, random_case
from executor_processes import Ranks

from pipeweaver.torch import Executor, Place, parse_actions

TOLERANCE = 1e-10


def groups_of(ranks, replicas):
    """This process's pipeline and its peers in the other replicas; every process makes all groups."""
    pipelines = [dist.new_group([r * ranks + p for p in range(ranks)]) for r in range(replicas)]
    peers = [dist.new_group([r * ranks + p for r in range(replicas)]) for p in range(ranks)]
    me = dist.get_rank()
    return pipelines[me // ranks], peers[me % ranks] if replicas > 1 else None


def error(found, expected):
    """Largest difference, relative to the largest expected value where that is above 1."""
    return float((found - expected).abs().max() / max(1.0, float(expected.abs().max()))) if expected.numel() else 0.0


def gradient_error(chunk, other):
    worst = 0.0
    for mine, expected in zip(chunk.parameters(), other.parameters()):
        zero = torch.zeros_like(mine)
        worst = max(worst, error(zero if mine.grad is None else mine.grad,
                                 zero if expected.grad is None else expected.grad))
    return worst


def run_case(case, me, pipeline, peers):
    """One step on this rank, compared; what was found, as a dict."""
    replica, rank = me // case.ranks, me % case.ranks
    actions = parse_actions(plan(case, replica, 7 * case.seed + replica))
    watch, mine = models.Watch(), {}
    for stage, chunk in models.chunks(case).items():
        if stage in actions.on_rank(rank):
            chunk.watch = watch
            mine[stage] = chunk

    def split(batch, unit):
        return models.data(batch, unit.replica, unit.module, unit.microbatch, unit.item, unit.purpose)

    executor = Executor(actions, mine, split, models.loss, group=pipeline, replicas=peers, dtype=models.DTYPE,
                        timeout=30)
    result = executor.step(case, seed=case.seed)
    left = watch.left()
    others = models.chunks(case)
    expected, each = models.reference(case, others, case.seed)
    own = {Place(*place): value for (at, place), value in each.items() if at == replica and place[0] in mine}
    assert set(own) == set(result.losses)
    worst = max([abs(result.loss - expected)] + [abs(result.losses[place] - own[place]) for place in own] +
                [gradient_error(chunk, others[stage]) for stage, chunk in mine.items()])
    return {"seed": case.seed, "error": worst, "left": left, "alive": (watch.most, result.most_alive),
            "planned": actions.most_alive[rank], "frozen": not all(module.trainable for module in case.modules)}


def run_cases(me, ranks, replicas, seeds):
    pipeline, peers = groups_of(ranks, replicas)
    gc.disable()  # what is left must not wait for the collector
    return [run_case(random_case(seed, ranks, replicas), me, pipeline, peers) for seed in seeds]


@pytest.mark.parametrize("ranks, replicas, count", [(2, 1, 80), (4, 1, 50), (2, 2, 50), (4, 2, 30)])
def test_losses_and_gradients_are_those_of_one_process(ranks, replicas, count):
    first = 10_000 * ranks + 1000 * replicas
    answers = Ranks(ranks * replicas, run_cases, ranks, replicas, range(first, first + count)).wait(300)

    assert sorted(answers) == list(range(ranks * replicas))
    for rank, found in answers.items():
        assert not isinstance(found, str), found
        assert len(found) == count
        for one in found:
            assert one["error"] <= TOLERANCE, (rank, one)
            assert one["left"] == 0, (rank, one)
            # The executor counts as the graphs' own tokens do, and as the plan says; frozen modules may keep less.
            assert one["alive"][0] == one["alive"][1], (rank, one)
            assert one["alive"][0] <= one["planned"] if one["frozen"] else one["alive"][0] == one["planned"], (rank, one)
