#!/usr/bin/env python3
"""Plans drawn models, batches and targets, and holds each answer against itself.

Of every plan: no row of its table that the target runs is faster than its best rung, no rung of its ladder is slower
than the one before it, its headline is the last rung that is worth its change, every command that it prints prints its
step to the nanosecond, and the file of a searched rung holds the schedule that it says. Needs no package; prints a line
for each plan, and at last what was wrong.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

import drawn_runs

# Model, cluster and layouts, as their users run them, and the data set of their kind.
JOBS = [
    ("dip-vlm-s", "h100-sxm:16", ["--tp 4 --pp 4", "--tp 4 --pp 2"], "vlm-mix"),
    ("dip-vlm-m", "h100-sxm:32", ["--tp 8 --pp 4", "--tp 4 --pp 4"], "vlm-mix"),
    ("dip-vlm-l", "h100-sxm:64", ["--tp 8 --pp 8"], "vlm-mix"),
    ("dip-t2v-s", "h100-sxm:32", ["--tp 4 --pp 4", "--tp 4 --pp 2"], "t2v-mix"),
    ("qwen2.5-vl-7b", "h100-sxm:16", ["--tp 2 --pp 4", "--tp 4 --pp 2"], "vlm-mix"),
    ("qwen2.5-vl-32b", "h100-sxm:64", ["--tp 4 --pp 4"], "vlm-mix"),
    ("qwen2.5-vl-72b", "h100-sxm:64", ["--tp 8 --pp 8"], "vlm-mix"),
    ("internvl3-38b", "h100-sxm:64", ["--tp 8 --pp 4"], "vlm-mix"),
    ("internvl3-78b", "h100-sxm:64", ["--tp 8 --pp 8"], "vlm-mix"),
    ("llama-3.2-90b-vision", "h100-sxm:64", ["--tp 8 --pp 8"], "vlm-mix"),
    ("wan2.1-t2v-14b", "h100-sxm:16", ["--tp 8 --pp 1", "--tp 4 --pp 2"], "t2v-mix"),
    ("examples/small-vlm.json", "h100-sxm:16", ["--tp 2 --pp 4"], "vlm-mix"),
]
TARGETS = ["torch-actions", "torch-csv", "torchtitan", "megatron", "megatron-mimo", "any"]
RUN_THE_PLAN = {"torch-actions", "any"}  # whatever rung is the fastest


def own_samples(rng, count):
    """Native sizes: most images are small, a few are pages; some samples are text alone."""
    lines = []
    for number in range(count):
        count_of_images = rng.choices([0, 1, 2, 6], [2, 5, 3, 1])[0]
        largest = 32 if count_of_images > 2 else 60
        images = [{"height": 28 * rng.randint(8, largest), "width": 28 * rng.randint(8, largest)}
                 for _ in range(count_of_images)]
        lines.append(json.dumps({"id": f"own-{number}", "text_tokens": rng.randint(50, 1500), "images": images}))
    return "\n".join(lines) + "\n"


class Answers(drawn_runs.Drawn):
    def __init__(self, asked):
        super().__init__(asked.binary)
        self.rounds = asked.rounds

    def check(self, drawn):
        job, layout, batch, target, folder = drawn
        name = f"{job[0]} {layout} {batch} {target}"
        words = ["--model", job[0], "--cluster", job[1], *layout.split(), *batch.split(), "--target", target,
                 "--max-rounds", str(self.rounds)]
        plan = self.plan(name, words, folder)[1]
        before = len(self.wrong)
        self.rungs(name, plan)
        self.rows(name, plan)
        self.printed(name, plan)
        self.files(name, plan, folder)
        rungs = " ".join(f"{rung['rung']} {rung['over_now'] or float('nan'):.3f}" for rung in plan["ladder"])
        return f"{name}: {rungs}{'' if len(self.wrong) == before else '  WRONG'}"

    def rungs(self, name, plan):
        if not plan["ladder"]:
            self.wrong.append(f"{name}: no ladder")
        for one, after in zip(plan["ladder"], plan["ladder"][1:]):
            if after["step_ns"] > one["step_ns"]:
                self.wrong.append(f"{name}: {after['rung']} {after['step_ns']} is slower than {one['step_ns']}")

    def rows(self, name, plan):
        if not plan["ladder"]:
            return
        asked = plan["asked"]["target"]
        best = min(rung["step_ns"] for rung in plan["ladder"]
                   if asked in RUN_THE_PLAN or rung["target"] == plan["headline"]["target"])
        on_groups = [rung for rung in plan["beyond"] if rung["rung"] == "groups" and rung["target"]]
        worth = [rung for rung in plan["ladder"] + on_groups
                 if rung["rung"] == "now" or rung.get("worth", {}).get("is_enough")]
        worth = worth or plan["ladder"][:1]  # nothing runs now: the first that does
        if plan["headline"]["step_ns"] != worth[-1]["step_ns"]:
            self.wrong.append(f"{name}: the headline is not the last rung that is worth its change")
        for row in plan["baselines"]:
            on_plan = not row["opponent"] and asked in RUN_THE_PLAN
            known = on_plan or row["opponent"] and row["launched"]
            if known and row["step_ns"] < best:
                self.wrong.append(f"{name}: {row['partition']} {row['policy']} {row['step_ns']} beats {best}")

    def printed(self, name, plan):
        rows = [(rung["command"], rung["step_ns"]) for rung in plan["ladder"] + plan["beyond"]
                if rung["command"] and "why_nothing" not in rung]
        opponents = [(row["command"], row["step_ns"]) for row in plan["baselines"] if row.get("command")]
        for command, step in dict(rows + opponents[:2] + opponents[-1:]).items():
            said = self.emulated(name, command)
            if said and said["step_ns"] != step:
                self.wrong.append(f"{name}: {command}: prints {said['step_ns']}, said is {step}")

    def files(self, name, plan, folder):
        """The schedule that the headline names is in the folder, as long as it says."""
        rung = plan["ladder"][-1] if plan["ladder"] else {}
        if rung.get("rung") != "schedule" or "why_nothing" in rung:
            return
        if rung["target"] == "torch-csv":
            solution = json.loads((folder / "torch" / "solution.json").read_text())
            if not (folder / "torch" / "schedule.csv").exists():
                self.wrong.append(f"{name}: no schedule.csv")
            makespans = [solution["makespan_ns"]]
        else:
            replicas = sorted(folder.glob("replica-*"))
            makespans = [json.loads((one / "solution.json").read_text())["makespan_ns"] for one in replicas]
            if not all((one / "actions.json").exists() for one in replicas):
                self.wrong.append(f"{name}: no actions.json")
        if not max(makespans) <= rung["step_ns"]:
            self.wrong.append(f"{name}: the files take {max(makespans)}, said is a step of {rung['step_ns']}")
        if rung["target"] in RUN_THE_PLAN and max(makespans) != plan["makespan_ns"]:
            self.wrong.append(f"{name}: the files' makespan is {max(makespans)}, said is {plan['makespan_ns']}")


def draws(rng, count, folder):
    for number in range(count):
        job = JOBS[number % len(JOBS)]
        # The example's microbatches hold no image of a page.
        if rng.random() < 0.4 and job[3] == "vlm-mix" and not job[0].endswith(".json"):
            path = folder / f"own-{number}.jsonl"
            path.write_text(own_samples(rng, rng.choice([120, 200, 300])))
            batch = f"--batch {path}"
        else:
            batch = f"--dataset {job[3]} --microbatches {rng.choice([6, 8, 12])} --seed {rng.randint(1, 99)}"
        yield job, rng.choice(job[2]), batch, TARGETS[number // len(JOBS) % len(TARGETS)], folder / f"plan-{number}"


def main():
    parser = drawn_runs.arguments(__doc__, plans=60)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    answers, numbers = Answers(asked), drawn_runs.numbers(asked)
    with tempfile.TemporaryDirectory() as temporary:
        all_drawn = list(draws(random.Random(asked.seed), numbers.stop, Path(temporary)))
        return answers.check_all(answers.check, [all_drawn[number] for number in numbers], asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
