"""Schedule problems as models of OR-tools' CP-SAT: an oracle that shares nothing with the search."""

import dataclasses
import time

from ortools.sat.python import cp_model


@dataclasses.dataclass
class Answer:
    status: str  # "optimal", "feasible", "infeasible" or "unknown"
    makespan: int | None = None
    solution: dict | None = None  # a solution file


class Course(cp_model.CpSolverSolutionCallback):
    """When the solver knew which makespan: [(seconds since this was made, ns)]."""

    def __init__(self, makespan):
        super().__init__()
        self.begun = time.monotonic()
        self.makespan = makespan
        self.improvements = []

    def on_solution_callback(self):
        self.improvements.append((time.monotonic() - self.begun, self.value(self.makespan)))


class Model:
    """An interval per task. Its duration depends on its pair's mode, one Boolean for each; a rank's tasks do not
    overlap; an edge is a precedence with its lag.

    Memory of a rank is a cumulative resource: held from the start of a forward to the end of its backward, passing
    while the forward runs, transient while the backward does, kept from the backward's end to the weight task's end. A
    task without a pair that leaves memory to one behind it is taken as a pair of one mode (see `balanced`). Intervals
    are half open, so ends come before starts.
    """

    def __init__(self, problem):
        self.problem = problem
        self.model = cp_model.CpModel()
        self.horizon = (sum(task["duration_ns"] for task in problem["tasks"])
                        + sum(edge[2] for edge in problem["edges"])
                        + sum(max(m["forward_ns"] + m["backward_ns"] + m.get("weight_ns", 0) for m in pair["modes"])
                              for pair in problem.get("pairs", []))
                        + max(rank.get("tail_ns", 0) for rank in problem["ranks"]))
        self.pairs = problem.get("pairs", []) + list(balanced(problem))
        self.choose_modes()
        self.add_times()
        for rank in range(len(problem["ranks"])):
            self.add_memory(rank)

    def choose_modes(self):
        """Per task [(Boolean or 1, duration)] of its possible modes; per pair the Booleans."""
        self.ways = [[(1, task["duration_ns"])] for task in self.problem["tasks"]]
        self.chosen = []
        for pair in self.pairs:
            chosen = [self.model.new_bool_var("") for _ in pair["modes"]] if len(pair["modes"]) > 1 else [1]
            if len(chosen) > 1:
                self.model.add_exactly_one(chosen)
            self.chosen.append(chosen)
            for role in ("forward", "backward", "weight"):
                if pair.get(role) is not None:
                    self.ways[pair[role]] = [(way, mode[f"{role}_ns"]) for way, mode in zip(chosen, pair["modes"])]

    def one_of(self, ways):
        """A number or, if the numbers of [(Boolean, number)] differ, a variable that is the chosen one."""
        values = sorted({value for _, value in ways})
        if len(values) == 1:
            return values[0]
        chosen = self.model.new_int_var_from_domain(cp_model.Domain.from_values(values), "")
        self.model.add(chosen == sum(way * value for way, value in ways))
        return chosen

    def interval(self, start, end):
        length = self.model.new_int_var(0, self.horizon, "")
        return self.model.new_interval_var(start, length, end, "")

    def add_times(self):
        tasks = self.problem["tasks"]
        self.start = [self.model.new_int_var(0, self.horizon, "") for _ in tasks]
        self.end = [self.model.new_int_var(0, self.horizon, "") for _ in tasks]
        self.makespan = self.model.new_int_var(0, self.horizon, "")
        self.running = [self.model.new_interval_var(start, self.one_of(ways), end, "")
                        for start, ways, end in zip(self.start, self.ways, self.end)]
        for rank, limit in enumerate(self.problem["ranks"]):
            mine = [i for i, task in enumerate(tasks) if task["rank"] == rank]
            self.model.add_no_overlap(self.running[i] for i in mine)
            for i in mine:
                self.model.add(self.makespan >= self.end[i] + limit.get("tail_ns", 0))
        for before, after, lag in self.problem["edges"]:
            self.model.add(self.start[after] >= self.end[before] + lag)

    def add_memory(self, rank):
        """Pre: each task is in a pair, or gives back all it takes."""
        limit = self.problem["ranks"][rank]
        if limit["capacity_bytes"] is None:
            return
        uses, paired = [], set()
        for pair, chosen in zip(self.pairs, self.chosen):
            forward, backward, weight = pair["forward"], pair["backward"], pair.get("weight")
            paired.update((forward, backward, weight))
            if self.problem["tasks"][forward]["rank"] != rank:
                continue

            def use(interval, key):
                uses.append((interval, self.one_of([(w, mode.get(key, 0)) for w, mode in zip(chosen, pair["modes"])])))
            use(self.interval(self.start[forward], self.end[backward]), "held_bytes")
            use(self.running[forward], "forward_transient_bytes")
            use(self.running[backward], "transient_bytes")
            if weight is not None:
                use(self.interval(self.end[backward], self.end[weight]), "kept_bytes")
        for i, task in enumerate(self.problem["tasks"]):
            if task["rank"] == rank and i not in paired:
                assert task["acquire_bytes"] == task["release_bytes"]
                uses.append((self.running[i], task["acquire_bytes"]))
        uses = [(interval, bytes) for interval, bytes in uses if not isinstance(bytes, int) or bytes > 0]
        self.model.add_cumulative([one for one, _ in uses], [bytes for _, bytes in uses],
                                  limit["capacity_bytes"] - limit["base_bytes"])

    def solve(self, minimize, effort):
        """One thread and a limit that counts steps, not seconds: the same answer wherever it runs."""
        if minimize:
            self.model.minimize(self.makespan)
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = effort
        solver.parameters.num_workers = 1
        status = solver.solve(self.model)
        assert status != cp_model.MODEL_INVALID, self.model.validate()
        if status in (cp_model.INFEASIBLE, cp_model.UNKNOWN):
            return Answer("infeasible" if status == cp_model.INFEASIBLE else "unknown")
        proven = status == cp_model.OPTIMAL and minimize
        return Answer("optimal" if proven else "feasible", solver.value(self.makespan), self.solution(solver))

    def solve_by_the_clock(self, seconds, workers):
        """As a user runs it; the answer, and the course of the search. It differs from run to run."""
        self.model.minimize(self.makespan)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = workers
        course = Course(self.makespan)
        status = solver.solve(self.model, course)
        assert status != cp_model.MODEL_INVALID, self.model.validate()
        if status in (cp_model.INFEASIBLE, cp_model.UNKNOWN):
            return Answer("infeasible" if status == cp_model.INFEASIBLE else "unknown"), course
        return Answer("optimal" if status == cp_model.OPTIMAL else "feasible", solver.value(self.makespan),
                      self.solution(solver)), course

    def solution(self, solver):
        order = [[] for _ in self.problem["ranks"]]
        for i in sorted(range(len(self.start)), key=lambda task: solver.value(self.start[task])):
            order[self.problem["tasks"][i]["rank"]].append(i)
        mode = [next(k for k, way in enumerate(ways) if solver.value(way)) for ways in self.chosen]
        return {"format": "pipeweaver-solution/1", "problem": self.problem["name"], "order": order,
                "mode": mode[:len(self.problem.get("pairs", []))]}


def balanced(problem):
    """Pairs of one mode for tasks that have none: a task, one joined to it by an edge and perhaps a third joined to
    that, on one rank, that together give back all they take."""
    tasks = problem["tasks"]
    free = set(range(len(tasks)))
    for pair in problem.get("pairs", []):
        free -= {pair.get("forward"), pair.get("backward"), pair.get("weight")}
    behind = [[] for _ in tasks]
    for before, after, _ in problem["edges"]:
        if {before, after} <= free and tasks[before]["rank"] == tasks[after]["rank"]:
            behind[before].append(after)

    def net(task):
        return tasks[task]["acquire_bytes"] - tasks[task]["release_bytes"]

    def rest(first):
        for second in behind[first]:
            if second in free and net(second) == -net(first):
                return second, None
            for third in behind[second]:
                if ({second, third} <= free and tasks[third]["acquire_bytes"] == 0
                        and net(first) + net(second) + net(third) == 0):
                    return second, third
        raise ValueError(f"task {first} takes memory that no task behind it gives back")

    for first in range(len(tasks)):
        if first not in free or tasks[first]["kind"] not in "FX" or net(first) <= 0:
            continue
        second, third = rest(first)
        free -= {first, second, third}
        mode = {"forward_ns": tasks[first]["duration_ns"], "backward_ns": tasks[second]["duration_ns"],
                "held_bytes": net(first), "forward_transient_bytes": tasks[first]["release_bytes"],
                "transient_bytes": tasks[second]["acquire_bytes"]}
        if third is not None:
            mode.update(weight_ns=tasks[third]["duration_ns"], kept_bytes=tasks[third]["release_bytes"])
        yield {"forward": first, "backward": second, "weight": third, "modes": [mode]}


def optimum(problem, effort=1.0):
    """The smallest makespan, as far as some seconds suffice to prove it."""
    return Model(problem).solve(True, effort)


def feasible(problem, effort=1.0):
    """Whether any schedule keeps within memory."""
    return Model(problem).solve(False, effort)
