#!/usr/bin/env python3
"""Measured steps of the executor against what was emulated. Three tables:

    studies/bench_executor.py --sleep      stages that sleep for their nominal times, 4 and 8 ranks
    studies/bench_executor.py --real       a small ViT and LLM in float32, 2 ranks with a thread each
    studies/bench_executor.py --split      a backward in one part and in two, on one thread

The workload of the first two, images and text, is cut in three ways: one chain of a stage per rank (1f1b), one of two
(interleaved), and ViT and LLM as chains of their own with sub-microbatches, searched. What an action costs (the
recipe's host.action_ns) is measured in the same run on another workload, equal microbatches through a chain, and is
part of every task that is emulated with --sleep. Needs PyTorch and the program (build/release/bin/pipeweaver or
PIPEWEAVER_BIN). The machine should do nothing else.
"""

import argparse
import dataclasses
import gzip
import json
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python/support"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from executor_package import Executor, Pass, read_actions  # noqa: E402

BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))
WIDTH = {"vit": 256, "llm": 512}
IMAGE_ROWS, TEXT_ROWS = 128, 256


@dataclass
class Cut:
    """A way to cut the model: per stage its rank, chain and layers {"vit": n, "llm": n}; and how it is scheduled."""

    name: str
    ranks: int
    stages: list
    options: list  # of `pipeweaver solve`
    most_items: int = 0  # of a unit; 0: all images of a microbatch at once


def cuts(ranks, layers, images, cost):
    """1f1b, interleaved and the searched cut, of `layers` of each module; chains are cut by mean cost."""
    def chain(stages):
        vit, llm = ("vit", cost("vit", statistics.mean(images))), ("llm", cost("llm", 1))
        units = [vit] * layers["vit"] + [llm] * layers["llm"]
        share, done, parts = sum(c for _, c in units) / stages, 0.0, [{"vit": 0, "llm": 0} for _ in range(stages)]
        for name, c in units:
            parts[min(stages - 1, int((done + c / 2) / share))][name] += 1
            done += c
        return [(k % ranks, "all", part) for k, part in enumerate(parts)]

    own = [(r, name, {"vit": 0, "llm": 0, name: layers[name] // ranks}) for name in ("vit", "llm")
           for r in range(ranks)]
    return [Cut("1f1b", ranks, chain(ranks), ["--policy", "1f1b"]),
            Cut("interleaved", ranks, chain(2 * ranks), ["--policy", "interleaved"]),
            Cut("searched", ranks, own, ["--budget", "2s", "--seed", "1"], most_items=4)]


def units_of(cut, images):
    """Per microbatch and chain: the images of each unit."""
    if cut.most_items == 0:
        return [{"all": [count]} for count in images]
    units = []
    for count in images:
        parts = -(-count // cut.most_items)
        units.append({"vit": [count // parts + (k < count % parts) for k in range(parts)] if parts else [], "llm": [0]})
    return units


def problem_of(cut, images, duration, action=0.0):
    """The schedule problem; duration(stage, images of the unit) -> seconds of (forward, backward), to which comes
    `action` in every task."""
    tasks, edges, at = [], [], {}

    def add(kind, stage, mb, item, seconds):
        rank, chain, _ = cut.stages[stage]
        at[kind, stage, mb, item] = len(tasks)
        tasks.append({"id": len(tasks), "rank": rank, "kind": kind,
                      "duration_ns": max(1, round((seconds + action) * 1e9)),
                      "acquire_bytes": 0, "release_bytes": 0, "label": f"{kind}{stage}.{mb}.{item}", "stage": stage,
                      "microbatch": mb, "item": item, "module": chain})

    def join(stage, item, after, after_item, mb):
        edges.append([at["F", stage, mb, item], at["F", after, mb, after_item], 0])
        edges.append([at["B", after, mb, after_item], at["B", stage, mb, item], 0])

    for mb, chains in enumerate(units_of(cut, images)):
        ends = {}
        for chain, units in chains.items():
            mine = [s for s, stage in enumerate(cut.stages) if stage[1] == chain]
            ends[chain] = mine
            for item, count in enumerate(units):
                for stage in mine:
                    forward, backward = duration(stage, count)
                    add("F", stage, mb, item, forward)
                    add("B", stage, mb, item, backward)
                for before, stage in zip(mine, mine[1:]):
                    join(before, item, stage, item, mb)
        for item in range(len(chains.get("vit", ()))):
            join(ends["vit"][-1], item, ends["llm"][0], 0, mb)
        last = ends["llm" if "llm" in ends else "all"][-1]
        edges.append([at["F", last, mb, 0], at["B", last, mb, 0], 0])
    stages = [{"stage": s, "rank": stage[0], "parts": [{"module": stage[1]}]} for s, stage in enumerate(cut.stages)]
    pairs = [{"forward": at["F", s, mb, i], "backward": at["B", s, mb, i],
              "modes": [{"forward_ns": tasks[at["F", s, mb, i]]["duration_ns"], "held_bytes": 0, "transient_bytes": 0,
                         "backward_ns": tasks[at["B", s, mb, i]]["duration_ns"]}]} for k, s, mb, i in at if k == "F"]
    return {"format": "pipeweaver-problem/1", "name": cut.name, "stages": stages, "tasks": tasks, "edges": edges,
            "ranks": [{"capacity_bytes": None, "base_bytes": 0}] * cut.ranks, "pairs": pairs}


def scheduled(cut, problem, folder):
    """(actions file, predicted seconds)."""
    folder.mkdir(parents=True)
    (folder / "problem.json.gz").write_bytes(gzip.compress(json.dumps(problem).encode()))
    for arguments in (["solve", folder / "problem.json.gz", *cut.options, "--out", folder / "solution.json"],
                      ["emit", "--plan", folder, "--target", "torch-actions", "--out", folder]):
        subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True)
    return folder / "actions.json", json.loads((folder / "solution.json").read_text())["makespan_ns"] / 1e9


def replayed(problem, actions, seconds):
    """Makespan of the lists where task t takes seconds[t]."""
    needs = {}
    for before, after, _ in problem["edges"]:
        needs.setdefault(after, []).append(before)
    end, free = {}, [0.0] * actions.ranks
    rows = [[a.task for a in row if hasattr(a, "task")] for row in actions.lists]
    while any(rows):
        for rank, row in enumerate(rows):
            while row and all(task in end for task in needs.get(row[0], ())):
                task = row.pop(0)
                free[rank] = end[task] = max([free[rank], *(end[b] for b in needs.get(task, ()))]) + seconds[task]
    return max(free)


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, times):
        ctx.seconds = times[int(x[0, 0]), int(x[0, 1])]
        time.sleep(ctx.seconds[0])
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds[1])
        return gradient, torch.zeros(1), None


class SleepingChunk(torch.nn.Module):
    """Sleeps for the times of the unit whose number is in its input."""

    def __init__(self, times):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.times = times

    def forward(self, x, others=None):
        return Sleep.apply(x, self.weight, self.times)


def sleeping_chunks(cut, images, duration):
    units = units_of(cut, images)
    return {s: SleepingChunk({(mb, i): duration(s, count) for mb, chains in enumerate(units)
                              for i, count in enumerate(chains[cut.stages[s][1]])}) for s in range(len(cut.stages))}


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class RealChunk(torch.nn.Module):
    """ViT layers, then LLM layers; where the LLM begins, images are added to its text by their mean."""

    def __init__(self, layers, begins):
        super().__init__()
        self.vit = torch.nn.Sequential(*(Block(WIDTH["vit"]) for _ in range(layers["vit"])))
        self.llm = torch.nn.Sequential(*(Block(WIDTH["llm"]) for _ in range(layers["llm"])))
        self.begins = begins
        if begins:
            self.text = torch.nn.Parameter(torch.randn(TEXT_ROWS, WIDTH["llm"]))
            self.join = torch.nn.Linear(WIDTH["vit"], WIDTH["llm"])

    def forward(self, x, others=None):
        if len(self.vit):
            x = self.vit(x)
        if self.begins:
            items = others["vit"] if others else [x] if x.shape[1] == WIDTH["vit"] else []
            x = self.text
            for item in items:
                if len(item):
                    x = x + self.join(item).mean(0)
        return self.llm(x) if len(self.llm) else x


def real_chunks(cut):
    begun, chunks = False, {}
    for s, (_, _, layers) in enumerate(cut.stages):
        torch.manual_seed(s)
        chunks[s] = RealChunk(layers, layers["llm"] > 0 and not begun)
        begun |= layers["llm"] > 0
    return chunks


def with_shapes(actions, shape_of):
    def known(tensor):
        place = tensor.source if tensor.kind == "activation" else tensor.target
        return dataclasses.replace(tensor, shape=shape_of(place))

    return dataclasses.replace(actions, tensors=tuple(map(known, actions.tensors)))


def rank_steps(rank, store_file, cases, rounds, answers):
    """Runs every case once a round, after one to warm up; answers (case, round) -> (begin, end, {task: seconds})."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.FileStore(store_file, cases[0].actions.ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=cases[0].actions.ranks)
    executors = [Executor(case.actions, {s: c for s, c in case.chunks().items() if s in case.actions.on_rank(rank)},
                          case.split, lambda output, target: output.mean(), dtype=torch.float32) for case in cases]
    found = {}
    for number in range(rounds + 1):
        for k, (case, executor) in enumerate(zip(cases, executors)):
            dist.barrier()
            began = time.perf_counter()
            result = executor.step(None)
            mine = case.actions.lists[rank]
            ran = {mine[t.action].task: t.end - t.start for t in result.timings if hasattr(mine[t.action], "task")}
            last = max(t.end for t in result.timings if hasattr(mine[t.action], "task"))
            if number:
                found[k, number] = (began, began + last, ran)
    answers.put(found)
    dist.barrier()


def measured(cases, rounds):
    """Per case the (seconds, {task: seconds}) of each round."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=rank_steps, args=(rank, f"{folder}/store", cases, rounds, answers))
                 for rank in range(cases[0].actions.ranks)]
        for process in ranks:
            process.start()
        found = [answers.get(timeout=600) for _ in ranks]
        for process in ranks:
            process.join()
    steps = []
    for k in range(len(cases)):
        each = [[one[k, number] for one in found] for number in range(1, rounds + 1)]
        steps.append([(max(end for _, end, _ in one) - min(begin for begin, _, _ in one),
                       {task: s for _, _, ran in one for task, s in ran.items()}) for one in each])
    return steps


@dataclass
class Case:
    cut: Cut
    problem: dict
    actions: object
    predicted: float
    chunks: object
    split: object


def sleep_case(cut, images, duration, folder, action=0.0):
    problem = problem_of(cut, images, duration, action)
    path, predicted = scheduled(cut, problem, folder)
    actions = with_shapes(read_actions(path), lambda place: (1, 2))
    return Case(cut, problem, actions, predicted, lambda: sleeping_chunks(cut, images, duration),
                lambda batch, unit: torch.tensor([[unit.microbatch, unit.item]], dtype=torch.float32))


def sleep_cases(ranks, seed, folder, action):
    """A drawn batch under each cut, with times of a layer by which every pass of ViT or LLM alone takes 20 ms or
    more."""
    draw = random.Random(seed)
    images = [draw.choice([0, 3, 4, 6, 8]) for _ in range(8)]
    layers = {"vit": 2 * ranks, "llm": 2 * ranks}

    def cost(name, count):
        return 0.0035 * count if name == "vit" else 0.024

    for cut in cuts(ranks, layers, images, cost):
        def duration(stage, count, cut=cut):
            part = cut.stages[stage][2]
            forward = part["vit"] * cost("vit", count) + part["llm"] * cost("llm", 1)
            return forward, 2 * forward

        yield sleep_case(cut, images, duration, folder / f"{ranks}-{seed}-{cut.name}", action)


@dataclass
class Overhead:
    """Seconds of an action: all of it, and what of that is inside the task, beyond the time for which it was to
    sleep."""

    action: float
    inside: float


def overhead(ranks, rounds, folder):
    """Of 16 equal microbatches through a chain: a step is (16 + ranks - 1) forwards and backwards long."""
    microbatches, passes = 16, (0.010, 0.020)
    cut = Cut("equal", ranks, [(r, "all", {"vit": 0, "llm": 1}) for r in range(ranks)], ["--policy", "1f1b"])
    case = sleep_case(cut, [0] * microbatches, lambda stage, count: passes, folder / f"{ranks}-equal")
    found = []
    for seconds, ran in measured([case], rounds)[0]:
        beyond = [ran[task["id"]] - task["duration_ns"] * 1e-9 for task in case.problem["tasks"]]
        found.append(((seconds - case.predicted) / (2 * (microbatches + ranks - 1)), statistics.mean(beyond)))
    return Overhead(*(statistics.median(one) for one in zip(*found)))


def sleep_table(rounds, ranks_asked, folder):
    print("stages that sleep; seconds of a step, median of", rounds,
          "steps; gain: how much shorter the searched step is")
    header = (f"{'ranks':<6}{'batch':<7}{'schedule':<13}{'emulated':>10}{'measured':>10}{'error':>8}"
              f"{'emulated gain':>15}{'measured gain':>15}")
    worst, differences, known = (0.0, ""), [], {}
    for ranks, seed in [(4, 1), (4, 2), (8, 3)]:
        if ranks not in ranks_asked:
            continue
        if ranks not in known:
            known[ranks] = overhead(ranks, rounds, folder)
            print(f"an action on {ranks} ranks: {1e3 * known[ranks].action:.3f} ms, measured on equal microbatches "
                  f"through a chain; {1e3 * known[ranks].inside:.3f} of it in the task beyond its sleep, the rest "
                  f"messages\n{header}",
                  flush=True)
        cases = list(sleep_cases(ranks, seed, folder, known[ranks].action))
        steps = [statistics.median(seconds for seconds, _ in one) for one in measured(cases, rounds)]
        for case, step in zip(cases, steps):
            gains = [1 - cases[-1].predicted / case.predicted, 1 - steps[-1] / step]
            error = case.predicted / step - 1
            worst = max(worst, (abs(error), f"{ranks} ranks, batch {seed}, {case.cut.name}, {error:.2%}"))
            differences.append(abs(gains[0] - gains[1]))
            print(f"{ranks:<6}{seed:<7}{case.cut.name:<13}{case.predicted:>10.3f}{step:>10.3f}"
                  f"{error:>8.2%}{gains[0]:>15.1%}{gains[1]:>15.1%}", flush=True)
    print(f"{len(differences)} plans, gains at most {100 * max(differences):.1f} points apart; the worst error: "
          f"{worst[1]}")


def calibrated(cut, images):
    """(stage, images) -> seconds of (forward, backward), median of three, on one thread."""
    torch.set_num_threads(1)
    known = {}
    for chains in units_of(cut, images):
        for s, chunk in real_chunks(cut).items():
            for count in chains[cut.stages[s][1]]:
                if (s, count) not in known:
                    known[s, count] = timed(cut, s, chunk, count)
    return lambda stage, count: known[stage, count]


def timed(cut, s, chunk, count):
    vit = cut.stages[s][2]["vit"] > 0 or (chunk.begins and cut.stages[s][1] == "all")
    times = []
    for _ in range(4):
        x = torch.randn(IMAGE_ROWS * count, WIDTH["vit"]) if vit else torch.randn(TEXT_ROWS, WIDTH["llm"])
        start = time.perf_counter()
        y = chunk(x.requires_grad_())
        middle = time.perf_counter()
        y.sum().backward()
        times.append((middle - start, time.perf_counter() - middle))
    return tuple(statistics.median(one) for one in zip(*times[1:]))


def real_case(cut, images, folder):
    duration = calibrated(cut, images)
    problem = problem_of(cut, images, duration)
    path, predicted = scheduled(cut, problem, folder)
    units = units_of(cut, images)
    first_llm = next(s for s, stage in enumerate(cut.stages) if stage[2]["llm"] > 0)

    def shape_of(place):
        count = units[place.microbatch][cut.stages[place.stage][1]][place.item]
        return (IMAGE_ROWS * count, WIDTH["vit"]) if place.stage < first_llm else (TEXT_ROWS, WIDTH["llm"])

    def split(batch, unit):
        return torch.zeros(IMAGE_ROWS * units[unit.microbatch][unit.module][unit.item], WIDTH["vit"])

    return Case(cut, problem, with_shapes(read_actions(path), shape_of), predicted, lambda: real_chunks(cut), split)


def real_table(rounds, folder):
    images = [0, 4, 2, 8, 3, 6]
    layers = {"vit": 4, "llm": 4}
    ways = cuts(2, layers, images, lambda name, count: 4 * count if name == "vit" else 32)
    ways.insert(1, dataclasses.replace(ways[0], name="gpipe", options=["--policy", "gpipe"]))
    by_layers = [(0, "all", {"vit": 4, "llm": 0}), (1, "all", {"vit": 0, "llm": 4})]
    ways.insert(0, Cut("by layers", 2, by_layers, ["--policy", "1f1b"]))  # the LLM's rank has twice the work
    cases = [real_case(cut, images, folder / f"real-{cut.name}") for cut in ways]
    steps = measured(cases, rounds)
    print(f"ViT and LLM in float32, 2 ranks with a thread each; {rounds} steps of each schedule by turns, seconds")
    print(f"{'schedule':<13}{'calibrated':>11}{'measured':>10}{'error':>8}{'own durations':>15}")
    for case, one in zip(cases, steps):
        median = statistics.median(seconds for seconds, _ in one)
        own = statistics.median(replayed(case.problem, case.actions, ran) / seconds - 1 for seconds, ran in one)
        error = case.predicted / median - 1
        print(f"{case.cut.name:<13}{case.predicted:>11.3f}{median:>10.3f}{error:>8.1%}{own:>15.1%}")
    print(order_text(cases, steps))


class NormedBlock(torch.nn.Module):
    def __init__(self, width, norm):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width) if norm else torch.nn.Identity()
        self.block = Block(width)

    def forward(self, x):
        return self.block(self.norm(x))


def backward_times(chunk, x, split):
    """Seconds of B, or of I and of W."""
    leaf = x.clone().requires_grad_()
    one = Pass(chunk, lambda: chunk(leaf), [leaf], "none", split, True)
    gradient = torch.ones_like(one.forward())
    times = [time.perf_counter()]
    for part in (one.input_gradient, one.weight_gradient) if split else (one.backward,):
        part(*[gradient] if part != one.weight_gradient else [])
        times.append(time.perf_counter())
    return [after - before for before, after in zip(times, times[1:])]


def split_table(rounds):
    torch.set_num_threads(1)
    print(f"backwards of 8 blocks in float32 on one thread, milliseconds, median of {rounds} by turns")
    print(f"{'rows':<6}{'width':<7}{'norms':<7}{'B':>9}{'I':>9}{'W':>9}{'I and W over B':>16}{'ms a block':>12}")
    for rows, width in [(16, 64), (512, 256), (256, 512)]:
        for norms in (False, True):
            torch.manual_seed(0)
            chunk = torch.nn.Sequential(*(NormedBlock(width, norms) for _ in range(8)))
            x, found = torch.randn(rows, width), []
            for _ in range(rounds + 1):
                found.append([*backward_times(chunk, x, False), *backward_times(chunk, x, True)])
            b, i, w = (1e3 * statistics.median(one) for one in zip(*found[1:]))
            print(f"{rows:<6}{width:<7}{'yes' if norms else 'no':<7}{b:>9.2f}{i:>9.2f}{w:>9.2f}{(i + w) / b - 1:>16.1%}"
                  f"{(i + w - b) / 8:>12.3f}", flush=True)


def order_text(cases, steps):
    """Whether pairs that differ by more than 10 % when measured are in the emulated order."""
    median = [statistics.median(seconds for seconds, _ in one) for one in steps]
    apart = [(a, b) for a in range(len(cases)) for b in range(len(cases)) if median[b] > 1.1 * median[a]]
    wrong = [f"{cases[a].cut.name} before {cases[b].cut.name}" for a, b in apart
             if cases[a].predicted >= cases[b].predicted]
    return f"{len(apart)} pairs differ by more than 10 %; in the wrong order: {', '.join(wrong) or 'none'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sleep", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8], help="of the stages that sleep")
    options = parser.parse_args()
    every = not (options.sleep or options.real or options.split)
    with tempfile.TemporaryDirectory() as folder:
        if options.sleep or every:
            sleep_table(options.rounds, options.ranks, pathlib.Path(folder))
        if options.real or every:
            real_table(options.rounds, pathlib.Path(folder))
        if options.split or every:
            split_table(4 * options.rounds)


if __name__ == "__main__":
    main()
