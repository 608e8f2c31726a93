#include "planner/replicas/share.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

void require_sensible(const Job& job, const Batch& batch, std::size_t most) {
    const Setup& setup = *job.setup;
    check(setup.layout, setup.cluster, setup.model);
    const auto replicas = static_cast<std::size_t>(setup.layout.dp);
    if (batch.microbatches.size() < replicas)
        fail(ErrorKind::input, "--dp: {} replicas are more than the batch's {} microbatches, and each needs one",
             replicas, batch.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (batch.microbatches.size() + replicas - 1) / replicas;
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

Shared shared_as(const Batch& batch, partition::Shares shares, std::vector<Duration> costs) {
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
        for (const std::size_t i : mine) microbatches.push_back(batch.microbatches[i]);
    }
    shared.judged = most_loaded(loads, sizes.replicas_examined);
    shared.shares = std::move(shares);
    shared.costs = std::move(costs);
    return shared;
}

Shared share(const Job& job, const Batch& batch, const Executor& execute, std::size_t most) {
    require_sensible(job, batch, most);
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    auto costs = partition::microbatch_costs(*job.setup, batch.microbatches, execute);
    const bool in_turn = job.sharing == partition::Sharing::in_turn;
    auto shares = in_turn ? partition::in_turn(costs.size(), replicas) : partition::balance(costs, replicas);
    return shared_as(batch, std::move(shares), std::move(costs));
}

}  // namespace pipeweaver::planner
