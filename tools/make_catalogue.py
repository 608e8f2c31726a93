#!/usr/bin/env python3
"""Converts the collected facts on published networks and data sets into the files that the program embeds.

    tools/make_catalogue.py FOLDER        FOLDER holds models.json and distributions.json

Writes workloads/data/catalogue.json ("pipeweaver-catalogue/1") and workloads/data/datasets.json
("pipeweaver-datasets/1"), one line an entry. workloads/data/clusters.json is kept by hand.
What this script adds to the facts (rules of tokens, projectors, layer positions) is written into each
model's "assumed" or commented here.
"""
import json
import pathlib
import sys

DATA = pathlib.Path(__file__).resolve().parents[1] / "workloads/data"

# ---- added facts -------------------------------------------------------------------------------------------------

# Public configurations that the collected facts lack, in the form of models.json.
QWEN_VIT = "configuration of Qwen2.5-VL-72B-Instruct (tests/data/hf/qwen2.5-vl-72b.json)"
INTERN_VIT = ("configuration of InternVL2.5-38B (tests/data/hf/internvl2.5-38b.json); heads: NVIDIA/Megatron-LM "
              "examples/multimodal/config.py")
LLAMA_VIT = "pytorch/torchtune llama3_2_vision: 32 layers and 8 global ones, four tiles of 560 pixels"
QWEN_35 = "huggingface/transformers@008e5743 src/transformers/models/"
QWEN_36 = (QWEN_35 + "qwen3_5_moe/configuration_qwen3_5_moe.py (defaults of Qwen3.5-35B-A3B); the model card of "
           "Qwen3.6-35B-A3B has the same sizes")
QWEN_27 = (QWEN_35 + "qwen3_5/configuration_qwen3_5.py; sizes of the 27B: THUDM/slime scripts/models/qwen3.5-27B.sh, "
           "its linear heads: the model card")
NEMOTRON = ("NVIDIA-NeMo/Megatron-Bridge@89e822c9 docs/models/llm/nemotronh.md; groups, convolution, chunk: "
            "transformers@13923c63 nemotron_h/configuration_nemotron_h.py")
INTERNVL_3 = "arXiv 2504.10479, table of the models (memory): InternViT-6B-448px-V2.5 and Qwen2.5"


def encoder(name, layers, hidden, ffn, heads, head_dim, params_computed, confidence, source, **more):
    return {"name": name, "kind": "vit", "layers": layers, "hidden": hidden, "ffn": ffn, "heads": heads,
            "kv_heads": heads, "head_dim": head_dim, "patch_size": 14, "image_size": None, "gated": False,
            "attention": {"type": "mha", "causal": False}, "confidence": confidence, "source": source,
            "params_computed": params_computed, **more}


def joint(name, vit, llm, confidence, source):
    modules = [{"role": "encoder", "model": vit}, {"role": "backbone", "model": llm}]
    return {"name": name, "kind": "lmm", "modules": modules, "confidence": confidence, "source": source}


def gated_delta(value_heads):
    return {"kind": "gated_delta", "key_heads": 16, "value_heads": value_heads, "key_dim": 128, "value_dim": 128,
            "convolution": 4, "chunk": 64}


def mamba2(heads, size):
    return {"kind": "mamba2", "key_heads": 8, "value_heads": heads, "key_dim": 128, "value_dim": size,
            "convolution": 4, "chunk": 128}


def hybrid(name, layers, hidden, ffn, heads, kv_heads, head_dim, vocab, linear, pattern, params_computed, published,
           source, gated=True, **more):
    # Qwen3-Next and its successors gate the attention's output and norm queries and keys.
    attention = {"type": "gqa", "causal": True, **({"qk_norm": True, "output_gate": True} if gated else {})}
    return {"name": name, "kind": "llm", "layers": layers, "hidden": hidden, "ffn": ffn, "heads": heads,
            "kv_heads": kv_heads, "head_dim": head_dim, "vocab": vocab, "gated": gated, "attention": attention,
            "linear": linear, "layer_pattern": pattern, "params_computed": params_computed,
            "params_published": published, "confidence": "verified-file", "source": source, **more}


def mixed(layers, experts, top_k, expert_ffn, shared_ffn):
    return {"moe_layers": layers, "experts": experts, "top_k": top_k, "expert_ffn": expert_ffn,
            "shared_ffn": shared_ffn}


def experts(name, layers, hidden, ffn, heads, kv_heads, head_dim, vocab, moe, counts, published, source, **more):
    total, active = counts
    return {"name": name, "kind": "llm", "layers": layers, "hidden": hidden, "ffn": ffn, "heads": heads,
            "kv_heads": kv_heads, "head_dim": head_dim, "vocab": vocab, "gated": True,
            "attention": {"type": "gqa", "causal": True}, "moe": moe, "params_computed": total,
            "active_params_computed_incl_lm_head": active, "params_published": published,
            "confidence": "cross-checked", "source": source, **more}


# DeepSeek's latent attention without a rank of the queries, as its small models have it.
SMALL_LATENT = {"type": "mla", "causal": True, "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64, "v_head_dim": 128}
RECOMPUTED = "configuration (memory); the recomputed parameters match the published ones"


def qwen_36(name):
    return hybrid(name, 40, 2048, 512, 16, 2, 256, 248320, gated_delta(32), "LLLF", 34659368960, 35e9, QWEN_36,
                  moe=mixed(40, 256, 8, 512, 512), active_params_computed_incl_lm_head=2945187840)


ADDED = (
    encoder("qwen2.5-vl-vit-3456", 32, 1280, 3456, 16, 80, 635893760, "verified-file", QWEN_VIT, gated=True,
            temporal_patch=2,
            attention={"type": "windowed", "causal": False, "window_px": 112, "full_layers": [7, 15, 23, 31]}),
    encoder("internvit-6b-v2.5-32-heads", 45, 3200, 12800, 32, 128, 6047577600, "verified-file", INTERN_VIT,
            image_size=448, note="25 heads in the configuration; padded to (24 / tp + 1) x tp, here for tp 8"),
    encoder("llama-3.2-vision-vit-40", 40, 1280, 5120, 16, 80, 787184640, "verified-file", LLAMA_VIT, image_size=560,
            note="32 layers and 8 global ones; the gates of the global ones and the embeddings of tiles are not "
                 "counted"),
    hybrid("qwen3-next-80b-a3b", 48, 2048, 512, 16, 2, 256, 151936, gated_delta(32), "LLLF", 79672901632, 80e9,
           "huggingface/transformers qwen3_next/configuration_qwen3_next.py (its defaults)",
           moe=mixed(48, 512, 10, 512, 512), active_params_computed_incl_lm_head=3562274816),
    qwen_36("qwen3.5-35b-a3b-llm"),
    qwen_36("qwen3.6-35b-a3b-llm"),
    hybrid("qwen3.5-27b-llm", 64, 5120, 17408, 24, 4, 256, 248320, gated_delta(48), "LLLF", 26893352960, 27e9, QWEN_27),
    hybrid("nemotron-h-8b", 52, 4096, 21504, 32, 8, 128, 131072, mamba2(128, 64),
           "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", 8099201024, 8100852736, NEMOTRON, gated=False),
    hybrid("nemotron-nano-9b-v2", 56, 4480, 15680, 40, 8, 128, 131072, mamba2(128, 80),
           "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", 8886026240, 8.89e9, NEMOTRON, gated=False),
    hybrid("nemotron-3-nano-30b-a3b", 52, 2688, 1856, 32, 2, 128, 131072, mamba2(64, 64),
           "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", 31576989696, 31.6e9,
           "configuration of NVIDIA-Nemotron-3-Nano-30B-A3B as test fixtures quote it; experts: its technical report",
           gated=False, moe=mixed(23, 128, 6, 1856, 3712), active_params_computed_incl_lm_head=3226804224),
    experts("qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, mixed(48, 128, 8, 768, 0),
            (30531911680, 3041656832), 30.5e9, RECOMPUTED),
    experts("gpt-oss-20b", 24, 2880, 2880, 64, 8, 64, 201088, mixed(24, 32, 4, 2880, 0), (20907786240, 3607142400),
            20.9e9, RECOMPUTED, note="every second layer attends to a window of 128 tokens: all are taken as full"),
    experts("gpt-oss-120b", 36, 2880, 2880, 64, 8, 64, 201088, mixed(36, 128, 4, 2880, 0), (116788838400, 5131100160),
            116.8e9, RECOMPUTED, note="every second layer attends to a window of 128 tokens: all are taken as full"),
    experts("grok-1-314b", 64, 6144, 32768, 48, 8, 128, 131072, mixed(64, 8, 2, 32768, 0), (315683241984, 83755008000),
            314e9, RECOMPUTED, tied_embeddings=True),
    experts("moonlight-16b-a3b", 27, 2048, 11264, 16, 16, 128, 163840, mixed(26, 64, 6, 1408, 2816),
            (15959982080, 2579103744), 16e9, RECOMPUTED, attention=SMALL_LATENT),
    experts("deepseek-v2-lite", 27, 2048, 10944, 16, 16, 128, 102400, mixed(26, 64, 6, 1408, 2816),
            (15706357760, 2451308544), 15.7e9, RECOMPUTED, attention=SMALL_LATENT),
    experts("glm-4.5-air", 46, 4096, 10944, 96, 8, 128, 151552, mixed(45, 128, 8, 1408, 1408),
            (106851205120, 12802326528), 106e9, RECOMPUTED),
    encoder("qwen3.5-vl-vit", 27, 1152, 4304, 16, 72, 412839936, "verified-file", QWEN_35 + "qwen3_5 (vision_config)",
            patch_size=16, temporal_patch=2),
    joint("qwen3.6-35b-a3b", "qwen3.5-vl-vit", "qwen3.6-35b-a3b-llm", "verified-file", QWEN_36),
    joint("qwen3.5-27b", "qwen3.5-vl-vit", "qwen3.5-27b-llm", "verified-file", QWEN_27),
    joint("qwen2.5-vl-32b", "qwen2.5-vl-vit-3456", "qwen2.5-32b", "cross-checked",
          "NVIDIA-NeMo/Megatron-Bridge qwen25_vl.py; the encoder of the 72B's configuration"),
    joint("internvl3-38b", "internvit-6b-v2.5-32-heads", "qwen2.5-32b", "paper-memory", INTERNVL_3),
    joint("internvl3-78b", "internvit-6b-v2.5-32-heads", "qwen2.5-72b", "paper-memory", INTERNVL_3),
    joint("llama-3.2-90b-vision", "llama-3.2-vision-vit-40", "llama-3.2-90b-vision-llm", "verified-file",
          "pytorch/torchtune llama3_2_vision_90b; NVIDIA/NeMo mllama_90b.py"),
)

# ---- networks ------------------------------------------------------------------------------------------------

# First MoE block and distance to the next one: dense blocks come first (DeepSeek, Kimi, ERNIE: first_k_dense_replace
# or moe_layer_start_index of their configurations), Step-3 has blocks 4..59 of 61, Llama 4 Maverick every second.
MOE_POSITION = {"step3-316b-llm": (4, 1), "llama4-maverick-400b": (1, 2)}

# Language models that are used without their output head: text encoders.
HEADLESS = ("step-llm-t2v-text-encoder",)

ROUNDED = "the published figure is rounded to so few digits"
# Why all parameters are more than 1 % away from the published figure.
PUBLISHED_DIFFERS = {
    "megatron-gpt-1.7b": ROUNDED,
    "megatron-gpt-3.6b": ROUNDED + "; position embeddings are not counted",
    "kimi-k2": ROUNDED + " (1.04 T); the released weights hold 1.026 T",
    "step1-130b": ROUNDED + " (130 B)",
    "nextstep-1-14b-llm": "the published 14 B leaves the token embedding out",
    "deepseek-vl2-tiny-llm": "the published 3 B is of the whole model, rounded",
    "deepseek-vl2-small-llm": "the published 16 B is of the whole model, rounded",
    "llama4-scout-109b": "the published 109 B is of the whole model with its vision encoder",
    "siglip-so400m-14-384": "the published 428 M holds the attention-pooling head",
    "vit-e": "the published 3.9 B holds the classification head and is rounded",
    "eva02-clip-e-14": "the published 4.4 B is rounded and holds the projection to the joint space",
    "step3-vit-5b": "the published 5 B holds the convolutional adapters and is rounded",
    "qwen2-vl-vit": "the published 675 M holds the patch merger (5120 -> 5120 -> language model)",
    "qwen2.5-vl-vit": "the published 670 M holds the patch merger (5120 -> 5120 -> language model)",
    "perception-encoder-g14-728": ROUNDED + " (1.8 B)",
    "llama-3.2-vision-vit": "the published 860 M holds 8 global layers and the projection that the entry lacks",
    "step-video-t2v-dit": ROUNDED + " (30 B); time and caption embedders are not counted",
    "step-video-ti2v-dit": ROUNDED + " (30 B); time and caption embedders are not counted",
    "flux.1-dev": ROUNDED + " (12 B); input, time and guidance embedders are not counted",
    "step1x-edit-dit": ROUNDED + " (12 B); input, time and guidance embedders are not counted",
    "sd3-medium": ROUNDED + " (2 B)",
    "hunyuanvideo-13b-dit": ROUNDED + " (13 B); the token refiner and embedders are not counted",
    "wan2.1-t2v-1.3b": ROUNDED + " (1.3 B)",
    "qwen-image-20b": ROUNDED + " (20 B)",
    "dip-dit-5b": ROUNDED + " (5 B)",
    "whisper-large-v3-encoder": "the published 637 M holds the two convolutions of the input",
}


# Norms of queries and keys that the facts do not name: InternViT's and Qwen3's configurations; the attention layers of
# flux (src/flux/modules/layers.py), of Step1X-Edit, HunyuanVideo and Qwen-Image, which are built alike.
QK_NORMED = ("internvit-6b", "qwen3-", "flux", "step1x-edit-dit", "hunyuanvideo", "qwen-image")


def attention(e):
    a = e["attention"]
    kind = {"mla": "latent", "mfa": "factored", "windowed": "windowed"}.get(a["type"], "dense")
    out = {"kind": kind, "causal": a.get("causal", False)}
    if a.get("qk_norm") or e["name"].startswith(QK_NORMED):
        out["qk_norm"] = True
    if a.get("output_gate"):
        out["output_gate"] = True
    if kind == "windowed":
        out["window"] = (a["window_px"] // e["patch_size"]) ** 2
        out["full_layers"] = a["full_layers"]
    if kind == "latent":
        keys = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        out.update({k: a[k] for k in keys if a[k] is not None})
    if kind == "factored":
        out["share_q_dim"] = a["share_q_dim"]
    return out


def mixture(e):
    m = e["moe"]
    first, every = MOE_POSITION.get(e["name"], (e["layers"] - m["moe_layers"], 1))
    return {"moe_layers": m["moe_layers"], "first_layer": first, "every": every, "experts": m["experts"],
            "top_k": m["top_k"], "expert_ffn": m["expert_ffn"], "shared_ffn": m["shared_ffn"]}


def architecture(e):
    kind = "text_encoder" if e["name"] in HEADLESS else e["kind"]
    out = {"name": e["name"], "kind": kind}
    if kind == "head":  # SimpleMLPAdaLN: width w, blocks of a w x w x w feed-forward and 3 w^2 of modulation
        out.update(layers=e["layers"], hidden=e["width"], ffn=int(e["width"] * e["mlp_ratio"]), gated=False,
                   in_channels=e["input_dim"], condition_dim=e["cond_dim"], repeats=e["batch_mul"])
    elif kind == "dit" and e["block"] == "mmdit":
        out.update(layers=e["double_layers"] + e["single_layers"], single_layers=e["single_layers"], mmdit=True)
    else:
        # Llama 3.2 vision: as in its Hugging Face configuration, `layers` counts the added blocks too.
        out["layers"] = e["layers"] + e.get("cross_attention_layers_added", 0)
    if kind != "head":
        for k in ("hidden", "ffn", "heads", "kv_heads", "head_dim"):
            out[k] = e[k]
        if e.get("vocab"):
            out["vocab"] = e["vocab"]
        out["gated"] = e["gated"]
        for k in ("qkv_bias", "tied_embeddings"):
            if e.get(k):
                out[k] = True
        out["attention"] = attention(e)
    if "moe" in e:
        out["moe"] = mixture(e)
    for k in ("linear", "layer_pattern"):
        if k in e:
            out[k] = e[k]
    if kind == "dit" and e["block"] == "self+cross":
        out["cross_attention_dim"] = e["hidden"]  # the context is projected to the hidden width first
    if e.get("cross_attention_layers_added"):
        # An image is up to four tiles of 560 pixels, (560 / 14)^2 + 1 positions each (torchtune, llama3_2_vision).
        out.update(cross_attention_dim=e["hidden"], cross_attention_layers=e["cross_attention_layers_added"],
                   text_tokens=4 * ((560 // 14) ** 2 + 1))
    for k in ("patch_size", "temporal_patch", "image_size"):
        if e.get(k):
            out[k] = e[k]
    text = e.get("text_tokens") or e.get("max_len")
    if text:
        out["text_tokens"] = text
    if kind == "dit":
        out["in_channels"] = e["in_channels"] * e["patch"][1] * e["patch"][2]
        if e["name"].startswith(("flux", "step1x", "qwen-image")):
            out["in_channels"] = e["in_channels"]  # these state the width after patching
        if "context_dim" in e:
            out["condition_dim"] = e["context_dim"]
    for key, source in (("params_published", "params_published"), ("params_computed", "params_computed"),
                        ("active_params_published", "active_published"),
                        ("active_params_computed", "active_params_computed_incl_lm_head")):
        if e.get(source):
            out[key] = int(e[source])
    if e["name"] in PUBLISHED_DIFFERS:
        out["published_differs"] = PUBLISHED_DIFFERS[e["name"]]
    out.update(confidence=e["confidence"], source=e["source"])
    if "note" in e:
        out["note"] = e["note"]
    return out


# ---- models --------------------------------------------------------------------------------------------------

DIP_IMAGE = {"patch": 14, "merge": 4, "fixed_pixels": 728}  # 52 x 52 patches, 13 x 13 tokens
DIP_VIDEO = {"width": 256, "height": 448, "spatial": 16, "frames_in": 17, "frames_out": 3, "fps": 16,
             "max_seconds": 16}
CAUSAL_VAE = {"width": 256, "height": 448, "spatial": 16, "frames_in": 4, "frames_out": 1, "first_frame_alone": True,
              "fps": 16, "max_seconds": 16}
VIDEO_SIZE = "clips are scaled to the width and height under video: the source says none"
QWEN_25_IMAGE = {"patch": 14, "merge": 2, "min_tokens": 256, "max_tokens": 1280}
QWEN_25_VIDEO = {"patch": 14, "merge": 2, "frames": 2, "fps": 2, "min_frames": 4, "max_frames": 768,
                 "min_pixels": 128 * 28 * 28, "max_pixels": 768 * 28 * 28, "pixels_of": "frame"}
QWEN_3_VIDEO = {**QWEN_25_VIDEO, "patch": 16, "min_pixels": 4096, "max_pixels": 25165824, "pixels_of": "clip"}
QWEN_25_VIDEOS = ("videos are read as Qwen's tools have it: 2 frames a second, 4 to 768 of a clip, 100352 to 602112 "
                  "pixels of each (video; a training may set others)")
QWEN_3_VIDEOS = ("videos are read as Qwen3-VL's released files have it: 2 frames a second, 4 to 768 of a clip, 4096 to "
                 "25165824 pixels of all of them together (video; a training may set others)")
LARGE = 131072  # positions of a microbatch where patches, not text tokens, are packed
PADDED = "the vision encoder's 25 heads are padded to 32, as Megatron-LM does for 8 tensor-parallel GPUs"
ONE_TILE = "every image is one tile: the tiling of large images is not represented"


def module(name, network, unit, modalities, trainable=True):
    out = {"name": name, "architecture": network["name"], "unit": unit, "modalities": modalities}
    if not trainable:
        out["trainable"] = False
    return out


def projector(into, out, hidden=0):
    return {"in": into, "out": out, **({"hidden": hidden} if hidden else {})}


def origin(e):
    return {"confidence": e["confidence"], "source": e["source"]}


def alone(e):
    """The model of one network; nothing for kinds that are no model of their own."""
    name = e["name"]
    if name in HEADLESS:
        return None
    if e["kind"] == "llm":
        out = {"name": name, "modules": [module("llm", e, "microbatch", ["text"])], **origin(e)}
        if e.get("cross_attention_layers_added"):
            out["assumed"] = ["every sample has an image of four tiles: 6404 positions that cross attention reads"]
        return out
    if e["kind"] == "vit":
        rule = {"patch": e["patch_size"], "merge": 1}
        if e["image_size"]:
            rule["fixed_pixels"] = e["image_size"]
        return {"name": name, "modules": [module("vit", e, "microbatch", ["image"])], "image": rule,
                "microbatch_tokens": LARGE, **origin(e),
                "assumed": ["microbatch_tokens, of patches: the source says none"]}
    if e["kind"] != "dit":
        return None
    video = name.startswith(("step-video", "hunyuan", "wan", "dip-"))
    out = {"name": name, "modules": [module("dit", e, "microbatch", ["video" if video else "image"])]}
    if video:
        out["video"] = CAUSAL_VAE if name.startswith(("hunyuan", "wan")) else DIP_VIDEO
    else:
        out["image"] = {"patch": 16, "merge": 1}
    out.update(origin(e))
    latents = "latent patches of a microbatch: no source says how many (--microbatch-tokens)"
    out["assumed"] = [latents] + ([VIDEO_SIZE] if video else [])
    return out


# model_type of their Hugging Face configurations: how frameworks build their encoders goes by it.
FAMILIES = {"qwen2.5-vl-7b": "qwen2_5_vl", "qwen2.5-vl-32b": "qwen2_5_vl", "qwen2.5-vl-72b": "qwen2_5_vl",
            "internvl2.5-78b": "internvl_chat", "internvl3-38b": "internvl_chat", "internvl3-78b": "internvl_chat",
            "qwen3.6-35b-a3b": "qwen3_5_moe", "qwen3.5-27b": "qwen3_5", "llama-3.2-90b-vision": "mllama"}


def vision_language(e, vit, llm, image, edge, assumed, trainable=True, **more):
    edge = {"from": "vit", "to": "llm", "token_reduction": image["merge"] ** 2, "projector": edge}
    family = {"family": FAMILIES[e["name"]]} if e["name"] in FAMILIES else {}
    reads = ["image", "video"] if "video" in more else ["image"]
    return {"name": e["name"], **family,
            "modules": [module("vit", vit, "items", reads, trainable), module("llm", llm, "microbatch", ["text"])],
            "edges": [edge], "image": image, **more, **origin(e), "assumed": assumed}


def text_to_video(e, llm, dit, assumed, trainable=True, **more):
    edge = {"from": "llm", "to": "dit", "projector": projector(llm["hidden"], dit["hidden"])}
    return {"name": e["name"],
            "modules": [module("llm", llm, "microbatch", ["text"], trainable), module("dit", dit, "items", ["video"])],
            "edges": [edge], "video": DIP_VIDEO, "most_items": 8, "most_video_seconds": 16, **more, **origin(e),
            "assumed": [VIDEO_SIZE] + assumed}


def audio_language(e, encoder, llm):
    edge = {"from": "audio", "to": "llm", "token_reduction": 4,
            "projector": projector(encoder["hidden"], llm["hidden"])}
    return {"name": e["name"],
            "modules": [module("audio", encoder, "items", ["audio"], False),
                        module("llm", llm, "microbatch", ["text"])],
            "edges": [edge], "audio": {"frames_per_second": 50, "tokens_per_second": 12.5}, **origin(e),
            "assumed": ["the stride-2 convolution of the adapter is not counted, its linear layer is"]}


def dip(e, network, roles):
    layout = {k: e["parallel"][k] for k in ("tp", "pp", "dp")}
    llm = network(roles["backbone"])
    if "encoder" in roles:
        vit = network(roles["encoder"])
        return vision_language(
            e, vit, llm, DIP_IMAGE, projector(vit["hidden"], llm["hidden"]),
            ["a linear projector behind the 4 x 4 merge: the paper does not name one"], most_items=48, layout=layout)
    return text_to_video(
        e, llm, network(roles["generator"]),
        ["a linear projector between language model and generator: the paper does not name one"], layout=layout)


def step3(e, vit, llm):
    if e["name"] == "step3-321b":
        return vision_language(e, vit, llm, DIP_IMAGE, projector(8192, 7168),
                               ["the two stride-2 convolutions of the adapter are not counted, its linear layer is",
                                "crops of 504 pixels (81 tokens) are not made: 169 tokens an image"])
    return vision_language(e, vit, llm, DIP_IMAGE, projector(6144, 4096),
                           ["16 patches make a token, as in Step-3; the convolutions of the adapter are not counted",
                            "crops are not made: 169 tokens an image"])


def joined(e, network):
    """The model of an "lmm" entry. Raises KeyError for entries that are refused."""
    roles = {m["role"]: m.get("model") for m in e["modules"]}
    name = e["name"]
    if name.startswith("dip-"):
        return dip(e, network, roles)
    if name in ("step3-321b", "step3-vl-10b"):
        return step3(e, network(roles["encoder"]), network(roles["backbone"]))
    if name in ("qwen2.5-vl-7b", "qwen2.5-vl-32b", "qwen2.5-vl-72b"):
        # The facts on the 72B name the encoder of the 7B and say beside it that its feed-forward is wider.
        llm, vit = network(roles["backbone"]), network("qwen2.5-vl-vit" + ("" if name.endswith("7b") else "-3456"))
        return vision_language(e, vit, llm, QWEN_25_IMAGE, projector(5120, llm["hidden"], 5120),
                               [QWEN_25_VIDEOS], video=QWEN_25_VIDEO)
    if name in ("qwen3.6-35b-a3b", "qwen3.5-27b"):
        llm = network(roles["backbone"])
        return vision_language(e, network(roles["encoder"]), llm, {**QWEN_25_IMAGE, "patch": 16},
                               projector(4608, llm["hidden"], 4608),
                               [QWEN_3_VIDEOS,
                                "image.min_tokens and image.max_tokens are what the model card recommends",
                                "the layer that predicts a second token is not trained"], video=QWEN_3_VIDEO)
    if name.startswith("internvl"):
        llm = network(roles["backbone"])
        return vision_language(e, network(roles["encoder"]), llm, {"patch": 14, "merge": 2, "fixed_pixels": 448},
                               projector(12800, llm["hidden"], llm["hidden"]),
                               [ONE_TILE] + ([PADDED] if roles["encoder"].endswith("32-heads") else []))
    if name == "llama-3.2-90b-vision":
        # An image of four tiles in a square, of which the text holds one token.
        return vision_language(e, network(roles["encoder"]), network(roles["backbone"]),
                               {"patch": 14, "merge": 80, "fixed_pixels": 1120}, projector(7680, 8192),
                               ["every image is four tiles of 560 pixels, 6400 positions; cross attention reads one "
                                "image a sample", "what is projected and handed to the language model is one token an "
                                "image, not its 6400 positions"])
    if name == "deepseek-vl2":
        llm = network(roles["backbone"])
        return vision_language(e, network(roles["encoder"]), llm, {"patch": 14, "merge": 2, "fixed_pixels": 384},
                               projector(4608, llm["hidden"], llm["hidden"]),
                               [ONE_TILE, "the tokens that end each row of an image are not counted"])
    if name == "optimus-mllm-175b":
        return vision_language(e, network(roles["encoder"]), network(roles["backbone"]), DIP_IMAGE,
                               projector(6144, 12288),
                               ["images and projector as in dip-vlm-xl: the abstract does not give them"],
                               most_items=48)
    if name == "step-video-t2v-30b":
        return text_to_video(e, network("step-llm-t2v-text-encoder"), network(roles["backbone"]),
                             ["latents are made beforehand (no VAE)", "the second text encoder (hunyuan-clip, 0.35 B, "
                              "frozen) is left out"], trainable=False)
    if name in ("step-audio-130b", "step-audio-aqaa"):
        return {"name": name, "modules": [module("llm", network(roles["backbone"]), "microbatch", ["text", "audio"])],
                "audio": {"frames_per_second": 41.6, "tokens_per_second": 41.6}, **origin(e),
                "assumed": ["audio is turned into tokens beforehand; the vocoder is trained separately"]}
    if name in ("step-audio-2-mini", "step-audio-2-32b"):
        return audio_language(e, network(roles["encoder"]), network(roles["backbone"]))
    if name == "nextstep-1-14b":
        llm, head = network(roles["backbone"]), network(roles["generator"])
        return {"name": name,
                "modules": [module("llm", llm, "microbatch", ["text"]), module("head", head, "items", ["image"])],
                "edges": [{"from": "llm", "to": "head"}],
                "image": {"patch": 16, "merge": 1, "fixed_pixels": 256}, **origin(e),
                "assumed": ["image.fixed_pixels: the source says none", "latents are made beforehand (no VAE)"]}
    raise KeyError(name)


REFUSED_KIND = {
    "vae": "an autoencoder of convolutions: no transformer blocks; its latents are made beforehand",
    "unet": "a U-Net: its blocks differ in width and resolution, it is no stack of equal blocks",
    "audio_tokenizer": "a tokenizer that runs beforehand: it has no published layers",
}
REFUSED_NAME = {
    "disttrain-mllm-9b": "its generator is a U-Net (sd2.1-unet)",
    "disttrain-mllm-15b": "its generator is a U-Net (sd2.1-unet)",
    "disttrain-mllm-72b": "its generator is a U-Net (sd2.1-unet)",
    "step1x-edit": "its generator makes images by another rule than its encoder reads them and attends to the "
                   "reference image as well: a model has one image rule",
}


def refused(e, reason):
    facts = {k: v for k, v in e.items() if k not in ("name", "kind", "confidence", "source", "anchor")}
    return {"name": e["name"], "kind": e["kind"], "reason": reason, **origin(e), "facts": facts}


# ---- files ---------------------------------------------------------------------------------------------------


def write(path, form, about, **lists):
    line = lambda entry: json.dumps(entry, ensure_ascii=False)
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"format":%s,\n "about":%s' % (json.dumps(form), json.dumps(about)))
        for key, entries in lists.items():
            out.write(',\n "%s":[\n' % key + ",\n".join("  " + line(e) for e in entries) + "\n ]")
        out.write("\n}\n")


# Text alone: quantiles that are fitted to published means.
TEXT_DATASETS = {
    "c4": {"text_tokens": {"q": {"0": 10, "0.05": 45, "0.25": 125, "0.5": 250, "0.75": 480, "0.9": 880, "0.95": 1300,
                                 "0.99": 2600, "1": 5000}},
           "fitted_to": "mean of 427 tokens: 156 billion of 365 million documents (arXiv 2104.08758, from memory)",
           "assumed": True},
    "ultrachat": {"text_tokens": {"q": {"0": 100, "0.05": 500, "0.25": 980, "0.5": 1360, "0.75": 1840, "0.9": 2400,
                                        "0.95": 2750, "0.99": 3600, "1": 5000}},
                  "fitted_to": "mean of 1467 tokens of a dialogue (arXiv 2305.14233, from memory)", "assumed": True},
}


def datasets(distributions):
    for name, d in [*distributions["datasets"].items(), *TEXT_DATASETS.items()]:
        if name == "about":
            continue
        out = {"name": name}
        for key in ("images", "video_seconds", "audio_seconds", "text_tokens"):
            if key not in d:
                continue
            q = d[key]
            if isinstance(q, str):  # a reference: "audio_seconds.wenetspeech-L"
                group, entry = q.split(".", 1)
                q = distributions[group][entry]
                q = {"q": {"0": q["min"], **q["q"], "1": q["max"]}}
            points = sorted((float(p), v) for p, v in q["q"].items())
            out[key] = {"q": [list(p) for p in points]}
            out[key].update({"integer": q["integer"]} if "integer" in q else {})
        if "mixture" in d:
            out["mixture"] = [{"dataset": k, "weight": w} for k, w in d["mixture"].items()]
        yield {**out, "fitted_to": d["fitted_to"], "assumed": d["assumed"]}


def main():
    folder = pathlib.Path(sys.argv[1])
    text = (folder / "models.json").read_text()
    # How the facts were looked up is no part of their source.
    entries = json.loads(text.replace(" via stored docs corpus", "").replace(", see pipeweaver.md", ""))
    entries += ADDED
    by_name = {e["name"]: e for e in entries}
    networks, models, no = [], [], []
    for e in entries:
        if e["kind"] in REFUSED_KIND or e["name"] in REFUSED_NAME:
            no.append(refused(e, REFUSED_NAME.get(e["name"]) or REFUSED_KIND[e["kind"]]))
            continue
        if e["kind"] != "lmm":
            networks.append(architecture(e))
        model = joined(e, by_name.__getitem__) if e["kind"] == "lmm" else alone(e)
        if model:
            models.append(model)
    write(DATA / "catalogue.json", "pipeweaver-catalogue/1",
          "Published networks and models; written by tools/make_catalogue.py.", architectures=networks, models=models,
          refused=no)
    write(DATA / "datasets.json", "pipeweaver-datasets/1",
          "What --dataset draws: inverse CDF, linear between the quantiles [probability, value]; items independent.",
          datasets=list(datasets(json.loads((folder / "distributions.json").read_text()))))


main()
