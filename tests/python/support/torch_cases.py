"""Random chains of stages with a schedule, by number, as problem and solution; half of them break a rule of PyTorch's
runtime on purpose. Made without the program, by docs/formats.md."""

import json
import random
from dataclasses import dataclass, field


@dataclass
class Case:
    """A chain; tasks by (kind, stage, microbatch), edges between them, and each rank's order."""

    seed: int
    ranks: int
    stage_to_rank: list
    microbatches: int
    broken: str = ""  # what PyTorch cannot run about it; "" where it can
    tasks: dict = field(default_factory=dict)
    edges: list = field(default_factory=list)
    pairs: list = field(default_factory=list)
    parts: list = field(default_factory=list)  # of each stage; none: a layer each
    order: list = field(default_factory=list)  # of the keys of tasks, all ranks' together

    @property
    def stages(self):
        return len(self.stage_to_rank)

    def rows(self):
        """Each rank's part of the order."""
        return [[key for key in self.order if self.tasks[key]["rank"] == rank] for rank in range(self.ranks)]

    def write(self, folder):
        """problem.json and solution.json."""
        number = {key: n for n, key in enumerate(self.tasks)}
        pairs = [{**pair, **{end: number[pair[end]] for end in ("forward", "backward", "weight") if end in pair}}
                 for pair in self.pairs]
        parts = self.parts or [[{"module": "llm", "first_layer": s, "layers": 1}] for s in range(self.stages)]
        problem = {"format": "pipeweaver-problem/1", "name": f"case-{self.seed}",
                   "ranks": [{"capacity_bytes": None, "base_bytes": 0}] * self.ranks,
                   "stages": [{"stage": s, "rank": r, "parts": parts[s]} for s, r in enumerate(self.stage_to_rank)],
                   "tasks": [{"id": number[key], **task} for key, task in self.tasks.items()],
                   "edges": [[number[a], number[b], 0] for a, b in self.edges], "pairs": pairs}
        solution = {"format": "pipeweaver-solution/1", "problem": problem["name"],
                    "order": [[number[key] for key in row] for row in self.rows()], "mode": [1] * len(pairs)}
        (folder / "problem.json").write_text(json.dumps(problem))
        (folder / "solution.json").write_text(json.dumps(solution))


def placements(draw):
    """Ranks and the rank of each stage: round the ranks, there and back, or anyhow."""
    ranks = draw.randint(1, 3)
    style = draw.choice(["round", "round", "back", "any"])
    if style == "back":
        return ranks, [*range(ranks), *reversed(range(ranks))]
    if style == "round":
        return ranks, [s % ranks for s in range(ranks * draw.randint(1, 2))]
    placed = [*range(ranks), *(draw.randrange(ranks) for _ in range(draw.randint(0, 2)))]
    draw.shuffle(placed)
    return ranks, placed


def unordered(seed, draw, ranks, placed, microbatches):
    """Tasks and edges, some backwards in two parts."""
    case = Case(seed, ranks, placed, microbatches)
    share = draw.choice([0, 0, 0.5, 1])
    for m in range(case.microbatches):
        for s in range(case.stages):
            add(case, draw, "F", s, m)
            split = draw.random() < share
            for kind in "IW" if split else "B":
                add(case, draw, kind, s, m)
    join(case)
    return case


def chain(seed, draw, ranks, placed, microbatches):
    """That PyTorch can run, in a random order."""
    case = unordered(seed, draw, ranks, placed, microbatches)
    case.order = random_order(case, draw)
    return case


def random_case(seed):
    draw = random.Random(seed)
    case = unordered(seed, draw, *placements(draw), draw.randint(1, 4))
    fitting = [break_ for break_ in BREAKS if seed % 2 and break_.fits(case)]
    late = draw.choice(fitting) if fitting else None
    if late is not None:
        case.broken = late.name
        late.before(case, draw)
    case.order = random_order(case, draw)
    if late is not None:
        late.after(case, draw)
    return case


def add(case, draw, kind, stage, microbatch):
    case.tasks[kind, stage, microbatch] = {
        "rank": case.stage_to_rank[stage], "kind": kind, "duration_ns": draw.randint(1, 50), "acquire_bytes": 0,
        "release_bytes": 0, "label": f"{stage}{kind}{microbatch}", "stage": stage, "microbatch": microbatch, "item": 0,
        "module": "llm"}


def backward(case, stage, microbatch):
    """The key of its B, or of its I."""
    return next(key for key in (("B", stage, microbatch), ("I", stage, microbatch)) if key in case.tasks)


def join(case):
    for m in range(case.microbatches):
        for s in range(case.stages):
            case.edges.append((("F", s, m), backward(case, s, m)))
            if ("W", s, m) in case.tasks:
                case.edges.append((("I", s, m), ("W", s, m)))
            if s:
                case.edges.append((("F", s - 1, m), ("F", s, m)))
                case.edges.append((backward(case, s, m), backward(case, s - 1, m)))


def random_order(case, draw):
    """Any that the edges allow; the last stage's forwards in the order of the microbatches. What is alive at once
    differs: forwards first, backwards first, or neither."""
    prefer = draw.choice(["F", "BIW", ""])
    needs = {key: {a for a, b in case.edges if b == key} for key in case.tasks}
    for m in range(1, case.microbatches):
        needs["F", case.stages - 1, m].add(("F", case.stages - 1, m - 1))
    order = []
    while needs:
        ready = [key for key, before in needs.items() if not before]
        key = draw.choice([key for key in ready if key[0] in prefer] or ready)
        del needs[key]
        for before in needs.values():
            before.discard(key)
        order.append(key)
    return order


class Break:
    """One way to be what PyTorch's runtime cannot run."""

    name = ""

    def fits(self, case):
        return True

    def before(self, case, draw):
        """Changes tasks and edges."""

    def after(self, case, draw):
        """Changes the order."""


class Item(Break):
    name = "sub-microbatch"

    def before(self, case, draw):
        for (_, _, m), task in case.tasks.items():
            task["item"] = 1 if m == 0 else 0


class Skip(Break):
    name = "skip connection"

    def fits(self, case):
        return case.stages > 2

    def before(self, case, draw):
        case.edges.append((("F", 0, 0), ("F", 2, 0)))


class Frozen(Break):
    name = "no backward"

    def before(self, case, draw):
        for key in [key for key in case.tasks if key[1] == 0 and key[0] != "F"]:
            del case.tasks[key]
        case.edges = [(a, b) for a, b in case.edges if a in case.tasks and b in case.tasks]

    def fits(self, case):
        return case.stages > 1


class Modes(Break):
    name = "modes by microbatch"

    def before(self, case, draw):
        forward, back = ("F", 0, 0), backward(case, 0, 0)
        mode = {"forward_ns": case.tasks[forward]["duration_ns"], "backward_ns": case.tasks[back]["duration_ns"],
                "held_bytes": 0, "forward_transient_bytes": 0, "transient_bytes": 0}
        pair = {"forward": forward, "backward": back}
        if back[0] == "I":
            pair["weight"] = ("W", 0, 0)
            mode.update(weight_ns=case.tasks["W", 0, 0]["duration_ns"], kept_bytes=0)
        case.pairs = [{**pair, "modes": [mode, {**mode, "backward_ns": mode["backward_ns"] + 1}]}]


class LastOrder(Break):
    name = "order of the last forwards"

    def fits(self, case):
        return case.microbatches > 1

    def after(self, case, draw):
        last = {("F", case.stages - 1, m): m for m in range(case.microbatches)}
        turn = lambda key: (*key[:2], case.microbatches - 1 - key[2])  # noqa: E731
        split = {key for key in case.tasks if key[0] != "F"}
        if {turn(key) for key in split} == split and last:
            case.order = [turn(key) for key in case.order]
        else:
            case.broken = ""


class EmptyRank(Break):
    name = "rank without a stage"

    def before(self, case, draw):
        case.ranks += 1


class TwoRanks(Break):
    name = "stage on two ranks"

    def fits(self, case):
        return case.ranks > 1 and case.microbatches > 1

    def before(self, case, draw):
        for key in [key for key in case.tasks if key[1:] == (0, 0)]:
            case.tasks[key]["rank"] = (case.stage_to_rank[0] + 1) % case.ranks


class Cycle(Break):
    name = "order that does not run"

    def after(self, case, draw):
        forward, back = ("F", 0, 0), backward(case, 0, 0)
        case.order.remove(back)
        case.order.insert(case.order.index(forward), back)


class Other(Break):
    name = "task of another kind"

    def before(self, case, draw):
        case.tasks["X", 0, 0] = {**case.tasks["F", 0, 0], "kind": "X", "label": "X"}


BREAKS = [Item(), Skip(), Frozen(), Modes(), LastOrder(), EmptyRank(), TwoRanks(), Cycle(), Other()]
