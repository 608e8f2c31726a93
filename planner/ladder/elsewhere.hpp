// What the target launches in other layouts of the same GPUs, and with its own switch of how it builds encoders.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

struct Elsewhere {
    std::vector<OpponentWay> ways{};  ///< the fastest way of each of the best few layouts, cut on the batch
    std::size_t layouts = 0;          ///< that fit, the job's own among them
    bool is_whole = false;            ///< no layout was left out for lack of time
};

/// Judges all layouts of the job's GPUs by known schedules, unless its own was chosen among them, and runs what the
/// target launches in the best of them but its own: for the same samples. `cp`: context parallel GPUs of all, or none:
/// any. `time` is asked between layouts.
[[nodiscard]] Elsewhere launched_elsewhere(const Job& job, const Batch& batch, const std::optional<std::int64_t>& cp,
                                           const Executor& execute, const Time& time);

/// The request in the layout of a way that was found so: its batch is what partitions of it are cut on.
[[nodiscard]] Request moved_to(const Way& way, const Request& request);

/// What the names of ways end with that have a switch on.
inline constexpr std::string_view images_dealt = ", images dealt";
inline constexpr std::string_view encoders_again = ", encoders recomputed";
inline constexpr std::string_view encoders_kept = ", encoders not recomputed";

/// The setup with images dealt over its context parallel groups; null: there is one group, the framework has no switch
/// for it, or it is on.
[[nodiscard]] std::shared_ptr<const emulator::Setup> with_images_dealt(const emulator::Setup& setup);

/// A setup with a switch on that the job's does not have on, and what its ways are called.
struct Switched {
    std::shared_ptr<const emulator::Setup> setup{};
    std::string_view name{};
};

/// With images dealt, and with encoders that train recomputed apart from the language model, or not with it: as far as
/// the framework has a switch for it that is off.
[[nodiscard]] std::vector<Switched> switched(const emulator::Setup& setup);

/// What the target launches with each of the switches, in the job's layout, cut and tuned for it, and without a
/// pipeline. `is_whole` becomes false where some are left out for lack of time.
[[nodiscard]] std::vector<OpponentWay> launched_switched(const Job& job, const Batch& batch, const Executor& execute,
                                                         const Time& time, bool& is_whole);

}  // namespace pipeweaver::planner
