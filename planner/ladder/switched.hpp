// What a framework's own switch changes of how it builds a job's encoders.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/opponents.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// What the names of ways end with that have the switch on.
inline constexpr std::string_view images_dealt = ", images dealt";

/// The setup with images dealt over its context parallel groups; null: there is one group, the framework has no switch
/// for it, or it is on.
[[nodiscard]] std::shared_ptr<const emulator::Setup> with_images_dealt(const emulator::Setup& setup);

/// What the target launches with the switch, in the job's layout, cut and tuned for it, and without a pipeline; none
/// where there is no switch. `is_whole` becomes false where some are left out for lack of time.
[[nodiscard]] std::vector<OpponentWay> launched_with_images_dealt(const Job& job, const Batch& batch,
                                                                  const Executor& execute, const Time& time,
                                                                  bool& is_whole);

/// Whether the way is in the job's layout, whatever switches are on.
[[nodiscard]] bool is_in_layout_of(const Way& way, const Job& job);

}  // namespace pipeweaver::planner
