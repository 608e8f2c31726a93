// How a batch is shared out among the replicas, before anything of it is planned.
#pragma once

#include "planner/evaluate/evaluate.hpp"

namespace pipeweaver::planner {

/// Which replica takes which microbatches, and how even that is.
struct Shared {
    partition::Shares shares;
    ReplicaLoads loads;
    std::vector<Microbatches> microbatches;  ///< of each replica
};

/// Throws Error{input} where the layout does not suit the request, or a replica has more tasks than `most`.
[[nodiscard]] Shared share(const Request& request, const Executor& execute, std::size_t most = most_tasks);

}  // namespace pipeweaver::planner
