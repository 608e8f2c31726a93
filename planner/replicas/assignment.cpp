#include "planner/replicas/assignment.hpp"

#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;

std::optional<std::string> why_not_sensible(const Job& job, const Batch& batch, std::size_t most) {
    const Setup& setup = *job.setup;
    if (auto why = why_not(setup.layout, setup.cluster, setup.model, setup.recipe.execution.experts.tensor_parallel))
        return why;
    const auto replicas = static_cast<std::size_t>(setup.layout.dp);
    if (batch.microbatches.size() < replicas)
        return fmt::format("--dp: {} replicas are more than the batch's {} microbatches, and each needs one", replicas,
                           batch.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (batch.microbatches.size() + replicas - 1) / replicas;
    return why_not_plannable(most_of_one, 2 * most_of_one * static_cast<std::size_t>(setup.layout.pp), most);
}

void require_sensible(const Job& job, const Batch& batch, std::size_t most) {
    if (const auto why = why_not_sensible(job, batch, most)) fail(ErrorKind::input, "{}", *why);
}

namespace {

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

// Whether two replicas' microbatches are of the same sizes in the same order.
bool are_alike(const Microbatches& one, const Microbatches& other) {
    using ItemRef = workloads::Microbatch::ItemRef;
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const auto& a, const auto& b) {
        return a.lengths == b.lengths && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                                                    [](const ItemRef& x, const ItemRef& y) {
                                                        return x.size == y.size && x.sample_tokens == y.sample_tokens;
                                                    });
    });
}

}  // namespace

std::vector<std::size_t> first_alike(const std::vector<Microbatches>& replicas) {
    std::vector<std::size_t> like(replicas.size());
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        std::size_t first = 0;
        while (first < r && (like[first] != first || !are_alike(replicas[first], replicas[r]))) ++first;
        like[r] = first;
    }
    return like;
}

bool Assignment::examines(std::size_t replica) const {
    return std::binary_search(examined.begin(), examined.end(), replica);
}

search::BoundEffort Assignment::bounds(std::size_t replica) const {
    return examines(replica) ? search::BoundEffort::full : search::BoundEffort::quick;
}

Assignment assigned(const Batch& batch, partition::Shares shares, std::vector<Duration> costs) {
    const auto replicas = shares.size();
    const auto largest = [](const std::vector<Duration>& loads) {
        return *std::max_element(loads.begin(), loads.end());
    };
    const auto loads = partition::loads(shares, costs);
    Assignment assignment;
    assignment.loads.largest = largest(loads);
    assignment.loads.mean =
        std::accumulate(costs.begin(), costs.end(), Duration{}) / static_cast<std::int64_t>(replicas);
    assignment.loads.largest_in_turn = largest(partition::loads(partition::in_turn(costs.size(), replicas), costs));
    for (const auto& mine : shares) {
        Microbatches& microbatches = assignment.microbatches.emplace_back();
        for (const std::size_t i : mine) microbatches.push_back(batch.microbatches[i]);
    }
    assignment.examined = most_loaded(loads, sizes.replicas_examined);
    assignment.shares = std::move(shares);
    assignment.costs = std::move(costs);
    return assignment;
}

Assignment assign(const Job& job, const Batch& batch, const Executor& execute, std::size_t most) {
    require_sensible(job, batch, most);
    const auto replicas = static_cast<std::size_t>(job.setup->layout.dp);
    auto costs = partition::microbatch_costs(*job.setup, batch.microbatches, execute);
    if (batch.shares) return assigned(batch, *batch.shares, std::move(costs));
    const bool in_turn = job.sharing == partition::Sharing::in_turn;
    auto shares = in_turn ? partition::in_turn(costs.size(), replicas) : partition::balance(costs, replicas);
    return assigned(batch, std::move(shares), std::move(costs));
}

}  // namespace pipeweaver::planner
