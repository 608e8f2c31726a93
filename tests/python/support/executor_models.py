"""Chunks for executor_plans' cases, and the same step run in one process without any of the executor."""

import weakref

import torch
from executor_package import Place, task_seed

DTYPE = torch.float64


class Probe(torch.autograd.Function):
    """The identity; its node in the graph holds a token, so live tokens are passes whose graph is alive."""

    @staticmethod
    def forward(ctx, value, watch):
        if watch is not None:
            ctx.token = watch.new_token()
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Token:
    pass


class Watch:
    """Counts what is alive on a rank."""

    def __init__(self):
        self.tokens = weakref.WeakSet()
        self.outputs = []
        self.most = 0

    def new_token(self):
        token = Token()
        self.tokens.add(token)
        self.most = max(self.most, len(self.tokens))
        return token

    def saw(self, output):
        self.outputs.append(weakref.ref(output))

    def left(self):
        return len(self.tokens) + sum(ref() is not None for ref in self.outputs)


class Chunk(torch.nn.Module):
    """Data or the previous output, other modules' items merged so that their order matters, then three blocks."""

    def __init__(self, case, m, s):
        super().__init__()
        module = case.modules[m]
        torch.manual_seed(1000 * case.seed + 10 * m + s)
        width = module.width
        self.merge = torch.nn.ModuleDict({case.modules[e.source].name:
                                          torch.nn.Linear(case.modules[e.source].width, width, dtype=DTYPE)
                                          for e in case.edges if e.target == m and e.target_stage == s})
        self.blocks = torch.nn.ModuleList(Block(width, case.dropout) for _ in range(3))
        self.watch = None
        if not module.trainable:
            self.requires_grad_(False)

    def forward(self, x, others=None):
        for name, items in (others or {}).items():
            for k, item in enumerate(items):
                x = x + torch.tanh(self.merge[name](item)).sum(0) * (k + 1) / 3
        for k, block in enumerate(self.blocks):
            x = block(x)
            if k == 0 and x.requires_grad:  # behind the first weights, in front of others: there until W
                x = Probe.apply(x, self.watch)
        if self.watch:
            self.watch.saw(x)
        return x


class Block(torch.nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, dtype=DTYPE)
        self.dropout = dropout

    def forward(self, x):
        return torch.nn.functional.dropout(torch.tanh(self.linear(x)), self.dropout)


def most_alive(actions, rank):
    """The plan's count, less what need not be kept: a pass without weights and without an input that has a gradient
    keeps nothing; one without weights, or with blocks recomputed in part and such an input, is over with I."""
    own = actions.of_rank(rank)
    has_input_gradient = {tensor.target for tensor in own.tensors.values() if tensor.gradient is not None}
    passes = [action for action in own.actions if hasattr(action, "place")]
    with_backward = {action.place for action in passes if action.op in ("B", "I")}
    alive, most = set(), 0
    for action in passes:
        place, trained = action.place, actions.stages[action.place.stage].trainable
        from_input = place in has_input_gradient
        if place not in with_backward or action.op == "W" or not (trained or from_input):
            alive.discard(place)
            continue
        if action.op != "F" or action.recompute != "full":
            alive.add(place)
        most = max(most, len(alive))
        in_part = action.recompute not in ("none", "full")
        if action.op == "B" or (action.op == "I" and from_input and (not trained or in_part)):
            alive.discard(place)
    return most


def chunks(case):
    return {case.modules[m].first + s: Chunk(case, m, s) for m, s in case.stages()}


def data(case, replica, name, microbatch, item, purpose):
    """The made-up input or target of a unit."""
    m = [module.name for module in case.modules].index(name)
    rows = case.units[replica][microbatch][m][item]
    generator = torch.Generator().manual_seed(hash((case.seed, replica, m, microbatch, item, purpose == "input")))
    return torch.randn(rows, case.modules[m].width, generator=generator, dtype=DTYPE)


def split(case, unit):
    return data(case, unit.replica, unit.module, unit.microbatch, unit.item, unit.purpose)


def loss(output, target):
    return ((output - target) ** 2).mean(1).mean(0)


def reference(case, all_chunks, seed):
    """The mean over all replicas' loss rows, and its gradients in the chunks; (loss, {(replica, place): mean loss})."""
    sums, each = torch.zeros((), dtype=DTYPE), {}
    for replica in range(case.replicas):
        for mb in range(len(case.units[replica])):
            outputs = outputs_of(case, all_chunks, replica, mb, seed)
            for at, m, u in case.losses(replica):
                if at != mb:
                    continue
                s = len(case.modules[m].ranks) - 1
                target = data(case, replica, case.modules[m].name, mb, u, "target")
                errors = ((outputs[m, s, u] - target) ** 2).mean(1)
                sums = sums + errors.sum()
                each[replica, (case.modules[m].first + s, mb, u)] = float(errors.detach().mean())
    mean = sums / case.loss_rows()
    if mean.requires_grad:
        mean.backward()
    return float(mean.detach()), each


def outputs_of(case, all_chunks, replica, mb, seed):
    outputs = {}
    for m, module in enumerate(case.modules):
        for s in range(len(module.ranks)):
            for u in range(len(case.units[replica][mb][m])):
                before = outputs[m, s - 1, u] if s else data(case, replica, module.name, mb, u, "input")
                others = {}
                for k, edge in merged_edges(case, m, s):
                    given = others.setdefault(case.modules[edge.source].name, [])
                    for v in range(len(case.units[replica][mb][edge.source])):
                        output = outputs[edge.source, edge.source_stage, v]
                        slices = case.slices.get((replica, mb, k, v, u))
                        given.append(torch.cat([output[a:b] for a, b in slices]) if slices else output)
                place = Place(module.first + s, mb, u)
                with torch.random.fork_rng([]):
                    torch.manual_seed(task_seed(seed, replica, place))
                    outputs[m, s, u] = all_chunks[place.stage](before, others)
    return outputs


def merged_edges(case, m, s):
    """Edges into a stage in the order of the stages that they come from."""
    found = [(k, e) for k, e in enumerate(case.edges) if (e.target, e.target_stage) == (m, s)]
    return sorted(found, key=lambda entry: case.modules[entry[1].source].first + entry[1].source_stage)
