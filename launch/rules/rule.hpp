// A row of the tables of rules.
#pragma once

#include "pipeweaver/launch/rules.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

/// What a broken rule has to say of the launch.
using Why = std::optional<std::string>;

template <class Launch>
struct RuleOf {
    std::string_view id, says, source;
    Phase phase = Phase::arguments;
    Why (*broken)(const Launch& launch, std::int64_t gpus) = nullptr;
    std::string_view versions{};  ///< empty: all
};
using MegatronRule = RuleOf<MegatronLaunch>;
using TitanRule = RuleOf<TitanLaunch>;
using ShardedRule = RuleOf<ShardedLaunch>;

[[nodiscard]] std::span<const MegatronRule> pattern_rules();        ///< of hybrid models' layers
[[nodiscard]] std::span<const MegatronRule> argument_rules();       ///< met by Megatron-LM's arguments alone
[[nodiscard]] std::span<const MegatronRule> environment_rules();    ///< of variables
[[nodiscard]] std::span<const MegatronRule> custom_rules();         ///< of LoongForge's lists of layers
[[nodiscard]] std::span<const MegatronRule> configuration_rules();  ///< process groups and sizes
[[nodiscard]] std::span<const MegatronRule> pipeline_rules();
[[nodiscard]] std::span<const MegatronRule> expert_rules();
[[nodiscard]] std::span<const MegatronRule> recompute_rules();
[[nodiscard]] std::span<const MegatronRule> step_rules();
[[nodiscard]] std::span<const TitanRule> titan_rules();

/// Of a sharded trainer's framework, by its name.
[[nodiscard]] std::vector<std::span<const ShardedRule>> sharded_rules(std::string_view framework);

}  // namespace pipeweaver::launch
