#include "validation/stacks.hpp"

#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace pipeweaver::validation {

using emulator::Recipe;
using emulator::TensorOverlap;

namespace {

// More special sources come first.
constexpr std::array stacks{
    // Runs that the numbers of docs/accuracy.md were fitted on before 16-bit runs of Hopper were at hand.
    Stack{.source = "megatron-bridge docs/performance-summary", .also = {}, .recipe = {}, .known_kinds = true},
    Stack{.source = "megatron-bridge examples/models/", .also = {}, .recipe = {}, .known_kinds = true},
    Stack{.source = "megatron-lm tests/functional_tests", .also = "gpt3_15b_8", .recipe = {}, .known_kinds = true},
    // NVIDIA's own tuned runs.
    Stack{.source = "dgxc-benchmarking maxtext", .also = {}, .recipe = "maxtext"},
    Stack{.source = "dgxc-benchmarking", .also = {}, .recipe = "megatron-core-overlap"},
    Stack{.source = "nvidia/megatron-lm readme", .also = {}, .recipe = "megatron-core-overlap", .micro_batch = 1},
    Stack{.source = "megatron/megatron-bridge", .also = {}, .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge examples", .also = "no overlap", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge skills", .also = "launch-bound", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge", .also = {}, .recipe = "megatron-core-overlap", .micro_batch = 1},
    Stack{.source = "nemo-perf", .also = {}, .recipe = "megatron-core-overlap"},
    Stack{.source = "gpu-recipes", .also = {}, .recipe = "megatron-core-overlap"},
    Stack{.source = "megatron-moe-modelzoo", .also = {}, .recipe = "megatron-core-overlap"},
    Stack{.source = "nemo/qwen3-8b-pretraining", .also = {}, .recipe = "megatron-core-overlap", .micro_batch = 2},
    Stack{.source = "core/transformer/moe/readme", .also = {}, .recipe = "megatron-core-overlap"},
    // Megatron-Core as others run it.
    Stack{.source = "megatron-tutorials", .also = {}, .recipe = "megatron-core-plain"},
    Stack{.source = "pai-megatron", .also = {}, .recipe = "megatron-core-plain"},
    Stack{.source = "xtuner docs/en/benchmark/megatron", .also = {}, .recipe = "megatron-core-plain"},
    Stack{.source = "ms-swift", .also = {}, .recipe = "megatron-core-plain"},
    Stack{.source = "nvidia/megatron-lm tests", .also = {}, .recipe = "megatron-core-plain"},
    // PyTorch's own.
    Stack{.source = "nanotron", .also = {}, .recipe = "nanotron", .partition = "balanced"},
    Stack{.source = "llm-foundry", .also = {}, .recipe = "torch-fsdp1"},
    Stack{.source = "internevo", .also = {}, .recipe = "internevo"},
    Stack{.source = "kempnerforge", .also = "no compile", .recipe = "torch-fsdp2-eager"},
    Stack{.source = "kempnerforge", .also = {}, .recipe = "torch-fsdp2"},
    Stack{.source = "torchtitan", .also = "eager", .recipe = "torch-fsdp2-eager"},
    Stack{.source = "torchtitan docs/performance", .also = {}, .recipe = "torch-fsdp2-eager"},
    Stack{.source = "torchtitan", .also = {}, .recipe = "torch-fsdp2"},
    Stack{.source = "automodel", .also = {}, .recipe = "nemo-automodel"},
    Stack{.source = "pytorch/ao", .also = {}, .recipe = "torch-fsdp2"},
    Stack{.source = "fms-fsdp", .also = {}, .recipe = "torch-fsdp2"},
    Stack{.source = "pith-train", .also = {}, .recipe = "torch-fsdp2"},
    // Any other.
    Stack{.source = {}, .also = {}, .recipe = {}, .known_kinds = true},
};

// What a note says of a run, by the words it says it in.
struct Said {
    std::string_view words;  // in lower case
    void (*of)(RunRecipe&);
};

void without_tensor_overlap(RunRecipe& run) { run.recipe.execution.tensor_overlap = TensorOverlap::launch_order; }

// Weights are shared out in a node, whose links gather them; replicas of nodes exchange gradients in buckets.
void hybrid_shards(RunRecipe& run) {
    run.recipe.zero = 1;
    run.recipe.bucket = Bytes{160'000'000};
}

// Random numbers in every attention, and masks that are written and read.
void with_dropout(RunRecipe& run) {
    run.recipe.kernels.attention *= 1.4;
    run.recipe.kernels.memory_bound *= 1.2;
}

// On B200 FlashAttention 2 is further behind than on Hopper: KernelFactors::attention_after_ampere once more.
void two_generations_behind(RunRecipe& run) {
    run.recipe.kernels.attention *= run.recipe.kernels.attention_after_ampere;
}

// DeepEP and HybridEP send a token once to a node, however many of its experts are there, beside other work.
void without_copies_between_nodes(RunRecipe& run) { run.recipe.kernels.traffic *= 0.4; }

template <int stage>
void zero_of(RunRecipe& run) {
    run.recipe.zero = stage;
    if (stage >= 2) run.recipe.bucket = {};
}

constexpr std::array<Said, 19> sayings{{
    {"zero-0", zero_of<0>},
    {"zero-1", zero_of<1>},
    {"zero-2", zero_of<2>},
    {"zero-3", zero_of<3>},
    {"hsdp", hybrid_shards},
    {"tp comm overlap off", without_tensor_overlap},
    {"no tp overlap", without_tensor_overlap},
    {"without sequence parallelism",
     [](RunRecipe& run) {
         run.recipe.execution.tensor_overlap = TensorOverlap::none;
         run.recipe.execution.sequence_parallel = false;
     }},
    {"cp a2a", [](RunRecipe& run) { run.ring = false; }},
    {"ulysses", [](RunRecipe& run) { run.ring = false; }},
    {"dropout 0.1", with_dropout},
    {"driver 580, pytorch 2.13", two_generations_behind},
    {"deepep", without_copies_between_nodes},
    {"hybridep 32 sms", without_copies_between_nodes},
    {"hybridep, te", without_copies_between_nodes},
    {"bf16 pure", [](RunRecipe& run) { run.recipe.state = {.weight = 2, .gradient = 2, .optimizer = 4}; }},
    {"with cuda graph", [](RunRecipe& run) { run.recipe.layer = {}; }},
    {"cuda graph + ", [](RunRecipe& run) { run.recipe.layer = {}; }},
    {"4 gpus per node", [](RunRecipe& run) { run.gpus_per_node = 4; }},
}};

std::optional<double> number_that_ends(std::string_view text) {
    std::size_t begin = text.size();
    while (begin > 0 && ((text[begin - 1] >= '0' && text[begin - 1] <= '9') || text[begin - 1] == '.')) --begin;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Gbit/s of "4 x 100 gbit/s", "400 gbit/s", in front of `unit`.
std::optional<double> rate_before(std::string_view note, std::string_view unit) {
    const auto place = note.find(unit);
    if (place == std::string_view::npos) return std::nullopt;
    std::string_view text = note.substr(0, place);
    const auto rate = number_that_ends(text);
    if (!rate) return std::nullopt;
    text = text.substr(0, text.find_last_not_of("0123456789.") + 1);
    for (const std::string_view times : {" x ", "x"})
        if (text.ends_with(times))
            if (const auto links = number_that_ends(text.substr(0, text.size() - times.size()))) return *links * *rate;
    return rate;
}

Bandwidth network_in(std::string_view note) {
    constexpr double bytes_per_gbit = 1e9 / 8;
    if (const auto gbit = rate_before(note, " gbit/s")) return {static_cast<std::int64_t>(*gbit * bytes_per_gbit)};
    if (const auto tbit = rate_before(note, " tbit/s"))
        return {static_cast<std::int64_t>(*tbit * 1000 * bytes_per_gbit)};
    return {};
}

// What all-reduces reached on the cluster of the nanotron runs, whose links are slower the more nodes meet (The
// Ultra-Scale Playbook, "AllReduce bandwidth by nodes"): bytes per second on the wire of a node.
struct Reached {
    std::int64_t nodes;
    double gigabytes;
};
constexpr std::array<Reached, 6> playbook_fabric{{{2, 362}, {4, 160}, {8, 100}, {16, 85}, {32, 65}, {64, 33}}};

// The nominal speed that reaches as much: collectives across nodes reach 0.76 x 0.8 of it
// (costdb/tables/link_table.cpp).
Bandwidth fabric_of(std::int64_t gpus) {
    constexpr double reached_of_nominal = 0.76 * 0.8, nominal = 400;
    double gigabytes = nominal;
    for (const auto& [nodes, reached] : playbook_fabric)
        if (gpus >= 8 * nodes) gigabytes = std::min(nominal, reached / reached_of_nominal);
    return {static_cast<std::int64_t>(gigabytes * 1e9)};
}

Recipe recipe_named(std::string_view name, std::span<const Recipe> own) {
    const auto found = std::find_if(own.begin(), own.end(), [&](const Recipe& recipe) { return recipe.name == name; });
    return found == own.end() ? emulator::find_recipe(std::string(name)) : *found;
}

}  // namespace

const Stack& stack_of(const PublishedRun& row) {
    const auto source = in_lower_case(row.source), rest = in_lower_case(row.model + ' ' + row.note);
    for (const Stack& stack : stacks)
        if (contains(source, stack.source) && contains(rest, stack.also)) return stack;
    return stacks.back();
}

// vTrain's runs and Megatron-LM's of 2021-23; NVIDIA's of H100; SimuMax's, which measured with nothing overlapped.
std::string_view default_recipe(std::string_view device) {
    return device == "a100_sxm" ? "megatron-2022" : device == "h100_sxm" ? "megatron-core-overlap" : "megatron-core";
}

RunRecipe recipe_of(const PublishedRun& row, std::string_view device, std::span<const Recipe> own) {
    const Stack& stack = stack_of(row);
    RunRecipe run{.recipe = recipe_named(stack.recipe.empty() ? default_recipe(device) : stack.recipe, own)};
    Recipe& recipe = run.recipe;
    recipe.about = recipe.source = "";
    if (stack.recipe.empty()) {
        if (device == "b200") recipe.execution.tensor_overlap = TensorOverlap::none;
        run.ring = device == "h100_sxm";
        return run;
    }
    run.partition = stack.partition;
    const auto note = in_lower_case(row.note);
    for (const Said& said : sayings)
        if (contains(note, said.words)) said.of(run);
    run.network = network_in(note);
    if (recipe.name == "nanotron" && row.gpus) run.network = fabric_of(*row.gpus);
    return run;
}

}  // namespace pipeweaver::validation
