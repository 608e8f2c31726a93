#!/usr/bin/env python3
"""Plans random jobs and runs the printed command of opponents in a shell: each must print its row to the nanosecond.

    tools/check_commands.py BINARY [--sets 200] [--seed 1] [--rows 3] [--jobs 1]

A set is a model of `pipeweaver list models` with a layout that it fits, and at random: experts' GPUs, packing,
assignment, deferral, buckets, ZeRO, times of the host, a recipe, headroom, a sample, and for the batch a data set or a
file whose name means something to a shell. What the program refuses is drawn again; models for which it takes nothing
are named. Of each plan the job's opponent and ROWS others are run. A line for each difference; the exit status is 1 if
there is one, or no command was run.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

NAMES = ["plain.jsonl", "two words.jsonl", "it's.jsonl", "`touch run`.jsonl", "$(touch run).jsonl", "{a,b}.jsonl",
         'a "b" c.jsonl', "~.jsonl", "-dash.jsonl", "a;touch run;#.jsonl", "[a-z]*?!.jsonl", "back\\slash.jsonl",
         "new\nline.jsonl", "$HOME.jsonl", "größe.jsonl", "a&b|c<d>e^f.jsonl"]
RECIPES = ["megatron-core", "megatron-core-overlap", "megatron-2022", "torch-fsdp2",
           json.dumps({"format": "pipeweaver-recipe/1", "name": "it's `mine`", "data_parallel": {"zero": 0}})]
DATA = ["vlm-mix", "t2v-mix", "speech", "constant-2048", "laion-2b"]
REFUSED = (2, 3, 4)  # a fault of the program has another status
DRAWS = 60  # of one set, until the program takes one


class Refused(Exception):
    """The program does not take what was drawn."""


class Program:
    def __init__(self, binary, folder):
        self.binary, self.folder = str(binary), folder

    def _run(self, command, what):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        if done.returncode in REFUSED:
            raise Refused(done.stderr.strip())
        if done.returncode:
            raise SystemExit(f"exit status {done.returncode} of {what}: {done.stderr}")
        return done.stdout

    def plan(self, options, out):
        command = [self.binary, "plan", *options, "--max-rounds", "1", "--threads", "1", "--json", "--out", out]
        return json.loads(self._run(command, command))

    def step_ns(self, printed):
        """Of a printed command, as a shell runs it."""
        script = f'pipeweaver() {{ "$PIPEWEAVER" "$@" --json --threads 1; }}\n{printed}\n'
        command = ["env", f"PIPEWEAVER={self.binary}", "sh", "-c", script]
        return json.loads(self._run(command, printed))["step_ns"]

    def models(self):
        listed = json.loads(self._run([self.binary, "list", "models", "--json"], "list models"))
        return [one["name"] for one in listed if not one["about"].startswith("not available")]


def write_batch(folder, name, data, draw):
    """A batch of the samples that the data set is of."""
    lines = []
    for k in range(draw.randint(12, 40)):
        line = {"id": f"{pathlib.Path(name).stem}-{k}", "text_tokens": draw.randint(40, 1500)}
        if data in ("vlm-mix", "laion-2b"):
            line["images"] = [{"width": 56 * draw.randint(4, 12), "height": 336} for _ in range(draw.randint(0, 4))]
        if data == "t2v-mix":
            line["text_tokens"] = draw.randint(20, 200)
            line["videos"] = [{"frames": draw.randint(16, 200), "width": 640, "height": 360, "fps": 16,
                               "role": "target"}]
        if data == "speech":
            line["audio"] = [{"seconds": draw.randint(2, 20)}]
        lines.append(json.dumps(line))
    (folder / name).write_text("\n".join(lines) + "\n")
    return name


def drawn(model, folder, draw):
    """The options of a plan."""
    layout = {"tp": draw.choice([1, 2, 4, 8]), "pp": draw.choice([1, 2, 4, 8, 16]), "dp": draw.choice([1, 2, 3, 4]),
              "cp": draw.choice([1, 1, 1, 1, 2])}
    gpus = layout["tp"] * layout["pp"] * layout["dp"] * layout["cp"]
    options = {"model": model, "cluster": f"{draw.choice(['h100-sxm', 'h200-sxm', 'a100-sxm', 'b200-sxm'])}:{gpus}",
               **layout, "seed": draw.randint(1, 9)}
    data = draw.choice(DATA)
    if draw.random() < 0.4:
        options["batch"] = write_batch(folder, draw.choice(NAMES), data, draw)
    else:
        options.update({"dataset": data, "microbatches": draw.choice([2, 4, 6])})
        if draw.random() < 0.3:
            options["sample"] = draw.choice(["101-102", "batch", "7,9"])
    sometimes = {
        "ep": draw.choice([1, 2, 4, 8, 16]), "packing": draw.choice(["given", "ffd", "balanced", "padded", "auto"]),
        "assignment": draw.choice(["balanced", "in-turn", "in-turn"]), "bucket": draw.choice(["0B", "40MB", "1GiB"]),
        "zero": draw.choice([0, 1, 2, 3]), "launch": draw.choice(["2us", "5us"]), "action": "30us",
        "recipe": draw.choice(RECIPES), "headroom": draw.choice(["0", "1.5%", "10%"]), "context": "ring",
        "overlap-slowdown": draw.choice(["1.05", "1.2"]), "split": draw.choice(["never", "always"]),
        "partition": draw.choice(["balanced", "megatron"]), "target": "torch-csv"}
    options.update({name: value for name, value in sometimes.items() if draw.random() < 0.25})
    if options.get("packing") == "padded" and draw.random() < 0.7:
        options["defer"] = draw.randint(1, 3)
    if "defer" in options and draw.random() < 0.5:
        options["deferred"] = write_batch(folder, "left `" + draw.choice(NAMES), data, draw)
    return [f"--{name}={value}" for name, value in options.items()]


def planned(program, model, draw, out):
    """A plan that the program makes of the model, and its options; none where it takes nothing that was drawn."""
    for _ in range(DRAWS):
        options = drawn(model, program.folder, draw)
        try:
            return options, program.plan(options, out)
        except Refused:
            continue
    return None


def rows_to_run(plan, count, draw):
    """The job's opponent, the rungs, and others; those that choose recomputation by rank are as many as the others."""
    rows = [row for row in plan["baselines"] if row.get("command")]
    draw.shuffle(rows)
    by_rank = [row for row in rows if row["recompute"] == "by-rank"]
    first = by_rank[: (count + 1) // 2]
    chosen = first + [row for row in rows if row not in first][: count - len(first)]
    opponent = plan["opponent"]
    rungs = [rung for rung in plan["ladder"] if rung["command"] and "why_nothing" not in rung]
    return [opponent] * bool(opponent and opponent["command"]) + rungs + chosen


def differences(program, options, plan, rows):
    """What differs."""
    found = []
    for row in rows:
        try:
            step = program.step_ns(row["command"])
        except Refused as refused:
            step = str(refused)
        if step != row["step_ns"]:
            found.append(f"the row has {row['step_ns']} ns, the command gives {step}: {row['command']}\n"
                         f"  of plan {options}")
    return found


def check_set(binary, models, number, options):
    """How many commands were run, what differs, and a model without a set."""
    draw = random.Random(f"{options.seed}/{number}")
    with tempfile.TemporaryDirectory(prefix="check-commands-") as temporary:
        program = Program(binary, pathlib.Path(temporary))
        # Models in turn, each from another place: few sets are of different models, many of all.
        model = models[(number * 37 + options.seed) % len(models)]
        made = planned(program, model, draw, "plan")
        if made is None:
            return 0, [], model
        rows = rows_to_run(made[1], options.rows, draw)
        found = differences(program, *made, rows)
        if (program.folder / "run").exists():
            found.append(f"a printed command ran what stands in a name: {made[0]}")
        return len(rows), found, None


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path, metavar="BINARY")
    parser.add_argument("--sets", type=int, default=200, metavar="N", help="plans to make (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--rows", type=int, default=3, metavar="N", help="rows of a plan beside the opponent's")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="sets at the same time")
    return parser.parse_args()


def main():
    options = parse()
    binary = pathlib.Path(os.path.abspath(options.binary))
    models = Program(binary, pathlib.Path.cwd()).models()
    commands, differing, without = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        sets = [pool.submit(check_set, binary, models, number, options) for number in range(options.sets)]
        for one in sets:
            run, found, left_out = one.result()
            commands, differing = commands + run, differing + len(found)
            without += [left_out] if left_out else []
            for line in found:
                print(line, flush=True)
    print(f"{options.sets - len(without)} plans, {commands} commands, {differing} differ")
    if without:
        print(f"no set was taken of {', '.join(sorted(set(without)))}")
    return 1 if differing or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
