// Whether frameworks construct a launch: their rules by version, each with its source.
//
// Order        A framework meets its rules in phases; where one is broken, later ones are not met. All that one phase
//              breaks are answered together.
// Threads      any number of calls at once.
#pragma once

#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/sharded.hpp"
#include "pipeweaver/launch/titan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

struct GridsLaunch;  // launch/read/grids.hpp

/// Whose rules there are, and from where they were read.
struct Framework {
    std::string_view name, version;
    std::string_view source;                        ///< repository and commit, or package
    Dialect dialect = Dialect::megatron_arguments;  ///< whose settings it reads; overrides count as arguments
    std::string_view core{};                        ///< the version of Megatron Core that it builds on; empty: none
    std::optional<OfVersion> sets{};                ///< where versions differ; none: they do not

    /// The version whose rules count.
    std::string_view of_rules() const { return core.empty() ? version : core; }
    std::string text() const { return std::string(name) + ":" + std::string(version); }
};

/// All, the tested version of each name first.
[[nodiscard]] const std::vector<Framework>& frameworks();

/// "megatron-core:0.16.1", or a name alone. Throws Error{input} naming those that are known.
[[nodiscard]] const Framework& framework_called(std::string_view text);

/// When a framework meets a rule.
enum class Phase : std::uint8_t { arguments, groups, configuration, build, step };
[[nodiscard]] std::string_view name_of(Phase phase);

/// A rule as pages list it.
struct RuleText {
    std::string_view framework;  ///< its name
    std::string_view versions;   ///< "0.16.1|0.17.1"; empty: all that are known
    Phase phase = Phase::arguments;
    std::string_view id, says, source;
};
[[nodiscard]] std::vector<RuleText> rule_texts();

/// A rule that a launch breaks.
struct BrokenRule {
    std::string_view id, says, source;
    Phase phase = Phase::arguments;
    std::string why;  ///< with the launch's own numbers
};

/// What a launch on so many GPUs breaks; nothing: it constructs. Throws Error{input} naming the setting where a size is
/// not said that the rules need: layers, width, heads, sequence, microbatch.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const MegatronLaunch& launch, std::int64_t gpus,
                                                   const Framework& framework);

/// The same of what no size of the model is needed for: process groups, and the global batch where both are said.
[[nodiscard]] std::vector<BrokenRule> broken_without_sizes(const MegatronLaunch& launch, std::int64_t gpus,
                                                           const Framework& framework);

/// Another version of the framework, which constructs the launch; null: none does. Throws as above.
[[nodiscard]] const Framework* version_that_constructs(const MegatronLaunch& launch, std::int64_t gpus,
                                                       const Framework& other_than);

/// The same; `layers`, heads and experts of the model are in the launch. Pre: they are.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const TitanLaunch& launch, std::int64_t gpus,
                                                   const Framework& framework);

/// The same; heads and experts of the model are in the launch. Pre: they are.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const ShardedLaunch& launch, std::int64_t gpus,
                                                   const Framework& framework);

/// The same.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const GridsLaunch& launch, std::int64_t gpus,
                                                   const Framework& framework);

/// Decoder layers of every stage, as Megatron Core builds them: stage k is chunk k / pp of rank k % pp; or the rule.
struct BuiltLayers {
    std::vector<std::int64_t> layers;
    std::vector<std::int64_t> mtp;  ///< layers of multi-token prediction, by stage
    std::string why_not;
};
[[nodiscard]] BuiltLayers built_layers(const MegatronLaunch& settled);

/// Microbatches of a replica in a step; 0 where the global batch is not a multiple. Pre: rules of the arguments hold.
[[nodiscard]] std::int64_t microbatches_of(const MegatronLaunch& settled, std::int64_t gpus);

/// The layers of every stage of torchtitan, in stage order; or the rule.
[[nodiscard]] BuiltLayers built_layers(const TitanLaunch& launch);

/// Likewise of a sharded trainer that has pipelines; one stage without. Pre: with_model().
[[nodiscard]] BuiltLayers built_layers(const ShardedLaunch& launch);

}  // namespace pipeweaver::launch
