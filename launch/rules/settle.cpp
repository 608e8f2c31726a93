// What follows from other settings in Megatron-LM's validate_args, ModelParallelConfig and TransformerConfig, and the
// layers that are built from it.
#include "launch/rules/layout_text.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::launch {

namespace in_settling {

namespace {

using L = MegatronLaunch;

// Chunks of a rank by the arguments.
L::Number chunks_of(const L& l) {
    std::int64_t chunks = 1;
    if (!l.hybrid_pattern.empty())
        chunks =
            static_cast<std::int64_t>(std::count(l.hybrid_pattern.begin(), l.hybrid_pattern.end(), '|') + 1) / l.pp;
    else if (!l.layout.empty())
        chunks = static_cast<std::int64_t>(layout_letters(l.layout).stages.size()) / l.pp;
    else if (l.virtual_stages_per_rank)
        chunks = *l.virtual_stages_per_rank;
    else if (l.layers_per_virtual_stage && l.layers)
        chunks = (*l.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0)) / l.pp /
                 *l.layers_per_virtual_stage;
    return chunks > 1 ? L::Number(chunks) : std::nullopt;
}

void settle_arguments(L& l) {
    if (l.tp == 1) l.sequence_parallel = false;
    if (l.recompute_activations) l.recompute = "selective";
    if (l.rotary) l.positions = "rope";
    if (l.positions.empty() && !l.is_named) l.positions = "learned_absolute";
    if (l.experts == 0) l.experts.reset();
    if (l.hidden && !l.ffn) l.ffn = l.swiglu ? 8 * *l.hidden / 3 / 64 * 64 : 4 * *l.hidden;
    if (!l.grouped_query) l.groups.reset();
    if (!l.linear_bias) l.gelu_fusion = false;
    if (l.linear_bias) l.qkv_bias = true;
    if (l.experts && !l.expert_ffn) l.expert_ffn = l.ffn;
    l.vpp = chunks_of(l);
    if (!l.vpp) l.overlap_p2p = false;
    l.batch_p2p = !l.overlap_p2p;
}

// A layout in the configuration says the chunks where nothing else does.
void settle_layout(L& l) {
    if (l.layout.empty() || l.vpp) return;
    const auto stages = static_cast<std::int64_t>(layout_letters(l.layout).stages.size());
    if (stages % l.pp == 0 && stages / l.pp > 1) l.vpp = stages / l.pp;
}

BuiltLayers refused(std::string why) { return {{}, {}, std::move(why)}; }

BuiltLayers of_layout(const L& l) {
    BuiltLayers built;
    for (const std::string& stage : layout_letters(l.layout).stages) {
        built.layers.push_back(std::count(stage.begin(), stage.end(), 't'));
        built.mtp.push_back(std::count(stage.begin(), stage.end(), 'm'));
    }
    return built;
}

// Letters of stages; without a '|' ranks share them evenly.
BuiltLayers of_pattern(const L& l) {
    const auto [stages, why_not] = parse_hybrid_pattern(l.hybrid_pattern);
    if (!why_not.empty()) return refused(why_not);
    const auto count = static_cast<std::int64_t>(stages.size());
    BuiltLayers built;
    if (count == 1) {
        const auto letters = static_cast<std::int64_t>(stages.front().size());
        if (letters % l.pp != 0) return refused(fmt::format("{} letters on {} ranks", letters, l.pp));
        built.layers.assign(static_cast<std::size_t>(l.pp), letters / l.pp);
        return built;
    }
    if (count % l.pp != 0) return refused(fmt::format("the pattern has {} stages, {} ranks", count, l.pp));
    built.layers.reserve(stages.size());
    for (const std::string& stage : stages) built.layers.push_back(static_cast<std::int64_t>(stage.size()));
    return built;
}

BuiltLayers of_split(const L& l, const ReadSplit& read) {
    if (!read.why_not.empty()) return refused(read.why_not);
    const Split& split = read.split;
    if (split.ranks != l.pp) return refused(fmt::format("{} ranks are said, there are {}", split.ranks, l.pp));
    if (split.depth() != *l.layers)
        return refused(fmt::format("{} layers are said, there are {}", split.depth(), *l.layers));
    return {split.layers, {}, {}};
}

// Layers of a pipeline rank where the first, the last or both have counts of their own.
struct OfRank {
    std::int64_t layers = 0;
    std::string why_not{};
};
OfRank of_rank(const L& l, std::int64_t rank) {
    if (!l.first && !l.last) {
        const std::int64_t all = *l.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0);
        if (all % l.pp != 0) return {0, fmt::format("{} layers on {} ranks", all, l.pp)};
        return {all / l.pp};
    }
    const std::int64_t left = *l.layers - l.first.value_or(0) - l.last.value_or(0);
    const std::int64_t ranks = l.pp - (l.first ? 1 : 0) - (l.last ? 1 : 0);
    if (ranks > 0 && left % ranks != 0) return {0, fmt::format("{} layers are left for {} ranks", left, ranks)};
    if (rank == l.pp - 1 && l.last) return {*l.last};
    if (rank == 0 && l.first) return {*l.first};
    return {ranks > 0 ? left / ranks : 0};
}

BuiltLayers by_ranks(const L& l) {
    const std::int64_t chunks = l.pp > 1 ? l.vpp.value_or(1) : 1;
    BuiltLayers built;
    built.layers.resize(static_cast<std::size_t>(l.pp * chunks));
    for (std::int64_t rank = 0; rank < l.pp; ++rank) {
        const OfRank one = of_rank(l, rank);
        if (!one.why_not.empty()) return refused(one.why_not);
        if (one.layers % chunks != 0)
            return refused(fmt::format("rank {} has {} layers for {} chunks", rank, one.layers, chunks));
        for (std::int64_t c = 0; c < chunks; ++c)
            built.layers[static_cast<std::size_t>(c * l.pp + rank)] = one.layers / chunks;
    }
    if (l.account_for_embedding) --built.layers.front();
    if (l.account_for_loss) --built.layers.back();
    return built;
}

}  // namespace

}  // namespace in_settling

MegatronLaunch settled(MegatronLaunch l) {
    using namespace in_settling;
    if (l.dialect == Dialect::megatron_arguments) settle_arguments(l);
    if (!l.etp) l.etp = l.tp;
    if (!l.group_size) l.group_size = l.pp;
    if (l.hidden && !l.ffn) l.ffn = 4 * *l.hidden;
    if (l.hidden && l.heads && !l.kv_channels) l.kv_channels = *l.hidden / *l.heads;
    if (!l.groups) l.groups = l.heads;
    if (l.experts && !l.expert_ffn) l.expert_ffn = l.ffn;
    if (l.recompute_modules.empty()) l.recompute_modules = {"core_attn"};
    if (const L::Number entries = l.most_vocab ? l.most_vocab : l.vocab; entries && !l.padded_vocab) {
        const std::int64_t multiple = l.pads_vocab ? l.vocab_divisor * l.tp : 1;
        l.padded_vocab = (*entries + multiple - 1) / multiple * multiple;
    }
    settle_layout(l);
    // A pattern counts its layers itself.
    const std::string letters = l.hybrid_pattern.substr(0, l.hybrid_pattern.find('/'));
    if (!letters.empty())
        l.layers = static_cast<std::int64_t>(letters.size()) - std::count(letters.begin(), letters.end(), '|');
    return l;
}

BuiltLayers built_layers(const MegatronLaunch& l) {
    using namespace in_settling;
    BuiltLayers built =
        !l.hybrid_pattern.empty()          ? of_pattern(l)
        : !l.layout.empty()                ? of_layout(l)
        : !l.custom_virtual_layers.empty() ? of_split(l, parse_custom_virtual_layers(l.custom_virtual_layers, l.pp))
        : !l.custom_layers.empty()         ? of_split(l, parse_custom_layers(l.custom_layers, l.vpp.value_or(1)))
                                           : by_ranks(l);
    if (built.mtp.empty() && built.why_not.empty()) {
        built.mtp.resize(built.layers.size());
        built.mtp.back() = l.mtp_layers.value_or(0);
    }
    return built;
}

std::int64_t microbatches_of(const MegatronLaunch& l, std::int64_t gpus) {
    const std::int64_t together = l.micro_batch.value_or(1) * l.dp(gpus);
    if (l.accumulation && !l.global_batch) return together > 0 ? *l.accumulation : 0;
    const std::int64_t global = l.global_batch.value_or(together);
    return together > 0 && (l.rounds_batch || global % together == 0) ? global / together : 0;
}

}  // namespace pipeweaver::launch
