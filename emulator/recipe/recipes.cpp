// The shipped recipes, and finding one.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::emulator {

namespace {

// Each as a file of its own would be.
constexpr std::array shipped{
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-core",
        "about": "Megatron-Core: bf16, distributed optimizer; tensor-parallel traffic hidden by launch order alone",
        "source":
          "Megatron-LM core/tensor_parallel/layers.py, core/distributed, core/ssm; traffic of the optimizer: SimuMax",
        "runs": {"b200": 21}})",
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-core-overlap",
        "about": "constant lengths, as MLPerf runs: traffic inside GEMMs, gradients in buckets, weights gathered ahead",
        "source": "NVIDIA's MLPerf Training 4.1 and 5.0 submissions, Transformer Engine's user buffers",
        "tensor_parallel": {"overlap": "inside-gemms"},
        "data_parallel": {"bucket_bytes": 160000000, "gathers_ahead": true},
        "experts": {"dispatcher": "once-a-node"},
        "runs": {"h100_sxm": 103, "h200_sxm": 2}})",
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-2022",
        "about":
          "Megatron-LM and Megatron-DeepSpeed of 2021-23 on A100: unfused attention, whole optimizer, Python host",
        "source": "vTrain's runs (arXiv 2312.12391); host: fitted to its single-node table",
        "attention": "unfused",
        "tensor_parallel": {"overlap": "none", "sequence_parallel": false},
        "data_parallel": {"zero": 0},
        "update_traffic": {"updated": 32, "held": 0},
        "runs": {"a100_sxm": 767},
        "host": {"layer_ns": 975000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "torch-fsdp2",
        "about":
          "PyTorch FSDP2: weights, gradients and optimizer's state shared out; weights gathered ahead layer by layer",
        "source": "torch.distributed.fsdp.fully_shard; torchtitan",
        "tensor_parallel": {"overlap": "none"},
        "data_parallel": {"zero": 3},
        "amax": "separate",
        "kept": {"linear_norm": "fused", "narrow_inputs": "as-values"},
        "state_bytes": {"optimizer": 10, "apart": 2, "narrow": "cast-again"},
        "kernels": {"products": 1.0, "attention_after_ampere": 2.2, "unmasked_after_ampere": 2.0, "traffic": 0.72},
        "runs": {"h100_sxm": 10, "h200_sxm": 5, "b200": 9, "a100_sxm": 2},
        "host": {"launched": "compiled", "eager": "torch-fsdp2-eager"}})",
    R"({"format": "pipeweaver-recipe/1", "name": "torch-fsdp2-eager",
        "about": "PyTorch FSDP2 without torch.compile: every norm and activation in kernels of its own",
        "source":
          "torch.distributed.fsdp.fully_shard; torchtitan's logs, KempnerForge; routing as in megatron-core-plain",
        "extends": "torch-fsdp2",
        "kept": {"gate": "separate", "logit_bytes": 16},
        "kernels": {"products": 0.93, "attention_after_ampere": 2.2, "unmasked_after_ampere": 2.0,
                    "memory_bound": 2.9, "traffic": 1},
        "runs": {"a100_sxm": 3, "b200": 9, "h200_sxm": 3},
        "host": {"layer_ns": 600000, "expert_layer_ns": 6000000, "far": 1.18, "far_with_experts": 1.18}})",
    R"({"format": "pipeweaver-recipe/1", "name": "pith-train",
        "about": "Pith-Train: compiled FSDP2 with grouped products of its own on Blackwell, by one run",
        "source": "mlc-ai/pith-train issue #79",
        "extends": "torch-fsdp2",
        "kernels": {"experts": 0.5},
        "runs": {"b200": 1}})",
    R"({"format": "pipeweaver-recipe/1", "name": "prime-rl",
        "about": "prime-rl's trainer: FSDP2 whose compiled layers break at attention and adapters; 32-bit weights",
        "source": "PrimeIntellect-ai/prime-rl of January 2026: trainer/model.py, rl/train.py, benchmarks/baselines",
        "extends": "torch-fsdp2",
        "state_bytes": {"weight": 4, "optimizer": 8},
        "kept": {"logit_bytes": 16},
        "kernels": {"attention": 0.85, "attention_after_ampere": 1.95, "memory_bound": 3.6},
        "runs": {"h100_sxm": 12, "h200_sxm": 14, "b200": 5},
        "host": {"launched": "compiled", "action_ns": 100000000, "expert_layer_ns": 24000000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "prime-rl-loops",
        "about": "prime-rl where PyTorch has no grouped products yet (Blackwell): a product for each expert",
        "source": "PrimeIntellect-ai/prime-rl of January 2026: benchmarks/baselines of B200",
        "extends": "prime-rl",
        "runs": {"b200": 10},
        "host": {"launched": "compiled", "expert_layer_ns": 250000000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "halo",
        "about": "Halo: FSDP2 with DeepEP, FlashAttention 4 and fused norms, launched kernel by kernel",
        "source":
          "whitecircle/halo throughput-benchmarks.md; host: as torch-fsdp2-eager, routing as megatron-core-plain",
        "extends": "torch-fsdp2",
        "state_bytes": {"gradient": 2, "optimizer": 4},
        "update_traffic": {"updated": 16, "held": 4},
        "host": {"layer_ns": 600000, "expert_layer_ns": 6000000, "launched": "eager"}})",
    R"({"format": "pipeweaver-recipe/1", "name": "torchtitan",
        "about": "torchtitan: compiled FSDP2, weights kept gathered; a pipeline adds gradients up whole in 32 bits",
        "source": "torchtitan 0.3.0 torchtitan/distributed/fsdp.py; torch.distributed.pipelining stage.py",
        "extends": "torch-fsdp2",
        "data_parallel": {"zero": 2},
        "state_bytes": {"pipelined": 4}})",
    R"({"format": "pipeweaver-recipe/1", "name": "accelerate-fsdp2",
        "about": "FSDP2 as Hugging Face's trainers run it: eager, 32-bit weights, gradients added up whole in 16 bits",
        "source":
          "accelerate utils/fsdp_utils.py; transformers trainer.py (no_sync), models/llama/modeling_llama.py",
        "extends": "torch-fsdp2-eager",
        "state_bytes": {"summed": 2},
        "kept": {"mask_bytes": 10}})",
    R"({"format": "pipeweaver-recipe/1", "name": "deepspeed-zero",
        "about": "DeepSpeed as Hugging Face's trainers run it: eager, 32-bit masters; buckets of 2e8 gradients",
        "source": "DeepSpeed 0.19.6 runtime/zero/stage_1_and_2.py, stage3.py; transformers models/llama",
        "extends": "accelerate-fsdp2",
        "data_parallel": {"gathered_bytes": 2000000000},
        "state_bytes": {"gradient": 2, "optimizer": 12, "summed": 0, "update": 4, "apart": 0},
        "beside_bytes": 800000000})",
    R"({"format": "pipeweaver-recipe/1", "name": "nemo-automodel",
        "about": "NeMo Automodel: FSDP2, Transformer Engine's kernels, torch.compile; 16-bit weights and moments",
        "source": "NVIDIA-NeMo/Automodel docs/performance-summary.mdx, examples/llm_benchmark",
        "extends": "torch-fsdp2",
        "amax": "fused",
        "experts": {"dispatcher": "once-a-node"},
        "state_bytes": {"optimizer": 4},
        "update_traffic": {"updated": 18, "held": 8},
        "kernels": {"products": 0.92, "attention_after_ampere": 1, "experts": 0.7, "traffic": 0.75},
        "runs": {"h100_sxm": 3}})",
    R"({"format": "pipeweaver-recipe/1", "name": "torch-fsdp1",
        "about": "PyTorch FSDP of 2.1 in eager mode, FlashAttention 2, as llm-foundry trains",
        "source": "mosaicml/llm-foundry scripts/train/benchmarking",
        "extends": "torch-fsdp2",
        "kernels": {"products": 0.945, "attention": 1.8,
                    "attention_after_ampere": 1.45, "memory_bound": 1.0, "traffic": 0.81},
        "runs": {"h100_sxm": 31, "a100_sxm": 23},
        "host": {"layer_ns": 600000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-core-plain",
        "about": "Megatron-Core without tuning: no overlap, gradients in fp32 in one piece, a host that launches",
        "source": "vuiseng9/megatron-tutorials, Megatron-Bridge's functional cards",
        "tensor_parallel": {"overlap": "launch-order"},
        "kept": {"logit_bytes": 10},
        "kernels": {"products": 0.95, "attention": 1.1, "memory_bound": 0.8},
        "runs": {"h100_sxm": 40, "b200": 13, "a100_sxm": 3},
        "host": {"layer_ns": 1880000, "expert_layer_ns": 6000000, "far": 1.41, "far_with_experts": 1.6}})",
    R"({"format": "pipeweaver-recipe/1", "name": "nanotron",
        "about": "nanotron: eager PyTorch, FlashAttention 2, gradients added in fp32 by kernels of their own",
        "source": "Hugging Face, The Ultra-Scale Playbook: benchmarks",
        "tensor_parallel": {"overlap": "none"},
        "gradient_accumulation": "separate",
        "state_bytes": {"whole": 2},
        "kept": {"gate": "separate", "column_inputs": "gathered", "logit_bytes": 10},
        "kernels": {"products": 1.0, "attention_after_ampere": 2.5, "memory_bound": 0.68, "traffic": 0.46},
        "runs": {"h100_sxm": 78},
        "host": {"layer_ns": 1080000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "internevo",
        "about": "InternEvo: eager PyTorch on A100, FlashAttention, optimizer shared out",
        "source": "InternLM/InternEvo doc/en/train_performance.md",
        "tensor_parallel": {"overlap": "none"},
        "kernels": {"products": 1.05, "attention": 1.06, "memory_bound": 2.15, "traffic": 0.54},
        "runs": {"a100_sxm": 34},
        "host": {"layer_ns": 600000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "maxtext",
        "about": "MaxText: XLA's FSDP with pipelined collectives, cuDNN attention",
        "source": "NVIDIA/dgxc-benchmarking maxtext",
        "extends": "torch-fsdp2",
        "kernels": {"products": 0.783, "attention_after_ampere": 1, "memory_bound": 0.75, "traffic": 0.82},
        "runs": {"h100_sxm": 6},
        "host": {"launched": "graphs", "eager": ""}})"};

Recipe recipe_among(const std::string& name, const std::vector<Recipe>& known) {
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const Recipe& recipe : known) {
        if (recipe.name == name) return recipe;
        names.push_back(recipe.name);
    }
    fail(ErrorKind::input, "{}", unknown("recipe", name, names));
}

}  // namespace

const std::vector<Recipe>& recipes() {
    static const std::vector<Recipe> all = [] {
        std::vector<Recipe> read;
        read.reserve(shipped.size());
        // Those in front may be extended.
        const auto known = [&read](const std::string& name) { return recipe_among(name, read); };
        for (const char* text : shipped) read.push_back(parse_recipe(JsonDocument("shipped recipe", text), known));
        return read;
    }();
    return all;
}

Recipe find_recipe(const std::string& name_or_path) {
    if (is_a_document(name_or_path) || names_a_document(name_or_path))
        return parse_recipe(JsonDocument::given("--recipe", name_or_path));
    return recipe_among(name_or_path, recipes());
}

Recipe launched_as(const Recipe& recipe, Launched launched) {
    Recipe changed = recipe;
    changed.launched = launched;
    if (launched == Launched::graphs) {
        changed.launch = changed.layer = changed.expert_layer = Duration{};
        changed.layer_of.clear();
        return changed;
    }
    if (recipe.has_host()) return changed;
    if (recipe.eager.empty())
        fail(ErrorKind::input,
             "recipe {}: host.eager: names no recipe: no such runs were at hand; say the host's time for a kernel, by "
             "host.launch_ns, or by --launch without --launched",
             recipe.name);
    std::vector<std::string> timed;
    for (const Recipe& one : recipes())
        if (one.has_host()) timed.push_back(one.name);
    const auto named = std::find(timed.begin(), timed.end(), recipe.eager);
    if (named == timed.end())
        fail(ErrorKind::input, "recipe {}: host.eager: {}", recipe.name,
             must_be(recipe.eager, one_of(timed) + ", which have times of their host"));
    const Recipe host = recipe_among(*named, recipes());
    changed.launch = host.launch;
    changed.layer = host.layer;
    changed.layer_of = host.layer_of;
    changed.expert_layer = host.expert_layer;
    changed.far = host.far;
    changed.far_with_experts = host.far_with_experts;
    return changed;
}

bool is_open(const Recipe& recipe) {
    return recipe.launched != Launched::graphs && !recipe.has_host() && !recipe.eager.empty();
}

}  // namespace pipeweaver::emulator
