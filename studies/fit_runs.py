"""Fits the numbers of recipes to measured runs: studies/fit_runs.py RUNS.csv RECIPE[,RECIPE] [options]

Every evaluation is one `pipeweaver validate RUNS.csv --recipes FILES` with changed numbers; recipes have no rows in
common, so that one evaluation moves a number of each. Errors are logarithms of predicted over measured. A model of a
source on a device counts as one, whatever its rows; each number is drawn to where it starts from with the given
strength, since classes of kernels are collinear within a stack (docs/accuracy.md). Models are split in two halves by
their names: numbers are fitted on the one and judged on both. --all fits on both; --crossed fits on each half in
turn, and says of all rows how far off they are by numbers that never saw their model. --sources leaves out one source
at a time in place of half the models, and says how far off its rows are by numbers of the others; of recipes with one
source alone it says nothing.
"""

import argparse
import csv
import hashlib
import json
import os
import subprocess
import tempfile

import numpy

# Number: where it stands in a recipe, and how far from where it starts it is drawn back from, in logarithms.
NUMBERS = {
    "products": ("kernels", 0.08),
    "attention": ("kernels", 0.15),
    "attention_after_ampere": ("kernels", 0.35),
    "memory_bound": ("kernels", 0.25),
    "traffic": ("kernels", 0.25),
    "experts": ("kernels", 0.25),
    "layer_ns": ("host", 0.5),
    "expert_layer_ns": ("host", 0.7),
}


def family(source):
    """The repository of a source."""
    return source.split(" @")[0].split(" ")[0]


def half_of(row):
    """0 or 1, the same for all rows of a model of a source on a device."""
    name = "|".join((family(row["source"]), row["model"].split("-proxy")[0], row["gpu"]))
    return hashlib.sha256(name.encode()).digest()[0] % 2


class Runs:
    """Rows of a table under recipes."""

    def __init__(self, program, table):
        self.program, self.table = program, table

    def predict(self, recipes):
        """Rows with what is predicted of them."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for recipe in recipes.values():
                files.append(os.path.join(folder, recipe["name"] + ".json"))
                with open(files[-1], "w", encoding="utf-8") as file:
                    json.dump(recipe, file)
            out = os.path.join(folder, "out.csv")
            subprocess.run([self.program, "validate", self.table, "--recipes", ",".join(files), "--out", out],
                           check=True, capture_output=True)
            with open(out, newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))


def errors(rows):
    """log(predicted / measured) of rows that have both; else nan."""
    both = [(row["predicted_step_time_s"], row["step_time_s"]) for row in rows]
    return numpy.array([numpy.log(float(a) / float(b)) if a and b else numpy.nan for a, b in both])


def weights(rows, chosen):
    """Of each row: a model of a source on a device counts as many as the root of its rows."""
    groups = [(family(row["source"]), row["model"], row["gpu"]) for row in rows]
    count = {}
    for group, use in zip(groups, chosen):
        count[group] = count.get(group, 0) + bool(use)
    return numpy.array([1 / numpy.sqrt(max(1, count[group])) ** 0.5 for group in groups])


def changed(recipe, name, value):
    """The recipe with another number."""
    recipe = json.loads(json.dumps(recipe))
    whole = name.endswith("_ns")
    recipe[NUMBERS[name][0]][name] = round(value) if whole else round(value, 4)
    return recipe


def fit(runs, start, free, is_fitted, rounds):
    """Moves the free numbers of each recipe to what the rows that are fitted say; what comes out, the rows, and which
    recipes had some."""
    recipes, moved_ones = dict(start), set()
    rows = runs.predict(recipes)
    most = max(len(names) for names in free.values())
    for _ in range(rounds):
        base = errors(rows)
        slopes = {name: [] for name in recipes}
        for number in range(most):
            moved = {name: changed(r, free[name][number], 1.05 * r[NUMBERS[free[name][number]][0]][free[name][number]])
                     if number < len(free[name]) else r for name, r in recipes.items()}
            column = (errors(runs.predict(moved)) - base) / numpy.log(1.05)
            for name in recipes:
                if number < len(free[name]):
                    slopes[name].append(column)
        for name in recipes:
            of_it = numpy.array([row["recipe"] == name for row in rows]) & ~numpy.isnan(base)
            chosen = of_it & numpy.array([is_fitted(row) for row in rows])
            if not chosen.any():
                continue
            moved_ones.add(name)
            recipes[name] = step(recipes[name], start[name], free[name], base, slopes[name], chosen,
                                 weights(rows, chosen))
        rows = runs.predict(recipes)
    return recipes, rows, moved_ones


def step(recipe, start, names, base, slopes, chosen, weight):
    """One step of Gauss and Newton: residuals of rows that are far off count less, and numbers are drawn back."""
    noise = 0.03
    weight = weight[chosen] / numpy.sqrt(1 + (base[chosen] / 0.10) ** 2)
    now = numpy.array([numpy.log(recipe[NUMBERS[n][0]][n]) for n in names])
    from_ = numpy.array([numpy.log(start[NUMBERS[n][0]][n]) for n in names])
    spread = numpy.array([NUMBERS[n][1] for n in names])
    jacobian = numpy.array([column[chosen] * weight / noise for column in slopes]).T
    left = numpy.concatenate([-base[chosen] * weight / noise, (from_ - now) / spread])
    move, *_ = numpy.linalg.lstsq(numpy.vstack([jacobian, numpy.diag(1 / spread)]), left, rcond=None)
    move = numpy.clip(move, -0.35, 0.35)
    for name, value in zip(names, numpy.exp(now + move)):
        recipe = changed(recipe, name, value)
    return recipe


def parts_of(rows, given):
    """Pairs: which rows numbers are fitted on, and which they are judged by."""
    if given.sources:
        names = sorted({family(row["source"]) for row in rows})
        return [(lambda row, name=name: family(row["source"]) != name,
                 lambda row, name=name: family(row["source"]) == name) for name in names]
    halves = [{0}, {1}] if given.crossed else [{0, 1} if given.all else {0}]
    return [(lambda row, own=own: half_of(row) in own, lambda row: True) for own in halves]


def table(judged, recipes):
    """Lines: rows, mean error and bias of each recipe and device, of fitted and of held-back rows. `judged`: rows with
    which of them their numbers were fitted on."""
    groups = {}
    for rows, is_fitted in judged:
        for row, error in zip(rows, errors(rows)):
            if row["recipe"] in recipes and not numpy.isnan(error):
                key = (row["recipe"], row["gpu"], "experts" if row["ep"] else "dense")
                groups.setdefault(key, []).append((is_fitted(row), numpy.exp(error) - 1))
    for key, values in sorted(groups.items()):
        sides = []
        for fitted in (True, False):
            own = 100 * numpy.array([error for side, error in values if side == fitted])
            sides.append(f"{len(own):4d} {abs(own).mean():6.1f} {own.mean():+6.1f}" if len(own) else " " * 18)
        yield f"{key[0]:<22} {key[1]:<26} {key[2]:<8} fitted {sides[0]}   held back {sides[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs")
    parser.add_argument("recipes", help="names, with their free numbers: nanotron:products+layer_ns,...")
    parser.add_argument("--program", default="build/check/bin/pipeweaver")
    parser.add_argument("--start", default="", help="folder with recipes to start from, NAME.json")
    parser.add_argument("--out", default="", help="folder for what comes out")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--crossed", action="store_true")
    parser.add_argument("--sources", action="store_true")
    given = parser.parse_args()
    free, start = {}, {}
    for entry in given.recipes.split(","):
        name, _, numbers = entry.partition(":")
        free[name] = numbers.split("+") if numbers else []
        file = os.path.join(given.start, name + ".json")
        if given.start and os.path.exists(file):
            with open(file, encoding="utf-8") as text:
                start[name] = json.load(text)
        else:
            start[name] = json.loads(subprocess.run([given.program, "show", name], check=True, capture_output=True,
                                                    text=True).stdout)
        for number in free[name]:
            place = start[name][NUMBERS[number][0]]
            place[number] = place[number] or 100_000
    runs = Runs(given.program, given.runs)
    judged = []
    for is_fitted, is_judged in parts_of(runs.predict(start), given):
        recipes, rows, known = fit(runs, start, free, is_fitted, given.rounds)
        known = known if given.sources else set(start)
        judged.append(([row for row in rows if is_judged(row) and row["recipe"] in known], is_fitted))
        report(recipes, free, given.out)
    for line in table(judged, start):
        print(line)


def report(recipes, free, folder):
    """Prints the free numbers, and writes the recipes to a folder if there is one."""
    for name, recipe in recipes.items():
        print(name, {number: recipe[NUMBERS[number][0]][number] for number in free[name]})
        if folder:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(recipe, file, indent=1)


if __name__ == "__main__":
    main()
