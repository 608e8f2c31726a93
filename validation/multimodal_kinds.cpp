#include "validation/multimodal_kinds.hpp"

#include "pipeweaver/base/text.hpp"
#include "validation/run_network.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::validation {

using emulator::Recompute;

namespace {

// MLPerf Training 5.1's flux1: images of 256 x 256 pixels are 256 positions, the text is 256 (custom_flux.py).
constexpr std::string_view flux_model = R"({"format": "pipeweaver-model/1", "name": "flux.1-dev", "modules": [
    {"name": "dit", "unit": "microbatch", "modalities": ["image"],
     "architecture": {"name": "flux.1-dev", "kind": "dit", "layers": 57, "single_layers": 38, "mmdit": true,
                      "hidden": 3072, "ffn": 12288, "heads": 24, "kv_heads": 24, "head_dim": 128, "gated": false,
                      "attention": {"kind": "dense", "causal": false, "qk_norm": true}, "text_tokens": 256,
                      "in_channels": 64, "condition_dim": 4096}}],
    "image": {"patch": 16}})";

// mxfp8 from 4 images a GPU on (config_DGXB200_*.sh); gradients added by kernels of their own
// (conf/model/schnell.yaml).
constexpr std::string_view flux_recipe = R"({"format": "pipeweaver-recipe/1", "name": "megatron-core-overlap",
    "extends": "megatron-core-overlap", "precision": {"default": "fp8"}, "gradient_accumulation": "separate"})";

// Megatron-LM's examples/mimo: the projector alone is trained, the vocabulary is padded to 32256.
constexpr std::string_view llava_model = R"({"format": "pipeweaver-model/1", "name": "llava-1.5-7b", "modules": [
    {"name": "vit", "architecture": "clip-vit-l-14-336", "unit": "items", "modalities": ["image"], "trainable": false},
    {"name": "llm", "unit": "microbatch", "modalities": ["text"], "trainable": false,
     "architecture": {"name": "llama2-7b", "kind": "llm", "layers": 32, "hidden": 4096, "ffn": 11008, "heads": 32,
                      "kv_heads": 32, "head_dim": 128, "vocab": 32256, "gated": true, "tied_embeddings": true,
                      "attention": {"kind": "dense", "causal": true}}}],
    "edges": [{"from": "vit", "to": "llm",
               "projector": {"in": 1024, "out": 4096, "hidden": 4096, "trainable": true}}],
    "image": {"patch": 14, "merge": 1, "fixed_pixels": 336}})";

// tests/functional_tests/.../mimo_vlm_pretrain_convergence_tp1_pp1_cp1_*: no --bf16.
constexpr std::string_view whole_precision = R"({"format": "pipeweaver-recipe/1", "name": "megatron-core",
    "extends": "megatron-core", "precision": {"default": "fp32"},
    "state_bytes": {"weight": 4, "gradient": 4, "optimizer": 8}})";

// NVIDIA-NeMo/DFM examples/megatron/recipes/wan: clips of 832 x 480 pixels are 1560 positions a latent frame.
constexpr std::string_view wan_model = R"({"format": "pipeweaver-model/1", "name": "wan2.1-t2v-14b", "modules": [
    {"name": "dit", "architecture": "wan2.1-t2v-14b", "unit": "microbatch", "modalities": ["video"]}],
    "video": {"width": 832, "height": 480, "spatial": 16, "frames_in": 4, "frames_out": 1, "first_frame_alone": true,
              "fps": 16, "max_seconds": 16}})";

// Videos of 12 frames of 224 x 224 pixels: two frames share a patch, and attention stays inside them, as in images.
constexpr std::string_view qwen_clips = R"({"format": "pipeweaver-model/1", "name": "qwen2.5-vl-7b", "modules": [
    {"name": "vit", "architecture": "qwen2.5-vl-vit", "unit": "items", "modalities": ["image"]},
    {"name": "llm", "architecture": "qwen2.5-7b", "unit": "microbatch", "modalities": ["text"]}],
    "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
               "projector": {"in": 5120, "out": 3584, "hidden": 5120}}],
    "image": {"patch": 14, "merge": 2, "min_tokens": 4, "max_tokens": 1280}})";

// The vision tower of Qwen3.5 and 3.6 in front of one of their language models.
constexpr std::string_view qwen35_27b = R"({"format": "pipeweaver-model/1", "name": "qwen3.5-27b", "modules": [
    {"name": "vit", "architecture": "qwen3.5-vl-vit", "unit": "items", "modalities": ["image"]},
    {"name": "llm", "architecture": "qwen3.5-27b-llm", "unit": "microbatch", "modalities": ["text"]}],
    "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
               "projector": {"in": 4608, "out": 5120, "hidden": 4608}}],
    "image": {"patch": 16, "merge": 2, "min_tokens": 196, "max_tokens": 980}})";

constexpr std::string_view qwen36_35b = R"({"format": "pipeweaver-model/1", "name": "qwen3.6-35b-a3b", "modules": [
    {"name": "vit", "architecture": "qwen3.5-vl-vit", "unit": "items", "modalities": ["image"]},
    {"name": "llm", "architecture": "qwen3.6-35b-a3b-llm", "unit": "microbatch", "modalities": ["text"]}],
    "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
               "projector": {"in": 4608, "out": 2048, "hidden": 4608}}],
    "image": {"patch": 16, "merge": 2, "min_tokens": 4, "max_tokens": 196}})";

// Sizes from memory of the configuration; they add up to 0.85 B.
constexpr std::string_view qwen35_08b = R"({"format": "pipeweaver-model/1", "name": "qwen3.5-0.8b", "modules": [
    {"name": "vit", "unit": "items", "modalities": ["image"],
     "architecture": {"name": "qwen3.5-0.8b-vit", "kind": "vit", "layers": 12, "hidden": 768, "ffn": 3072, "heads": 12,
                      "kv_heads": 12, "head_dim": 64, "gated": false, "patch_size": 16, "temporal_patch": 2,
                      "attention": {"kind": "dense", "causal": false}}},
    {"name": "llm", "unit": "microbatch", "modalities": ["text"],
     "architecture": {"name": "qwen3.5-0.8b-llm", "kind": "llm", "layers": 24, "hidden": 1024, "ffn": 3584, "heads": 8,
                      "kv_heads": 2, "head_dim": 256, "vocab": 248320, "gated": true, "tied_embeddings": true,
                      "attention": {"kind": "dense", "causal": true, "qk_norm": true, "output_gate": true},
                      "linear": {"kind": "gated_delta", "key_heads": 16, "value_heads": 16, "key_dim": 128,
                                 "value_dim": 128}, "layer_pattern": "LLLF"}}],
    "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
               "projector": {"in": 3072, "out": 1024, "hidden": 3072}}],
    "image": {"patch": 16, "merge": 2, "min_tokens": 196, "max_tokens": 980}})";

// C-RADIO's ViT-H in front of Nemotron 3 Nano (projector as in Nemotron Nano V2 VL); the sound encoder is left out. A
// frame of 672 x 384 pixels is 252 positions, one of 512 x 512 256.
constexpr std::string_view nemotron_omni = R"({"format": "pipeweaver-model/1", "name": "nemotron-3-nano-omni",
    "modules": [
    {"name": "vit", "unit": "items", "modalities": ["image"], "trainable": false,
     "architecture": {"name": "c-radio-h", "kind": "vit", "layers": 32, "hidden": 1280, "ffn": 5120, "heads": 16,
                      "kv_heads": 16, "head_dim": 80, "gated": false, "patch_size": 16,
                      "attention": {"kind": "dense", "causal": false}}},
    {"name": "llm", "architecture": "nemotron-3-nano-30b-a3b", "unit": "microbatch", "modalities": ["text"]}],
    "edges": [{"from": "vit", "to": "llm", "token_reduction": 4,
               "projector": {"in": 5120, "out": 2688, "hidden": 20480}}],
    "image": {"patch": 16, "merge": 2, "min_tokens": 4, "max_tokens": 256}})";

// Packs of 21,504 positions are 93 % full.
constexpr std::string_view sports_clips = "constant-96+78x512px";
constexpr std::string_view as_its_recipes =
    "packs of 78 frames of 672 x 384 pixels, as its recipes' 2 frames a second fill them; no sound";

// CUDA graphs hold the language model's attention; where images vary, the encoder's layers are launched one by one, and
// where routing is natural, experts wait for how many tokens they get: both as in megatron-core-plain.
constexpr std::string_view graphs_of_attention = R"({"format": "pipeweaver-recipe/1", "name": "megatron-core",
    "extends": "megatron-core", "host": {"layer_ns_of": {"vit": 1880000}, "expert_layer_ns": 6000000}})";

// Receipts of CORD-v2: the processor has images of 200,704 to 1,003,520 pixels. Shares of eight drawn so differ by
// about as much as is published of it (the largest of four 1.27 of the smallest).
constexpr std::string_view receipts = "uniform-250..450+1x448..1001px";
constexpr std::string_view drawn_receipts =
    "images of 448 to 1001 pixels a side and 250 to 450 tokens of text, drawn evenly";

// Its configurations for Blackwell with Megatron's FSDP (conf/gb200_perf_pretrain_mock.yaml).
constexpr std::string_view shared_weights = R"({"format": "pipeweaver-recipe/1", "name": "megatron-core",
    "extends": "megatron-core", "data_parallel": {"zero": 3}})";

constexpr std::string_view files_of_flux = "text of 256 tokens and products in fp8, as the submission's files say";
constexpr std::string_view llava_packs = "4 samples of an image and 40 tokens of text packed into one";
constexpr std::string_view wan_files =
    "no overlap of gradients, as the source's recipe says (dfm/src/megatron/recipes/wan)";

// Microbatches of one sample.
constexpr MultimodalKind of_one_sample(std::string_view name, std::string_view also, std::string_view model,
                                       std::string_view dataset, std::string_view recipe, std::string_view assumed,
                                       std::optional<Recompute> recompute = {}) {
    return {.name = name,
            .also = also,
            .model = model,
            .dataset = dataset,
            .recipe = recipe,
            .micro_batch = 1,
            .recompute = recompute,
            .assumed = assumed};
}

constexpr MultimodalKind wan(std::string_view also, std::string_view recipe, std::string_view assumed,
                             std::optional<Recompute> recompute = {}) {
    return of_one_sample("wan2114b", also, wan_model, clips_of_the_row, recipe, assumed, recompute);
}

constexpr MultimodalKind padded(std::string_view name, std::string_view also, std::string_view model,
                                std::string_view recipe, std::string_view assumed,
                                std::optional<Recompute> recompute = {}) {
    return of_one_sample(name, also, model, padded_to_the_row, recipe, assumed, recompute);
}

// More special ones come first.
constexpr std::array kinds{
    MultimodalKind{.name = "flux1",
                   .model = flux_model,
                   .dataset = "constant-0+1x256px",
                   .recipe = flux_recipe,
                   .assumed = files_of_flux},
    MultimodalKind{.name = "llava157b",
                   .also = "tp1_pp1_cp1",
                   .model = llava_model,
                   .dataset = "constant-40+1x336px",
                   .recipe = whole_precision,
                   .samples = 4,
                   .lines = 4,
                   .assumed = "fp32 weights and activations: the test's configuration has no --bf16; 4 samples of an "
                              "image and 40 tokens of text packed into one"},
    MultimodalKind{.name = "llava157b",
                   .model = llava_model,
                   .dataset = "constant-40+1x336px",
                   .recipe = "megatron-core",
                   .samples = 4,
                   .lines = 4,
                   .assumed = llava_packs},
    // PyTorch's blocks of Hugging Face's diffusers: checkpointed, FSDP2 (dfm/src/automodel/recipes/train.py).
    wan("automodel", "torch-fsdp2-eager",
        "every block checkpointed, as DFM's training recipe does unless told otherwise; eager PyTorch with "
        "FlashAttention 2",
        Recompute::full),
    wan("h100", "megatron-core",
        "8 blocks recomputed (conf/h100_perf_pretrain_mock.yaml); gradients reduced in one piece",
        Recompute::blocks(8)),
    wan("fsdp=1", shared_weights, wan_files),
    wan("bridge: fsdp, cp", shared_weights, wan_files),
    wan("", "megatron-core", wan_files),
    MultimodalKind{.name = "qwen25vl7b",
                   .also = "vit_gradient_checkpointing",
                   .model = qwen_clips,
                   .dataset = "constant-110+6x224px",
                   .recipe = "torch-fsdp2-eager",
                   .micro_batch = 4,
                   .assumed = "videos of 12 frames of 224 x 224 pixels and 110 tokens of text; ZeRO-3 as FSDP2"},
    padded("qwen3527b", "mimo", qwen35_27b, "megatron-core-plain",
           "H100; samples padded to the sequence; nothing overlapped, as the recipe's files say"),
    padded("qwen3635ba3b", "fixed shapes", qwen36_35b, "megatron-core",
           "samples padded to the sequence; nothing overlapped, CUDA graphs, as the recipe's files say"),
    padded("qwen3635ba3b", "datacomp", qwen36_35b, graphs_of_attention,
           "samples padded to the sequence; the encoder's layers and all experts wait for the host, as those of "
           "megatron-core-plain do",
           Recompute::selective),
    padded("qwen3635ba3b", "medpix", qwen36_35b, "megatron-core-plain", "samples padded to the sequence"),
    MultimodalKind{.name = "nemotron3nanoomni",
                   .also = "automodel (",
                   .model = nemotron_omni,
                   .dataset = sports_clips,
                   .recipe = "nemo-automodel",
                   .assumed = as_its_recipes},
    MultimodalKind{.name = "nemotron3nanoomni",
                   .also = "megatron (",
                   .model = nemotron_omni,
                   .dataset = sports_clips,
                   .recipe = "megatron-core-plain",
                   .assumed = as_its_recipes},
    MultimodalKind{.name = "qwen3508b",
                   .also = "reordered",
                   .model = qwen35_08b,
                   .dataset = receipts,
                   .recipe = "megatron-core-plain",
                   .micro_batch = 8,
                   .packing = "balanced",
                   .assumed = drawn_receipts},
    MultimodalKind{.name = "qwen3508b",
                   .also = "cord-v2",
                   .model = qwen35_08b,
                   .dataset = receipts,
                   .recipe = "megatron-core-plain",
                   .micro_batch = 8,
                   .assumed = drawn_receipts},
};

constexpr std::array named_images{
    NamedImages{"784 patches", "1x448px", "images of 448 x 448 pixels"},
    NamedImages{"cord-v2", "1x1001px", "images as large as the processor lets them be, 1,003,520 pixels"},
    NamedImages{"rdr", "1x768px", "images of 768 x 768 pixels"},
    NamedImages{"medpix", "1x512px", "images of 512 x 512 pixels"},
    NamedImages{"datacomp", "1x448px", "images as large as the processor lets them be, 200,704 pixels"},
};

}  // namespace

const MultimodalKind* kind_of(const PublishedRun& row) {
    const auto model = letters_and_digits(row.model);
    const auto all = in_lower_case(row.source + ' ' + row.model + ' ' + row.gpu + ' ' + row.note);
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const MultimodalKind& kind) {
        return contains(model, kind.name) && contains(all, kind.also);
    });
    return found == kinds.end() ? nullptr : &*found;
}

const NamedImages* images_of(const PublishedRun& row) {
    const auto note = in_lower_case(row.note);
    const auto found = std::find_if(named_images.begin(), named_images.end(),
                                    [&](const NamedImages& one) { return contains(note, one.words); });
    return found == named_images.end() ? nullptr : &*found;
}

std::span<const MultimodalKind> multimodal_kinds() { return kinds; }

}  // namespace pipeweaver::validation
