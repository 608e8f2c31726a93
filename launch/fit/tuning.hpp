// What of a model a launch trains.
#pragma once

#include "pipeweaver/launch/doubt.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/sharded.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// In the words of no framework.
struct Tuning {
    std::string tuner = "full";  ///< "lora"; of others nothing is taken off
    std::optional<std::int64_t> rank{};
    std::vector<std::string> targets{};
    std::optional<std::int64_t> tower_rank{};  ///< of encoders; none: as the language model's; 0: no adapters
    std::vector<std::string> whole{};          ///< modules that are trained whole beside adapters
    bool rates = false;                        ///< AdaLoRA keeps of each adapter how much it matters
    bool finds_by_name =
        false;  ///< Megatron-Bridge: adapters lie beside all layers, also of encoders, that are called so
    bool leaves_others = false;  ///< modules without adapters are trained unless they are frozen
    workloads::ExpertAdapters experts = workloads::ExpertAdapters::each;  ///< what routed ones have
    bool apart = false;           ///< queries, keys, values, gate and up are modules of their own
    std::string experts_doubt{};  ///< why they may have none; empty: they have them
    bool freeze_language = false, freeze_tower = false, freeze_projector = false;
    std::string says_tuner{}, says_targets{}, says_frozen{}, says_whole{};  ///< the settings, as a user writes them
};
[[nodiscard]] Tuning tuning_of(const MegatronLaunch& launch);
[[nodiscard]] Tuning tuning_of(const ShardedLaunch& launch);

/// Whether anything of the model is frozen or has adapters.
[[nodiscard]] bool is_tuned(const Tuning& tuning, const workloads::Model& model);

/// Freezes modules and gives them adapters; what the emulator does not follow goes to `doubts`.
void put_tuning(const Tuning& tuning, workloads::Model& model, std::vector<Doubt>& doubts);

}  // namespace pipeweaver::launch
