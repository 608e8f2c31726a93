#!/usr/bin/env python3
"""Plans drawn jobs, and holds what reads the files that they write against each plan.

Of every plan with launch files `check` reads each launch that they are for, with the plan's assignment: it must
construct, fit, and hold the plan's memory on every pipeline rank to the byte. Of every other `emulate --schedule` must
take its schedule and hold the plan's memory on every rank of every replica. `--parsers` gives the flags to frameworks'
own parsers besides, as far as their packages are there (tools/framework_parsers.py), and names the others. Prints at
last how many plans there were, how many launches were read, and what differs.
"""

import json
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import drawn_runs
from framework_parsers import Parsers

# Model and whether it takes images, with the layouts of 8 and 16 GPUs in which its users run it.
DENSE = ("qwen2.5-7b", False, ["--tp 2 --pp 2", "--tp 1 --pp 4", "--tp 4 --pp 2", "--tp 2 --pp 2 --cp 2", "--pp 1"])
SMALL = ("qwen2.5-0.5b", False, ["--tp 1 --pp 2", "--tp 2 --pp 1", "--tp 1 --pp 4", "--pp 2 --cp 2"])
EXPERTS = ("qwen3-30b-a3b", False, ["--tp 2 --pp 2 --ep 2", "--tp 1 --pp 2 --ep 4", "--tp 2 --pp 4 --ep 2"])
IMAGES = ("qwen2.5-vl-7b", True, ["--tp 2 --pp 2", "--tp 1 --pp 4", "--tp 4 --pp 1", "--tp 4 --pp 2"])
BUILT = ("qwen3-vl-8b", True, ["--tp 2 --pp 2", "--tp 1 --pp 4", "--tp 4 --pp 2"])
PIPELINES = [DENSE, SMALL, EXPERTS, IMAGES, BUILT]
REPLICAS = [DENSE, SMALL, IMAGES, BUILT]
RECOMPUTED = ["", "", "full"]


class Job:
    """What a plan is asked for, in the words of `plan`."""

    def __init__(self, number: int, folder: Path, targets: list[str]) -> None:
        draw = random.Random(number)
        self.folder = folder / str(number)
        self.folder.mkdir()
        self.target = targets[number % len(targets)]
        shards = self.target in ("fsdp2", "deepspeed")
        self.model, images, layouts = draw.choice(REPLICAS if shards else PIPELINES)
        cluster = draw.choice(["h100-sxm", "h200-sxm"]) + draw.choice([":8", ":16"])
        self.batch = self.folder / "batch.jsonl"
        self.batch.write_text(samples(draw, images))
        self.asked = ["--model", self.model, "--cluster", cluster, "--batch", str(self.batch)]
        self.built = ["--encoders", "split"] if images and not shards and draw.random() < 0.5 else []
        self.words = (sharded(draw, self.target) if shards else draw.choice(layouts).split()) + self.built
        self.words += draw.choice([[], ["--microbatch-tokens", "4096"]])
        if self.target != "megatron":  # whose *now* is packed so, too, and has no assignment
            self.words += draw.choice([[], ["--packing", "balanced"]])
        if not shards and draw.random() < 0.3:
            self.words += ["--zero", draw.choice("023" if self.target == "torchtitan" else "01")]
        if recompute := draw.choice(RECOMPUTED):
            self.words += ["--now", recompute]
        self.words += tuned(draw, images, self.target)
        self.name = f"{number}: plan {shlex.join([*self.asked[:4], *self.words, '--target', self.target])}"


def tuned(draw: random.Random, images: bool, target: str) -> list[str]:
    """What is trained, and where the optimizer's states lie, of about a third of the jobs."""
    ways = [["--lora", "16"], ["--lora", "8", "--lora-targets", "qkv,output"]]
    if images:
        ways += [["--freeze", "vit"], ["--freeze", "vit,projectors"], ["--freeze", "vit", "--lora", "16"]]
    if target in ("megatron", "deepspeed"):
        ways.append(["--offload-optimizer", "100%"])
    return draw.choice(ways) if draw.random() < 0.35 else []


def sharded(draw: random.Random, target: str) -> list[str]:
    stage = draw.choice(["2", "3"] if target == "fsdp2" else ["1", "2", "3"])
    return draw.choice([[], ["--zero", stage], ["--zero", stage, "--cp", "1"]])


def samples(draw: random.Random, images: bool) -> str:
    lines = []
    for k in range(draw.randint(40, 110)):
        side = 28 * draw.randint(8, 24)
        taken = [{"height": side, "width": side}] * (draw.randint(0, 2) if images else 0)
        lines.append(json.dumps({"id": f"s{k}", "text_tokens": draw.randint(100, 2400), "images": taken}))
    return "\n".join(lines) + "\n"


def launches(job: Job, plan: Path, launch: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines that a plan's files are for, by name."""
    files = plan / job.target
    tp, cp = launch["layout"]["tp"], launch["layout"]["cp"]
    parts = 2 * cp * tp if cp > 1 else tp
    length = -(-launch["most_tokens"] // parts) * parts
    if job.target == "megatron":
        source = f"source {files}/megatron.sh\n"
        own = f"--seq-length {length} --max-position-embeddings {length} --hidden-dropout 0"
        recipe = "scripts/training/run_recipe.py --recipe own"
        over = f'{source}torchrun {recipe} model.seq_length={length} "${{PIPEWEAVER_BRIDGE[@]}}"'
        if {"--lora", "--freeze"} & set(job.words):  # Megatron-LM's own scripts have no word for it
            return [("PIPEWEAVER_BRIDGE", over)]
        found = [(name, f'{source}torchrun pretrain_gpt.py {own} "${{PIPEWEAVER_FLAGS[@]}}" "${{{name}[@]}}"')
                 for name in ("PIPEWEAVER_SPLIT", "PIPEWEAVER_SPLIT_FIRST_LAST")
                 if f"\n{name}=(" in (files / "megatron.sh").read_text()]
        return [*found, ("PIPEWEAVER_BRIDGE", over)]
    if job.target == "torchtitan":
        run = 'torchrun -m torchtitan.train "${PIPEWEAVER_FLAGS[@]}"'
        return [("torchtitan", f"source {files}/torchtitan.sh\n{run}")]
    gpus, yours = job.asked[3].split(":")[1], "model_name_or_path=M template=T dataset=D output_dir=O"
    kind = "fsdp" if job.target == "fsdp2" else "deepspeed"
    found = [("ms-swift", f"source {files}/swift.sh\nNPROC_PER_NODE={gpus} swift sft --model M --dataset D "
                          f'--{kind} {files}/{kind}.json "${{PIPEWEAVER_FLAGS[@]}}"')]
    if (files / "llama_factory.yaml").exists():
        with_file = (f"accelerate launch --config_file {files}/accelerate.yaml src/train.py {files}/llama_factory.yaml"
                     if job.target == "fsdp2" else
                     f"llamafactory-cli train {files}/llama_factory.yaml deepspeed={files}/deepspeed.json")
        found.append(("LLaMA-Factory", f"{with_file} {yours}"))
    return found


class RoundTrip(drawn_runs.Drawn):
    def __init__(self, binary: str, parsers: Parsers | None) -> None:
        super().__init__(binary)
        self.parsers = parsers

    def check(self, job: Job) -> None:
        plan = job.folder / "plan"
        text, planned = self.plan(job.name, [*job.asked, *job.words, "--target", job.target, "--max-rounds", "1"], plan,
                                  refusal="replicas are more than the batch's")
        self.count(f"for {job.target}")
        of_schedule = job.target in ("torch-actions", "torch-csv")
        self.wrong += self.of_schedule(job, plan, planned) if of_schedule else self.of_launches(job, plan, text)

    def of_launches(self, job: Job, plan: Path, text: str) -> list[str]:
        if not (plan / "launch.json").exists():
            self.count(f"for {job.target} without a launch")
            return []
        launch = json.loads((plan / "launch.json").read_text())
        if not (plan / job.target).exists() and f"no files in {job.target}/: " in text:
            self.count(f"for {job.target} without files, for a reason that is said")
            return []
        if not (plan / job.target).exists():
            return [f"{job.name}: launch.json, and no files of the target"]
        words = [*job.asked, *self.assignment(job, plan, launch)]
        if job.target == "megatron":
            words += job.built
        wrong = []
        for name, text in launches(job, plan, launch):
            script = job.folder / "launch.sh"
            script.write_text(text + "\n")
            # Megatron-LM's own flags have no word for it.
            dealt = ["--deal-images"] if name.startswith("PIPEWEAVER_SPLIT") and "deals_images" in launch else []
            done = self.run("check", "--json", *words, *dealt, str(script))
            self.count(f"{name} read")
            for why in (self.why_not(done, launch), self.why_not_parsed(name, plan, launch)):
                wrong += [f"{job.name}: {name}: {why}"] if why else []
        return wrong

    def assignment(self, job: Job, plan: Path, launch: dict[str, Any]) -> list[str]:
        """What runs today takes samples as they come, which `check` does without a word."""
        own = plan / "launch-assignment.json"
        if launch["rung"] == "now" and not own.exists() and job.target == "megatron":
            return []
        return ["--assigned", str(own if own.exists() else plan / "assignment.json")]

    def why_not(self, done: subprocess.CompletedProcess[str], launch: dict[str, Any]) -> str:
        if not done.stdout:
            return done.stderr.strip()
        answer = json.loads(done.stdout)
        if answer["verdict"] not in ("fits", "close") or answer["open"]:
            return f"{answer['verdict']}: {answer['open'] or answer['broken']}"
        held = [one["peak_bytes"] for one in answer["memory"]["ranks"]]
        return "" if held == launch["peak_bytes"] else f"holds {held}, planned {launch['peak_bytes']}"

    def why_not_parsed(self, name: str, plan: Path, launch: dict[str, Any]) -> str:
        if self.parsers is None or name not in self.parsers.found:
            return ""
        self.count(f"{name} parsed")
        why = self.parsers.why_not(name, plan, launch["layout"]["pp"])
        return f"its own parser: {why}" if why else ""

    def of_schedule(self, job: Job, plan: Path, planned: dict[str, Any]) -> list[str]:
        words = ["emulate", "--json", *job.asked, *(w for w in job.words if w not in ("--packing", "balanced"))]
        if "--now" in words:
            at = words.index("--now")
            del words[at:at + 2]
        done = self.run(*words, "--schedule", str(plan), "--assigned", str(plan / "assignment.json"))
        self.count("schedules read")
        if done.returncode != 0:
            return [f"{job.name}: {done.stderr.strip()}"]
        held = [[rank["memory"]["peak_bytes"] for rank in replica["ranks"]]
                for replica in json.loads(done.stdout)["replicas"]]
        expected = [[rank["peak_bytes"] for rank in replica["memory"]] for replica in planned["replicas"]]
        return [] if held == expected else [f"{job.name}: holds {held}, planned {expected}"]


def main() -> int:
    parser = drawn_runs.arguments(__doc__, plans=200)
    parser.add_argument("--targets", default="megatron,torchtitan,fsdp2,deepspeed,torch-actions,torch-csv")
    parser.add_argument("--parsers", action="store_true", help="of frameworks, as far as they are installed")
    asked = parser.parse_args()
    parsers = Parsers() if asked.parsers else None
    trip = RoundTrip(asked.binary, parsers)
    if parsers:
        print("no parser is called for: " + ", ".join(parsers.uncalled))
        if parsers.missing:
            print("parsers that are not installed: " + ", ".join(parsers.missing))
    with tempfile.TemporaryDirectory() as folder:
        drawn = [Job(number, Path(folder), asked.targets.split(",")) for number in drawn_runs.numbers(asked)]
        return trip.check_all(trip.check, drawn, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
