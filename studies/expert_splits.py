#!/usr/bin/env python3
"""Prints the splits that engineers run beside the cut `first-stage` of the same models, as a table in Markdown:
studies/expert_splits.py [--program PATH] [--page studies/expert-splits.md]

A split is the layers of the language model on each pipeline stage, the encoder whole on the first. What the sources do
not say is what a microbatch holds: each row names the images that were assumed.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

from table import fill, table

# Sources: InternVL: baidu-baige/LoongForge of August 2026, examples/internvl2.5 and internvl3.5 (sft_*.sh: packs of
# --seq-length tokens with --num-images-expected 48 tiles; a sample has at most 12 tiles and a thumbnail); Qwen:
# NVIDIA-NeMo/Megatron-Bridge 067f987d, perf_recipes/qwen_vl/b200/qwen3_vl.py and recipes/qwen_vl/h100/qwen35_vl.py.
CASES = [
    {"name": "InternVL2.5-78B", "split": [1, 26, 26, 27], "model": "internvl3-78b", "tokens": 16384,
     "where": "h800-sxm:64 --tp 8 --pp 4", "images": "constant-768+13x448px"},
    {"name": "InternVL2.5-38B", "split": [6, 58], "model": "internvl3-38b", "tokens": 16384,
     "where": "h800-sxm:32 --tp 4 --pp 2", "images": "constant-768+13x448px"},
    {"name": "InternVL3.5-38B", "split": [5, 59], "model": "internvl3-38b", "llm": "qwen3-32b", "tokens": 16384,
     "where": "h800-sxm:32 --tp 4 --pp 2", "images": "constant-768+13x448px"},
    {"name": "InternVL3.5-241B-A28B", "split": [11, 28, 28, 27], "model": "internvl3-38b", "llm": "qwen3-235b-a22b",
     "tokens": 8192, "where": "h800-sxm:512 --tp 4 --pp 4 --ep 8", "images": "constant-768+13x448px"},
    {"name": "Qwen3-VL-235B-A22B", "split": [10, 12, 12, 12, 12, 12, 12, 12], "model": "qwen3.6-35b-a3b",
     "llm": "qwen3-235b-a22b", "tokens": 4096, "where": "b200-sxm:64 --tp 1 --pp 8 --ep 8",
     "images": "constant-3800+1x448px"},
    {"name": "Qwen3.6-35B-A3B, fixed shapes", "split": [17, 23], "model": "qwen3.6-35b-a3b", "tokens": 4096,
     "where": "h100-sxm:16 --tp 1 --pp 2 --ep 8 --recipe megatron-core-plain", "images": "constant-3800+1x448px"},
    {"name": "Qwen3.6-35B-A3B, real images", "split": [16, 24], "model": "qwen3.6-35b-a3b", "tokens": 4096,
     "where": "h100-sxm:16 --tp 1 --pp 2 --ep 8 --recipe megatron-core-plain", "images": "constant-3000+4x448px"},
]


def printed(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def model_of(program, case, folder):
    """The catalogue's model with the case's microbatch and, where it names one, another language model behind it."""
    model = printed(program, "show", case["model"])
    model["microbatch_tokens"] = case["tokens"]
    if "llm" in case:
        other = printed(program, "show", case["llm"])["modules"][0]["architecture"]
        next(module for module in model["modules"] if module["name"] == "llm")["architecture"] = other
        model["edges"][0]["projector"]["out"] = other["hidden"]
        for computed in ("params_published", "params_computed"):
            model.pop(computed, None)
    path = pathlib.Path(folder, "model.json")
    path.write_text(json.dumps(model))
    return path


def first_stage(program, case):
    """Layers of the language model by stage."""
    with tempfile.TemporaryDirectory() as folder:
        model = model_of(program, case, folder)
        told = printed(program, "emulate", "--model", str(model), "--cluster", *case["where"].split(), "--dataset",
                       case["images"], "--microbatches", "16", "--partition", "first-stage", "--chunks", "1",
                       "--sample", "batch", "--json", "--quiet")
    stages = told["partition"]["chains"][0]["stages"]
    return [sum(part["layers"] for part in stage["parts"] if part["module"] == "llm") for stage in stages]


def words_of(split):
    return " ".join(map(str, split))


def row(program, case):
    ours = first_stage(program, case)
    apart = max(abs(a - b) for a, b in zip(ours, case["split"]))
    return [case["name"], case["where"].replace(" --", ", ").replace(":", " x "), case["images"],
            words_of(case["split"]), words_of(ours), str(apart)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/pipeweaver", metavar="PATH")
    parser.add_argument("--page", type=pathlib.Path, help="put the table into this page")
    asked = parser.parse_args()
    head = ["model", "where", "a sample", "they run", "`first-stage`", "layers apart"]
    lines = list(table(head, [row(asked.program, case) for case in CASES]))
    if asked.page is None:
        print("\n".join(lines))
    else:
        asked.page.write_text(fill(asked.page.read_text(), "splits", lines))


if __name__ == "__main__":
    main()
