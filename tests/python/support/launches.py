"""Launch files (pipeweaver-launch/1) of drawn models and layouts."""

import random


def split(draw, ranks, chunks):
    """Layers of each stage: three quarters even between the first and the last rank."""
    if draw.random() < 0.25:
        layers = [draw.randrange(6) for _ in range(ranks * chunks)]
    else:
        first, between, last = draw.randint(1, 5), draw.randint(1, 5), draw.randint(1, 5)
        layers = [first if s % ranks == 0 else last if s % ranks == ranks - 1 else between
                  for s in range(ranks * chunks)]
    layers[-1] += sum(layers) == 0
    return layers


def recompute(draw):
    return draw.choice(["none", "full", "core-attention", f"blocks:{draw.randint(1, 4)}"])


def launch(seed):
    """One that Megatron runs."""
    draw = random.Random(seed)
    ranks, chunks = draw.randint(2, 8), draw.randint(1, 4)
    layers = split(draw, ranks, chunks)
    experts = draw.random() < 0.3
    layout = {"tp": 2 ** draw.randrange(4), "cp": draw.choice([1, 1, 2]), "pp": ranks, "dp": draw.randint(1, 3),
              "ep": 1, "expert_tensor_parallel": 1, "zero": draw.randint(0, 1), "sequence_parallel": True,
              "dispatcher": "all_to_all",
              "context_parallel": draw.choice(["ring", "all_to_all"]), "overlaps_gradients": draw.random() < 0.5,
              "gathers_ahead": draw.random() < 0.5}
    modules = [{"module": "llm", "role": "language", "trains": True, "layers": layers}]
    if draw.random() < 0.5:
        modules.insert(0, {"module": "vit", "role": "encoder", "trains": draw.random() < 0.5,
                           "layers": [24] + [0] * (len(layers) - 1)})
    return {"format": "pipeweaver-launch/1", "rung": "flags", "target": "megatron", "way": "drawn",
            "model": f"drawn-{seed}", "device": "h100_sxm", "layout": layout, "modules": modules,
            "language_letters": " ".join("*E" if experts and layer % 2 else "*-" for layer in range(sum(layers))),
            "fused_attention": True, "has_pipeline": True, "policy": "interleaved" if chunks > 1 else "1f1b",
            "chunks": chunks, "recompute": recompute(draw), "recompute_of_ranks": [],
            "microbatches": [ranks * draw.randint(1, 3)] * layout["dp"], "most_tokens": 8192, "step_ns": 10**9,
            "makespan_ns": 9 * 10**8, "peak_bytes": [draw.randrange(2**36) for _ in range(ranks)],
            "usable_bytes": 2**36}
