// How NeMo AutoModel makes stages of a model's layers.
//
// Source  NVIDIA-NeMo/Automodel 0.5.0 (36044ad3) nemo_automodel/components/distributed/pipelining/functional.py
//         calculate_virtual_stages, generate_hf_model_fqn_per_model_part.
#include "launch/rules/stage_count.hpp"
#include "pipeweaver/launch/rules.hpp"

#include <fmt/format.h>

namespace pipeweaver::launch {

BuiltLayers built_layers(const ShardedLaunch& launch) {
    BuiltLayers built;
    StageCount count{1, {}};
    if (launch.pp > 1) {
        const auto schedule = titan_schedule(launch.schedule);
        if (!schedule) return {{}, {}, fmt::format("'{}' is no schedule", launch.schedule)};
        const auto each = launch.layers_per_stage.value_or(0) > 0 ? launch.layers_per_stage : std::nullopt;
        count = count_stages({.layers = launch.layers,
                              .ranks = launch.pp,
                              .each = each,
                              .called = "layers",
                              .rounds = launch.rounds_stages},
                             *schedule);
    }
    if (!count.why_not.empty()) return {{}, {}, std::move(count.why_not)};
    if (count.stages > launch.layers)
        return {{}, {}, fmt::format("{} stages of {} layers", count.stages, launch.layers)};
    for (std::int64_t s = 0; s < count.stages; ++s)
        built.layers.push_back(launch.layers / count.stages + (s < launch.layers % count.stages ? 1 : 0));
    built.mtp.resize(built.layers.size());
    return built;
}

}  // namespace pipeweaver::launch
