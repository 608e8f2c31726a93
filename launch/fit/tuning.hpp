// What of a model a launch trains.
#pragma once

#include "pipeweaver/launch/doubt.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <vector>

namespace pipeweaver::launch {

/// Whether anything of the model is frozen or has adapters.
[[nodiscard]] bool is_tuned(const MegatronLaunch& launch, const workloads::Model& model);

/// Freezes modules and gives them adapters as the launch says; what the emulator does not follow goes to `doubts`.
void put_tuning(const MegatronLaunch& launch, workloads::Model& model, std::vector<Doubt>& doubts);

}  // namespace pipeweaver::launch
