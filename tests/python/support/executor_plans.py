"""Random steps of small models, and plans for them in a random valid order, written by the book (docs/formats.md) and
by nothing of the planner."""

import json
import random
from dataclasses import dataclass, field


@dataclass
class Module:
    name: str
    ranks: list  # of its stages
    width: int
    trainable: bool
    first: int = 0  # number of its first stage
    target: bool = False


@dataclass
class Edge:
    source: int  # module
    source_stage: int
    target: int
    target_stage: int
    sliced: bool = False


@dataclass
class Case:
    """A step: modules, edges, and units[replica][microbatch][module] = rows of each unit."""

    seed: int
    ranks: int
    replicas: int
    modules: list
    edges: list
    units: list
    dropout: float
    slices: dict = field(default_factory=dict)

    def stages(self):
        return [(m, s) for m, module in enumerate(self.modules) for s in range(len(module.ranks))]

    def reached(self):
        """Per module whether a backward reaches it."""
        reached = []
        for m, module in enumerate(self.modules):
            reached.append(module.trainable or any(reached[e.source] for e in self.edges if e.target == m))
        return reached

    def losses(self, replica):
        """(microbatch, module, unit) whose output nobody takes."""
        taken = {(mb, e.source) for mb, rows in enumerate(self.units[replica]) for e in self.edges if rows[e.target]
                 and e.source_stage == len(self.modules[e.source].ranks) - 1}
        return [(mb, m, u) for mb, rows in enumerate(self.units[replica]) for m in range(len(self.modules))
                for u in range(len(rows[m])) if (mb, m) not in taken]

    def loss_rows(self):
        return sum(self.units[r][mb][m][u] for r in range(self.replicas) for mb, m, u in self.losses(r))


# source -> target by names; the main module takes every microbatch as one unit.
MODELS = [
    (["main"], []),
    (["enc", "main"], [("enc", "main")]),
    (["enc", "main"], [("enc", "main")]),
    (["enc", "aud", "main"], [("enc", "main"), ("aud", "main")]),
    (["enc", "main", "gen"], [("enc", "main"), ("main", "gen")]),
    (["enc", "main", "gen"], [("enc", "main"), ("main", "gen"), ("enc", "gen")]),
    (["main", "gen"], [("main", "gen")]),
]


def random_case(seed, ranks, replicas):
    draw = random.Random(seed)
    names, joined = draw.choice(MODELS)
    modules, first = [], 0
    for name in names:
        count = draw.choice([1, 2, ranks, ranks, ranks + 1])
        shift = draw.randrange(ranks)
        placed = [(s + shift) % ranks if draw.random() < 0.8 else draw.randrange(ranks) for s in range(count)]
        modules.append(Module(name, placed, draw.randint(4, 8), draw.random() < 0.75, first))
        first += count
    if not any(module.trainable for module in modules):
        draw.choice(modules).trainable = True
    edges = []
    for source, target in joined:
        a, b = names.index(source), names.index(target)
        edges.append(Edge(a, len(modules[a].ranks) - 1, b, 0, sliced=source == "main"))
        if draw.random() < 0.3:  # a skip edge into a later stage, sometimes out of an earlier one
            edges.append(Edge(a, draw.randrange(len(modules[a].ranks)), b, draw.randrange(len(modules[b].ranks))))
    edges = list({(e.source, e.source_stage, e.target, e.target_stage): e for e in edges}.values())
    case = Case(seed, ranks, replicas, modules, edges, [], draw.choice([0.0, 0.0, 0.3]))
    for _ in range(replicas):
        microbatches = []
        for _ in range(draw.randint(1, 4)):
            counts = [1 if name == "main" else draw.choice([0, 1, 1, 2, 3]) for name in names]
            microbatches.append([[draw.randint(1, 5) for _ in range(count)] for count in counts])
        case.units.append(microbatches)
    for r, microbatches in enumerate(case.units):
        for mb, rows in enumerate(microbatches):
            for k, edge in enumerate(case.edges):
                for u, high in enumerate(rows[edge.source]):
                    for v in range(len(rows[edge.target])):
                        if edge.sliced and draw.random() < 0.7:
                            case.slices[r, mb, k, u, v] = random_slices(draw, high)
    return case


def random_slices(draw, rows):
    """One or two ranges, perhaps overlapping, perhaps empty."""
    slices = []
    for _ in range(draw.choice([1, 1, 2])):
        first = draw.randint(0, rows)
        slices.append([first, draw.randint(first, rows)])
    return slices


def plan(case, replica, seed):
    """A valid plan of one replica as the text of actions.json: a random order, random recomputation, random splits."""
    draw = random.Random(seed)
    return Writer(case, replica, draw).text()


class Writer:
    def __init__(self, case, replica, draw):
        self.case, self.replica, self.draw = case, replica, draw
        self.reached = case.reached()
        self.tensors = []
        self.tasks = {}  # (op, place) -> what it needs: set of (op, place)
        self.recompute = {}
        self.split = set()
        self.share = draw.choice([0, 0.5, 1])
        self.again = draw.choice([0, 0.5, 1])

    def place(self, m, s, mb, u):
        return (self.case.modules[m].first + s, mb, u)

    def rank(self, place):
        for module in self.case.modules:
            if module.first <= place[0] < module.first + len(module.ranks):
                return module.ranks[place[0] - module.first]

    def text(self):
        for mb, rows in enumerate(self.case.units[self.replica]):
            for m, module in enumerate(self.case.modules):
                for u, count in enumerate(rows[m]):
                    self.add_unit(mb, m, u, module, count)
            for k, edge in enumerate(self.case.edges):
                for u, count in enumerate(rows[edge.source]):
                    for v in range(len(rows[edge.target])):
                        slices = self.case.slices.get((self.replica, mb, k, u, v))
                        self.join(self.place(edge.source, edge.source_stage, mb, u), edge.source,
                                  self.place(edge.target, edge.target_stage, mb, v), edge.target, count, "item", slices)
        lists, alive = self.lists(self.order())
        return json.dumps({"format": "pipeweaver-actions/1", "problem": f"case-{self.case.seed}",
                           "replica": self.replica, "replicas": self.case.replicas, "ranks": self.case.ranks,
                           "most_alive": alive, "stages": self.stages(), "tensors": self.tensors, "actions": lists})

    def add_unit(self, mb, m, u, module, rows):
        for s in range(len(module.ranks)):
            place = self.place(m, s, mb, u)
            self.tasks["F", place] = set()
            if self.reached[m]:
                self.recompute[place] = (self.draw.choice(["half", "full"]) if self.draw.random() < self.again
                                         else "none")
                backward = "I" if self.draw.random() < self.share else "B"
                self.tasks[backward, place] = {("F", place)}
                if backward == "I":
                    self.split.add(place)
                    self.tasks["W", place] = {("I", place)}
            if s:
                self.join(self.place(m, s - 1, mb, u), m, place, m, rows, "previous", None)

    def backward_of(self, place):
        return ("I" if place in self.split else "B", place)

    def join(self, source, source_module, target, target_module, rows, how, slices):
        def named(place):
            return dict(zip(("stage", "microbatch", "item"), place))

        self.tasks["F", target].add(("F", source))
        count = sum(end - first for first, end in slices) if slices else rows
        number = len(self.tensors)
        shape = [count, self.case.modules[source_module].width]
        gradient = self.reached[source_module]
        self.tensors.append({"tensor": number, "kind": "activation", "from": named(source), "to": named(target),
                             "shape": shape, "gradient": number + 1 if gradient else None, "join": how,
                             "dtype": "bf16"})
        if slices:
            self.tensors[-1]["slices"] = slices
        if gradient:
            self.tasks[self.backward_of(source)].add(self.backward_of(target))
            self.tensors.append({"tensor": number + 1, "kind": "gradient", "from": named(target), "to": named(source),
                                 "shape": shape, "of": number, "dtype": "bf16"})

    def order(self):
        """A random topological order of all tasks; sometimes backwards first, sometimes forwards first."""
        waiting = {task: set(needs) for task, needs in self.tasks.items()}
        prefer = self.draw.choice(["F", "BIW", "", ""])
        order = []
        while waiting:
            ready = sorted(task for task, needs in waiting.items() if not needs)
            liked = [task for task in ready if task[0] in prefer]
            task = self.draw.choice(liked or ready)
            del waiting[task]
            for needs in waiting.values():
                needs.discard(task)
            order.append(task)
        return order

    def lists(self, order):
        """The rows of all ranks, and the most passes alive on each."""
        rows = [[] for _ in range(self.case.ranks)]
        alive, most = [0] * self.case.ranks, [0] * self.case.ranks
        losses = {self.place(m, len(self.case.modules[m].ranks) - 1, mb, u): self.case.units[self.replica][mb][m][u]
                  for mb, m, u in self.case.losses(self.replica)}
        total = self.case.loss_rows()
        reducing = self.last_backwards(order)
        for number, (op, place) in enumerate(order):
            rank = self.rank(place)
            forward = op == "F"
            mine = [t for t in self.tensors if (t["kind"] == "activation") == forward and op != "W"]
            for t in mine:
                if tuple(t["to"].values()) == place and self.rank(tuple(t["from"].values())) != rank:
                    rows[rank].append({"op": "wait", "tensor": t["tensor"]})
            action = {"op": op, "task": number, **dict(zip(("stage", "microbatch", "item"), place)), "module": "x"}
            if op != "W":
                action["recompute"] = self.recompute.get(place, "none")
            if forward and place in losses:
                action["loss_weight"] = losses[place] / total
            rows[rank].append(action)
            for t in mine:
                peer = self.rank(tuple(t["to"].values()))
                if tuple(t["from"].values()) == place and peer != rank:
                    rows[rank].append({"op": "send", "tensor": t["tensor"], "peer": peer, "tag": t["tensor"]})
                    rows[peer].append({"op": "receive", "tensor": t["tensor"], "peer": rank, "tag": t["tensor"]})
            if place in self.recompute:
                full = self.recompute[place] == "full"
                alive[rank] += (forward and not full) or (op in "BI" and full)
                most[rank] = max(most[rank], alive[rank])
                alive[rank] -= op == "W" or op == "B"
            if reducing[rank] == number:
                rows[rank].append({"op": "reduce", "stages": self.trained_on(rank)})
        for rank, last in enumerate(reducing):
            if last is None and self.trained_on(rank):
                rows[rank].insert(0, {"op": "reduce", "stages": self.trained_on(rank)})
        return rows, most

    def last_backwards(self, order):
        last = [None] * self.case.ranks
        for number, (op, place) in enumerate(order):
            if op != "F" and place[0] in self.trained_on(self.rank(place)):
                last[self.rank(place)] = number
        return last

    def trained_on(self, rank):
        return [module.first + s for module in self.case.modules if module.trainable
                for s, on in enumerate(module.ranks) if on == rank]

    def stages(self):
        stages = []
        for m, s in self.case.stages():
            module = self.case.modules[m]
            inputs = [self.case.modules[e.source].name for e in self.case.edges
                      if e.target == m and e.target_stage == s]
            stages.append({"stage": module.first + s, "rank": module.ranks[s], "chain": module.name,
                           "trainable": module.trainable, "gradient": self.reached[m], "reads_batch": s == 0,
                           "inputs": list(dict.fromkeys(inputs)),
                           "parts": [{"module": module.name, "first_layer": s, "layers": 1,
                                      "trainable": module.trainable}]})
        return stages
