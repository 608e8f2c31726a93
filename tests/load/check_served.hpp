// A plan that a server gave, looked at by someone else: the schedule by a replay that shares no code with the search
// (bench/recheck.hpp), what is told of it by the schedule itself.
#pragma once

#include "pipeweaver/service/client.hpp"

#include <string>

namespace pipeweaver::load {

struct CheckedPlan {
    std::string wrong;  ///< with the plan; empty: nothing
    double gap = 0;
    bool searched = false;
};

/// Fetches problem and solution of replica 0 of the step at `path`. Throws Error{io} where they are not there.
[[nodiscard]] CheckedPlan check_served(service::Client& client, const std::string& path);

}  // namespace pipeweaver::load
