"""Offloaded passes in the executor: the gradients of passes that keep all, and nothing but weights and inputs stays."""

import json
import random
import sys

import executor_models as models
import torch
import torch.distributed as dist
from executor_package import Executor, Pass, PipeweaverError, parse_actions
from executor_plans import plan, random_case
from executor_processes import Ranks
from pytest import mark, raises
from torch import nn

passes = sys.modules[Pass.__module__]
ROWS, WIDTH = 64, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Ends(nn.Module):
    """Blocks between other layers; the first block's input is used once more behind the last."""

    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(WIDTH, WIDTH), nn.ModuleList(Block() for _ in range(4))
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        begun = x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x * torch.tanh(begun))


class Seen(passes.Offload):
    """An Offload that counts its blocks with tensors on the device, and tensors that went."""

    all = []

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.most = 0
        self.all.append(self)

    def _unpack(self, packed):
        tensor = super()._unpack(packed)
        self.most = max(self.most, self.here())
        return tensor

    def here(self):
        return sum(any(saved.own is not None for saved in group) for group in self.groups)

    def went(self):
        return sum(saved.host is not None for group in self.groups for saved in group)


def passed(recompute, split, made):
    """Gradients of a pass; of its Offload the blocks on the device behind the forward, and the most in the backward."""
    torch.manual_seed(0)
    Seen.all.clear()
    chunk = made()
    leaf = torch.randn(ROWS, WIDTH, requires_grad=True)
    one = Pass(chunk, lambda: chunk(leaf), [leaf], recompute, split, True)
    output = one.forward()
    left = [(seen.went(), seen.here()) for seen in Seen.all]
    if split:
        gradients = one.input_gradient(torch.ones_like(output))
        one.weight_gradient()
    else:
        gradients = one.backward(torch.ones_like(output))
    return [*gradients, *(weight.grad for weight in chunk.parameters())], left, [seen.most for seen in Seen.all]


@mark.parametrize("split", [False, True])
@mark.parametrize("made", [Ends, lambda: nn.Sequential(Block(), Block()), Block])
def test_offload_gives_the_gradients_of_none_to_the_bit_and_leaves_nothing_on_the_device(split, made, monkeypatch):
    monkeypatch.setattr(passes, "Offload", Seen)
    plain, *_ = passed("none", False, made)
    assert not Seen.all
    offloaded, [(went, left)], [most] = passed("offload", split, made)
    assert went >= 3 and left == 0 and 1 <= most <= 2  # a block, and the next one on its way
    assert all(torch.equal(a, b) for a, b in zip(plain, offloaded, strict=True))


class Strided(torch.autograd.Function):
    """Twice its input, which it keeps: its backward notes how that lies in memory."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        Strided.found = ctx.saved_tensors[0].stride()
        return 2 * gradient


def test_a_saved_tensor_comes_back_in_the_order_in_memory_that_it_had():
    leaf = torch.randn(3, 5, 7, requires_grad=True)
    one = Pass(Block(), lambda: Strided.apply((leaf + 1).transpose(0, 2)), [leaf], "offload", False, True)
    output = one.forward()
    one.backward(torch.ones_like(output))
    assert Strided.found == (1, 7, 35)


def offloaded(text, draw):
    """The lists with half of the passes that keep all offloaded."""
    lists = json.loads(text)
    chosen = {}
    for action in (action for rank in lists["actions"] for action in rank):
        if action.get("recompute") == "none":
            place = action["stage"], action["microbatch"], action["item"]
            if chosen.setdefault(place, draw.random() < 0.5):
                action["recompute"] = "offload"
    return json.dumps(lists), sum(chosen.values())


def run_case(me, case):
    """The largest difference from one process, what is left alive, and how many passes were offloaded."""
    text, count = offloaded(plan(case, 0, 7 * case.seed), random.Random(case.seed))
    actions, watch, mine = parse_actions(text), models.Watch(), {}
    for stage, chunk in models.chunks(case).items():
        if stage in actions.on_rank(me):
            chunk.watch = watch
            mine[stage] = chunk
    executor = Executor(actions, mine, models.split, models.loss, dtype=models.DTYPE, timeout=300)
    result = executor.step(case, seed=case.seed)
    left, others = watch.left(), models.chunks(case)
    expected, _ = models.reference(case, others, case.seed)
    apart = [abs(float(result.loss - expected))]
    for stage, chunk in mine.items():
        for weight, other in zip(chunk.parameters(), others[stage].parameters(), strict=True):
            zero = torch.zeros_like(weight)
            apart.append(float(((zero if weight.grad is None else weight.grad) -
                                (zero if other.grad is None else other.grad)).abs().max()))
    return max(apart), left, count


def run_cases(me, seeds):
    assert dist.get_backend() == "gloo"
    return [run_case(me, random_case(seed, 2, 1)) for seed in seeds]


def test_offloaded_passes_run_on_gloo_with_the_gradients_of_one_process():
    answers = Ranks(2, run_cases, range(40, 50)).wait(240)
    for found in answers.values():
        assert not isinstance(found, str), found
        assert all(apart < 1e-9 and left == 0 for apart, left, _ in found), found
    assert sum(count for *_, count in answers[0]) > 20


def test_an_unknown_way_to_keep_activations_is_refused():
    lists = json.loads(plan(random_case(40, 2, 1), 0, 1))
    next(action for action in lists["actions"][0] if action["op"] == "F")["recompute"] = "nvme"
    with raises(PipeweaverError, match="is 'nvme', the executor knows none, selective, half, full, offload and blocks"):
        parse_actions(json.dumps(lists))
