#include "validation/stacks.hpp"

#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace pipeweaver::validation {

using emulator::MemoryKind;
using emulator::Recipe;
using emulator::TensorOverlap;

namespace {

// Megatron-Bridge's recipes of DeepSeek, Moonlight and Kimi: gradients and the optimizer's moments in bf16.
constexpr emulator::StateBytes sixteen_bit_moments{.weight = 2, .gradient = 2, .optimizer = 8};

// "bf16 AdamW", under FSDP2 and in PyTorch's DistributedDataParallel, whose buckets hold gradients once more.
constexpr emulator::StateBytes sixteen_bit_adam{.weight = 2, .gradient = 2, .optimizer = 4, .apart = 2};
constexpr emulator::StateBytes sixteen_bit_replicas{.weight = 2, .gradient = 2, .optimizer = 4, .whole = 2};
// Weights and moments are read and written, gradients read, summed up for their norm and cleared.
constexpr emulator::UpdateTraffic of_sixteen_bit_adam{.updated = 16, .held = 4};

// More special sources come first.
constexpr std::array stacks{
    // Runs that the numbers of docs/accuracy.md were fitted on before 16-bit runs of Hopper were at hand.
    Stack{.source = "megatron-bridge docs/performance-summary", .known_kinds = true},
    Stack{.source = "megatron-bridge examples/models/", .known_kinds = true},
    Stack{.source = "megatron-lm tests/functional_tests", .also = "gpt3_15b_8", .known_kinds = true},
    // NVIDIA's own tuned runs.
    Stack{.source = "dgxc-benchmarking maxtext", .recipe = "maxtext"},
    Stack{.source = "dgxc-benchmarking", .recipe = "megatron-core-overlap", .memory = MemoryKind::reserved},
    Stack{.source = "nvidia/megatron-lm readme", .recipe = "megatron-core-overlap", .micro_batch = 1},
    Stack{.source = "megatron/megatron-bridge", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge examples", .also = "no overlap", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge examples", .also = " sft", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge skills",
          .also = "mla",
          .recipe = "megatron-core-plain",
          .state = sixteen_bit_moments},
    Stack{.source = "megatron-bridge skills", .also = "launch-bound", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-bridge", .recipe = "megatron-core-overlap", .micro_batch = 1},
    Stack{.source = "nemo-perf", .recipe = "megatron-core-overlap", .state = emulator::StateBytes{.gradient = 2}},
    Stack{.source = "gpu-recipes", .recipe = "megatron-core-overlap"},
    Stack{.source = "megatron-moe-modelzoo", .recipe = "megatron-core-overlap"},
    Stack{.source = "nemo/qwen3-8b-pretraining",
          .recipe = "megatron-core-overlap",
          .micro_batch = 2,
          .memory = MemoryKind::on_device},
    Stack{.source = "core/transformer/moe/readme", .recipe = "megatron-core-overlap"},
    // Megatron-Core as others run it.
    Stack{.source = "megatron-tutorials", .recipe = "megatron-core-plain", .zero = 0, .memory = MemoryKind::on_device},
    Stack{.source = "pai-megatron", .recipe = "megatron-core-plain"},
    Stack{.source = "xtuner docs/en/benchmark/megatron", .recipe = "megatron-core-plain"},
    Stack{.source = "ms-swift", .recipe = "megatron-core-plain", .memory = MemoryKind::on_device},
    Stack{.source = "nvidia/megatron-lm tests", .recipe = "megatron-core-plain"},
    Stack{.source = "megatron-lm examples/moe_recipes", .recipe = "megatron-core-overlap"},
    Stack{.source = "megatron-lm pr #5289", .recipe = "megatron-core-overlap"},
    // PyTorch's own.
    Stack{.source = "nanotron",
          .recipe = "nanotron",
          .partition = partition::balanced_partition,
          .memory = MemoryKind::reserved},
    Stack{.source = "llm-foundry", .recipe = "torch-fsdp1"},
    Stack{.source = "internevo", .recipe = "internevo"},
    // model.ac_offloading turns recomputation on.
    Stack{.source = "prime-rl",
          .also = "on blackwell",
          .recipe = "prime-rl-loops",
          .memory = MemoryKind::reserved,
          .offloads_inputs = true},
    Stack{.source = "prime-rl", .recipe = "prime-rl", .memory = MemoryKind::reserved, .offloads_inputs = true},
    Stack{.source = "kempnerforge", .also = "no compile", .recipe = "torch-fsdp2-eager"},
    Stack{.source = "kempnerforge", .recipe = "torch-fsdp2"},
    Stack{.source = "torchtitan",
          .also = "+ torch.compile",
          .recipe = "torch-fsdp2",
          .memory = MemoryKind::reserved,
          .recompute = emulator::Recompute::second_products},
    Stack{.source = "torchtitan", .also = "eager", .recipe = "torch-fsdp2-eager", .memory = MemoryKind::reserved},
    Stack{.source = "torchtitan docs/performance", .recipe = "torch-fsdp2-eager", .memory = MemoryKind::reserved},
    Stack{.source = "torchtitan",
          .recipe = "torch-fsdp2",
          .memory = MemoryKind::reserved,
          .recompute = emulator::Recompute::second_products},  // the default of its configurations
    Stack{.source = "automodel", .recipe = "nemo-automodel"},
    Stack{.source = "pytorch/ao", .recipe = "torch-fsdp2", .memory = MemoryKind::reserved},
    Stack{.source = "fms-fsdp", .recipe = "torch-fsdp2"},
    // Its page: bf16 Adam, but for the two that name fp32 masters.
    Stack{.source = "gemma4-sft",
          .also = "axolotl:",
          .recipe = "torch-fsdp2-eager",
          .state = sixteen_bit_adam,
          .update = of_sixteen_bit_adam,
          .zero = 2},
    Stack{.source = "gemma4-sft", .also = "automodel:", .recipe = "nemo-automodel"},
    Stack{.source = "gemma4-sft",
          .also = "unsloth:",
          .recipe = "torch-fsdp2-eager",
          .state = sixteen_bit_replicas,
          .update = of_sixteen_bit_adam,
          .zero = 0},
    Stack{.source = "gemma4-sft", .also = "ms-swift:", .recipe = "accelerate-fsdp2"},
    Stack{.source = "gemma4-sft", .also = "bridge:", .recipe = "megatron-core-plain"},
    Stack{.source = "whitecircle/halo", .recipe = "halo"},
    Stack{.source = "lmms-engine", .recipe = "torch-fsdp2", .micro_batch = 1},
    Stack{.source = "pith-train", .recipe = "pith-train", .memory = MemoryKind::reserved},
    Stack{.source = "sports-intelligence-playbooks", .known_kinds = true, .memory = MemoryKind::on_device},
    // Any other.
    Stack{.source = {}, .known_kinds = true},
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
    run.shares_in_nodes = true;
}

// Random numbers in every attention, and masks that are written and read.
void with_dropout(RunRecipe& run) {
    run.recipe.kernels.attention *= 1.4;
    run.recipe.kernels.memory_bound *= 1.2;
}

// On B200 FlashAttention 2 is further behind than on Hopper: as far as there once more, with a mask and without.
void two_generations_behind(RunRecipe& run) {
    emulator::KernelFactors& kernels = run.recipe.kernels;
    kernels.attention_after_ampere *= kernels.attention_after_ampere;
    if (kernels.unmasked_after_ampere) *kernels.unmasked_after_ampere *= *kernels.unmasked_after_ampere;
}

// FlashAttention 3 on Hopper and 4 on Blackwell are no generation behind.
void attention_of_the_device(RunRecipe& run) {
    run.recipe.kernels.attention_after_ampere = 1;
    run.recipe.kernels.unmasked_after_ampere.reset();
}

// DeepEP and HybridEP send a token once to a node, however many of its experts are there.
void sent_once(RunRecipe& run) { run.recipe.execution.experts.dispatcher = emulator::Dispatcher::once_a_node; }

void sent_to_each_expert(RunRecipe& run) { run.recipe.execution.experts.dispatcher = emulator::Dispatcher::all_to_all; }

// Exchanges of one microbatch run beside the other pass of another.
void beside_another_microbatch(RunRecipe& run) { run.recipe.execution.experts.exposed = 0.2; }

// The stage that the note names first: others are of runs that it compares with.
void take_zero(std::string_view note, RunRecipe& run) {
    constexpr std::string_view word = "zero-";
    const auto place = note.find(word);
    if (place == std::string_view::npos || place + word.size() >= note.size()) return;
    const char stage = note[place + word.size()];
    if (stage < '0' || stage > '3') return;
    run.recipe.zero = stage - '0';
    if (run.recipe.zero >= 2) run.recipe.bucket = {};
}

void shares_out_optimizer(RunRecipe& run) { run.recipe.zero = std::max(run.recipe.zero, 1); }

// FSDP2 without reshard_after_forward: weights stay whole on every GPU, in 16 bits.
void keeps_gathered_weights(RunRecipe& run) {
    run.recipe.zero = 2;
    run.recipe.bucket = {};
}

void sixteen_bit_gradients(RunRecipe& run) { run.recipe.state.gradient = 2; }

void sixteen_bit_states(RunRecipe& run) {
    run.recipe.state.weight = run.recipe.state.gradient = 2;
    run.recipe.state.optimizer = 4;
}

// Of several microbatches gradients are added up whole, and reduced after the last; every GPU has all logits.
void reduced_at_the_end(RunRecipe& run) {
    run.recipe.state = {.weight = 2, .gradient = 4, .optimizer = 4, .whole = 4};
    run.recipe.kept.split_logits = false;
    run.recipe.kept.logit = 8;
}

// torchtitan's registry of 2026: logits are made chunk by chunk and kept in 16 bits at most (ChunkedLossWrapper).
void chunked_loss(RunRecipe& run) { run.recipe.kept.logit = 2; }

// The loss of reinforcement learning (prime-rl's FusedOutputLinear): logits are made again in the backward.
void logits_made_again(RunRecipe& run) { run.recipe.kept.logit = 0; }

constexpr auto sayings = std::to_array<Said>({
    {"distributed optimizer", shares_out_optimizer},
    {"no reshard", keeps_gathered_weights},
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
    {"flashattention-2 on blackwell", two_generations_behind},
    {"eager attention", [](RunRecipe& run) { run.recipe.execution.fused_attention = false; }},
    {"flash attention 3", attention_of_the_device},
    {", fa4", attention_of_the_device},
    {"driver 580, pytorch 2.13", chunked_loss},
    {"rl loss", logits_made_again},
    {"deepep", sent_once},
    {"hybridep", sent_once},
    {"alltoall", sent_to_each_expert},
    {"ep overlap on", beside_another_microbatch},
    {"ep overlap + ", beside_another_microbatch},
    {"ep overlap;", beside_another_microbatch},
    {"bf16 pure", sixteen_bit_states},
    {"everything bf16", sixteen_bit_states},
    {"grad sync bf16", sixteen_bit_gradients},
    {"grad reduce bf16", sixteen_bit_gradients},
    {"bf16 params + fp32 reduce", reduced_at_the_end},
    {"dropout 0.1", [](RunRecipe& run) { run.recipe.kept.masks = 1; }},
    {"with cuda graph", [](RunRecipe& run) { run.recipe.layer = {}; }},
    {"cuda graph + ", [](RunRecipe& run) { run.recipe.layer = {}; }},
    {"4 gpus per node", [](RunRecipe& run) { run.gpus_per_node = 4; }},
});

// "expert TP 4", "expert TP = TP 4", "ETP1"; 0 without.
std::int64_t gpus_of_expert(std::string_view note) {
    std::int64_t gpus = 0;
    for (const std::string_view words : {"expert tp ", "expert tp = tp ", "etp ", "etp"})
        gpus = std::max(gpus, number_after(note, words));
    return gpus;
}

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

// The nominal speed that reaches as much: collectives across nodes reach 0.9 of it (costdb/tables/link_table.cpp).
Bandwidth fabric_of(std::int64_t gpus) {
    constexpr double reached_of_nominal = 0.9, nominal = 400;
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

std::int64_t number_after(std::string_view text, std::string_view words) {
    const auto place = text.find(words);
    if (place == std::string_view::npos) return 0;
    std::int64_t value = 0;
    const auto rest = text.substr(place + words.size());
    static_cast<void>(std::from_chars(rest.data(), rest.data() + rest.size(), value));
    return value;
}

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
    if (stack.zero) recipe.zero = *stack.zero;
    if (stack.state) emulator::put_states(recipe, *stack.state);
    if (stack.update) recipe.update = *stack.update;
    take_zero(note, run);
    for (auto said = sayings.begin(); said != sayings.end(); ++said) {
        if (!contains(note, said->words)) continue;
        const auto is_same = [&](const Said& one) { return one.of == said->of && contains(note, one.words); };
        if (std::none_of(sayings.begin(), said, is_same)) said->of(run);
    }
    run.network = network_in(note);
    if (const std::int64_t gpus = gpus_of_expert(note); gpus > 0) recipe.execution.experts.tensor_parallel = gpus;
    // A token's experts are on four nodes at most (arXiv 2412.19437, section 2.1.2).
    if (contains(in_lower_case(row.model), "deepseek-v3")) recipe.execution.experts.most_nodes = 4;
    if (recipe.name == "nanotron" && row.gpus) run.network = fabric_of(*row.gpus);
    return run;
}

}  // namespace pipeweaver::validation
