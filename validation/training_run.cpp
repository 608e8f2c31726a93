#include "validation/training_run.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "validation/parts.hpp"
#include "validation/run_network.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace pipeweaver::validation {

using namespace emulator;

namespace {

using Refusal = std::optional<std::string>;  // why; nothing: go on

// "LoRA", but not the ranks of latent attention, "q_lora" and "kv_lora".
bool names_adapters(std::string_view text) {
    constexpr std::string_view word = "lora";
    for (auto place = text.find(word); place != std::string_view::npos; place = text.find(word, place + 1))
        if (place == 0 || text[place - 1] != '_') return true;
    return false;
}

// "LoRA r16 on all *_proj". Where nothing is said: NVIDIA's finetuning benchmarks adapt queries, keys and values alone
// (NeMo, finetune_performance_optimizations: rank 16, linear_qkv), others all projections (Megatron-Bridge: rank 32).
void adapters_of(const std::string& text, TrainingRun& run) {
    if (!names_adapters(text)) return;
    const bool nemo = contains(text, "dgxc") || contains(text, "nemo-perf");
    const std::int64_t said = std::max(number_after(text, "lora r"), number_after(text, "lora rank "));
    workloads::Adapters adapters{.rank = said > 0 ? said : nemo ? 16 : 32};
    if (nemo && !contains(text, "_proj")) adapters.output = adapters.up = adapters.down = false;
    run.assumed.push_back(fmt::format("adapters of rank {} on {}", adapters.rank,
                                      adapters.up ? "all projections" : "queries, keys and values"));
    run.adapters = adapters;
}

// "... about 380 tokens per document", "documents of a few hundred tokens", packed SQuAD: few hundred are 380, which is
// what the rows that say a number have.
void documents_of(const std::string& text, TrainingRun& run) {
    if (!contains(text, "pack") || contains(text, "not stated")) return;
    constexpr std::int64_t few_hundred = 380;
    constexpr std::string_view words = " tokens per document";
    const auto place = text.find(words);
    if (place != std::string::npos) {
        const auto begin = text.find_last_not_of("0123456789", place - 1) + 1;
        static_cast<void>(std::from_chars(text.data() + begin, text.data() + place, run.document));
    } else if (contains(text, "documents of a few hundred tokens") || contains(text, "squad")) {
        run.document = few_hundred;
    }
    if (run.document > 0) run.assumed.push_back(fmt::format("packs of documents of {} tokens", run.document));
}

Refusal kind_of_work(const PublishedRun& row, TrainingRun& run) {
    const auto text = in_lower_case(row.source + ' ' + row.model + ' ' + row.note);
    adapters_of(text, run);
    documents_of(text, run);
    return {};
}

// A chip of a known device in another package.
void take_part(const Part& part, TrainingRun& run) {
    run.device = part.device;
    run.part = part.name;
    run.assumed.emplace_back(part.about);
}

void slow_down(emulator::KernelFactors& kernels, const emulator::KernelFactors& slower) {
    kernels.products *= slower.products;
    kernels.attention *= slower.attention;
    kernels.memory_bound *= slower.memory_bound;
    kernels.experts *= slower.experts;
    kernels.traffic *= slower.traffic;
}

// Whether it was fitted on runs like those whose stack is not known.
bool is_fitted(std::string_view device) {
    const auto is_of_any = [&](Precision precision) {
        const auto fitted = fitted_constants(device, precision);
        return fitted && !fitted->by_stacks;
    };
    return is_of_any(Precision::sixteen_bit) || is_of_any(Precision::eight_bit);
}

Refusal device_of(const PublishedRun& row, TrainingRun& run) {
    if (row.gpu.empty()) return "unknown: gpu";
    const bool known_kinds = stack_of(row).known_kinds;
    const auto part = known_kinds ? std::nullopt : part_named(row.gpu, row.note);
    if (part)
        take_part(*part, run);
    else if (const workloads::Device* const device = workloads::known_device(row.gpu); device && !device->modelled)
        run.part = run.device = device->name;
    else
        return fmt::format("nothing is known of the device '{}'", row.gpu);
    run.how = recipe_of(row, run.device, run.own);
    if (part) {
        slow_down(run.how.recipe.kernels, part->slower);
        run.how.node_link = part->node_link;
    }
    if (workloads::family_of(run.device) == workloads::Family::other || (known_kinds && !is_fitted(run.device)))
        return fmt::format("no published run was fitted on {}", run.device);
    return {};
}

Refusal dtype_of(const PublishedRun& row, TrainingRun& run) {
    const auto name = in_lower_case(row.dtype);
    if (name.empty()) return "unknown: dtype";
    const bool eight_bit = name.starts_with("fp8") || name.starts_with("float8") || name.starts_with("mxfp8");
    if (!eight_bit && name != "bf16" && name != "fp16")
        return fmt::format("dtype '{}': allowed are bf16, fp16 and fp8", row.dtype);
    const bool has_fp8 = run.part == "h100_sxm" || workloads::family_of(run.device) == workloads::Family::blackwell;
    if (eight_bit && !has_fp8) return fmt::format("no fp8 products are measured on {}", run.part);
    run.dtype = eight_bit ? costdb::Dtype::fp8 : costdb::Dtype::bf16;
    run.how.recipe.execution.products = run.dtype;
    return {};
}

Refusal network_of_run(const PublishedRun& row, TrainingRun& run) {
    auto found = network_of(row);
    if (!found.network) return found.refusal;
    run.network = std::move(*found.network);
    run.assumed.insert(run.assumed.end(), found.assumed.begin(), found.assumed.end());
    return {};
}

// One of GPUs and degrees may be unknown: it follows from the others.
Refusal degrees(const PublishedRun& row, TrainingRun& run) {
    struct Degree {
        std::string_view name;
        PublishedRun::Count value;
    };
    std::array<Degree, 4> factors{{{"tp", row.tp}, {"pp", row.pp}, {"dp", row.dp}, {"cp", row.cp}}};
    std::vector<std::string_view> unknown;
    std::int64_t product = 1;
    for (const Degree& degree : factors)
        if (degree.value)
            product *= *degree.value;
        else
            unknown.push_back(degree.name);
    if (unknown.size() + (row.gpus ? 0 : 1) > 1) {
        if (!row.gpus) unknown.emplace_back("gpus");
        return fmt::format("unknown: {}", fmt::join(unknown, ", "));
    }
    if (row.gpus && (*row.gpus % product != 0 || (unknown.empty() && *row.gpus != product)))
        return fmt::format("tp * pp * dp * cp of the row is {}, its gpus are {}", product, *row.gpus);
    for (Degree& degree : factors)
        if (!degree.value) degree.value = *row.gpus / product;
    run.layout = {*factors[0].value, *factors[1].value, *factors[2].value};
    run.layout.cp = *factors[3].value;
    const std::int64_t noted = number_after(in_lower_case(row.note), "label vpp");  // of a run without the column
    if (run.layout.pp > 1 && !row.vpp) run.assumed.push_back(noted > 0 ? fmt::format("vpp {}", noted) : "vpp 1");
    run.virtual_stages = run.layout.pp > 1 ? row.vpp.value_or(std::max<std::int64_t>(1, noted)) : 1;
    return {};
}

Refusal batch_of(const PublishedRun& row, TrainingRun& run) {
    std::vector<std::string_view> unknown;
    if (!row.seq) unknown.emplace_back("seq");
    const std::int64_t micro_batch = row.micro_batch.value_or(stack_of(row).micro_batch);
    if (micro_batch == 0) unknown.emplace_back("micro_batch");
    if (!row.global_batch) unknown.emplace_back("global_batch");
    if (!unknown.empty()) return fmt::format("unknown: {}", fmt::join(unknown, ", "));
    run.seq = *row.seq;
    run.micro_batch = micro_batch;
    if (!row.micro_batch) run.assumed.push_back(fmt::format("micro_batch {}", micro_batch));
    run.global_batch = *row.global_batch;
    constexpr std::int64_t most_tokens = std::int64_t{1} << 26;
    if (run.micro_batch > most_tokens / run.seq) return fmt::format("a microbatch of more than {} tokens", most_tokens);
    if (run.global_batch % (run.layout.dp * run.micro_batch) != 0)
        return fmt::format("global_batch {} is no whole number of microbatches: dp {} * micro_batch {}",
                           run.global_batch, run.layout.dp, run.micro_batch);
    return {};
}

// Megatron's modules but the attention are norms, activation functions and products of latent attention.
bool repeats_attention_alone(const PublishedRun& row, const TrainingRun& run) {
    const auto note = in_lower_case(row.note);
    const bool named = contains(note, "recompute modules: ") && !contains(note, "recompute modules: core_attn");
    return run.how.recipe.name.starts_with("megatron-core") && !named;
}

// torchtitan's checkpointing by operators, where a note says so: its "selective" may be of every second block, too.
bool repeats_second_products(const PublishedRun& row) {
    const auto note = in_lower_case(row.note);
    return contains(note, "per-op sac") || contains(note, "ac per op");
}

Recompute selective_of(const PublishedRun& row, const TrainingRun& run) {
    if (repeats_attention_alone(row, run)) return Recompute::core_attention;
    return repeats_second_products(row) ? Recompute::second_products : Recompute::selective;
}

// The row's word, or the stack's where it says none.
std::string recompute_said(const PublishedRun& row, const Stack& stack, TrainingRun& run) {
    if (row.recompute.empty() && stack.recompute) {
        run.assumed.push_back(fmt::format("{} recomputation, its stack's default", name_of(*stack.recompute)));
        return std::string(name_of(*stack.recompute));
    }
    auto text = in_lower_case(row.recompute);
    if (stack.offloads_inputs && text == name_of(Recompute::offload))
        run.assumed.emplace_back("full recomputation, whose inputs on the host are counted on the GPU");
    return text;
}

Refusal recomputation_of(const PublishedRun& row, TrainingRun& run) {
    const Stack& stack = stack_of(row);
    const auto text = recompute_said(row, stack, run);
    const bool known_kinds = stack.known_kinds;
    run.sequence_parallel = run.device != "a100_sxm" || !known_kinds || contains(text, "seq-parallel");
    if (text == name_of(Recompute::full))
        run.recomputation = Recompute::full;
    else if (text.starts_with(name_of(Recompute::selective)))
        run.recomputation = selective_of(row, run);
    else if (text == name_of(Recompute::second_products))
        run.recomputation = Recompute::second_products;
    else if (text.starts_with("partial") && !known_kinds)
        run.recomputation = Recompute::half;
    else if (text == name_of(Recompute::offload) && !known_kinds)
        run.recomputation = stack.offloads_inputs ? Recompute::full : Recompute::offload;
    else if (text.starts_with(name_of(Recompute::none)))
        run.recomputation = Recompute::none;
    else if (!text.empty())
        return fmt::format(
            "recompute '{}': allowed are full, selective, selective+seq-parallel, second-products, offload and none",
            row.recompute);
    else if (run.device != "h100_sxm" && known_kinds)
        return "unknown: recompute";
    else
        run.assumed.emplace_back("no recomputation");
    if (known_kinds && run.device != "a100_sxm" && run.recomputation != Recompute::none)
        return fmt::format("recompute '{}': no run of {} that recomputes was fitted", row.recompute, run.device);
    run.how.recipe.execution.sequence_parallel = run.how.recipe.execution.sequence_parallel && run.sequence_parallel;
    if (known_kinds && run.device == "a100_sxm") run.how.recipe.execution.sequence_parallel = run.sequence_parallel;
    return {};
}

// What the sizes do not allow.
Refusal divisible(const PublishedRun& row, TrainingRun& run) {
    const auto& network = run.network;
    const std::int64_t tp = run.layout.tp, pp = run.layout.pp;
    if (network.head_dim == network.hidden / network.heads && network.hidden % network.heads != 0)
        return fmt::format("hidden {} is not divisible by heads {}", network.hidden, network.heads);
    if (network.heads % network.kv_heads != 0)
        return fmt::format("heads {} are not divisible by kv_heads {}", network.heads, network.kv_heads);
    if (network.heads % tp != 0) return fmt::format("heads {} are not divisible by tp {}", network.heads, tp);
    if (network.ffn % tp != 0) return fmt::format("ffn {} is not divisible by tp {}", network.ffn, tp);
    if (run.seq % (run.layout.cp * (run.sequence_parallel ? tp : 1)) != 0)
        return fmt::format("seq {} is not divisible among tp {} and cp {}", run.seq, tp, run.layout.cp);
    const bool even = network.layers % (pp * run.virtual_stages) == 0;
    // Megatron of 2021-23 cuts into equal stages alone.
    const bool known_kinds = stack_of(row).known_kinds;
    const bool equal_alone = run.device == "a100_sxm" && known_kinds;
    const bool as_layers = !cut_layers(network.layers, pp, run.virtual_stages).empty();
    if (!even && !as_layers && !known_kinds && network.layers >= pp * run.virtual_stages) {
        run.assumed.emplace_back("stages as equal as the layers can be cut");
        return {};
    }
    if (!even && (equal_alone || cut_layers(network.layers, pp, run.virtual_stages).empty()))
        return fmt::format("{} layers cannot be cut into pp {} * vpp {} equal stages", network.layers, pp,
                           run.virtual_stages);
    if (!even) run.assumed.emplace_back("embedding and head count as layers of the pipeline");
    return {};
}

// Inside what the runs that were fitted are of.
Refusal ampere_domain(const TrainingRun& run) {
    const auto& network = run.network;
    if (network.gated || network.moe || network.kv_heads != network.heads)
        return "a gated, grouped-query or expert network: the fitted A100 runs are of GPTs with unfused attention";
    if (run.layout.cp > 1) return "context parallelism: no A100 run with it was fitted";
    if (run.layout.tp > 8 && run.layout.tp % 8 != 0) return "tensor parallelism over parts of nodes";
    return {};
}

bool has_experts(const workloads::Architecture& network) {
    return network.moe || network.attention.kind == workloads::AttentionKind::latent;
}

Refusal expert_degrees(const PublishedRun& row, TrainingRun& run) {
    if (!run.network.moe) return {};
    if (!row.ep) return "unknown: ep";
    run.layout.ep = *row.ep;
    const std::int64_t gpus = run.layout.tp * run.layout.cp * run.layout.dp;
    if (gpus % run.layout.ep != 0 || run.network.moe->experts % run.layout.ep != 0)
        return fmt::format("tp * cp * dp {} and the {} experts must be divisible by ep {}", gpus,
                           run.network.moe->experts, run.layout.ep);
    const std::int64_t split = run.how.recipe.execution.experts.tensor_parallel;
    if (gpus % (run.layout.ep * split) != 0 || run.network.moe->expert_ffn % split != 0)
        return fmt::format("tp * cp * dp {} must be divisible by ep {} * expert tp {}, the experts' {} columns by that",
                           gpus, run.layout.ep, split, run.network.moe->expert_ffn);
    return {};
}

Refusal experts_domain(const PublishedRun& row, TrainingRun& run) {
    const auto& network = run.network;
    if (!has_experts(network)) return {};
    const bool latent = network.attention.kind == workloads::AttentionKind::latent;
    if (run.device != "b200" || !network.moe || !latent)
        return fmt::format(
            "'{}' has experts or latent attention: fitted runs of such are of DeepSeek-V2 and V3 on b200", row.model);
    if (run.layout.tp > 1 || run.layout.cp > 1) return "experts with tp or cp above 1: no such run was fitted";
    return {};
}

Refusal domain(const PublishedRun& row, TrainingRun& run) {
    if (auto why = expert_degrees(row, run)) return why;
    if (run.adapters && run.network.attention.kind == workloads::AttentionKind::latent)
        return "adapters (LoRA) of latent attention are not modelled";
    if (!stack_of(row).known_kinds) return {};
    if (run.adapters) return "adapters (LoRA): no such run was fitted";
    if (auto why = experts_domain(row, run)) return why;
    if (run.device == "a100_sxm") return ampere_domain(run);
    if (run.layout.tp > 8) return "tensor parallelism over nodes: no such run was fitted";
    if (run.device == "b200" && run.layout.gpus() > 8)
        return "more than a node of 8 GPUs: the fitted b200 runs are of one";
    if (run.device == "b200" && run.network.heads % (run.layout.tp * run.layout.cp) != 0)
        return fmt::format("heads {} are not divisible by tp {} * cp {}", run.network.heads, run.layout.tp,
                           run.layout.cp);
    return {};
}

}  // namespace

std::vector<std::int64_t> cut_layers(std::int64_t layers, std::int64_t ranks, std::int64_t virtual_stages) {
    const std::int64_t stages = ranks * virtual_stages;
    if (layers % stages == 0) return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), layers / ranks);
    if ((layers + 2) % stages != 0 || ranks == 1) return {};
    std::vector<std::int64_t> cut(static_cast<std::size_t>(ranks), (layers + 2) / ranks);
    --cut.front();
    --cut.back();
    return cut;
}

namespace {

Refusal devices_known(const PublishedRun& row, TrainingRun& run) {
    // What is fitted of a device's generation serves for these: the table says how far off.
    auto why = device_of(row, run);
    return run.device.empty() ? why : Refusal{};
}

// The backbone alone has adapters, and nothing else is trained.
void adapt(workloads::Model& model, const workloads::Adapters& adapters) {
    for (workloads::Module& module : model.modules) module.trainable = false;
    model.modules[model.backbone()].adapters = adapters;
}

Refusal networks_of_run(const PublishedRun& row, TrainingRun& run) {
    auto found = multimodal_run(row);
    if (!found.run) return std::move(found.refusal);
    run.multimodal = std::move(found.run);
    const auto& assumed = run.multimodal->assumed;
    run.assumed.insert(run.assumed.end(), assumed.begin(), assumed.end());
    if (run.adapters) adapt(run.multimodal->model, *run.adapters);
    if (run.multimodal->recipe) run.how.recipe = *run.multimodal->recipe;
    const auto& moe = run.multimodal->model.modules[run.multimodal->model.backbone()].architecture.moe;
    if (moe && !row.ep) return "unknown: ep";
    run.layout.ep = moe ? *row.ep : 1;
    return {};
}

Refusal degrees_of_networks(PublishedRun row, TrainingRun& run) {
    if (!row.tp) row.tp = 1;
    if (*row.tp > 1 && contains(row.note, "PCIe or NVLink not stated"))
        return "tensor parallelism over links that are not stated";
    const std::int64_t ep = run.layout.ep;
    auto why = degrees(row, run);
    run.layout.ep = ep;
    return why;
}

Refusal batch_of_networks(const PublishedRun& row, TrainingRun& run) {
    if (!row.global_batch) return "unknown: global_batch";
    const MultimodalRun& networks = *run.multimodal;
    run.micro_batch = networks.samples / networks.lines;
    run.global_batch = *row.global_batch;
    if (run.global_batch % (run.layout.dp * run.micro_batch) != 0)
        return fmt::format("global_batch {} is no whole number of microbatches: dp {} * micro_batch {}",
                           run.global_batch, run.layout.dp, run.micro_batch);
    return {};
}

Resolved resolve_multimodal(const PublishedRun& row, std::span<const Recipe> own) {
    TrainingRun run;
    run.own = own;
    Resolved resolved;
    resolved.multimodal = true;
    for (const auto step : {&kind_of_work, &devices_known, &networks_of_run}) {
        if (auto why = step(row, run)) resolved.refusal = std::move(*why);
        resolved.device = run.part;
        if (!resolved.refusal.empty()) return resolved;
    }
    auto why = degrees_of_networks(row, run);
    if (!why) why = batch_of_networks(row, run);
    if (why)
        resolved.refusal = std::move(*why);
    else
        resolved.run = std::move(run);
    return resolved;
}

}  // namespace

Resolved resolve(const PublishedRun& row, std::span<const Recipe> own) {
    if (is_multimodal(row)) return resolve_multimodal(row, own);
    TrainingRun run;
    run.own = own;
    Resolved resolved;
    for (const auto step :
         {device_of, kind_of_work, network_of_run, dtype_of, degrees, batch_of, recomputation_of, divisible, domain}) {
        auto why = step(row, run);
        resolved.device = run.part;
        resolved.experts = run.network.moe.has_value();
        if (why) {
            resolved.refusal = std::move(*why);
            return resolved;
        }
    }
    const std::int64_t tiles = 128 * run.layout.tp;
    run.network.vocab = (run.network.vocab + tiles - 1) / tiles * tiles;
    resolved.run = std::move(run);
    return resolved;
}

}  // namespace pipeweaver::validation
