#!/usr/bin/env python3
"""Measures search quality over budget and writes docs/search-budget.md and its picture.

    tools/bench_budget.py [--budget 60] [--batches 1] [--json answer.json]
    tools/bench_budget.py --from answer.json

Runs `pipeweaver bench budget` for all of its strategies and, where OR-tools is installed, CP-SAT with two workers on the
same problems, one search at a time; puts tables, the answer and the command between the page's markers, and a picture
beside it. With --json what was measured is kept; --from writes page and picture again without measuring. Further options
(--model, --microbatches, --threads, --strategies ...) go to `pipeweaver bench budget` as they are. The program is
build/release/bin/pipeweaver or PIPEWEAVER_BIN. With 60 s, five problems and CP-SAT it takes half an hour.
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

from draw_families import fill

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

BINARY = os.environ.get("PIPEWEAVER_BIN", str(ROOT / "build/release/bin/pipeweaver"))
PAGE, PICTURE = ROOT / "docs/search-budget.md", ROOT / "docs/pictures/search-budget.svg"
BUDGETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60)
WORKERS = 2  # of CP-SAT
OURS_AT, DIP_AT = 0.1, 10  # what is asked: ours after so many seconds against dip after so many
COLORS = {"default": "#2e6f9e", "dip": "#c0622d", "dip-random": "#5a8f3c", "dip-dfs": "#8a5fa8", "cp-sat": "#888888"}
WIDTH, HEIGHT, LEFT, TOP, LEGEND = 560, 320, 70, 16, 150


# ---- measuring

def cp_sat_run(path, budget, folder):
    """A run as `bench budget` has them; its last schedule is replayed by the program."""
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
            "improvements": [{"seconds": seconds, "makespan_ns": makespan} for seconds, makespan in course.improvements]}


def measure(budget, words):
    """The answer of `bench budget`, with CP-SAT's runs among the problems'."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [BINARY, "bench", "budget", "--budget", f"{budget:g}s", *words, "--problems", name, "--json"]
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


def table(answer, first, groups):
    """A line for each strategy of each (name, problems)."""
    columns = budgets(answer)
    yield f"| {first}strategy | a schedule of each after | {' | '.join(map(time_text, columns))} |"
    yield "|" + "---|" * (first.count("|") + 2 + len(columns))
    for name, problems in groups:
        for strategy in strategies(answer):
            since = all_from(problems, strategy)
            cells = [strategy, "-" if since is None else time_text(since)]
            cells += [cell(problems, strategy, seconds) for seconds in columns]
            yield f"| {name}{' | '.join(cells)} |"


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
        yield (f"**No**: after {time_text(OURS_AT)} ours is {ours:.4f} of the best known, `dip` after {DIP_AT} s {theirs:.4f} "
               f"(geometric means over {on}).")
    else:
        yield (f"**No**: after {time_text(OURS_AT)} ours has a schedule for {len(ratios(problems, 'default', OURS_AT))} of "
               f"{on}; `dip` after {DIP_AT} s is {theirs:.4f} of the best known, geometric mean over all of them.")
    if enough is not None:
        yield f"Ours is at or below `dip` after {DIP_AT} s from {time_text(enough)} on."
    yield ""
    yield f"| set-up | problems | ours has a schedule after | ours is at or below `dip` after {DIP_AT} s from |"
    yield "|---|---|---|---|"
    for name in set_ups(answer):
        mine = [problem for problem in problems if problem["model"] == name]
        limit = mean_of_all(mine, "dip", DIP_AT)
        at = next((at for at in moments(mine, "default") if (mean_of_all(mine, "default", at) or math.inf) <= limit), None)
        yield (f"| {name} | {len(mine)} | {time_text(all_from(mine, 'default'))} | "
               f"{'not in the budget' if at is None else time_text(at)} |")


def command_lines(answer):
    words = shlex.join(answer["words"])
    yield "```"
    yield f"tools/bench_budget.py --budget {answer['budget_ns'] / 1e9:g} {words}".rstrip()
    yield "```"
    yield ""
    solver = f"CP-SAT {answer['cp_sat']} with {WORKERS} workers" if answer["cp_sat"] else "without CP-SAT"
    tasks = sorted(problem["tasks"] for problem in answer["problems"])
    if answer.get("note"):
        yield answer["note"]
        yield ""
    yield (f"{answer['threads']} threads; {solver}; {len(answer['problems'])} problems of {tasks[0]:,} to {tasks[-1]:,} "
           f"tasks.")


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
        yield f'<path d="M{LEFT} {y(ratio):.1f}h{WIDTH}" stroke="#8884" />'
        yield f'<text x="{LEFT - 8}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:.2f}</text>'
    for seconds in budgets(answer):
        yield f'<text x="{x(seconds):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{time_text(seconds)}</text>'
    yield (f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">'
           'search time; makespan over the shortest known, geometric mean</text>')
    for number, (strategy, points) in enumerate(curves.items()):
        color = COLORS.get(strategy, "#444444")
        name = "ours" if strategy == "default" else strategy
        if points:
            path = f"M{x(points[0][0]):.1f} {y(points[0][1]):.1f}" + "".join(
                f"H{x(at):.1f}V{y(value):.1f}" for at, value in points[1:]) + f"H{x(largest):.1f}"
            yield f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2" />'
            yield f'<circle cx="{x(points[0][0]):.1f}" cy="{y(points[0][1]):.1f}" r="3" fill="{color}" />'
        else:
            name += " (not on all)"
        yield f'<text x="{LEFT + WIDTH + 12}" y="{TOP + 16 + 18 * number}" style="fill:{color}">{name}</text>'


def write(answer, page, drawing):
    everything = [("", answer["problems"])]
    each = [(f"{name} | ", [problem for problem in answer["problems"] if problem["model"] == name])
            for name in set_ups(answer)]
    text = fill(page.read_text(), "answer", verdict(answer))
    text = fill(text, "command", command_lines(answer))
    text = fill(text, "all", table(answer, "", everything))
    text = fill(text, "set-ups", table(answer, "set-up | ", each))
    page.write_text(text)
    style = "text{font:13px sans-serif;fill:#777}"
    width, height = LEFT + WIDTH + LEGEND, TOP + HEIGHT + 56
    drawing.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                       f'width="{width}"><style>{style}</style>{"".join(picture(answer))}</svg>\n')


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
