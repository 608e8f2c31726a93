#include "planner/evaluate/share.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

void require_sensible(const Request& request, std::size_t most) {
    const Setup& setup = *request.setup;
    check(setup.layout, setup.cluster, setup.model);
    const auto replicas = static_cast<std::size_t>(setup.layout.dp);
    if (request.microbatches.size() < replicas)
        fail(ErrorKind::input, "--dp: {} replicas are more than the batch's {} microbatches, and each needs one",
             replicas, request.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (request.microbatches.size() + replicas - 1) / replicas;
    require_plannable(most_of_one, 2 * most_of_one * static_cast<std::size_t>(setup.layout.pp), most);
}

}  // namespace

Shared share(const Request& request, const Executor& execute, std::size_t most) {
    require_sensible(request, most);
    const std::int64_t dp = request.setup->layout.dp;
    const auto replicas = static_cast<std::size_t>(dp);
    const auto costs = partition::microbatch_costs(*request.setup, request.microbatches, execute);
    const auto largest = [&](const partition::Shares& shares) {
        const auto loads = partition::loads(shares, costs);
        return *std::max_element(loads.begin(), loads.end());
    };
    const auto turn = partition::in_turn(costs.size(), replicas);
    Shared shared{request.sharing == partition::Sharing::in_turn ? turn : partition::balance(costs, replicas), {}, {}};
    shared.loads.largest = largest(shared.shares);
    shared.loads.mean = std::accumulate(costs.begin(), costs.end(), Duration{}) / dp;
    shared.loads.largest_in_turn = largest(turn);
    for (const auto& mine : shared.shares) {
        Microbatches& microbatches = shared.microbatches.emplace_back();
        for (const std::size_t i : mine) microbatches.push_back(request.microbatches[i]);
    }
    return shared;
}

}  // namespace pipeweaver::planner
