"""Random schedule problems by number, larger than what trying everything can solve; made without the program.

Tasks are built in an order that the edges allow and numbered in another. Capacities are more than what one job after
the other needs or, with `tight`, a part of what a schedule needs that a simple search for low peaks found: with 1
exactly that, so that there is a schedule, with less there may be none.
"""

import random


class Maker:
    """Drafts one problem; a task is a list index until the numbers are shuffled."""

    def __init__(self, seed, tight=None, sizes=(16, 40)):
        self.sizes = sizes
        self.random = random.Random(seed)
        self.tight = tight
        self.tasks, self.edges, self.pairs = [], [], []
        self.ranks = self.random.randint(2, 4)
        self.with_modes = self.chance(60)
        self.split = self.chance(30)
        self.name = f"random-{seed}{'' if tight is None else f'-tight-{tight}'}"

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def some(self, low, high):
        return self.random.randint(low, high)

    def make(self):
        if self.chance(25):
            self.loose_graph()
        else:
            self.modules()
        return self.written(self.capacities())

    # ---- tasks

    def task(self, rank, kind, acquire, release, **place):
        self.tasks.append({"rank": rank, "kind": kind, "duration_ns": self.some(1, 60), "acquire_bytes": acquire,
                           "release_bytes": release, "label": f"{kind}{len(self.tasks)}", **place})
        return len(self.tasks) - 1

    def join(self, a, b):
        self.edges.append((a, b, 0 if self.chance(60) else self.some(1, 12)))

    def forward(self, rank, **place):
        held, passing = self.some(1, 60), self.some(0, 30) if self.chance(40) else 0
        return self.task(rank, "F", held + passing, passing, **place)

    def backwards(self, forward, after=None):
        """The backward of a forward, perhaps split; what comes after it waits for the first of the two."""
        one = self.tasks[forward]
        place = {key: one[key] for key in ("stage", "microbatch", "item", "module") if key in one}
        held, passing = one["acquire_bytes"] - one["release_bytes"], one["release_bytes"]
        transient = self.some(0, 30) if self.chance(50) else 0
        kept = self.some(0, held + transient) if self.split else 0
        backward = self.task(one["rank"], "I" if self.split else "B", transient, held + transient - kept, **place)
        self.join(forward, backward)
        if after is not None:
            self.join(after, backward)
        weight = None
        if self.split:
            weight = self.task(one["rank"], "W", 0, kept, **place)
            self.join(backward, weight)
        if self.with_modes and self.chance(85):
            self.pair(forward, backward, weight, held, passing, transient, kept)
        return backward

    def pair(self, forward, backward, weight, held, passing, transient, kept):
        time = [self.tasks[t]["duration_ns"] for t in (forward, backward) + ((weight,) if weight is not None else ())]
        modes = [self.mode(time, held, passing, transient, kept)]
        for _ in range(self.some(0, 2)):
            slower = list(time)
            slower[1] += self.some(1, 40)
            if self.chance(30):
                slower[0] += self.some(1, 10)
            less, more = self.some(0, held), transient + self.some(0, 60)
            modes.append(self.mode(slower, less, passing + (self.some(0, 20) if self.chance(20) else 0), more,
                                   min(kept, less + more)))
        entry = {"forward": forward, "backward": backward, "modes": modes}
        if weight is not None:
            entry["weight"] = weight
        self.pairs.append(entry)

    @staticmethod
    def mode(time, held, passing, transient, kept):
        mode = {"forward_ns": time[0], "backward_ns": time[1], "held_bytes": held, "forward_transient_bytes": passing,
                "transient_bytes": transient}
        if len(time) == 3:
            mode.update(weight_ns=time[2], kept_bytes=kept)
        return mode

    # ---- shapes

    def modules(self):
        """Microbatches through an optional encoder (several items each, or none), then a chain of stages and back."""
        rounds, encoder = self.some(1, 2), self.chance(50)
        stages = rounds * self.ranks
        wanted, job = self.some(*self.sizes), 0
        while len(self.tasks) + stages < wanted or job == 0:
            rows = []
            for item in range(self.some(0, 2) if encoder else 0):
                rows.append(self.row(range(self.ranks), job, item, "encoder"))
            chain = self.row(range(stages), job, 0, "body")
            for row in rows:
                self.join(row[-1], chain[0])
            last = self.back(chain, None)
            for row in rows:
                self.back(row, last)
            if self.chance(20):
                memory = self.some(0, 60)
                self.join(self.some(0, len(self.tasks) - 1),
                          self.task(self.some(0, self.ranks - 1), "X", memory, memory))
            job += 1

    def row(self, stages, job, item, module):
        row = []
        for stage in stages:
            row.append(self.forward(stage % self.ranks, stage=stage, microbatch=job, item=item, module=module))
            if len(row) > 1:
                self.join(row[-2], row[-1])
        return row

    def back(self, row, after):
        for forward in reversed(row):
            after = self.backwards(forward, after)
        return after

    def loose_graph(self):
        """Any directed graph: pairs, tasks alone, and tasks that take what another gives back."""
        wanted = self.some(*self.sizes)
        while len(self.tasks) < wanted:
            first, rank = len(self.tasks), self.some(0, self.ranks - 1)
            if self.chance(65):
                self.backwards(self.forward(rank))
            elif self.chance(50):
                memory = self.some(0, 60)
                self.task(rank, "X", memory, memory)
            else:
                taken = self.some(1, 40)
                self.join(self.task(rank, "X", taken, 0), self.task(rank, "X", 0, taken))
            for task in range(first, len(self.tasks)):
                while task > 0 and self.chance(30):
                    self.join(self.some(0, task - 1), task)

    # ---- memory

    def costs(self, mode):
        """Per task (acquire, release) under one mode per pair."""
        costs = [(task["acquire_bytes"], task["release_bytes"]) for task in self.tasks]
        for pair, number in zip(self.pairs, mode):
            one = pair["modes"][number]
            kept = one.get("kept_bytes", 0)
            costs[pair["forward"]] = (one["held_bytes"] + one["forward_transient_bytes"],
                                      one["forward_transient_bytes"])
            costs[pair["backward"]] = (one["transient_bytes"], one["held_bytes"] + one["transient_bytes"] - kept)
            if "weight" in pair:
                costs[pair["weight"]] = (0, kept)
        return costs

    def peaks(self, sequence, mode):
        """Per rank; None if more is given back than was taken."""
        costs, used, peak = self.costs(mode), [0] * self.ranks, [0] * self.ranks
        for task in sequence:
            rank, (acquire, release) = self.tasks[task]["rank"], costs[task]
            used[rank] += acquire
            peak[rank] = max(peak[rank], used[rank])
            used[rank] -= release
            if used[rank] < 0:
                return None
        return peak

    def low_peaks(self, steps):
        """Peaks of a schedule that needs little: moves of tasks and other modes, as long as it gets no worse."""
        sequence, mode = list(range(len(self.tasks))), [0] * len(self.pairs)
        before = [set() for _ in self.tasks]
        for a, b, _ in self.edges:
            before[b].add(a)
        weight = [self.random.random() + 0.1 for _ in range(self.ranks)]
        best, least = self.peaks(sequence, mode), float("inf")
        for _ in range(steps):
            moved, other = list(sequence), list(mode)
            if self.pairs and self.chance(30):
                pair = self.some(0, len(mode) - 1)
                other[pair] = self.some(0, len(self.pairs[pair]["modes"]) - 1)
            else:
                start, end = sorted((self.some(0, len(moved) - 1), self.some(0, len(moved) - 1)))
                if before[moved[end]].intersection(moved[start:end]):
                    continue
                moved.insert(start, moved.pop(end))
            peaks = self.peaks(moved, other)
            if peaks is None:
                continue
            value = sum(w * p for w, p in zip(weight, peaks))
            if value <= least:
                sequence, mode, best, least = moved, other, peaks, value
        return best

    def capacities(self):
        """Per rank: None, or bytes above base."""
        if self.tight is not None:
            return [int(self.tight * peak) for peak in self.low_peaks(40 * len(self.tasks))]
        peak = self.peaks(range(len(self.tasks)), [0] * len(self.pairs))
        return [None if self.chance(20) else p + self.some(0, p) for p in peak]

    # ---- the file

    def written(self, capacities):
        number = list(range(len(self.tasks)))
        self.random.shuffle(number)
        tasks = [None] * len(number)
        for draft, task in enumerate(self.tasks):
            tasks[number[draft]] = {"id": number[draft], **task}
        ranks = []
        for capacity in capacities:
            base = self.some(0, 20)
            ranks.append({"capacity_bytes": None if capacity is None else base + capacity, "base_bytes": base,
                          "tail_ns": self.some(1, 50) if self.chance(30) else 0})
        pairs = [{**pair, **{key: number[pair[key]] for key in ("forward", "backward", "weight") if key in pair}}
                 for pair in self.pairs]
        return {"format": "pipeweaver-problem/1", "name": self.name, "source": "random", "ranks": ranks, "tasks": tasks,
                "edges": [[number[a], number[b], lag] for a, b, lag in self.edges], "pairs": pairs}


def random_problem(seed, tight=None, sizes=(16, 40)):
    """The problem of this number, of about so many tasks."""
    return Maker(seed, tight, sizes).make()
