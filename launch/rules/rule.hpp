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
    std::string_view versions{};  ///< "0.16.1|0.17.1"; empty: all
};

/// Whether one is among such versions.
[[nodiscard]] bool has_version(std::string_view versions, std::string_view version);

// Of Megatron Core. Each tag from 0.16.1 to 0.19.0 and d98e8a64 was read where a rule has versions.
inline constexpr std::string_view of_016 = "0.16.1", since_017 = "0.17.1|0.18.2|0.19.0|0.20.0",
                                  to_017 = "0.16.1|0.17.1", since_018 = "0.18.2|0.19.0|0.20.0",
                                  to_018 = "0.16.1|0.17.1|0.18.2", to_019 = "0.16.1|0.17.1|0.18.2|0.19.0",
                                  of_018_and_019 = "0.18.2|0.19.0", of_019 = "0.19.0", of_020 = "0.20.0";
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

[[nodiscard]] std::span<const RuleOf<GridsLaunch>> grid_rules();

/// Of a sharded trainer's framework, by its name.
[[nodiscard]] std::vector<std::span<const ShardedRule>> sharded_rules(std::string_view framework);

}  // namespace pipeweaver::launch
