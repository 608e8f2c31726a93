"""What goes wrong ends on every rank, in time, with one line that says where."""

import dataclasses
import gzip
import hashlib
import json
import os
import random
import signal

import executor_models as models
import pytest
import torch
import torch.distributed as dist
from executor_package import Executor, PipeweaverError, check, check_fit, parse_actions, program_of, read_actions
from executor_plans import Case, Module, plan, random_case
from executor_processes import Ranks, say_ended, wait_for_the_others
from executor_torch_test import groups_of

TIMEOUT_S = 600.0  # nobody waits so long: what only ends then fails, since Ranks.wait is given less
SHORT_S = 5.0  # where a test waits for it to be over; on a busy machine ranks begin seconds apart


def chain(ranks, replicas=1, microbatches=3):
    """A stage on each rank, units of 2 rows."""
    return Case(5, ranks, replicas, [Module("main", list(range(ranks)), 5, True)], [],
                [[[[2]] for _ in range(microbatches)] for _ in range(replicas)], 0.0)


def text_of(case, replica=0, seed=3):
    return plan(case, replica, seed)


def changed(text, change):
    """The plan after change(json)."""
    value = json.loads(text)
    change(value)
    return json.dumps(value)


class Broken(torch.nn.Module):
    """A chunk that does something else in its second forward."""

    def __init__(self, chunk, what, ranks):
        super().__init__()
        self.chunk, self.what, self.ranks, self.calls = chunk, what, ranks, 0

    def forward(self, x, others=None):
        self.calls += 1
        if self.calls == 2:
            if self.what == "raise":
                raise ValueError("no more\nof this")
            if self.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "hang":
                wait_for_the_others(dist.get_rank(), self.ranks)
            if self.what == "shape":
                return self.chunk(x)[:1]
            if self.what == "type":
                return self.chunk(x).float()
            if self.what == "none":
                return None
            if self.what == "nan":
                return self.chunk(x) * float("nan")
        return self.chunk(x)


def run_broken(me, case, at, what, linger, timeout):
    """One step in which process `at` does `what`; (error's type, its text), or the loss."""
    pipeline, peers = groups_of(case.ranks, case.replicas)
    replica, rank = divmod(me, case.ranks)
    chunk = models.chunks(case)[rank]
    processes = case.ranks * case.replicas
    executor = Executor(parse_actions(text_of(case, replica)),
                        {rank: Broken(chunk, what, processes) if me == at else chunk},
                        models.split, models.loss, group=pipeline, replicas=peers, dtype=models.DTYPE, timeout=timeout)
    try:
        return executor.step(case).loss
    except Exception as error:
        say_ended(me)
        if linger and me == at:
            wait_for_the_others(me, processes)  # a process that goes on with other things must not hold them up
        try:
            executor.step(case)
        except PipeweaverError as again:
            assert "the executor cannot go on" in str(again)
        return type(error).__name__, str(error)


def answers_of(case, at, what, linger=False, timeout=TIMEOUT_S):
    ranks = Ranks(case.ranks * case.replicas, run_broken, case, at, what, linger, timeout)
    found = ranks.wait(240)
    assert ranks.left == [], "a process stayed"
    return found


@pytest.mark.parametrize("ranks, replicas, at, linger",
                         [(2, 1, 0, False), (2, 1, 1, True), (4, 1, 2, False), (2, 2, 1, False)])
def test_a_rank_that_raises_is_named_by_the_others(ranks, replicas, at, linger):
    found = answers_of(chain(ranks, replicas), at, "raise", linger)
    assert sorted(found) == list(range(ranks * replicas))
    for rank, (kind, text) in found.items():
        if rank == at:
            assert (kind, text) == ("ValueError", "no more\nof this")
        else:
            assert text == f"rank {at}: ValueError: no more of this"


@pytest.mark.parametrize("ranks, replicas, at", [(2, 1, 0), (2, 1, 1), (4, 1, 1), (4, 1, 3), (2, 2, 2)])
def test_a_rank_that_is_killed_is_named_by_the_others(ranks, replicas, at):
    found = answers_of(chain(ranks, replicas), at, "kill")
    assert sorted(found) == [rank for rank in range(ranks * replicas) if rank != at]
    for kind, text in found.values():
        assert kind == "LostRankError" and text.startswith(f"rank {at} was lost: "), text
        assert "\n" not in text


def test_a_rank_that_hangs_ends_the_others_after_the_time_out():
    found = answers_of(chain(4), 2, "hang", timeout=SHORT_S)
    texts = {found[rank][1] for rank in (0, 1, 3)}
    assert len(texts) == 1
    assert f" gave no answer within {SHORT_S:g} s: it, or a rank that it waits for, hangs" in texts.pop()
    for rank in (0, 1, 3):
        assert found[rank][0] == "LostRankError"


@pytest.mark.parametrize("what, text", [
    ("shape", "stage 1, microbatch {}, item 0: the plan has [2, 5] float64, the chunk gave [1, 5] float64"),
    ("type", "stage 1, microbatch {}, item 0: the plan has [2, 5] float64, the chunk gave [2, 5] float32"),
    ("none", "the chunk of stage 1, microbatch {}, item 0 gave NoneType, one tensor is needed")])
def test_an_output_that_is_not_as_planned_is_refused_before_it_is_sent(what, text):
    found = answers_of(chain(4), 1, what)
    assert found[1][0] == "PipeweaverError"
    assert any(text.format(mb) in found[1][1] for mb in range(3)), found[1][1]
    for rank in (0, 2, 3):
        assert found[rank][1] == "rank 1: PipeweaverError: " + found[1][1]


def test_a_loss_that_is_no_number_is_passed_through():
    found = answers_of(chain(2), 0, "nan")
    assert [str(found[rank]) for rank in (0, 1)] == ["nan", "nan"]


def run_refused(me, case, texts, chunk_of):
    """What the constructor says on this rank, for each plan and each choice of chunks."""
    said = []
    chunks = models.chunks(case)
    for text in texts:
        try:
            Executor(parse_actions(text), {stage: chunks[stage] for stage in chunk_of[me]}, models.split, models.loss,
                     dtype=models.DTYPE, timeout=TIMEOUT_S)
            said.append(None)
        except PipeweaverError as error:
            said.append(str(error))
    return said


def refused(texts, chunk_of=((0,), (1,))):
    """What the two ranks say, the same on both."""
    ranks = Ranks(2, run_refused, chain(2), texts, chunk_of)
    found = ranks.wait(240)
    assert ranks.left == []
    assert found[0] == found[1]
    return found[0]


def drop(op):
    def change(value):
        for row in value["actions"]:
            for k, action in enumerate(row):
                if action["op"] == op:
                    del row[k]
                    return
    return change


def swap_waits(value):
    """Rank 0 waits for its first gradient before its first forward; rank 1 cannot have made it."""
    row = value["actions"][0]
    first = next(k for k, action in enumerate(row) if action["op"] == "wait")
    received = next(k for k, action in enumerate(row) if action["op"] == "receive"
                    and action["tensor"] == row[first]["tensor"])
    wait, receive = row.pop(first), row.pop(received)
    row[:0] = [receive, wait]


def reduce_first(value):
    value["actions"][0].insert(0, value["actions"][0].pop())


def test_plans_that_cannot_run_are_refused_on_every_rank():
    good = text_of(chain(2))
    said = refused([good, text_of(chain(4)), text_of(chain(2, 2)), changed(good, drop("send")),
                    changed(good, drop("receive")), changed(good, drop("F")), changed(good, swap_waits),
                    changed(good, lambda value: value["tensors"][0].update(shape=None)),
                    changed(good, drop("reduce")), changed(good, reduce_first)])
    assert said[0] is None
    assert said[1] == "rank 0: the plan is for 4 ranks, the group has 2"
    assert said[2] == "rank 0: the plan is for 2 replicas, there are 1"
    assert "from rank 0 to rank 1 has no send" in said[3]
    assert "has no receive" in said[4]
    assert "comes before its F" in said[5] or "before it is made" in said[5]
    assert said[6].startswith("rank 0: the plan has a cycle: rank 0 waits for tensor "), said[6]
    assert "which has ended" not in said[6] and "rank 1 waits for tensor" in said[6]
    assert "has no shape: give the stages' output shapes" in said[7]
    assert said[8] == "rank 0: stage 0 is trained, but its gradients are never reduced"
    assert said[9].startswith("rank 0: rank 0: B of stage 0, ") and said[9].endswith(" comes behind the stage's reduce")


def test_missing_and_extra_chunks_are_named_on_every_rank():
    assert refused([text_of(chain(2))], ((0,), ())) == [
        "rank 1: there is no chunk for stage 1 (main layers 1 to 1), which the plan has here"]
    assert refused([text_of(chain(2))], ((0,), (0, 1))) == [
        "rank 1: there is a chunk for stage 0, which the plan has on rank 0"]


def test_a_trained_chunk_of_a_frozen_stage_is_refused():
    frozen = changed(text_of(chain(2)), lambda value: value["stages"][1].update(trainable=False))
    assert refused([frozen]) == ["rank 1: stage 1 is frozen in the plan, but its chunk has parameters that require "
                                 "gradients"]


def run_without_a_call(me, case):
    if me == 1:
        del torch.autograd.graph.get_gradient_edge
    return run_refused(me, case, [text_of(case)], ((0,), (1,)))


def test_a_torch_without_the_needed_calls_is_refused():
    found = Ranks(2, run_without_a_call, chain(2)).wait(240)
    assert found[0] == found[1] == [f"rank 1: PyTorch {torch.__version__} has no "
                                    "torch.autograd.graph.get_gradient_edge, which this plan needs"]


@pytest.mark.parametrize("change, text", [
    (lambda v: v.update(format="pipeweaver-actions/2"), "plan.format: is version 2, this executor reads version 1"),
    (lambda v: v.update(format="pipeweaver-plan/1"), "plan.format: is 'pipeweaver-plan/1', 'pipeweaver-actions/1' or "
                                                         "'pipeweaver-rank-actions/1' is needed"),
    (lambda v: v.pop("tensors"), "plan.tensors: is missing"),
    (lambda v: v["stages"][0].update(rank="a"), 'plan.stages[0].rank: is "a", which is of another type'),
    (lambda v: v["tensors"][1].update(kind="x"), "plan.tensors[1].kind: is 'x', must be one of activation, gradient"),
    (lambda v: v["actions"][1].insert(0, {"op": "G"}), "plan.actions[1][0].op: is 'G', must be one of F, B, I, W, "
                                                       "send, receive, wait, reduce")])
def test_files_of_another_format_are_refused(change, text):
    with pytest.raises(PipeweaverError) as error:
        parse_actions(changed(text_of(chain(2)), change), "plan")
    assert str(error.value) == text


def run_each(me, case, texts):
    """The loss of a step of each plan, one executor for all."""
    executor, losses = None, []
    for text in texts:
        if executor is None:
            executor = Executor(parse_actions(text), {me: models.chunks(case)[me]}, models.split, models.loss,
                                dtype=models.DTYPE, timeout=TIMEOUT_S)
        else:
            executor.load(parse_actions(text))
        losses.append(executor.step(case).loss)
    return losses


def test_what_the_check_lets_through_runs_to_its_end():
    # Any two neighbours of a list exchanged.
    text = text_of(chain(2))
    accepted, refusals, value = [text], [], json.loads(text)
    for rank, row in enumerate(value["actions"]):
        for k in range(len(row) - 1):
            other = json.loads(text)
            mine = other["actions"][rank]
            mine[k], mine[k + 1] = mine[k + 1], mine[k]
            try:
                check(parse_actions(json.dumps(other)))
                accepted.append(json.dumps(other))
            except PipeweaverError as error:
                refusals.append(str(error))
    assert len(accepted) > 10 and len(refusals) > 5
    found = Ranks(2, run_each, chain(2), accepted).wait(240)
    for rank in (0, 1):
        assert len(found[rank]) == len(accepted), found[rank]
        assert max(found[rank]) - min(found[rank]) < 1e-12


def places_in(value, path=()):
    """Paths to all values inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*path, key)
        yield from places_in(one, (*path, key))


def test_a_damaged_plan_is_refused_with_a_line_or_can_be_run():
    draw = random.Random(1)
    case = random_case(20_005, 2, 1)
    value = json.loads(text_of(case))
    paths, refused_plans = list(places_in(value)), 0
    chunks_here = {rank: {stage: chunk for stage, chunk in models.chunks(case).items()
                          if value["stages"][stage]["rank"] == rank} for rank in range(2)}
    for _ in range(400):
        damaged = json.loads(json.dumps(value))
        *way, last = draw.choice(paths)
        at = damaged
        for key in way:
            at = at[key]
        if draw.random() < 0.3:
            del at[last]
        else:
            at[last] = draw.choice([None, -1, 0, 1, 10**6, 1.5, True, "x", [], {}, [None], [[0, 0]]])
        try:
            actions = parse_actions(json.dumps(damaged))
            check(actions)
            for rank, mine in chunks_here.items():
                check_fit(program_of(actions.of_rank(rank)), mine)
        except PipeweaverError as error:
            refused_plans += 1
            assert "\n" not in str(error)
    assert refused_plans > 200


def run_reloaded(me, case, good, bad):
    executor = Executor(parse_actions(good), {me: models.chunks(case)[me]}, models.split, models.loss,
                        dtype=models.DTYPE, timeout=TIMEOUT_S)
    before = executor.step(case).loss
    with pytest.raises(PipeweaverError) as error:
        executor.load(parse_actions(bad if me == 1 else good))
    return str(error.value), executor.step(case).loss - before


def test_a_plan_that_one_rank_refuses_leaves_all_with_the_one_before():
    good = text_of(chain(2))
    found = Ranks(2, run_reloaded, chain(2), good, changed(good, drop("F"))).wait(240)
    assert found[0] == found[1]
    assert found[0][0].startswith("rank 1: ") and found[0][1] == 0


def run_otherwise(me, case, text, bad):
    plan = parse_actions(text)
    executor = Executor(plan, {me: models.chunks(case)[me]}, models.split, models.loss, dtype=models.DTYPE,
                        timeout=TIMEOUT_S)
    took = [executor.load(plan if me == 0 else one, otherwise=lambda: plan) for one in (plan, None, parse_actions(bad))]
    loss = executor.step(case).loss

    def fails_on_one():
        if me == 0:
            raise ValueError("no room")
        return plan

    with pytest.raises(PipeweaverError) as error:
        executor.load(None, otherwise=fails_on_one)
    with pytest.raises(PipeweaverError) as without:
        executor.load(None if me == 1 else plan)
    return took, str(error.value), str(without.value), executor.step(case).loss - loss


def test_where_a_rank_has_no_plan_all_take_another():
    text = text_of(chain(2))
    found = Ranks(2, run_otherwise, chain(2), text, changed(text, drop("F"))).wait(240)
    assert found[0] == found[1] == ([True, False, False], "rank 0: ValueError: no room", "rank 1 has no plan", 0)


def run_own(me, case, texts):
    """The loss of a step with this rank's own list of `texts[me]`, or the error."""
    whole = parse_actions(texts[me])
    own = dataclasses.replace(whole.of_rank(me), lists_sha256=hashlib.sha256(texts[me].encode()).hexdigest())
    check(own)
    try:
        return Executor(own, {me: models.chunks(case)[me]}, models.split, models.loss, dtype=models.DTYPE,
                        timeout=TIMEOUT_S).step(case).loss
    except PipeweaverError as error:
        return str(error)


def test_ranks_with_their_own_lists_must_have_them_of_one_plan():
    text, other = text_of(chain(2)), changed(text_of(chain(2)), lambda v: v.update(problem="other"))
    alike = Ranks(2, run_own, chain(2), [text, text]).wait(240)
    assert alike[0] == alike[1] and isinstance(alike[0], float)
    found = Ranks(2, run_own, chain(2), [text, other]).wait(240)
    assert found[0] == found[1] == "rank 1 has the lists of another plan than rank 0"


def without(op):
    """A rank's list without its first such action."""
    def change(own):
        first = next(action for action in own.actions if action.op == op)
        return dataclasses.replace(own, actions=tuple(action for action in own.actions if action is not first))
    return change


def freeing(*numbers):
    """A rank's list whose waits free these tensors."""
    def change(own):
        return dataclasses.replace(own, actions=tuple(dataclasses.replace(action, freed=numbers) if action.op == "wait"
                                                      else action for action in own.actions))
    return change


def test_a_damaged_list_of_a_rank_is_refused_with_its_file(tmp_path):
    for name, content in {"cut": gzip.compress(b"{}" * 1000)[:-9], "flipped": b"\x1f\x8b\x08\x00" + bytes(40)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PipeweaverError, match=f"{name}: cannot be read: "):
            read_actions(tmp_path / name)


@pytest.mark.parametrize("change, text", [
    (without("send"), "tensor 0 from rank 0 to rank 1 has no send"),
    (without("reduce"), "stage 0 is trained, but its gradients are never reduced"),
    (without("wait"), "rank 0: B of stage 0, microbatch 0, item 0 comes before tensor 1, which it needs, is there"),
    (without("F"), "rank 0: sends tensor 0 before it is made"),
    (freeing(1),
     "rank 0: the wait for tensor 1 frees tensor 1, which is not one that rank 1 was sent before and that is held"),
    (freeing(0, 0),
     "rank 0: the wait for tensor 1 frees tensor 0, which is not one that rank 1 was sent before and that is held"),
    (freeing(7),
     "rank 0: the wait for tensor 1 frees tensor 7, which is not one that rank 1 was sent before and that is held"),
    (lambda own: dataclasses.replace(own, rank=2), "the plan is for 2 ranks, and this list for rank 2"),
    (lambda own: dataclasses.replace(own, tensors={}), "rank 0: send of tensor 0, which does not exist")])
def test_a_rank_refuses_a_list_of_its_own_that_cannot_run(change, text):
    own = parse_actions(text_of(chain(2, microbatches=1))).of_rank(0)
    with pytest.raises(PipeweaverError) as error:
        check(change(own))
    assert str(error.value) == text


def run_late(me, case, late):
    if me == late:
        wait_for_the_others(me, case.ranks)
    with pytest.raises(PipeweaverError) as error:
        Executor(parse_actions(text_of(case)), {me: models.chunks(case)[me]}, models.split, models.loss,
                 dtype=models.DTYPE, timeout=SHORT_S)
    say_ended(me)
    return str(error.value)


@pytest.mark.parametrize("late", [0, 2])
def test_a_rank_that_does_not_load_its_plan_in_time_is_named(late):
    found = Ranks(4, run_late, chain(4), late).wait(240)
    assert {found[rank] for rank in range(4) if rank != late} == {
        f"rank {late} did not load its plan within {SHORT_S:g} s"}
