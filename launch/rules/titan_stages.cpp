// How torchtitan makes stages of a model's layers.
#include "pipeweaver/launch/rules.hpp"

#include <fmt/format.h>

#include <charconv>

namespace pipeweaver::launch {

namespace in_titan_stages {

namespace {

TitanStages refused(std::string why) { return {0, {}, std::move(why)}; }

// Stages where layers per stage are said, or 1 or 2 a rank; or the rule.
struct Count {
    std::int64_t stages = 0;
    std::string why_not{};
};
Count count_of(const TitanLaunch& l, const TitanSchedule& schedule) {
    if (!l.layers_per_stage) return {l.pp * (schedule.single ? 1 : 2)};
    const std::int64_t all = l.layers + l.first_less + l.last_less, each = *l.layers_per_stage;
    const std::int64_t stages = (all + each - 1) / each;
    if (stages % l.pp != 0)
        return {0, fmt::format("{} layers with the ends' in stages of {} make {} stages, no multiple of pp {}", all,
                               each, stages, l.pp)};
    if (schedule.single && stages != l.pp)
        return {0, fmt::format("{} has 1 stage a rank, {} are made", schedule.name, stages / l.pp)};
    if (!schedule.single && stages / l.pp < 2)
        return {0, fmt::format("{} has 2 stages a rank and more, 1 is made", schedule.name)};
    return {stages};
}

void append(std::vector<std::string>& modules, std::int64_t count, std::int64_t& next, std::int64_t layers) {
    for (std::int64_t i = 0; i < count && next < layers; ++i) modules.push_back(fmt::format("layers.{}", next++));
}

TitanStages generated(const TitanLaunch& l, std::int64_t stages) {
    TitanStages made{stages, {}, {}};
    std::int64_t next = 0;
    made.modules.resize(static_cast<std::size_t>(stages));
    made.modules.front().emplace_back("tok_embeddings");
    if (stages == 1) {
        append(made.modules.front(), l.layers, next, l.layers);
    } else {
        const std::int64_t all = l.layers + l.first_less + l.last_less, each = all / stages;
        if (stages > all) return refused(fmt::format("{} stages of {} layers with the ends'", stages, all));
        if (l.first_less > each || l.last_less > each)
            return refused(
                fmt::format("an end has {} layers less, stages have {}", std::max(l.first_less, l.last_less), each));
        for (std::int64_t s = 0; s < stages; ++s) {
            const std::int64_t less = (s == 0 ? l.first_less : 0) + (s == stages - 1 ? l.last_less : 0);
            append(made.modules[static_cast<std::size_t>(s)], each + (s < all % stages ? 1 : 0) - less, next, l.layers);
        }
    }
    made.modules.back().emplace_back("norm");
    made.modules.back().emplace_back("lm_head");
    return made;
}

// The layer that a module's name says; nothing for others.
std::optional<std::int64_t> layer_of(const std::string& name) {
    if (!name.starts_with("layers.")) return std::nullopt;
    std::int64_t layer = 0;
    const char* const end = name.data() + name.size();
    const auto [after, error] = std::from_chars(name.data() + 7, end, layer);
    return error == std::errc{} && after == end ? std::optional(layer) : std::nullopt;
}

}  // namespace

}  // namespace in_titan_stages

TitanStages stages_of(const TitanLaunch& launch) {
    using namespace in_titan_stages;
    const auto schedule = titan_schedule(launch.schedule);
    if (!schedule) return refused(fmt::format("'{}' is no schedule", launch.schedule));
    const Count count = count_of(launch, *schedule);
    if (!count.why_not.empty()) return refused(count.why_not);
    if (launch.modules.empty()) return generated(launch, count.stages);
    return {static_cast<std::int64_t>(launch.modules.size()), launch.modules, {}};
}

BuiltLayers built_layers(const TitanLaunch& launch) {
    using namespace in_titan_stages;
    BuiltLayers built;
    const auto stages = stages_of(launch);
    built.why_not = stages.why_not;
    built.layers.reserve(stages.modules.size());
    for (const auto& modules : stages.modules) {
        std::int64_t layers = 0;
        for (const std::string& name : modules) layers += layer_of(name) ? 1 : 0;
        built.layers.push_back(layers);
    }
    built.mtp.resize(built.layers.size());
    return built;
}

}  // namespace pipeweaver::launch
