// How a job opens a session: what it may ask for, and the plan that the session begins with.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/found.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::service {

/// What a caller may ask of a session. What is above is refused before anything is made of it.
struct OpenLimits {
    Duration most_budget = std::chrono::seconds(60);  ///< of the first plan, also where none is asked for
    std::vector<std::size_t> replicas{};              ///< that this server plans, sorted; none: all that are asked for
    std::int64_t most_gpus = 1'000'000;
    std::size_t most_samples = 100'000;  ///< of the batch that it is opened on, or microbatches that are drawn for it
};

/// Opens a session: reads {"config": {...}, "sample": [...]}, whose configuration has the options of `pipeweaver plan`
/// as keys and documents in place of files; chooses the partition on the sample; plans its first batch, until
/// `keep_going` ends that or its budget does. Returns what is kept (planner::keep()). Throws as planner::make_plan(),
/// Error{input} for options that a service has not, and for whatever names a file, Error{limit} for what is above the
/// limits.
[[nodiscard]] std::string open_session(std::string_view asked, const OpenLimits& limits, const Executor& execute,
                                       const search::KeepGoing& keep_going = {});

}  // namespace pipeweaver::service
