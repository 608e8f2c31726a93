#!/usr/bin/env python3
"""Writes the tables of families.md: studies/draw_families.py [PIPEWEAVER]

Emulates every setting of SETTINGS with the program PIPEWEAVER (build/release/bin/pipeweaver unless given) and puts what
it prints between the page's markers: a table for each group, what was assumed, and the commands. To try another layout,
edit its line here and run this again; it takes about a minute, most of it for the steps of 6,144 GPUs and more.
"""

import json
import pathlib
import subprocess
import sys

from table import code, fill, table

PAGE = pathlib.Path(__file__).resolve().parent / "families.md"
CHAIN = "--partition balanced --chunks 4 --policy interleaved"
DIP = "--partition dip --policy dual-queue"

# group -> (model, GPUs of h100-sxm, what else the command says)
SETTINGS = {
    "step": (
        ("step-video-t2v-30b", 64, f"--tp 8 --pp 2 --dataset t2v-mix --microbatches 16 {CHAIN}"),
        ("step-video-ti2v-dit", 64, f"--tp 4 --pp 4 --dataset t2v-mix --microbatches 16 {CHAIN}"),
        ("step-audio-130b", 128, f"--tp 8 --pp 8 --dataset speech --microbatches 32 {CHAIN}"),
        ("step-audio-aqaa", 128, f"--tp 8 --pp 8 --dataset speech --microbatches 32 {CHAIN}"),
        ("step-audio-2-32b", 32, f"--tp 4 --pp 4 --dataset speech --microbatches 32 {DIP}"),
        ("step-audio-2-mini", 8, "--tp 2 --pp 1 --dataset speech --microbatches 16"),
        ("nextstep-1-14b", 32, "--tp 4 --pp 2 --dataset laion-2b --microbatches 16 --partition balanced --chunks 2 "
                               "--policy interleaved"),
        ("step1x-edit-dit", 16, "--tp 4 --pp 1 --dataset laion-2b --microbatches 8"),
        ("step3-321b", 512, f"--tp 8 --pp 8 --ep 16 --dataset vlm-mix --microbatches 64 {DIP} "
                            "--recompute selective"),
    ),
    "dip": (
        ("dip-vlm-s", 16, f"--dataset vlm-mix --microbatches 16 {CHAIN}"),
        ("dip-vlm-s", 16, f"--dataset vlm-mix --microbatches 16 {DIP} --recompute selective"),
        ("dip-vlm-m", 32, f"--dataset vlm-mix --microbatches 16 {CHAIN}"),
        ("dip-vlm-m", 32, f"--dataset vlm-mix --microbatches 16 {DIP} --recompute selective"),
        ("dip-vlm-l", 64, f"--dataset vlm-mix --microbatches 16 {CHAIN}"),
        ("dip-vlm-l", 64, f"--dataset vlm-mix --microbatches 16 {DIP} --recompute selective"),
        ("dip-t2v-s", 16, f"--dataset t2v-mix --microbatches 16 {CHAIN}"),
        ("dip-t2v-s", 16, f"--dataset t2v-mix --microbatches 16 {DIP}"),
        ("dip-t2v-l", 64, "--dataset t2v-mix --microbatches 16 --chunks 4 --policy interleaved"),
        ("dip-t2v-l", 64, f"--dataset t2v-mix --microbatches 16 {DIP}"),
        ("dip-vlm-xl-8k", 8192, f"--dataset vlm-mix --microbatches 64 {CHAIN}"),
        ("dip-vlm-xl-8k", 8192, f"--dataset vlm-mix --microbatches 64 {DIP}"),
        ("dip-vlm-xl-8k", 8192, f"--dataset vlm-mix --microbatches 64 {DIP} --recompute selective"),
        ("dip-vlm-xl-16k", 16384, f"--dataset vlm-mix --microbatches 64 {CHAIN}"),
        ("dip-vlm-xl-16k", 16384, f"--dataset vlm-mix --microbatches 64 {DIP} --recompute full"),
        ("dip-t2v-xl-3k", 3072, f"--dataset t2v-mix --microbatches 64 {CHAIN}"),
        ("dip-t2v-xl-3k", 3072, f"--dataset t2v-mix --microbatches 64 {DIP} --recompute selective"),
        ("dip-t2v-xl-6k", 6144, f"--dataset t2v-mix --microbatches 64 {CHAIN}"),
        ("dip-t2v-xl-6k", 6144, f"--dataset t2v-mix --microbatches 64 {DIP} --recompute selective"),
    ),
}


def command(setting):
    model, gpus, rest = setting
    return f"emulate --model {model} --cluster h100-sxm:{gpus} {rest}"


def answer(program, words):
    return json.loads(subprocess.run([program, *words.split()], check=True, capture_output=True).stdout)


def backbone(program, model):
    """The module whose tokens are counted: the one that takes the whole microbatch."""
    modules = answer(program, f"show {model}")["modules"]
    return next(module["name"] for module in modules if module["unit"] == "microbatch")


def layout(asked):
    names = ("tp", "cp", "pp", "dp") if asked["cp"] > 1 else ("tp", "pp", "dp")
    return " x ".join(f"{name} {asked[name]}" for name in names) + (f", ep {asked['ep']}" if asked["ep"] > 1 else "")


def way(result):
    partition = result["partition"]
    chunks = "" if partition["chunks_per_rank"] == 1 else f" ({partition['chunks_per_rank']} chunks)"
    return f"{partition['name']}{chunks}, {result['policy']}, {result['recompute']}"


def fullest(result):
    """The peak of the fullest GPU of all replicas, and what is usable, in GiB."""
    memories = [rank["memory"] for replica in result["replicas"] for rank in replica["ranks"]]
    most = max(memories, key=lambda memory: memory["peak_bytes"])
    return f"{most['peak_bytes'] / 2**30:.1f} of {most['capacity_bytes'] / 2**30:.1f}"


def path(replica, step):
    """The three largest parts of the critical path; what belongs to no module stands without one."""
    parts = sorted(replica["critical_path"], key=lambda part: -part["time_ns"])[:3]
    names = (" of ".join(filter(None, (part["what"], part.get("module")))) for part in parts)
    return ", ".join(f"{name} {part['time_ns'] / step:.0%}" for name, part in zip(names, parts))


def row(result, module):
    asked, step = result["asked"], result["step_ns"]
    replica = result["replicas"][result["slowest_replica"]]
    bubble = sum(rank["bubble_ns"] for rank in replica["ranks"]) / len(replica["ranks"]) / step
    bases = result["share_of_time"]["by_basis"]
    return (asked["model"], f"{asked['gpus']:,}", layout(asked),
            f"{asked['samples']:,} in {asked['microbatches']:,} of {asked['batch'].split()[0]}", way(result),
            f"{step * 1e-9:.2f} s", f"{result['mfu']:.1%}", f"{result['tokens_per_second']:,.0f} ({module})",
            fullest(result), path(replica, step), f"{bubble:.0%}", f"{bases['exact'] + bases['interpolated']:.0%}")


def settings_table(program, results):
    head = ("model", "GPUs", "layout", "samples in microbatches", "partition, schedule, recompute", "step", "MFU",
            "tokens/s", "fullest GPU, GiB", "the path that decides", "bubble", "measured")
    return table(head, [row(result, backbone(program, result["asked"]["model"])) for result in results],
                 right=(1, 5, 6, 7, 8, 10, 11))


def assumptions(results):
    """What was assumed, each with the models it was assumed of."""
    models, groups = [], {}
    for result in results:
        models.append(result["asked"]["model"])
        for line in result["assumed"] + result["asked"]["assumed"]:
            groups.setdefault(line, set()).add(models[-1])
    models = list(dict.fromkeys(models))
    for line, having in sorted(groups.items(), key=lambda group: -len(group[1])):
        others = [model for model in models if model not in having]
        some = ", ".join(model for model in models if model in having)
        most = " but ".join(filter(None, ("all", ", ".join(others))))
        yield f"- {some if len(having) < len(others) else most}: {line}"


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/pipeweaver"
    page, everything = PAGE.read_text(), []
    for group, settings in SETTINGS.items():
        results = [answer(program, command(setting) + " --json") for setting in settings]
        page = fill(page, group, settings_table(program, results))
        everything += results
    page = fill(page, "assumed", assumptions(everything))
    commands = [f"pipeweaver {command(setting)}" for settings in SETTINGS.values() for setting in settings]
    PAGE.write_text(fill(page, "commands", code(commands)))


if __name__ == "__main__":
    main()
