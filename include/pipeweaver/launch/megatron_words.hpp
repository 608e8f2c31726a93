// A launch in the words of Megatron-LM and Megatron-Bridge.
//
// Source       Megatron Core 0.16.1: transformer_config.py (recomputation), pipeline_parallel/schedules.py (groups of
//              microbatches), model_parallel_config.py; Megatron-LM of August 2026: training/arguments.py,
//              training/initialize.py (fake process group); Megatron-Bridge: scripts/translate_mlm_to_bridge.py (keys),
//              examples/megatron_mimo (grids).
#pragma once

#include "pipeweaver/groups/placing.hpp"
#include "pipeweaver/launch/launch.hpp"
#include "pipeweaver/launch/spellings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads {
struct Model;
}

namespace pipeweaver::launch {

/// One setting: on the command line, in a configuration, and why it is so. What has no flag, or no key, has none.
struct LaunchSetting {
    std::vector<std::string> flag{};  ///< "--recompute-modules", "layernorm", "moe_act"
    std::string key{};                ///< "model.recompute_modules"
    std::string value{};              ///< of the key, as YAML: "[layernorm, moe_act]"
    std::string why{};                ///< one line

    friend bool operator==(const LaunchSetting&, const LaunchSetting&) = default;
};

/// The rule, with what breaks it, where Megatron does not run the launch; none: it does.
[[nodiscard]] std::optional<std::string> why_no_megatron(const Launch& launch);

/// What is trained, in flags of ms-swift, which freezes encoders unless told otherwise; none: it has nothing to say, or
/// no words for it. Words of one flag follow each other without values.
[[nodiscard]] std::vector<Flag> swift_tuning(const Launch& launch);

/// All but the split, in groups that belong together. Pre: why_no_megatron() has nothing to say.
[[nodiscard]] std::vector<LaunchSetting> megatron_settings(const Launch& launch);

/// The same with the split, for a recipe of Megatron-Bridge, whose own values they take the place of.
[[nodiscard]] std::vector<LaunchSetting> recipe_settings(const Launch& launch);

/// Recomputation in Megatron's words; what it cannot say comes as the rule.
struct RecomputeWords {
    std::vector<LaunchSetting> settings{};  ///< none, and no rule: nothing is recomputed
    std::vector<std::string> notes{};       ///< where the words do less or more than was emulated
    std::string why_not{};
};
[[nodiscard]] RecomputeWords recompute_words(const Launch& launch);

/// LoongForge's --custom-pipeline-recompute-layers, layers of each rank, with what goes with it; or the rule.
[[nodiscard]] Spelled spell_custom_recompute(const Launch& launch);

/// A spelling of the split: the framework that has it, and what it says or why it does not.
struct SplitSpelling {
    std::string name;  ///< "FIRST_LAST": of its array of flags
    std::string of;    ///< "Megatron-LM: layers of the first and the last rank"
    Spelled spelled{};
};

/// The layout string first, then all others.
[[nodiscard]] std::vector<SplitSpelling> split_spellings(const Launch& launch);

/// MegatronMIMO's grids as variables of a launch script, MIMO_LANGUAGE_* and MIMO_IMAGES_*, where encoders have GPUs or
/// a layout of their own; or the rule. Dealt items are whole on a GPU: images have tp 1 and a copy on each.
[[nodiscard]] Spelled spell_mimo(const Launch& launch);

/// The same of modules on GPUs of their own, the language model's first, with the microbatch of all its replicas, as
/// slurm_sft.sh takes them; or the rule.
[[nodiscard]] Spelled spell_mimo(const groups::Placing& placing, const workloads::Model& model);

/// What of a split the launcher has no variables for, as `check` reads it: PIPEWEAVER_LANGUAGE_RECOMPUTE and
/// PIPEWEAVER_IMAGES_RECOMPUTE where something is computed again, PIPEWEAVER_LANGUAGE_LAYERS where its stages have
/// unequally many. Pre: spell_mimo() says it.
[[nodiscard]] std::vector<Flag> spell_beside_mimo(const groups::Placing& placing, const workloads::Model& model);

/// The variable of what a split was planned for.
inline constexpr std::string_view planned_variable = "PIPEWEAVER_PLANNED";

/// The first GPU of a pipeline rank, as Megatron numbers them: tensor parallel first, then context parallel, replicas,
/// pipeline ranks.
[[nodiscard]] std::int64_t first_gpu(const Degrees& degrees, std::size_t rank);

}  // namespace pipeweaver::launch
