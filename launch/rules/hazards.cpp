#include "pipeweaver/launch/hazards.hpp"

#include "launch/rules/rule.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace pipeweaver::launch {

namespace {

template <class Launch>
struct HazardRow {
    std::string_view id, says, source;
    Why (*found)(const Launch& launch, const HazardAsked& asked);
};

// --- Megatron

using M = MegatronLaunch;

bool is_uneven(const M& l) {
    const auto built = built_layers(settled(l));
    return std::adjacent_find(built.layers.begin(), built.layers.end(), std::not_equal_to<>()) != built.layers.end();
}

Why uneven_overlap(const M& l, const HazardAsked&) {
    if (!l.overlap_experts || !is_uneven(l)) return std::nullopt;
    return fmt::format("stages have {} layers", fmt::join(built_layers(settled(l)).layers, "|"));
}

Why varied_chunks(const M& l, const HazardAsked& asked) {
    const M all = settled(l);
    if (!all.vpp || !asked.varied || l.variable_lengths) return std::nullopt;
    return fmt::format("{} chunks of a rank, and samples of varied sizes; {}", *all.vpp,
                       l.dialect == Dialect::bridge_overrides
                           ? "say model.variable_seq_lengths=true"
                           : "no argument says variable_seq_lengths: set it in the model's configuration");
}

Why many_transfers(const M& l, const HazardAsked& asked) {
    const M all = settled(l);
    const std::int64_t microbatches = microbatches_of(all, asked.gpus);
    if (!all.vpp || microbatches < 4 * l.pp) return std::nullopt;
    return fmt::format(
        "{} microbatches on {} ranks with {} chunks: {} transfers of a rank in each direction, {} without chunks",
        microbatches, l.pp, *all.vpp, microbatches * *all.vpp, microbatches);
}

Why groups_ignored(const M& l, const HazardAsked&) {
    if (l.dialect != Dialect::megatron_arguments || !l.groups || l.grouped_query || l.latent_attention)
        return std::nullopt;
    return fmt::format("--num-query-groups {} without --group-query-attention: every head has keys of its own",
                       *l.groups);
}

Why sequence_off(const M& l, const HazardAsked&) {
    if (l.dialect != Dialect::megatron_arguments || !l.sequence_parallel || l.tp > 1) return std::nullopt;
    return "--sequence-parallel with --tensor-model-parallel-size 1";
}

Why encoder_in_front(const M& l, const HazardAsked& asked) {
    const bool encoder = asked.model != nullptr && asked.model->backbone() > 0;
    if (!encoder || l.pp == 1 || is_uneven(l)) return std::nullopt;
    return fmt::format("{} lies on stage 0 beside as many layers as the others have",
                       asked.model->modules.front().name);
}

Why connections(const M& l, const HazardAsked& asked) {
    const bool needs = (l.tp > 1 || l.cp > 1) && !l.megatron_fsdp && !l.torch_fsdp2 && !l.overlap_experts;
    if (l.dialect != Dialect::megatron_arguments || !needs || !l.before_blackwell || !l.max_connections.empty())
        return std::nullopt;
    return fmt::format("tp {}, cp {} on {}; the launch must set it", l.tp, l.cp, asked.device);
}

constexpr std::array megatron_hazards{
    HazardRow<M>{"uneven-expert-overlap", "uneven stages with the overlapped experts' exchange may deadlock at scale",
                 "NVIDIA/Megatron-LM#1810", uneven_overlap},
    HazardRow<M>{
        "varied-chunks",
        "microbatches whose lengths vary need variable_seq_lengths, with which ranks exchange shapes before each "
        "transfer; without it all tensors have the shape of the sequence length",
        "megatron/core/pipeline_parallel/p2p_communication.py _communicate; pytorch/pytorch#159942 has the same for "
        "PyTorch",
        varied_chunks},
    HazardRow<M>{"many-transfers",
                 "with many microbatches transfers and activations of chunks may cost more than they save",
                 "NVIDIA/Megatron-LM#4385", many_transfers},
    HazardRow<M>{"groups-ignored", "query groups count with --group-query-attention alone",
                 "megatron/training/arguments.py core_transformer_config_from_args", groups_ignored},
    HazardRow<M>{"sequence-parallel-off", "sequence parallelism is turned off without tensor parallelism",
                 "megatron/training/arguments.py validate_args", sequence_off},
    HazardRow<M>{"encoder-in-front",
                 "an encoder on the first stage beside an even share of layers makes it the slowest",
                 "NVIDIA/Megatron-LM#1220, #1230", encoder_in_front},
    HazardRow<M>{
        "max-connections",
        "before Blackwell, tensor and context parallelism assert the environment's CUDA_DEVICE_MAX_CONNECTIONS=1",
        "megatron/training/arguments.py validate_args", connections},
};

// --- torchtitan

using T = TitanLaunch;

// Buffers of both directions for all microbatches on a stage between others.
Why receive_buffers(const T& l, const HazardAsked& asked) {
    if (l.pp < 3 || asked.model == nullptr) return std::nullopt;
    constexpr std::int64_t value = 2, worth_a_word = std::int64_t{1} << 30;
    const std::int64_t microbatches = l.local_batch / l.microbatch;
    const std::int64_t hidden = asked.model->modules[asked.model->backbone()].architecture.hidden;
    const Bytes one{l.microbatch * l.seq_len / (l.cp * (l.sequence_parallel ? l.tp : 1)) * hidden * value};
    const Bytes all{one.count * microbatches * 2};
    if (all.count < worth_a_word) return std::nullopt;
    return fmt::format("2 x {} microbatches x {} = {} of a stage between others", microbatches, human(one), human(all));
}

Why missing_layers(const T& l, const HazardAsked&) {
    if (l.pp == 1 || l.modules.empty()) return std::nullopt;
    std::multiset<std::string> names;
    for (const auto& stage : stages_of(l).modules) names.insert(stage.begin(), stage.end());
    std::vector<std::string> wrong;
    std::vector<std::string> wanted{"tok_embeddings", "norm", "lm_head"};
    for (std::int64_t i = 0; i < l.layers; ++i) wanted.push_back(fmt::format("layers.{}", i));
    for (const std::string& name : wanted)
        if (names.count(name) != 1) wrong.push_back(fmt::format("{} is {} times", name, names.count(name)));
    for (const std::string& name : std::set<std::string>(names.begin(), names.end()))
        if (name != "vision_encoder" && std::find(wanted.begin(), wanted.end(), name) == wanted.end())
            wrong.push_back(fmt::format("{} is no module of the model", name));
    if (wrong.empty()) return std::nullopt;
    constexpr std::size_t shown = 3;
    const std::size_t count = wrong.size();
    wrong.resize(std::min(count, shown));
    return fmt::format("{}{}", fmt::join(wrong, ", "),
                       count > shown ? fmt::format(", and {} more", count - shown) : "");
}

Why stages_left_out(const T& l, const HazardAsked&) {
    const auto schedule = titan_schedule(l.schedule);
    if (l.pp == 1 || !schedule || !schedule->single || !l.csv.empty()) return std::nullopt;
    const std::int64_t stages = stages_of(l).stages;
    if (stages <= l.pp) return std::nullopt;
    return fmt::format("{} with {} stages on {} ranks", schedule->name, stages, l.pp);
}

Why early_receives(const T& l, const HazardAsked&) {
    const auto schedule = titan_schedule(l.schedule);
    if (l.pp == 1 || !schedule || schedule->name != "Interleaved1F1B" || !l.csv.empty()) return std::nullopt;
    return fmt::format("{} ranks", l.pp);
}

Why varied_shapes(const T& l, const HazardAsked& asked) {
    if (l.pp == 1 || !asked.varied) return std::nullopt;
    return "samples of varied sizes";
}

constexpr std::array titan_hazards{
    HazardRow<T>{
        "receive-buffers",
        "PyTorch holds a receive buffer for every microbatch and direction; NeMo Automodel's recv_buffer_pool does not",
        "NVIDIA-NeMo/Automodel recv_buffer_pool; torch/distributed/pipelining/stage.py", receive_buffers},
    HazardRow<T>{"module-names",
                 "modules that no stage names are left out without a word, and those named twice are twice there",
                 "torchtitan/distributed/pipeline_parallel.py _split_module", missing_layers},
    HazardRow<T>{"stages-left-out", "a schedule of one stage a rank runs the first of several, the others never",
                 "torchtitan/distributed/pipeline_parallel.py _build_pipeline_schedule", stages_left_out},
    HazardRow<T>{"early-receives", "receives posted ahead stall the warm-up; PyTorch's defer_pp_recv removes that",
                 "pytorch/pytorch#188833", early_receives},
    HazardRow<T>{"varied-shapes", "shapes of all microbatches are those of the first: pad or pack them to one length",
                 "pytorch/pytorch#159942, pytorch/torchtitan#3777", varied_shapes},
};

template <class Launch, std::size_t n>
std::vector<Hazard> found_in(const std::array<HazardRow<Launch>, n>& rows, const Launch& launch,
                             const HazardAsked& asked) {
    std::vector<Hazard> found;
    for (const auto& row : rows)
        if (auto why = row.found(launch, asked)) found.push_back({row.id, row.says, row.source, std::move(*why)});
    return found;
}

}  // namespace

bool is_before_blackwell(std::string_view device) {
    constexpr std::array<std::string_view, 6> names{"a100", "a800", "h100", "h200", "h800", "h20"};
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return contains(device, name); });
}

std::vector<Hazard> hazards_of(const MegatronLaunch& as_said, const HazardAsked& asked) {
    return found_in(megatron_hazards, as_said, asked);
}

std::vector<Hazard> hazards_of(const TitanLaunch& launch, const HazardAsked& asked) {
    return found_in(titan_hazards, launch, asked);
}

std::vector<HazardText> hazard_texts() {
    std::vector<HazardText> texts;
    texts.reserve(megatron_hazards.size() + titan_hazards.size());
    for (const auto& row : megatron_hazards) texts.push_back({"megatron-core", row.id, row.says, row.source});
    for (const auto& row : titan_hazards) texts.push_back({"torchtitan", row.id, row.says, row.source});
    return texts;
}

}  // namespace pipeweaver::launch
