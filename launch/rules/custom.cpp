// What LoongForge asserts of its own lists of layers.
#include "launch/rules/rule.hpp"
#include "pipeweaver/base/options.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::launch {

namespace in_custom {

namespace {

using L = MegatronLaunch;

constexpr std::string_view file = "LoongForge loongforge/train/validators.py";

std::int64_t count_of(const std::string& list) { return static_cast<std::int64_t>(parts_of(list).size()); }

Why custom_alone(const L& l, std::int64_t) {
    if (l.custom_layers.empty()) return std::nullopt;
    if (!l.layout.empty()) return "--pipeline-model-parallel-layout is said";
    if (l.first) return "--decoder-first-pipeline-num-layers is said";
    if (l.last) return "--decoder-last-pipeline-num-layers is said";
    if (!l.custom_virtual_layers.empty()) return "--custom-virtual-pipeline-layers is said";
    return std::nullopt;
}

Why custom_chunks(const L& l, std::int64_t) {
    if (l.custom_virtual_layers.empty()) return std::nullopt;
    if (l.pp == 1) return "--pipeline-model-parallel-size is 1";
    if (!l.virtual_stages_per_rank) return "--num-virtual-stages-per-pipeline-rank is not said";
    const std::int64_t stages = l.pp * *l.virtual_stages_per_rank, said = count_of(l.custom_virtual_layers);
    if (said == stages) return std::nullopt;
    return fmt::format("{} numbers, {} ranks x {} chunks", said, l.pp, *l.virtual_stages_per_rank);
}

Why custom_recompute(const L& l, std::int64_t) {
    if (l.custom_recompute_layers.empty()) return std::nullopt;
    if (l.recompute != "full") return "--recompute-granularity is not full";
    const std::int64_t said = count_of(l.custom_recompute_layers);
    if (said == l.pp) return std::nullopt;
    return fmt::format("{} numbers, {} ranks", said, l.pp);
}

}  // namespace

}  // namespace in_custom

std::span<const MegatronRule> custom_rules() {
    using namespace in_custom;
    static const std::array rules{
        MegatronRule{"custom-layers",
                     "--custom-pipeline-layers goes without a layout, layers of the first or last rank and "
                     "--custom-virtual-pipeline-layers",
                     file, Phase::arguments, custom_alone},
        MegatronRule{
            "custom-virtual-layers",
            "--custom-virtual-pipeline-layers goes with a pipeline and --num-virtual-stages-per-pipeline-rank, "
            "a number for each stage",
            file, Phase::arguments, custom_chunks},
        MegatronRule{"custom-recompute-layers",
                     "--custom-pipeline-recompute-layers goes with full recomputation, a number for each rank", file,
                     Phase::arguments, custom_recompute},
    };
    return rules;
}

}  // namespace pipeweaver::launch
