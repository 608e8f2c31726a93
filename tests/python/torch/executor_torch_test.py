"""The executor's losses and gradients are those of one process, on random plans."""

import gc
import itertools
import json
import random

import executor_models as models
import executor_products as products
import pytest
import torch
import torch.distributed as dist
from cli_shared import full
from executor_package import Executor, Pass, Place, parse_actions, read_actions, task_seed
from executor_plans import Case, Edge, Module, plan, random_case
from executor_processes import Ranks

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
    executor = Executor(actions, mine, models.split, models.loss, group=pipeline, replicas=peers, dtype=models.DTYPE,
                        timeout=300)
    result = executor.step(case, seed=case.seed)
    left = watch.left()
    others = models.chunks(case)
    expected, each = models.reference(case, others, case.seed)
    own = {Place(*place): value for (at, place), value in each.items() if at == replica and place[0] in mine}
    assert set(own) == set(result.losses)
    worst = max([abs(result.loss - expected)] + [abs(result.losses[place] - own[place]) for place in own] +
                [gradient_error(chunk, others[stage]) for stage, chunk in mine.items()])
    return {"seed": case.seed, "error": worst, "left": left, "alive": (watch.most, result.most_alive),
            "planned": actions.most_alive[rank], "kept": models.most_alive(actions, rank),
            "exact": all(module.trainable for module in case.modules) and not half_and_split(actions.of_rank(rank))}


def half_and_split(own):
    """Whether some input gradient of the rank recomputes in part: the executor then computes the weights' with it."""
    return any(getattr(action, "op", "") == "I" and action.recompute not in ("none", "full") for action in own.actions)


def run_cases(me, ranks, replicas, seeds):
    pipeline, peers = groups_of(ranks, replicas)
    gc.disable()  # what is left must not wait for the collector
    return [run_case(random_case(seed, ranks, replicas), me, pipeline, peers) for seed in seeds]


@pytest.mark.parametrize("ranks, replicas, count", [(2, 1, 80), (4, 1, 50), (2, 2, 50), (4, 2, 30)])
def test_losses_and_gradients_are_those_of_one_process(ranks, replicas, count):
    """Of so many random plans the first fifth; with PIPEWEAVER_FULL all."""
    count = count if full() else count // 5
    first = 10_000 * ranks + 1000 * replicas
    answers = Ranks(ranks * replicas, run_cases, ranks, replicas, range(first, first + count)).wait(300)

    assert sorted(answers) == list(range(ranks * replicas))
    for rank, found in answers.items():
        assert not isinstance(found, str), found
        assert len(found) == count
        for one in found:
            assert one["error"] <= TOLERANCE, (rank, one)
            assert one["left"] == 0, (rank, one)
            # The executor counts as the graphs' own tokens do, and as the plan says, where all of it need be kept.
            assert one["alive"] == (one["kept"], one["kept"]), (rank, one)
            assert one["kept"] == one["planned"] if one["exact"] else one["kept"] <= one["planned"], (rank, one)
    assert sum(one["exact"] for one in answers[0]) > count / 5


def run_twice(me, case):
    """A step, and one more that adds its gradients to the first's: the error against twice the first's."""
    pipeline, peers = groups_of(case.ranks, case.replicas)
    actions = parse_actions(plan(case, me // case.ranks, 1))
    mine = {stage: chunk for stage, chunk in models.chunks(case).items() if stage in actions.on_rank(me % case.ranks)}
    executor = Executor(actions, mine, models.split, models.loss, group=pipeline, replicas=peers, dtype=models.DTYPE,
                        timeout=300)
    executor.step(case)
    weights = [weight for chunk in mine.values() for weight in chunk.parameters() if weight.grad is not None]
    once = [weight.grad.clone() for weight in weights]
    executor.step(case)
    return max(error(weight.grad, 2 * first) for weight, first in zip(weights, once))


def test_gradients_are_added_to_those_of_the_step_before():
    modules = [Module("enc", [0, 1], 6, True), Module("main", [0, 1], 8, True, first=2)]
    case = Case(9, 2, 2, modules, [Edge(0, 1, 1, 0)], [[[[3, 2], [4]]], [[[1], [5]], [[], [2]]]], 0.0)
    answers = Ranks(4, run_twice, case).wait(240)
    assert all(answers[rank] <= TOLERANCE for rank in range(4)), answers


def test_every_pass_draws_numbers_of_its_own():
    keys = list(itertools.product(range(4), repeat=5))
    assert len({task_seed(seed, replica, Place(*place)) for seed, replica, *place in keys}) == len(keys)


@pytest.mark.parametrize("recompute, calls", [("none", [1, 1, 1]), ("half", [2, 2, 1]), ("full", [2, 2, 2]),
                                              ("blocks:1", [2, 1, 1]), ("blocks:2", [2, 2, 1]),
                                              ("blocks:9", [2, 2, 2])])
@pytest.mark.parametrize("split", [False, True])
def test_the_first_blocks_or_all_run_again(recompute, calls, split):
    blocks = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))
    found = [0, 0, 0]
    for k, block in enumerate(blocks):
        inner = block.forward

        def counted(x, k=k, inner=inner):
            found[k] += 1
            return inner(x)

        block.forward = counted
    leaf = torch.ones(4, 2, requires_grad=True)
    one = Pass(blocks, lambda: blocks(leaf), [leaf], recompute, split, True)
    one.forward()
    one.again()
    if split:
        one.input_gradient(torch.ones(4, 2))
        one.weight_gradient()
    else:
        one.backward(torch.ones(4, 2))
    assert found == calls
    assert all(block.weight.grad is not None for block in blocks)


def test_the_first_blocks_of_each_part_run_again():
    blocks = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(5)))
    leaf = torch.ones(4, 2, requires_grad=True)
    inner, found = [block.forward for block in blocks], []
    for k, block in enumerate(blocks):
        block.forward = lambda x, k=k: (found.append(k), inner[k](x))[1]
    one = Pass(blocks, lambda: blocks(leaf), [leaf], "blocks:2", False, True, layers=[3, 2])
    one.forward()
    one.again()
    one.backward(torch.ones(4, 2))
    assert sorted(found) == [0, 0, 1, 1, 2, 3, 3, 4, 4]


# modules, layers of each, frozen modules, partition
PRODUCTS = [
    (["llm"], {"llm": 4}, [], "megatron"),
    (["llm"], {"llm": 9}, [], "balanced"),
    (["vit", "llm"], {"vit": 4, "llm": 4}, [], "dip"),
    (["vit", "llm"], {"vit": 4, "llm": 8}, ["vit"], "dip"),
    (["vit", "llm"], {"vit": 5, "llm": 4}, ["llm"], "dip"),
    (["vit", "llm"], {"vit": 4, "llm": 5}, [], "megatron"),
    (["vit", "llm"], {"vit": 8, "llm": 4}, ["vit"], "balanced"),
    (["vit", "aud", "llm"], {"vit": 4, "aud": 4, "llm": 8}, [], "dip"),
    (["vit", "aud", "llm"], {"vit": 4, "aud": 5, "llm": 4}, ["vit"], "dip"),
    (["llm", "dit"], {"llm": 4, "dit": 4}, [], "dip"),
    (["llm", "dit"], {"llm": 4, "dit": 4}, ["llm"], "dip"),
]


def run_products(me, ranks, replicas, folders):
    pipeline, peers = groups_of(ranks, replicas)
    return [run_product(folder, me // ranks, me % ranks, pipeline, peers) for folder in folders]


def run_product(folder, replica, rank, pipeline, peers):
    model = json.loads((folder / "model.json").read_text())
    images = {sample["id"]: len(sample["images"])
              for sample in map(json.loads, (folder / "batch.jsonl").read_text().splitlines())}
    batch = products.Batch(json.loads((folder / "out/assignment.json").read_text()), images)
    own = folder / f"out/replica-{replica:03}/actions/rank-{rank:03}.json.gz"
    actions = read_actions(own if own.exists() else folder / f"out/replica-{replica:03}/actions.json")
    mine = products.chunks(actions.on_rank(rank), model)
    result = Executor(actions, mine, products.split, products.loss, group=pipeline, replicas=peers,
                      dtype=products.DTYPE, timeout=300).step(batch)
    others = products.chunks(actions.stages, model)
    expected = products.reference(batch, actions.stages, others)
    worst = max([abs(result.loss - expected)] + [gradient_error(chunk, others[stage]) for stage, chunk in mine.items()])
    mine = actions.of_rank(rank)
    ops = {action.op for action in mine.actions}
    return {"folder": str(folder), "error": worst, "alive": result.most_alive, "planned": mine.most_alive,
            "kept": models.most_alive(actions, rank), "split": "W" in ops,
            "exact": all(stage.trainable for stage in actions.stages.values()) and not half_and_split(mine)}


@pytest.mark.parametrize("ranks, replicas", [(2, 1), (4, 1), (2, 2)])
def test_plans_of_the_planner_run(pipeweaver, tmp_path, ranks, replicas):
    folders = []
    for number, (names, layers, frozen, partition) in enumerate(PRODUCTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        folders.append(folder)
        (folder / "model.json").write_text(json.dumps(products.model_file(names, layers, frozen)))
        (folder / "batch.jsonl").write_text(products.batch_lines(number + 31 * ranks + replicas, 10 * replicas, names))
        pipeweaver("plan", "--model", folder / "model.json", "--cluster", f"h100-sxm:{ranks * replicas}", "--tp", 1,
                   "--pp", ranks, "--dp", replicas, "--batch", folder / "batch.jsonl", "--partition", partition,
                   "--actions", "by-rank" if number % 2 else "whole", "--max-rounds", 2, "--out", folder / "out")
    answers = Ranks(ranks * replicas, run_products, ranks, replicas, folders).wait(240)

    assert sorted(answers) == list(range(ranks * replicas))
    for rank, found in answers.items():
        assert not isinstance(found, str), found
        for one in found:
            assert one["error"] <= TOLERANCE, (rank, one)
            assert one["alive"] == one["kept"], (rank, one)
            assert one["kept"] == one["planned"] if one["exact"] else one["kept"] <= one["planned"], (rank, one)
    assert any(one["split"] for one in answers[0])


def test_a_plan_whose_passes_all_offload_runs(pipeweaver, tmp_path):
    names, layers, frozen, partition = PRODUCTS[0]
    (tmp_path / "model.json").write_text(json.dumps(products.model_file(names, layers, frozen)))
    (tmp_path / "batch.jsonl").write_text(products.batch_lines(7, 10, names))
    pipeweaver("plan", "--model", tmp_path / "model.json", "--cluster", "h100-sxm:2", "--tp", 1, "--pp", 2, "--dp", 1,
               "--batch", tmp_path / "batch.jsonl", "--partition", partition, "--recompute", "offload", "--replicas", 0,
               "--max-rounds", 2, "--out", tmp_path / "out")  # replicas that are named: no opponent is the plan
    lists = json.loads((tmp_path / "out/replica-000/actions.json").read_text())
    backwards = [action for rank in lists["actions"] for action in rank if action["op"] in ("B", "I")]
    assert backwards and all(action["recompute"] == "offload" for action in backwards)
    answers = Ranks(2, run_products, 2, 1, [tmp_path]).wait(240)

    for [found] in answers.values():
        assert found["error"] <= TOLERANCE and found["alive"] == found["kept"] <= found["planned"], found


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def a_step(number):
    """Another batch for the same four stages: other units, rows, orders, recomputation and splits."""
    draw = random.Random(number)
    modules = [Module("enc", [0, 1], 6, True), Module("main", [0, 1], 8, True, first=2)]
    case = Case(77, 2, 1, modules, [Edge(0, 1, 1, 0)], [[]], 0.2)
    for _ in range(draw.randint(1, 5)):
        case.units[0].append([[draw.randint(1, 40) for _ in range(draw.randint(0, 3))], [draw.randint(1, 40)]])
    return case


def run_many_steps(me, count):
    """One executor, a new plan each step; the worst error, and the bytes that the process grew by from step to step."""
    case = a_step(0)
    chunks, others = models.chunks(case), models.chunks(case)
    mine = {stage: chunk for stage, chunk in chunks.items() if stage % 2 == me}
    executor, worst, bytes_after = None, 0.0, []
    for number in range(count):
        case = a_step(number)
        actions = parse_actions(plan(case, 0, number))
        if executor is None:
            executor = Executor(actions, mine, models.split, models.loss, dtype=models.DTYPE, timeout=300)
        else:
            executor.load(actions)
        for chunk in [*chunks.values(), *others.values()]:
            chunk.zero_grad()
        result = executor.step(case, seed=number)
        expected, _ = models.reference(case, others, number)
        worst = max([worst, abs(result.loss - expected)] +
                    [gradient_error(chunk, others[stage]) for stage, chunk in mine.items()])
        bytes_after.append(resident_bytes())
    return worst, bytes_after


@pytest.mark.alone
def test_steps_with_a_new_plan_each_keep_the_memory_flat():
    count = 100 if full() else 60
    answers = Ranks(2, run_many_steps, count).wait(300)
    assert sorted(answers) == [0, 1], answers
    for worst, bytes_after in answers.values():
        assert worst <= TOLERANCE
        assert bytes_after[-1] - bytes_after[count // 2 - 1] < 4 << 20, [one >> 20 for one in bytes_after]
