#!/usr/bin/env python3
"""Measures search quality over budget and writes search-budget.md and its picture.

    studies/bench_budget.py [--budget 60] [--batches 1] [--json answer.json]
    studies/bench_budget.py --from answer.json

Runs `pipeweaver_studies budget` for all of its strategies and, where OR-tools is installed, CP-SAT with two workers on
the same problems, one search at a time; puts tables, the answer and the command between the page's markers, and a
picture beside it. With --json what was measured is kept; --from writes page and picture again without measuring.
Further options (--model, --microbatches, --threads, --strategies ...) go to `pipeweaver_studies budget` as they are.
The programs are in build/release/bin, or PIPEWEAVER_BIN and PIPEWEAVER_STUDIES_BIN. With 60 s, five problems and CP-SAT
it takes half an hour.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from svg import across, circle, document, line, text
from table import code, fill
from table import table as markdown

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/python/support"))  # for cp_sat

BINARY = os.environ.get("PIPEWEAVER_BIN", str(HERE.parent / "build/release/bin/pipeweaver"))
STUDIES = os.environ.get("PIPEWEAVER_STUDIES_BIN", str(HERE.parent / "build/release/bin/pipeweaver_studies"))
PAGE, PICTURE = HERE / "search-budget.md", HERE / "pictures/search-budget.svg"
BUDGETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)
WORKERS = 2  # of CP-SAT
OURS_AT, DIP_AT = 0.1, 10  # what is asked: ours after so many seconds against dip after so many
COLORS = {"default": "#2e6f9e", "dip": "#c0622d", "cp-sat": "#888888"}
WIDTH, HEIGHT, LEFT, TOP, LEGEND = 560, 320, 70, 16, 150


# ---- measuring

def cp_sat_run(path, budget, folder):
    """A run as `pipeweaver_studies budget` has them; its last schedule is replayed by the program."""
    import cp_sat
    problem = json.loads(path.read_text())
    answer, course = cp_sat.Model(problem).solve_by_the_clock(budget, WORKERS)
    if answer.solution is not None:
        solution = folder / "solution.json"
        solution.write_text(json.dumps(answer.solution))
        replayed = json.loads(subprocess.run([BINARY, "replay", path, solution, "--json"], check=True,
                                             capture_output=True).stdout)
        assert replayed["makespan_ns"] <= answer.makespan, path.name
    return {"strategy": "cp-sat", "makespan_ns": answer.makespan, "stop_reason": answer.status,
            "improvements": [{"seconds": seconds, "makespan_ns": makespan}
                             for seconds, makespan in course.improvements]}


def measure(budget, words):
    """The answer of `pipeweaver_studies budget`, with CP-SAT's runs among the problems'."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [STUDIES, "budget", "--budget", f"{budget:g}s", *words, "--problems", name, "--json"]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        answer["words"], answer["cp_sat"] = words, None
        try:
            import ortools
        except ImportError:
            print("OR-tools is not installed: without CP-SAT", file=sys.stderr)
            return answer
        answer["cp_sat"] = ortools.__version__
        for problem in answer["problems"]:
            problem["runs"].append(cp_sat_run(folder / f"{problem['name']}.json", budget, folder))
        return answer


# ---- what it says

def strategies(answer):
    return [run["strategy"] for run in answer["problems"][0]["runs"]]


def set_ups(answer):
    return list(dict.fromkeys(problem["model"] for problem in answer["problems"]))


def budgets(answer):
    largest = answer["budget_ns"] / 1e9
    return [budget for budget in BUDGETS if budget < largest] + [largest]


def best_known(problem):
    return min(run["makespan_ns"] for run in problem["runs"] if run["improvements"])


def ratios(problems, strategy, seconds):
    """Of every problem on which the strategy had a schedule by then, its makespan over the best known."""
    found = []
    for problem in problems:
        run = next(run for run in problem["runs"] if run["strategy"] == strategy)
        known = [one["makespan_ns"] for one in run["improvements"] if one["seconds"] <= seconds]
        if known:
            found.append(known[-1] / best_known(problem))
    return found


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_of_all(problems, strategy, seconds):
    """None as long as some problem has no schedule: a mean of the others would be one of another population."""
    found = ratios(problems, strategy, seconds)
    return mean(found) if len(found) == len(problems) else None


def moments(problems, strategy):
    """When the strategy found something better on any of the problems."""
    return sorted({one["seconds"] for problem in problems for run in problem["runs"] if run["strategy"] == strategy
                   for one in run["improvements"]})


def all_from(problems, strategy):
    """When each problem had a schedule; None: not in the budget."""
    return next((at for at in moments(problems, strategy) if mean_of_all(problems, strategy, at) is not None), None)


def time_text(seconds):
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def cell(problems, strategy, seconds):
    found = ratios(problems, strategy, seconds)
    if len(found) == len(problems):
        return f"{mean(found):.4f} ({len(found)})"
    return f"none on {len(problems) - len(found)} of {len(problems)}"


def table(answer, groups, *first):
    """A line for each strategy of each (problems, cells before it); `first`: the heads of these cells."""
    columns = budgets(answer)
    rows = []
    for problems, *cells in groups:
        for strategy in strategies(answer):
            since = all_from(problems, strategy)
            rows.append((*cells, strategy, "-" if since is None else time_text(since),
                         *(cell(problems, strategy, seconds) for seconds in columns)))
    return markdown((*first, "strategy", "a schedule of each after", *map(time_text, columns)), rows)


def verdict(answer):
    """Is ours after 0.1 s at or below dip after 10 s? If not, what it needs."""
    problems, largest = answer["problems"], answer["budget_ns"] / 1e9
    on = f"{len(problems)} problem{'s' if len(problems) > 1 else ''} of {len(set_ups(answer))} set-ups"
    if not {"default", "dip"} <= set(strategies(answer)) or largest < DIP_AT:
        yield f"Not asked: this needs the strategies default and dip, and a budget of {DIP_AT} s ({on} measured)."
        return
    theirs = mean_of_all(problems, "dip", DIP_AT)
    ours = mean_of_all(problems, "default", OURS_AT)
    enough = next((at for at in moments(problems, "default")
                   if (mean_of_all(problems, "default", at) or math.inf) <= theirs), None)
    if ours is not None and ours <= theirs:
        yield (f"**Yes**: after {time_text(OURS_AT)} ours is {ours:.4f} of the best known, `dip` after {DIP_AT} s "
               f"{theirs:.4f} (geometric means over {on}).")
    elif ours is not None:
        yield (f"**No**: after {time_text(OURS_AT)} ours is {ours:.4f} of the best known, `dip` after {DIP_AT} s "
               f"{theirs:.4f} (geometric means over {on}).")
    else:
        yield (f"**No**: after {time_text(OURS_AT)} ours has a schedule for "
               f"{len(ratios(problems, 'default', OURS_AT))} of {on}; `dip` after {DIP_AT} s is {theirs:.4f} of the "
               "best known, geometric mean over all of them.")
    if enough is not None:
        yield f"Ours is at or below `dip` after {DIP_AT} s from {time_text(enough)} on."
    yield ""
    rows = []
    for name in set_ups(answer):
        mine = [problem for problem in problems if problem["model"] == name]
        limit = mean_of_all(mine, "dip", DIP_AT)
        at = next((at for at in moments(mine, "default") if (mean_of_all(mine, "default", at) or math.inf) <= limit),
                  None)
        rows.append((name, len(mine), time_text(all_from(mine, "default")),
                     "not in the budget" if at is None else time_text(at)))
    yield from markdown(("set-up", "problems", "ours has a schedule after",
                         f"ours is at or below `dip` after {DIP_AT} s from"), rows)


def command_lines(answer):
    words = shlex.join(answer["words"])
    yield from code([f"studies/bench_budget.py --budget {answer['budget_ns'] / 1e9:g} {words}".rstrip()])
    yield ""
    solver = f"CP-SAT {answer['cp_sat']} with {WORKERS} workers" if answer["cp_sat"] else "without CP-SAT"
    tasks = sorted(problem["tasks"] for problem in answer["problems"])
    if answer.get("note"):
        yield answer["note"]
        yield ""
    yield (f"{answer['threads']} threads; {solver}; {len(answer['problems'])} problems of {tasks[0]:,} to "
           f"{tasks[-1]:,} tasks.")


def picture(answer):
    """Steps of the geometric mean, from when each problem has a schedule."""
    problems, largest = answer["problems"], answer["budget_ns"] / 1e9
    first, last = math.log10(BUDGETS[0]), math.log10(largest)
    curves = {}
    for strategy in strategies(answer):
        points = [(at, mean_of_all(problems, strategy, at)) for at in moments(problems, strategy)]
        curves[strategy] = [(at, value) for at, value in points if value is not None and at <= largest]
    worst = max((value for points in curves.values() for _, value in points), default=1)
    top = min(1.5, math.ceil(worst * 20) / 20 + (0.05 if worst == 1 else 0))

    def x(seconds):
        return LEFT + (max(first, math.log10(seconds)) - first) / (last - first) * WIDTH

    def y(ratio):
        return TOP + (top - min(ratio, top)) / (top - 1) * HEIGHT

    ticks = round((top - 1) / 0.05)
    for tick in range(ticks + 1):
        ratio = 1 + tick * 0.05
        yield from across(LEFT, y(ratio), WIDTH, f"{ratio:.2f}")
    for seconds in budgets(answer):
        yield text(x(seconds), TOP + HEIGHT + 20, time_text(seconds), "middle")
    yield text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "search time; makespan over the shortest known, geometric mean",
               "middle")
    for number, (strategy, points) in enumerate(curves.items()):
        color = COLORS.get(strategy, "#444444")
        name = "ours" if strategy == "default" else strategy
        if points:
            (at, value), steps = points[0], [word for at, value in points[1:] for word in ("H", x(at), "V", y(value))]
            yield line(("M", x(at), y(value), *steps, "H", x(largest)), color, stroke_width=2)
            yield circle(x(at), y(value), 3, color)
        else:
            name += " (not on all)"
        yield text(LEFT + WIDTH + 12, TOP + 16 + 18 * number, name, color=color)


def write(answer, page, drawing):
    each = [([problem for problem in answer["problems"] if problem["model"] == name], name) for name in set_ups(answer)]
    written = fill(page.read_text(), "answer", verdict(answer))
    written = fill(written, "command", command_lines(answer))
    written = fill(written, "all", table(answer, [(answer["problems"],)]))
    written = fill(written, "set-ups", table(answer, each, "set-up"))
    page.write_text(written)
    drawing.write_text(document(LEFT + WIDTH + LEGEND, TOP + HEIGHT + 56, picture(answer)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=60, help="the largest, in seconds (default 60)")
    parser.add_argument("--json", type=pathlib.Path, help="keep what was measured in this file")
    parser.add_argument("--from", type=pathlib.Path, dest="measured", help="what --json kept: nothing is measured")
    parser.add_argument("--note", help="a sentence on the page beside the command, such as what else the machine did")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--picture", type=pathlib.Path, default=PICTURE)
    options, words = parser.parse_known_args()
    answer = json.loads(options.measured.read_text()) if options.measured else measure(options.budget, words)
    if options.note:
        answer["note"] = options.note
    if options.json:
        options.json.write_text(json.dumps(answer, indent=1) + "\n")
    write(answer, options.page, options.picture)


if __name__ == "__main__":
    main()
