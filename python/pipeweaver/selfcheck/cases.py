"""What a check runs. A stack is a model file, its batch, and nothing that only PyTorch knows; `networks` builds it."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Scale:
    """How large the stacks are: "gpu" for ten minutes on a GPU of 80 GB, "cpu" for a minute or two on two cores."""

    name: str
    vit: Mapping[str, int]
    llm: Mapping[str, int]
    experts: Mapping[str, int]
    expert_layers: int
    dit: Mapping[str, int]
    text: int  # tokens of a sample beside its images
    images: int  # of a sample, of 28 * side pixels a side
    side: int
    samples: int  # of a microbatch
    clip: int  # latent positions
    context: int  # text positions that a clip reads


SCALES = {
    "gpu": Scale("gpu", vit={"layers": 24, "hidden": 1024, "ffn": 4096, "heads": 16, "head_dim": 64},
                 llm={"layers": 16, "hidden": 2048, "ffn": 6144, "heads": 16, "kv_heads": 8, "head_dim": 128,
                      "vocab": 32768},
                 experts={"experts": 32, "top_k": 4, "expert_ffn": 1024}, expert_layers=8,
                 dit={"layers": 16, "hidden": 1536, "ffn": 8960, "heads": 12, "head_dim": 128},
                 text=1024, images=4, side=16, samples=4, clip=16384, context=512),
    "cpu": Scale("cpu", vit={"layers": 2, "hidden": 128, "ffn": 256, "heads": 2, "head_dim": 64},
                 llm={"layers": 2, "hidden": 128, "ffn": 256, "heads": 2, "kv_heads": 1, "head_dim": 64, "vocab": 512},
                 experts={"experts": 4, "top_k": 2, "expert_ffn": 128}, expert_layers=2,
                 dit={"layers": 2, "hidden": 128, "ffn": 256, "heads": 2, "head_dim": 64},
                 text=48, images=1, side=8, samples=2, clip=256, context=32),
}
MICROBATCHES = 2
RECOMPUTATIONS = ("none", "selective", "full")


@dataclass(frozen=True)
class Stack:
    """A step on one GPU: `batch` are the samples of MICROBATCHES equal microbatches, as in a batch file."""

    name: str
    model: dict[str, Any]
    batch: list[dict[str, Any]]

    def architecture(self, module: str) -> dict[str, Any]:
        """Of the module with this name. Raises StopIteration where there is none."""
        found = next(one for one in self.model["modules"] if one["name"] == module)
        return dict(found["architecture"])

    def write(self, folder: pathlib.Path) -> dict[str, str]:
        """Writes model and batch; the options of `pipeweaver plan` that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        model, batch = folder / f"{self.name}.json", folder / f"{self.name}.jsonl"
        model.write_text(json.dumps(self.model, indent=1) + "\n", encoding="utf-8")
        batch.write_text("".join(json.dumps(sample) + "\n" for sample in self.batch), encoding="utf-8")
        return {"model": str(model), "batch": str(batch)}


def stacks(scale: Scale) -> list[Stack]:
    """A ViT before an LLM, an LLM with experts, a diffusion transformer."""
    return [_vlm("vlm", scale, [scale.images] * MICROBATCHES * scale.samples), _moe(scale), _dit(scale)]


def uneven(scale: Scale) -> Stack:
    """What two ranks train: a ViT before an LLM, with other images in every microbatch, some without."""
    halved = {key: value // 2 if key in ("layers", "hidden", "ffn", "heads", "kv_heads") else value
              for key, value in scale.llm.items()}
    smaller = scale if scale.name == "cpu" else Scale(**{**scale.__dict__, "llm": halved, "text": 512})
    images = [4, 0, 1, 2, 0, 3, 1, 0]
    return _vlm("uneven", smaller, images, samples=1)


def _vlm(name: str, scale: Scale, images: Sequence[int], samples: int | None = None) -> Stack:
    """`images` are those of each sample; `samples` of them fill a microbatch."""
    count = samples or scale.samples
    pixels, tokens = 28 * scale.side, scale.side ** 2
    vit, llm = _module("vit", "vit", scale.vit, patch_size=14), _module("llm", "llm", scale.llm, gated=True)
    model = {
        "format": "pipeweaver-model/1", "name": f"selfcheck-{name}",
        "modules": [{"name": "vit", "architecture": vit, "unit": "items", "modalities": ["image"]},
                    {"name": "llm", "architecture": llm, "unit": "microbatch", "modalities": ["text"]}],
        "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
                   "projector": {"in": 4 * scale.vit["hidden"], "out": scale.llm["hidden"]}}],
        "image": {"patch": 14, "merge": 2, "min_tokens": 1, "max_tokens": tokens},
        "microbatch_tokens": count * (scale.text + max(images) * tokens),
    }
    batch = [{"id": f"s{number:02}", "text_tokens": scale.text + (max(images) - here) * tokens,
              "images": [{"width": pixels, "height": pixels}] * here} for number, here in enumerate(images)]
    return Stack(name, model, batch)


def _moe(scale: Scale) -> Stack:
    llm = _module("llm", "llm", scale.llm, gated=True, moe={"moe_layers": scale.expert_layers, **scale.experts})
    llm["layers"] = scale.expert_layers
    tokens = scale.text + scale.images * scale.side ** 2
    return Stack("moe", _one_module("moe", llm, "text", {"microbatch_tokens": scale.samples * tokens}),
                 [{"id": f"s{number:02}", "text_tokens": tokens} for number in range(MICROBATCHES * scale.samples)])


def _dit(scale: Scale) -> Stack:
    dit = _module("dit", "dit", scale.dit, attention={"kind": "dense", "causal": False}, in_channels=64,
                  cross_attention_dim=scale.dit["hidden"], text_tokens=scale.context, condition_dim=1024)
    video = {"spatial": 16, "frames_in": 4, "frames_out": 1, "first_frame_alone": True, "fps": 16.0,
             "max_seconds": 60.0}
    clip = {"tokens": scale.clip, "patches": scale.clip}
    return Stack("dit", _one_module("dit", dit, "video", {"video": video, "microbatch_tokens": scale.clip}),
                 [{"id": f"s{number:02}", "text_tokens": 0, "videos": [clip]} for number in range(MICROBATCHES)])


def _module(name: str, kind: str, sizes: Mapping[str, int], **more: Any) -> dict[str, Any]:
    return {"name": f"selfcheck-{name}", "kind": kind, **sizes, **more}


def _one_module(name: str, architecture: dict[str, Any], modality: str, more: dict[str, Any]) -> dict[str, Any]:
    module = {"name": architecture["kind"], "architecture": architecture, "unit": "microbatch",
              "modalities": [modality]}
    return {"format": "pipeweaver-model/1", "name": f"selfcheck-{name}", "modules": [module], "edges": [], **more}


# Plans whose operators are measured besides those of the stacks, on clusters of the device: what is trained most.
PLANS: Mapping[str, list[dict[str, Any]]] = {
    "gpu": [
        {"model": "qwen2.5-vl-7b", "gpus": 16, "tp": 4, "pp": 4, "dataset": "vlm-mix", "microbatches": 8},
        {"model": "qwen2.5-vl-32b", "gpus": 32, "tp": 8, "pp": 4, "dataset": "vlm-mix", "microbatches": 8},
        {"model": "wan2.1-t2v-14b", "gpus": 16, "tp": 4, "pp": 4, "dataset": "t2v-mix", "microbatches": 8},
        {"model": "qwen3-30b-a3b", "gpus": 16, "tp": 1, "pp": 2, "ep": 8, "dataset": "constant-4096",
         "microbatches": 8},
    ],
    "cpu": [],
}


def plans(scale: Scale, cluster: str, place: pathlib.Path) -> list[dict[str, Any]]:
    """The steps whose operators are measured, as options of `pipeweaver plan`; files of the stacks are written into
    `place`."""
    own = [{**stack.write(place), "cluster": f"{cluster}:1", "tp": 1, "pp": 1} for stack in stacks(scale)]
    others = []
    for plan in PLANS[scale.name]:
        options = {key: value for key, value in plan.items() if key != "gpus"}
        others.append({**options, "cluster": f"{cluster}:{plan['gpus']}"})
    return own + others
