#include "planner/replicas/share.hpp"

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

// The `most` with the largest loads, by number; ties go to the earlier.
std::vector<std::size_t> most_loaded(const std::vector<Duration>& loads, std::size_t most) {
    std::vector<std::size_t> replicas(loads.size());
    std::iota(replicas.begin(), replicas.end(), std::size_t{0});
    std::stable_sort(replicas.begin(), replicas.end(),
                     [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
    replicas.resize(std::min(replicas.size(), most));
    std::sort(replicas.begin(), replicas.end());
    return replicas;
}

}  // namespace

bool Shared::judges(std::size_t replica) const { return std::binary_search(judged.begin(), judged.end(), replica); }

search::BoundEffort Shared::bounds(std::size_t replica) const {
    return judges(replica) ? search::BoundEffort::full : search::BoundEffort::quick;
}

Shared shared_as(const Request& request, partition::Shares shares, std::vector<Duration> costs) {
    const auto replicas = shares.size();
    const auto largest = [](const std::vector<Duration>& loads) {
        return *std::max_element(loads.begin(), loads.end());
    };
    const auto loads = partition::loads(shares, costs);
    Shared shared;
    shared.loads.largest = largest(loads);
    shared.loads.mean = std::accumulate(costs.begin(), costs.end(), Duration{}) / static_cast<std::int64_t>(replicas);
    shared.loads.largest_in_turn = largest(partition::loads(partition::in_turn(costs.size(), replicas), costs));
    for (const auto& mine : shares) {
        Microbatches& microbatches = shared.microbatches.emplace_back();
        for (const std::size_t i : mine) microbatches.push_back(request.microbatches[i]);
    }
    shared.judged = most_loaded(loads, sizes.replicas_examined);
    shared.shares = std::move(shares);
    shared.costs = std::move(costs);
    return shared;
}

Shared share(const Request& request, const Executor& execute, std::size_t most) {
    require_sensible(request, most);
    const auto replicas = static_cast<std::size_t>(request.setup->layout.dp);
    auto costs = partition::microbatch_costs(*request.setup, request.microbatches, execute);
    const bool in_turn = request.sharing == partition::Sharing::in_turn;
    auto shares = in_turn ? partition::in_turn(costs.size(), replicas) : partition::balance(costs, replicas);
    return shared_as(request, std::move(shares), std::move(costs));
}

}  // namespace pipeweaver::planner
