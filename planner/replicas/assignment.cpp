#include "planner/replicas/assignment.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/replicas/loading.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;
using partition::Shares;

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
    std::vector<std::size_t> replicas = largest_first(loads);
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

Duration mean(const std::vector<Duration>& all) {
    return std::accumulate(all.begin(), all.end(), Duration{}) / static_cast<std::int64_t>(all.size());
}

Duration times(Duration d, double factor) {
    return Duration{static_cast<std::int64_t>(factor * static_cast<double>(d.count()))};
}

// The slowest replica's microbatch `given` for `taken` of another: places in their shares.
struct Swap {
    std::size_t to = 0, given = 0, taken = 0;
};

class Exchanging {
public:
    Exchanging(const Job& job, const Batch& batch, const Partition& partition, const Assignment& assignment,
               const Executor& execute)
        : job_(job),
          batch_(batch),
          partition_(partition),
          execute_(execute),
          costs_(assignment.costs),
          shares_(assignment.shares),
          loads_(partition::loads(shares_, costs_)),
          most_load_(std::max(assignment.loads.largest, times(mean(loads_), margins.even_loads))) {}

    Shares run() {
        std::size_t tasks = 0;
        for (const auto& share : shares_) tasks += tasks_of(share);
        const std::size_t replicas = shares_.size();
        if (!effort_of((tasks + replicas - 1) / replicas, replicas).exchanges) return std::move(shares_);
        policies_ = {fastest_on(shares_.front())};
        planned_ = planned(shares_);
        const bool all =
            std::none_of(planned_.begin(), planned_.end(), [](Duration d) { return d == Duration::max(); });
        while (all && tasks < sizes.tasks_exchanged && improve(tasks)) {
        }
        return std::move(shares_);
    }

private:
    std::size_t tasks_of(const std::vector<std::size_t>& share) const {
        const Microbatches mine = of_share(batch_.microbatches, share);
        return count_tasks(partition_, partition::units(partition_, job_.setup->model, mine));
    }

    Step evaluated(const std::vector<std::size_t>& share) const {
        return evaluate(*job_.setup, partition_, of_share(batch_.microbatches, share),
                        {.name = "exchange", .priced_split = false},
                        {.split = false, .bound = std::nullopt, .policies = policies_});
    }

    std::string fastest_on(const std::vector<std::size_t>& share) const {
        const Step known = evaluated(share);
        const PolicyRun* fastest = known.fastest();
        return fastest == nullptr ? policies_.front() : fastest->policy;
    }

    // Duration::max(): the policy does not apply.
    std::vector<Duration> planned(const Shares& shares) const {
        std::vector<Duration> makespans(shares.size(), Duration::max());
        run_jobs(execute_, shares.size(), [&](std::size_t k) {
            const Step known = evaluated(shares[k]);
            if (const PolicyRun* fastest = known.fastest()) makespans[k] = fastest->makespan();
        });
        return makespans;
    }

    // Of the slowest replica with `to`: those that leave the loads even and would make both plans equally long if their
    // times went with the loads.
    std::vector<Swap> swaps_with(std::size_t from, std::size_t to) const {
        const Duration wanted = (planned_[from] - planned_[to]) / 2 * job_.setup->layout.pp;
        std::vector<std::tuple<Duration, std::size_t, std::size_t>> all;
        for (std::size_t g = 0; g < shares_[from].size(); ++g)
            for (std::size_t t = 0; t < shares_[to].size(); ++t) {
                const Duration less = costs_[shares_[from][g]] - costs_[shares_[to][t]];
                const Duration larger = std::max(loads_[from] - less, loads_[to] + less);
                if (larger <= most_load_) all.emplace_back(std::chrono::abs(less - wanted), g, t);
            }
        const std::size_t count = std::min(all.size(), sizes.trades);
        std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
        std::vector<Swap> best;
        for (std::size_t i = 0; i < count; ++i) best.push_back({to, std::get<1>(all[i]), std::get<2>(all[i])});
        return best;
    }

    std::vector<Swap> swaps(std::size_t from) const {
        std::vector<std::size_t> others(shares_.size());
        std::iota(others.begin(), others.end(), std::size_t{0});
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(from));
        std::stable_sort(others.begin(), others.end(),
                         [&](std::size_t a, std::size_t b) { return planned_[a] < planned_[b]; });
        others.resize(std::min(others.size(), sizes.trading_partners));
        std::vector<Swap> all;
        for (const std::size_t to : others)
            for (const Swap& swap : swaps_with(from, to)) all.push_back(swap);
        return all;
    }

    // One swap of the slowest replica; false: none makes the slower of the two faster, or all are even.
    bool improve(std::size_t& tasks) {
        const auto slowest = std::max_element(planned_.begin(), planned_.end());
        const auto from = static_cast<std::size_t>(slowest - planned_.begin());
        if (*slowest <= times(mean(planned_), margins.even_plans)) return false;
        const std::vector<Swap> tried = swaps(from);
        Shares pairs;  // two for each swap
        for (const Swap& swap : tried) {
            pairs.push_back(shares_[from]);
            pairs.push_back(shares_[swap.to]);
            auto &mine = *(pairs.end() - 2), &theirs = pairs.back();
            std::swap(mine[swap.given], theirs[swap.taken]);
            tasks += tasks_of(mine) + tasks_of(theirs);
        }
        const auto makespans = planned(pairs);
        std::size_t best = tried.size();
        Duration least = *slowest;
        for (std::size_t k = 0; k < tried.size(); ++k) {
            const Duration longer = std::max(makespans[2 * k], makespans[2 * k + 1]);
            if (longer >= least) continue;
            least = longer;
            best = k;
        }
        if (best == tried.size()) return false;
        for (const auto& [r, k] : {std::pair(from, 2 * best), std::pair(tried[best].to, 2 * best + 1)}) {
            shares_[r] = std::move(pairs[k]);
            planned_[r] = makespans[k];
            loads_[r] = partition::loads({shares_[r]}, costs_).front();
        }
        return true;
    }

    const Job& job_;
    const Batch& batch_;
    const Partition& partition_;
    const Executor& execute_;
    const std::vector<Duration>& costs_;  // of each microbatch
    Shares shares_;
    std::vector<std::string> policies_ = quick_policies;  // then the one that is fastest
    std::vector<Duration> loads_, planned_;               // of each replica
    Duration most_load_;
};

// None: no loader is said, or it does not decide.
std::optional<Shares> by_loading(const Job& job, const Batch& batch, const std::vector<Duration>& costs,
                                 const Shares& by_cost) {
    if (!job.loader || by_cost.size() == 1) return std::nullopt;
    return shares_by_loading(
        {.costs = costs,
         .loading = loading_times(*job.loader, job.setup->model, batch.samples, batch.microbatches),
         .stages = job.setup->layout.pp,
         .beside = job.loader->queue.workers > 0},
        by_cost);
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
    for (const auto& mine : shares) assignment.microbatches.push_back(of_share(batch.microbatches, mine));
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
    if (job.sharing == partition::Sharing::in_turn) {
        auto in_turn = partition::in_turn(costs.size(), replicas);  // before `costs` moves
        return assigned(batch, std::move(in_turn), std::move(costs));
    }
    auto shares = partition::balance(costs, replicas);
    auto others = by_loading(job, batch, costs, shares);
    const bool is_by_loading = others.has_value();
    Assignment all = assigned(batch, is_by_loading ? std::move(*others) : std::move(shares), std::move(costs));
    all.loads.by_loading = is_by_loading;
    return all;
}

Assignment exchange(const Job& job, const Batch& batch, const Partition& partition, Assignment assignment,
                    const Executor& execute) {
    const bool tells = partition.chains.size() == 1 && !batch.shares;
    const bool by_pipelines = job.sharing == partition::Sharing::balanced && !assignment.loads.by_loading;
    if (!tells || assignment.shares.size() == 1 || !by_pipelines) return assignment;
    auto shares = Exchanging(job, batch, partition, assignment, execute).run();
    for (auto& share : shares) std::sort(share.begin(), share.end());
    return assigned(batch, std::move(shares), std::move(assignment.costs));
}

}  // namespace pipeweaver::planner
