// How torchtitan makes stages of a model's layers.
#include "launch/rules/stage_count.hpp"
#include "pipeweaver/launch/rules.hpp"

#include <fmt/format.h>

#include <charconv>

namespace pipeweaver::launch {

namespace in_titan_stages {

namespace {

TitanStages refused(std::string why) { return {0, {}, std::move(why)}; }

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

StageCount count_stages(const Staged& of, const TitanSchedule& schedule) {
    if (!of.each) return {of.ranks * (schedule.single ? 1 : 2), {}};
    const std::int64_t made = (of.layers + *of.each - 1) / *of.each, beyond = made % of.ranks;
    if (beyond != 0 && of.rounds != "up" && of.rounds != "down")
        return {0, fmt::format("{} {} in stages of {} make {} stages, no multiple of pp {}", of.layers, of.called,
                               *of.each, made, of.ranks)};
    const std::int64_t stages = made - beyond + (beyond != 0 && of.rounds == "up" ? of.ranks : 0);
    const std::int64_t of_rank = stages / of.ranks;
    const std::string_view are_made = of_rank == 1 ? "is made" : "are made";
    if (schedule.single && stages != of.ranks)
        return {0, fmt::format("{} has 1 stage a rank, {} {}", schedule.name, of_rank, are_made)};
    if (!schedule.single && of_rank < 2)
        return {0, fmt::format("{} has 2 stages a rank and more, {} {}", schedule.name, of_rank, are_made)};
    return {stages, {}};
}

TitanStages stages_of(const TitanLaunch& launch) {
    using namespace in_titan_stages;
    const auto schedule = titan_schedule(launch.schedule);
    if (!schedule) return refused(fmt::format("'{}' is no schedule", launch.schedule));
    const StageCount count = count_stages({.layers = launch.layers + launch.first_less + launch.last_less,
                                           .ranks = launch.pp,
                                           .each = launch.layers_per_stage,
                                           .called = "layers with the ends'"},
                                          *schedule);
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
