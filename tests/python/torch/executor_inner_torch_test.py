"""Ranks of several GPUs: what cannot run is refused, all end together, shared weights, and the parts of chunks."""

import copy
import json
import time

import executor_layouts as layouts
import executor_layouts_torch_test as meshes
import executor_models as models
import pytest
import torch
import torch.distributed as dist
from executor_package import Executor, PipeweaverError, actions_of, check, package, parallel, parse_actions
from executor_plans import Case, Module, plan
from executor_processes import Ranks


@pytest.fixture(scope="module")
def lists(pipeweaver, tmp_path_factory):
    """A plan for two GPUs a rank, the ViT hybrid."""
    folder = tmp_path_factory.mktemp("inner") / "plan"
    return meshes.planned(pipeweaver, folder, 2, 1, (1, "hybrid"), 5, 6)


def broken(value, path, to):
    """The lists with another value at `path`; to None: without it."""
    value = copy.deepcopy(value)
    *way, last = path
    at = value
    for key in way:
        at = at[key]
    if to is None:
        del at[last]
    else:
        at[last] = to
    return value


@pytest.mark.parametrize("path, to, says", [
    (("shares", 0), None, "its stage has copies, and the plan has no share for this unit"),
    (("shares", 0, "copies", 0), [], r"shares\[0\]: (positions 0 to|sequence \d has)"),
    (("shares", 0, "lengths", 0), 3, r"shares\[0\]: (piece|positions|sequence)"),
    (("shares", 0, "copies", 0, 0), [1, 2], r"3 whole numbers are needed"),
    (("shares", 0, "copies", 0, 0), [99, 0, 4], "a piece is of sequence 99"),
    (("shares", 0, "reduction"), 0, "reduction: is 0"),
    (("shares", 0, "item"), 7, "no share for this unit"),
    (("stages", 0, "copies"), 3, "stage 0: 3 copies of 1 GPUs are not the 2 GPUs that a rank has"),
    (("gpus",), 4, "are not the 4 GPUs that a rank has"),
])
def test_layouts_that_contradict_themselves_are_refused(lists, path, to, says):
    with pytest.raises(PipeweaverError, match=says):
        check(actions_of(broken(lists[1][0], path, to)))


def test_a_copy_of_a_chain_is_every_stages(lists):
    value = broken(lists[1][0], ("stages", 0, "copies"), 1)
    with pytest.raises(PipeweaverError, match="stage 1 has 2 copies, others of vit have 1"):
        check(actions_of(value))


def raised(call):
    """The error's text, and how long it took."""
    began = time.monotonic()
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - began
    return "", 0.0


def executor_of(mesh, value, **more):
    actions = actions_of(value)
    found = {"vit": mesh.layout(1, False, False), "llm": mesh.layout(2, False, actions.sequence_parallel)}
    mine = layouts.chunks(actions.on_rank(mesh.rank), meshes.LAYERS, found)
    return mine, Executor(actions, mine, layouts.split, layouts.loss, group=mesh.pipeline, inner=mesh.inner,
                          dtype=layouts.DTYPE, timeout=300, **more)


def run_wrong(me, value):
    mesh = meshes.Mesh(2, 2, 1)
    return raised(lambda: executor_of(mesh, {**value, "gpus": 4}))[0], raised(
        lambda: executor_of(mesh, value, tied={"x": torch.nn.Parameter(torch.zeros(2))} if me == 1 else {}))[0]


def test_what_does_not_fit_is_said_by_all(lists):
    plain = copy.deepcopy(lists[1][0])
    for stage in plain["stages"]:
        for key in ("tp", "copies", "sharing"):
            stage.pop(key, None)
    plain["shares"] = []
    answers = Ranks(4, run_wrong, plain).wait(240)
    assert sorted(answers) == [0, 1, 2, 3], answers
    for gpus, tied in answers.values():
        assert gpus == "PipeweaverError: rank 0: the plan has 4 GPUs for a rank, the inner group has 2"
        assert tied == "PipeweaverError: tied['x'] is no parameter of a chunk of rank 1"


def run_fault(me, assignment, value, at, kills):
    mesh = meshes.Mesh(2, 2, 1)
    mine, executor = executor_of(mesh, value)
    chunk = next(iter(mine.values())).blocks[0]
    if me == at:
        def fails(*arguments, **named):
            if kills:
                import os
                os._exit(3)
            raise ValueError("no such thing")

        chunk.forward = fails
    return raised(lambda: executor.step(layouts.Batch(assignment)))


@pytest.mark.parametrize("at, kills", [(3, False), (1, True)])
def test_when_one_gpu_fails_all_end(lists, at, kills):
    """The others wait for it in collectives of their chunks, in gathers or in messages."""
    answers = Ranks(4, run_fault, lists[0], lists[1][0], at, kills).wait(240)
    assert sorted(answers) == [one for one in range(4) if one != at or not kills], answers
    for rank, (text, seconds) in answers.items():
        if rank == at:
            assert text == "ValueError: no such thing"
        else:
            assert f"rank {at}" in text and ("no such thing" in text) != kills, (rank, text)
        assert seconds < 150  # not after the executor's time-out


def a_case(ranks, replicas, placed):
    modules = [Module("main", placed, 6, True)]
    units = [[[[3]], [[2]], [[4]]] for _ in range(replicas)]
    return Case(31, ranks, replicas, modules, [], units, 0.0)


def run_tied(me):
    """Stages on two ranks hold a weight together: both get the sum of its gradients."""
    case = a_case(2, 2, [0, 1])
    pipelines = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    peers = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    all_chunks, others = models.chunks(case), models.chunks(case)
    for found in (all_chunks, others):
        with torch.no_grad():
            found[1].blocks[2].linear.weight.copy_(found[0].blocks[0].linear.weight)
    weight = all_chunks[me % 2].blocks[2 * (me % 2)].linear.weight
    executor = Executor(parse_actions(plan(case, me // 2, me // 2)), {me % 2: all_chunks[me % 2]}, models.split,
                        models.loss, group=pipelines[me // 2], replicas=peers[me % 2], dtype=models.DTYPE,
                        tied={"embedding": weight}, timeout=300)
    worst = 0.0
    for steps in (1, 2):  # gradients are added to those of the step before
        executor.step(case)
        models.reference(case, others, 0)
        expected = others[0].blocks[0].linear.weight.grad + others[1].blocks[2].linear.weight.grad
        assert float(expected.abs().max()) > 1e-3 * steps
        worst = max(worst, float((weight.grad - expected).abs().max()))
    return worst


def test_weights_of_two_ranks_get_the_sum_of_their_gradients():
    answers = Ranks(4, run_tied).wait(240)
    assert all(answers[rank] <= 1e-12 for rank in range(4)), answers


def run_twice_on_a_rank(me):
    """Two stages of a rank share a weight, and are reduced apart."""
    case = a_case(1, 2, [0, 0])
    lists = json.loads(plan(case, me, me))
    row, = lists["actions"]
    row[:] = [action for action in row if action["op"] != "reduce"]
    row += [{"op": "reduce", "stages": [1]}, {"op": "reduce", "stages": [0]}]
    mine, others = models.chunks(case), models.chunks(case)
    for found in (mine, others):
        found[1].blocks[2].linear = found[0].blocks[0].linear
    alone = dist.new_group([me], use_local_synchronization=True)
    Executor(actions_of(lists), mine, models.split, models.loss, group=alone, replicas=dist.group.WORLD,
             dtype=models.DTYPE, timeout=300).step(case)
    models.reference(case, others, 0)
    return max(float((a.grad - b.grad).abs().max()) for one in (0, 1)
               for a, b in zip(mine[one].parameters(), others[one].parameters()))


def test_a_weight_of_two_stages_is_summed_once():
    answers = Ranks(2, run_twice_on_a_rank).wait(240)
    assert all(answers[rank] <= 1e-12 for rank in range(2)), answers


def run_other_order(me):
    case = a_case(1, 2, [0, 0])
    lists = json.loads(plan(case, me, me))
    row, = lists["actions"]
    row[:] = [action for action in row if action["op"] != "reduce"]
    row += [{"op": "reduce", "stages": [me]}, {"op": "reduce", "stages": [1 - me]}]
    return raised(lambda: Executor(actions_of(lists), models.chunks(case), models.split, models.loss,
                                   group=dist.new_group([me], use_local_synchronization=True),
                                   replicas=dist.group.WORLD, dtype=models.DTYPE, timeout=300))[0]


def test_replicas_sum_in_one_order():
    answers = Ranks(2, run_other_order).wait(240)
    assert set(answers.values()) == {"PipeweaverError: rank 1 sums other stages' gradients, or in another order, than "
                                     "rank 0"}


def run_exchange(me, rows):
    """Heads and back, and the gradient of a product of both."""
    group = dist.group.WORLD
    torch.manual_seed(0)
    whole = torch.randn(sum(rows), 4, 3, dtype=torch.float64)
    begin = sum(rows[:me])
    x = whole[begin:begin + rows[me]].clone().requires_grad_()
    heads = parallel.exchange_heads(x, group, rows)
    same = torch.equal(heads, whole[:, me * 4 // len(rows):(me + 1) * 4 // len(rows)])
    back = parallel.exchange_rows(heads * (me + 2.0), group, rows)
    back.sum().backward()
    factors = torch.arange(2.0, 2.0 + len(rows), dtype=torch.float64).repeat_interleave(4 // len(rows)).view(1, 4, 1)
    return same, torch.equal(back, x * factors), torch.equal(x.grad, (torch.ones_like(x) * factors))


@pytest.mark.parametrize("rows", [[3, 5], [0, 4], [0, 0], [1, 2, 0, 6]])
def test_rows_go_to_heads_and_back(rows):
    answers = Ranks(len(rows), run_exchange, rows).wait(240)
    assert sorted(answers) == list(range(len(rows)))
    assert all(answer == (True, True, True) for answer in answers.values()), answers


def test_heads_that_copies_cannot_have_are_said():
    with pytest.raises(PipeweaverError, match="3 heads cannot be had by 2 copies in equal parts"):
        parallel.exchange_heads(torch.zeros(4, 3, 2), None, [2, 2])


def test_cu_seqlens_are_where_sequences_begin():
    found = parallel.cu_seqlens([3, 1, 4])
    assert found.tolist() == [0, 3, 4, 8] and found.dtype == torch.int32


def test_sequences_that_no_copy_has_whole_are_split():
    share = package.UnitShare("vit", 0, 0, (8, 4, 12), 4, tuple(tuple(package.Piece(*one) for one in copy_of)
                              for copy_of in ([(1, 0, 4), (0, 0, 8), (2, 0, 4)], [(2, 4, 12)])))
    assert share.split() == [2] and share.problem() is None
    assert share.rows_of(0, True) == ((2, 3), (0, 2), (3, 4)) and share.rows_of(1, False) == ((16, 24),)
