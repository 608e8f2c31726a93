"""PlannedSchedule gives the losses and gradients of Megatron's own schedules, with megatron-core's layers on CPUs.

Eight processes are TP 2 x PP 2 x DP 2, as `Job` says it; what each test does in them is one function `run_*`."""

import json
import os
import random
import pathlib
import re
import signal
import subprocess
import sys

import megatron_models as megatron
import pytest
from checkout import ROOT
from cli_shared import full
from executor_package import PipeweaverError, check, parse_actions, read_actions
from executor_plans import Case, Module, Writer
from executor_processes import CONTEXT, PRELOADED, Ranks, say_ended, wait_for_the_others
from megatron_models import Job, Trained
from served import free_port

# One import for all processes.
CONTEXT.set_forkserver_preload([*PRELOADED, "megatron.core.models.gpt", "megatron.core.models.gpt.gpt_layer_specs",
                                "megatron.core.distributed", "megatron.core.pipeline_parallel.schedules"])
TOLERANCE = 1e-6
MICROBATCHES = 4
ROWS = megatron.POSITIONS * megatron.SEQUENCES


def chain(job, microbatches=MICROBATCHES, replicas=1, rows=None):
    """A microbatch's rows through all chunks, as Megatron places them."""
    stages = [stage % job.pipeline for stage in range(job.pipeline * job.chunks)]
    units = [[[one]] for one in rows or [ROWS] * microbatches]
    return Case(0, job.pipeline, replicas, [Module("gpt", stages, megatron.WIDTH, True)], [], [units] * replicas, 0.0)


def text_of(case, seed, replica=0, again=None):
    """A random order of the case, `again` of the passes recomputed."""
    writer = Writer(case, replica, random.Random(seed))
    writer.share = 0
    writer.again = writer.again if again is None else again
    return writer.text()


def planned(actions=None, timeout=300.0):
    from pipeweaver.torch.megatron import PlannedSchedule

    return PlannedSchedule(actions, timeout)


def own_schedule():
    return megatron.schedules.get_forward_backward_func()


def answers_of(job, *arguments, processes=8, seconds=240):
    ranks = Ranks(processes, job, *arguments)
    found = ranks.wait(seconds)
    assert ranks.left == [], "a process stayed"
    for rank, answer in found.items():
        assert not isinstance(answer, str), (rank, answer)
    return found


# Ways of training, and how many random plans each is given.
WAYS = [
    (Job(), 50 if full() else 6),
    (Job(overlap=True), 2),
    (Job(overlap=True, aligned=True), 2),
    (Job(sequence_parallel=True, tied=False), 2),
    (Job(per_token=True, scale=8.0), 2),
    (Job(overlap=True, sharded=True), 2),
    (Job(experts=4, sequence_parallel=True, tied=False), 2),
    (Job(deallocate=False, chunks=3, layers=6), 2),
    (Job(chunks=1), 2),
    (Job(chunks=1, overlap=True, aligned=True), 2),
    (Job(pipeline=1, chunks=1), 2),
]


def run_in_order(trained, schedule, step, actions):
    """A step of `actions`: what it returned, its gradients, and whether its forward steps came in the plan's order."""
    seen, inner = [], trained.forward_step

    def noting(iterator, model):
        seen.append((trained.model.index(model), iterator.microbatch))
        return inner(iterator, model)

    trained.forward_step = noting
    losses, gradients = trained.run(schedule, step, MICROBATCHES)
    del trained.forward_step
    rank = megatron.parallel_state.get_pipeline_model_parallel_rank()
    return losses, gradients, seen == [
        (action.place.stage // trained.job.pipeline, action.place.microbatch)
        for action in actions.of_rank(rank).actions if getattr(action, "op", "") == "F"]


def run_ways(me, ways):
    megatron.stand_in()
    found = []
    for job, plans in ways:
        trained, schedule, worst, ordered = Trained(job), planned(), 0.0, True
        references = [trained.run(own_schedule(), step, MICROBATCHES) for step in range(2)]
        replica = megatron.parallel_state.get_data_parallel_rank()
        replicas = megatron.parallel_state.get_data_parallel_world_size()
        for seed in range(plans):
            apart = seed % 2 and not job.experts  # each replica has a plan of its own, or all have one
            case = chain(job, replicas=replicas if apart else 1)
            actions = parse_actions(text_of(case, 100 * seed + apart * replica, apart * replica))
            schedule.load(actions)
            losses, gradients, in_order = run_in_order(trained, schedule, seed % 2, actions)
            expected, ordered = references[seed % 2], ordered and in_order
            worst = max(worst, megatron.losses_apart(losses, expected[0]), megatron.apart(gradients, expected[1]))
        size = max(float(one.abs().max()) for one in references[0][1])
        found.append((worst, size, len(references[0][0]), ordered))
        trained.close()
    return found


def test_losses_and_gradients_are_those_of_megatrons_own_schedules():
    ways = [(job, plans * (4 if full() else 1)) for job, plans in WAYS]
    answers = answers_of(run_ways, ways, seconds=560)
    assert sorted(answers) == list(range(8))
    for rank, found in answers.items():
        for (job, _), (worst, size, _, ordered) in zip(ways, found, strict=True):
            assert worst <= TOLERANCE and size > 1e-3 and ordered, (rank, job, worst, size)
    # The last pipeline rank's processes have the losses.
    assert [found[0][2] for _, found in sorted(answers.items())] == [0, 0, 0, 0] + [MICROBATCHES] * 4


def run_searched(me, plans):
    """Errors under plans of the planner: (file, its {} the replica's number; microbatches of a replica)."""
    megatron.stand_in()
    trained, found = Trained(Job()), []
    for path, microbatches in plans:
        replica = megatron.parallel_state.get_data_parallel_rank()
        actions = read_actions(str(path).format(f"{replica:03}"))
        expected = trained.run(own_schedule(), 0, microbatches)
        losses, gradients = trained.run(planned(actions), 0, microbatches)
        found.append(max(megatron.losses_apart(losses, expected[0]), megatron.apart(gradients, expected[1])))
    trained.close()
    return found


STAGES = """stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes
0,0,4000,7000,,1000000,1000000,1000
1,1,9000,21000,,1000000,1000000,1000
2,0,5000,9000,,1000000,1000000,1000
3,1,3000,8000,,1000000,1000000,1000
"""
NETWORK = {"name": "gpt-small", "kind": "llm", "layers": 4, "hidden": megatron.WIDTH, "ffn": 64, "heads": 2,
           "kv_heads": 2, "head_dim": 8, "vocab": megatron.VOCABULARY, "gated": False}
MODEL = {"format": "pipeweaver-model/1", "name": "gpt", "edges": [], "microbatch_tokens": ROWS,
         "modules": [{"name": "llm", "architecture": NETWORK, "unit": "microbatch", "modalities": ["text"]}]}


def test_searched_plans_give_the_gradients_of_the_interleaved_schedule(pipeweaver, tmp_path):
    (tmp_path / "stages.csv").write_text(STAGES)
    pipeweaver("solve", "--stages", tmp_path / "stages.csv", "--microbatches", 8, "--capacity", "12MB", "--link",
               "1GB/s", "--max-rounds", 20, "--out", tmp_path / "plan")
    (tmp_path / "model.json").write_text(json.dumps(MODEL))
    (tmp_path / "batch.jsonl").write_text(
        "".join(json.dumps({"id": f"s{k}", "text_tokens": ROWS}) + "\n" for k in range(12)))
    pipeweaver("plan", "--model", tmp_path / "model.json", "--cluster", "h100-sxm:8", "--tp", 2, "--pp", 2, "--dp", 2,
               "--batch", tmp_path / "batch.jsonl", "--partition", "balanced", "--split", "never", "--max-rounds", 2,
               "--out", tmp_path / "model")
    plans = [(tmp_path / "plan/actions.json", 8), (tmp_path / "model/replica-{}/actions.json", 6)]
    answers = answers_of(run_searched, plans)
    assert len(answers) == 8 and max(map(max, answers.values())) <= TOLERANCE


def run_recomputed(me):
    """How often each layer ran in the forwards and backwards of a plan, per way of recomputation."""
    megatron.stand_in()
    trained, found = Trained(Job(pipeline=1, chunks=1, tensor=1)), {}
    calls = [0] * 4
    for k, layer in enumerate(trained.model[0].module.decoder.layers):
        layer.register_forward_pre_hook(lambda *_, k=k: calls.__setitem__(k, calls[k] + 1))
    expected = trained.run(own_schedule(), 0, 1)
    for name in ("none", "half", "full", "blocks:1", "blocks:9"):
        value = json.loads(text_of(chain(trained.job, 1), 1, again=0))
        for action in value["actions"][0]:
            action["recompute"] = name
        calls[:] = [0] * 4
        losses, gradients = trained.run(planned(parse_actions(json.dumps(value))), 0, 1)
        found[name] = list(calls), megatron.apart(gradients, expected[1]), trained.config.recompute_granularity
    trained.close()
    return found


def test_a_pass_is_recomputed_as_the_plan_says():
    found = answers_of(run_recomputed, processes=1)[0]
    assert {name: one[0] for name, one in found.items()} == {
        "none": [1] * 4, "half": [2, 2, 1, 1], "full": [2] * 4, "blocks:1": [2, 1, 1, 1], "blocks:9": [2] * 4}
    assert all(apart <= TOLERANCE and after is None for _, apart, after in found.values())


def run_evaluated(me):
    megatron.stand_in()
    trained, worst = Trained(Job()), []
    schedule = planned()
    for microbatches in (4, 6):
        expected = own_schedule()(**trained.arguments(3, microbatches, forward_only=True))
        worst.append(megatron.losses_apart(schedule(**trained.arguments(3, microbatches, forward_only=True)), expected))
    shorter = schedule(**trained.arguments(3, 3, forward_only=True))  # a number that Megatron's schedule refuses
    worst.append(megatron.losses_apart(shorter, expected[:3]))
    gathered = schedule(**trained.arguments(3, 4, forward_only=True, collect_non_loss_data=False))
    trained.close()
    return worst, len(gathered), schedule.most_alive


def test_an_evaluation_needs_no_plan():
    answers = answers_of(run_evaluated)
    assert len(answers) == 8
    assert all(max(worst) <= TOLERANCE and alive == 0 for worst, _, alive in answers.values())
    assert [count for _, (_, count, _) in sorted(answers.items())] == [0] * 4 + [4] * 4


def run_lengths(me, lengths):
    megatron.stand_in()
    # With several chunks Megatron's own schedule cannot do this where two ranks are each other's both neighbours.
    return [lengths_apart(Job(variable=True, chunks=1, sequence_parallel=parallel, tied=not parallel), lengths)
            for parallel in (False, True)]


def lengths_apart(job, lengths):
    trained = Trained(job)
    expected = trained.run(own_schedule(), 0, len(lengths), lengths=lengths)
    worst = 0.0
    for seed in range(4):
        case = chain(job, rows=[length * megatron.SEQUENCES for length in lengths])
        losses, gradients = trained.run(planned(parse_actions(text_of(case, seed))), 0, len(lengths), lengths=lengths)
        worst = max(worst, megatron.losses_apart(losses, expected[0]), megatron.apart(gradients, expected[1]))
    trained.close()
    return worst


def test_microbatches_have_the_lengths_that_the_plan_says():
    answers = answers_of(run_lengths, [8, 4, 12, 6])
    assert len(answers) == 8 and max(map(max, answers.values())) <= TOLERANCE


def changed(text, change):
    value = json.loads(text)
    change(value)
    return json.dumps(value)


def stage_on(stage, rank):
    return lambda value: value["stages"][stage].update(rank=rank)


def with_config(**values):
    def apply(trained):
        before = {key: getattr(trained.config, key) for key in values}
        for key, value in values.items():
            setattr(trained.config, key, value)
        return lambda: [setattr(trained.config, key, value) for key, value in before.items()]
    return apply


GOOD = text_of(chain(Job()), 1, again=0)


def no_longer_split(value):
    """The first backward in two parts."""
    row = value["actions"][0]
    at = next(k for k, action in enumerate(row) if action["op"] == "B")
    place = {key: row[at][key] for key in ("stage", "microbatch", "item")}
    row[at]["op"] = "I"
    row.insert(next(k for k, action in enumerate(row) if action["op"] == "reduce"), {"op": "W", "task": 99, **place})


def recomputing(value):
    for row in value["actions"]:
        for action in row:
            if action["op"] in ("F", "B"):
                action["recompute"] = "half"


def frozen(value):
    value["stages"][2]["trainable"] = False


# What is asked for: a plan, a change of the config, arguments; and the line that all ranks say.
REFUSED = [
    (text_of(chain(Job(pipeline=4, chunks=1)), 1), None, {}, "the plan is for 4 ranks, the pipeline has 2"),
    (text_of(chain(Job(chunks=1)), 1), None, {},
     "the plan has 2 stages, 2 model chunks on each of 2 ranks are 4"),
    (text_of(chain(Job(), 3), 1, again=0), None, {}, "the plan has 3 microbatches, num_microbatches is 4"),
    (text_of(chain(Job(), replicas=3), 1), None, {}, "the plan is for 3 replicas, there are 2"),
    (changed(GOOD, stage_on(2, 1)), None, {}, "stage 2 is on rank 1 in the plan, Megatron builds it on rank 0"),
    (changed(GOOD, frozen), None, {}, "stage 2 is frozen in the plan, Megatron's schedule trains all stages"),
    (changed(GOOD, lambda value: value["stages"][3].update(chain="other")), None, {},
     "the plan has the chains gpt, other, Megatron's schedule runs one"),
    (changed(GOOD, no_longer_split), None, {}, "Megatron's layers give both gradients at once"),
    (changed(GOOD, recomputing), with_config(recompute_granularity="full"), {},
     "the plan says what is recomputed, and so does config.recompute_granularity (full): leave out one of them"),
    (changed(GOOD, lambda value: value["actions"][0].pop(0)), None, {}, "before it"),
    (GOOD, None, {"seq_length": 4}, "is [16, 16] in the plan, Megatron sends 8 rows of width 16 (seq_length 4, "
                                    "micro_batch_size 2)"),
    (GOOD, with_config(overlap_moe_expert_parallel_comm=True), {},
     "config.overlap_moe_expert_parallel_comm is True, must be False: it merges passes of two microbatches"),
    (GOOD, with_config(cuda_graph_impl="local"), {}, "config.cuda_graph_impl is local, must be none"),
    (GOOD, with_config(pipeline_dtype=None), {}, "config.pipeline_dtype is None"),
    (GOOD, with_config(variable_seq_lengths=True, hidden_size=12), {}, "rows in multiples of 2 of width 12 are needed"),
    (GOOD, None, {"adjust_tensor_shapes_fn": lambda *shapes: shapes}, "adjust_tensor_shapes_fn is given"),
    (GOOD, None, {"data_iterator": [None]}, "data_iterator has 1 entries, there are 2 model chunks"),
    (None, None, {}, "there is no plan"),
]


def run_refused(me, numbers):
    """What is said where one rank alone, or with 8 every rank, has what cannot be run; and a step after it."""
    megatron.stand_in()
    trained, said = Trained(Job()), []
    schedule = planned(parse_actions(GOOD))
    expected = trained.run(schedule, 0, MICROBATCHES)[1]
    for number in numbers:
        said.append([said_of(trained, schedule, number in (me, 8), *asked) for *asked, _ in REFUSED])
    other = said_of(trained, schedule, me == 5, text_of(chain(Job()), 2, again=0), None, {})
    schedule.load(parse_actions(GOOD))
    again = megatron.apart(trained.run(schedule, 0, MICROBATCHES)[1], expected)
    trained.close()
    return said, again, other


def said_of(trained, schedule, mine, text, change, arguments):
    restore = change(trained) if change and mine else lambda: None
    schedule.load(parse_actions(text if mine else GOOD) if text or not mine else None)
    try:
        schedule(**{**trained.arguments(0, MICROBATCHES), **(arguments if mine else {})})
    except PipeweaverError as error:
        return str(error)
    finally:
        restore()
    return ""


def test_what_cannot_be_run_is_refused_on_every_rank_before_anything_is_sent():
    answers = answers_of(run_refused, [2, 8])
    assert len(answers) == 8
    for k, first in enumerate(("rank 2: ", "rank 0: ")):
        for (*_, text), *said in zip(REFUSED, *(answers[rank][0][k] for rank in range(8)), strict=True):
            assert len(set(said)) == 1 and text in said[0] and "\n" not in said[0], said
            assert said[0].startswith(first)
    # Noticed in whatever group the ranks differ, said by all.
    assert {other for *_, other in answers.values()} == {"rank 5 has the lists of another plan than rank 1"}
    assert all(again == 0 for _, again, _ in answers.values())


def run_experts(me):
    """Replicas that exchange tokens in layers, each with a plan of its own."""
    megatron.stand_in()
    trained = Trained(Job(experts=4, sequence_parallel=True, tied=False))
    replica = megatron.parallel_state.get_data_parallel_rank()
    text = text_of(chain(trained.job, replicas=2), replica, replica)
    said = said_of(trained, planned(), True, text, None, {})
    trained.close()
    return [said]


def test_replicas_that_share_experts_must_have_one_order():
    answers = answers_of(run_experts)
    assert len(answers) == 8
    assert {said for said, in answers.values()} == {"rank 2 has the lists of another plan than rank 0"}


def run_broken(me, at, what, timeout):
    """One step in which process `at` does `what` in its third forward."""
    megatron.stand_in()
    trained = Trained(Job())
    schedule, calls, inner = planned(parse_actions(GOOD), timeout), [], trained.forward_step

    def forward_step(iterator, model):
        calls.append(model)
        if me == at and len(calls) == 3:
            if what == "raise":
                raise ValueError("no more\nof this")
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "hang":
                wait_for_the_others(me, 4)  # but for its tensor parallel peer, which waits for it in a layer
        return inner(iterator, model)

    trained.forward_step = forward_step
    try:
        schedule(**trained.arguments(0, MICROBATCHES))
    except Exception as error:
        say_ended(me)
        with pytest.raises(PipeweaverError, match="the executor cannot go on"):
            schedule(**trained.arguments(0, MICROBATCHES))
        return type(error).__name__, str(error)
    return "", ""


def test_a_rank_that_raises_is_named_by_all_others(at=5):
    answers = answers_of(run_broken, at, "raise", 600.0, seconds=240)
    assert answers.pop(at) == ("ValueError", "no more\nof this")
    assert {text for _, text in answers.values()} == {f"rank {at}: ValueError: no more of this"} and len(answers) == 7


def test_a_rank_that_is_killed_ends_all_others():
    answers = answers_of(run_broken, 6, "kill", 600.0, seconds=240)
    assert sorted(answers) == [0, 1, 2, 3, 4, 5, 7]
    assert all("rank 6 was lost: " in text for _, text in answers.values()), answers


def test_a_rank_that_hangs_ends_all_others_after_the_timeout():
    answers = answers_of(run_broken, 4, "hang", 8.0, seconds=240)
    assert all("gave no answer within 8 s" in text for rank, (_, text) in answers.items() if rank != 4), answers


def test_an_iterator_is_drawn_in_its_own_order_whatever_the_plans():
    from pipeweaver.torch.megatron.data import Microbatches

    drawn = iter("abcd")
    source = Microbatches(drawn)
    assert [next(source.of(k)) for k in (2, 0, 1)] == ["c", "a", "b"]
    assert next(drawn) == "d" and Microbatches(None).of(0) is None
    with pytest.raises(StopIteration):
        next(source.of(3))
    once = Microbatches(iter("ab")).of(0)
    next(once)
    with pytest.raises(PipeweaverError, match="draws a second time from data_iterator for microbatch 0, once is"):
        next(once)


@pytest.mark.parametrize("ranks, chunks", [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)])
def test_forwards_alone_are_lists_that_run_to_their_end(ranks, chunks):
    from pipeweaver.torch.megatron.forward_only import forward_only

    for microbatches in (1, 2, 5, 8):
        actions = forward_only(ranks, chunks, microbatches)
        check(actions)
        forwards = [action.place for row in actions.lists for action in row if getattr(action, "op", "") == "F"]
        assert len(set(forwards)) == len(forwards) == ranks * chunks * microbatches


def test_the_pages_commands_train_with_the_losses_that_it_prints(pipeweaver, tmp_path):
    """The last command, the same under Megatron's own schedule, only with PIPEWEAVER_FULL."""
    page = (ROOT / "docs/megatron-schedule.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    paths = [pipeweaver.path.resolve().parent, pathlib.Path(sys.executable).parent, os.environ["PATH"]]
    printed = []
    for block in blocks if full() else blocks[:2]:
        environment = {**os.environ, "PATH": ":".join(map(str, paths)), "PET_MASTER_PORT": str(free_port()),
                       "GLOO_SOCKET_IFNAME": "lo"}
        done = subprocess.run(["bash", "-e", "-c", block], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{block}{done.stderr[-3000:]}"
        printed.append(done.stdout)
    losses = [re.findall(r"^(.*): loss ([0-9.]+)$", text, re.MULTILINE) for text in printed]
    assert len(losses[1]) == 9 and losses[-1] == losses[1]
    on_page = re.findall(r"^(.*): loss ([0-9.]+)$", page, re.MULTILINE)
    assert [float(dict(losses[1])[what]) for what, _ in on_page] == pytest.approx(
        [float(value) for _, value in on_page], abs=2e-3)
    for line in re.findall(r"^(?:plan|interleaved) .*x$", page, re.MULTILINE):
        assert line in printed[0]
