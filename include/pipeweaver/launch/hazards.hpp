// What constructs and may still go wrong or slow: known hazards, each with the thread or file that tells of it.
#pragma once

#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/titan.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

struct Hazard {
    std::string_view id, says, source;
    std::string why;  ///< with the launch's own numbers
};

/// What the launch runs, as far as hazards ask.
struct HazardAsked {
    std::int64_t gpus = 0;
    std::string_view device;
    const workloads::Model* model = nullptr;  ///< null: not known
    bool varied = false;                      ///< samples of varied sizes
};

/// Whether a device, by its name, is of Ampere or Hopper.
[[nodiscard]] bool is_before_blackwell(std::string_view device);

/// Pre: `as_said` breaks no rule.
[[nodiscard]] std::vector<Hazard> hazards_of(const MegatronLaunch& as_said, const HazardAsked& asked);
[[nodiscard]] std::vector<Hazard> hazards_of(const TitanLaunch& launch, const HazardAsked& asked);

/// All that there are, for pages: framework, id, what it says, source.
struct HazardText {
    std::string_view framework, id, says, source;
};
[[nodiscard]] std::vector<HazardText> hazard_texts();

}  // namespace pipeweaver::launch
