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
          "Megatron-LM core/tensor_parallel/layers.py, core/distributed; optimizer traffic: SimuMax's system files"})",
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-core-overlap",
        "about": "constant lengths, as MLPerf runs: traffic inside GEMMs, gradients in buckets, weights gathered ahead",
        "source": "NVIDIA's MLPerf Training 4.1 and 5.0 submissions, Transformer Engine's user buffers",
        "tensor_parallel": {"overlap": "inside-gemms"},
        "data_parallel": {"bucket_bytes": 160000000, "gathers_ahead": true}})",
    R"({"format": "pipeweaver-recipe/1", "name": "megatron-2022",
        "about":
          "Megatron-LM and Megatron-DeepSpeed of 2021-23 on A100: unfused attention, whole optimizer, Python host",
        "source": "vTrain's runs (arXiv 2312.12391); host: fitted to its single-node table",
        "attention": "unfused",
        "tensor_parallel": {"overlap": "none", "sequence_parallel": false},
        "data_parallel": {"zero": 0},
        "update_traffic": {"updated": 32, "held": 0},
        "host": {"layer_ns": 975000}})",
    R"({"format": "pipeweaver-recipe/1", "name": "torch-fsdp2",
        "about":
          "PyTorch FSDP2: weights, gradients and optimizer's state shared out; weights gathered ahead layer by layer",
        "source": "torch.distributed.fsdp.fully_shard; torchtitan",
        "tensor_parallel": {"overlap": "none"},
        "data_parallel": {"zero": 3}})"};

}  // namespace

const std::vector<Recipe>& recipes() {
    static const std::vector<Recipe> all = [] {
        std::vector<Recipe> read;
        read.reserve(shipped.size());
        for (const char* text : shipped) read.push_back(parse_recipe(JsonDocument("shipped recipe", text)));
        return read;
    }();
    return all;
}

Recipe find_recipe(const std::string& name_or_path) {
    if (is_a_document(name_or_path) || names_a_document(name_or_path))
        return parse_recipe(JsonDocument::given("--recipe", name_or_path));
    std::vector<std::string> names;
    for (const Recipe& recipe : recipes()) {
        if (recipe.name == name_or_path) return recipe;
        names.push_back(recipe.name);
    }
    fail(ErrorKind::input, "{}", unknown("recipe", name_or_path, names));
}

}  // namespace pipeweaver::emulator
