#!/usr/bin/env python3
"""Prints emulated steps of the kind that NVIDIA published for encoders off the language model's first stage, as a table
in Markdown: studies/mimo_ratios.py [--program PATH] [--page studies/module-layouts.md]

Published (NVIDIA-NeMo/Megatron-Bridge 067f987d, tutorials/megatron_mimo/qwen35-vl-non-colocated-sft.md, section 4):
Qwen3.5-27B with images, TP 4 x PP 2 x DP 2, one sample a microbatch; the encoder on a GPU of its own beside the 16
over the best standard layout with the encoder inside stage 0. Sizes of RDR's images are published, those of the others
assumed.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

from table import fill, table

LAYOUT = ["--cluster", "h100-sxm:16", "--tp", "4", "--pp", "2"]
CASES = [
    {"data": "RDR 768 x 768", "tokens": 2048, "samples": 64, "pixels": 768, "published": 35.0},
    {"data": "RDR 768 x 768", "tokens": 4096, "samples": 32, "pixels": 768, "published": 23.7},
    {"data": "CORD-v2, as 1024 x 1024", "tokens": 2048, "samples": 32, "pixels": 1024, "published": 28.1},
    {"data": "CORD-v2, as 1024 x 1024", "tokens": 2048, "samples": 64, "pixels": 1024, "published": 30.5},
    {"data": "CORD-v2, as 1024 x 1024", "tokens": 4096, "samples": 64, "pixels": 1024, "published": 27.7},
    {"data": "MedPix, as 512 x 512", "tokens": 2048, "samples": 32, "pixels": 512, "published": 23.8},
    {"data": "MedPix, as 512 x 512", "tokens": 2048, "samples": 64, "pixels": 512, "published": 32.7},
]
REPLICAS = 2
RECIPES = ["megatron-core-plain", "megatron-core"]  # a host that launches kernels, and none that is waited for


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def model_file(program, name, tokens, folder):
    model = json.loads(run(program, "show", name))
    model["microbatch_tokens"] = tokens
    path = pathlib.Path(folder, f"{name}.json")
    path.write_text(json.dumps(model))
    return str(path)


def emulated(program, model, case, dataset, recipe, *words):
    told = json.loads(run(program, "emulate", "--model", model, *LAYOUT, "--dataset", dataset, "--microbatches",
                          str(case["samples"] // REPLICAS), "--sample", "batch", "--recipe", recipe, "--policy", "1f1b",
                          *words, "--json", "--quiet"))
    return told["step_ns"]


def planned(program, model, case, dataset, recipe, folder):
    out = pathlib.Path(folder, "plan")
    run(program, "plan", "--model", model, *LAYOUT, "--dataset", dataset, "--microbatches",
        str(case["samples"] // REPLICAS), "--sample", "batch", "--recipe", recipe, "--partition", "modules",
        "--max-rounds", "30", "--out", str(out))
    return json.loads((out / "plan.json").read_text())["step_ns"]


def row(program, case, recipe):
    image_tokens = (case["pixels"] // 32) ** 2
    dataset = f"constant-{case['tokens'] - image_tokens}+1x{case['pixels']}px"
    with tempfile.TemporaryDirectory() as folder:
        whole = model_file(program, "qwen3.5-27b", case["tokens"], folder)
        alone = model_file(program, "qwen3.5-27b-llm", case["tokens"], folder)
        inside = emulated(program, whole, case, dataset, recipe, "--layers", "32,32")
        uneven = emulated(program, whole, case, dataset, recipe, "--partition", "first-stage")
        phases = emulated(program, whole, case, dataset, recipe, "--partition", "three-phase")
        searched = planned(program, whole, case, dataset, recipe, folder)
        language = emulated(program, alone, case, f"constant-{case['tokens']}", recipe, "--layers", "32,32")
    less = [f"{100 * (step / inside - 1):+.1f} %" for step in (uneven, phases, searched, language)]
    return [case["data"], str(case["tokens"]), str(case["samples"]), f"-{case['published']} %", recipe,
            f"{inside / 1e9:.3f} s", *less]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/bin/pipeweaver")
    parser.add_argument("--page")
    asked = parser.parse_args()
    head = ["images", "tokens", "samples", "published", "recipe", "encoder in stage 0, 32 + 32 layers", "uneven layers",
            "three-phase", "modules, searched", "language model alone"]
    lines = list(table(head, [row(asked.program, case, recipe) for case in CASES for recipe in RECIPES]))
    print("\n".join(lines))
    if asked.page:
        page = pathlib.Path(asked.page)
        page.write_text(fill(page.read_text(), "mimo", lines))


if __name__ == "__main__":
    main()
