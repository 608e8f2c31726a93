"""Runs of plans as ranks would record them: a schedule replayed under other times, by clocks of each rank's own."""

import gzip
import json
import pathlib


def read_json(path):
    content = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(content) if str(path).endswith(".gz") else content)


def solved(folder):
    folder = pathlib.Path(folder)
    return read_json(folder / "problem.json.gz"), read_json(folder / "solution.json")


def planned_ns(problem, solution):
    """Per task, in the mode that the schedule chose."""
    durations = [task["duration_ns"] for task in problem["tasks"]]
    for pair, mode in zip(problem.get("pairs", []), solution.get("mode", [])):
        for role in ("forward", "backward", "weight"):
            if role in pair:
                durations[pair[role]] = pair["modes"][mode][role + "_ns"]
    return durations


def starts_of(problem, solution, durations):
    """The earliest starts under the schedule's order, and when the last task ends; tails and all else left out."""
    before = [[] for _ in problem["tasks"]]
    for source, target, lag in problem["edges"]:
        before[target].append((source, lag))
    starts, places = {}, [0] * len(solution["order"])
    free = [0] * len(places)
    while any(place < len(order) for place, order in zip(places, solution["order"])):
        moved = False
        for rank, order in enumerate(solution["order"]):
            while places[rank] < len(order) and all(source in starts for source, _ in before[order[places[rank]]]):
                task = order[places[rank]]
                starts[task] = max([free[rank]] + [starts[source] + durations[source] + lag
                                                   for source, lag in before[task]])
                free[rank] = starts[task] + durations[task]
                places[rank] += 1
                moved = True
        assert moved, "the schedule waits for ever"
    return starts, max(free)


def record(folder, out, truth, steps=3, replica=0):
    """Writes timings-<rank>.json of steps in which a task takes truth(task, planned nanoseconds); returns the names."""
    problem, solution = solved(folder)
    planned = planned_ns(problem, solution)
    recorded = [[] for _ in problem["ranks"]]
    for _ in range(steps):
        durations = [max(1, round(truth(task, ns))) for task, ns in zip(problem["tasks"], planned)]
        starts, _ = starts_of(problem, solution, durations)
        for rank, order in enumerate(solution["order"]):
            own = [row_of(problem["tasks"][task], starts[task] + 10**9 * rank, durations[task]) for task in order]
            recorded[rank].append({"actions": own})
    names = []
    for rank, own in enumerate(recorded):
        names.append(pathlib.Path(out) / f"timings-{rank}.json")
        document = {"format": "pipeweaver-timings/1", "problem": problem["name"], "replica": replica, "rank": rank,
                    "ranks": len(recorded), "steps": own}
        names[-1].write_text(json.dumps(document))
    return names


def row_of(task, start, duration):
    return {"op": task["kind"], "stage": task["stage"], "microbatch": task["microbatch"], "item": task.get("item", 0),
            "start_ns": start, "end_ns": start + duration}
