#include "planner/layout_trial.hpp"

#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/search/policies.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

constexpr std::size_t most_judged = 32;  // microbatches of a replica

using Share = std::vector<workloads::Microbatch>;

// At most `count` of them, evenly spread.
Share sample_of(const Share& all, std::size_t count) {
    if (all.size() <= count) return all;
    Share sample;
    for (std::size_t i = 0; i < count; ++i) sample.push_back(all[i * all.size() / count]);
    return sample;
}

// What each replica runs, the most loaded first. Pre: of workload.microbatches.
std::vector<Share> heaviest_first(const LayoutRequest& request, const partition::Workload& workload) {
    if (request.for_each_replica || workload.layout.dp == 1) return {*workload.microbatches};
    const auto replicas = static_cast<std::size_t>(workload.layout.dp);
    const auto costs = partition::microbatch_costs(workload);
    const auto shares = partition::balance(costs, replicas);
    const auto loads = partition::loads(shares, costs);
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
    std::vector<Share> all;
    for (const std::size_t replica : order) {
        Share& share = all.emplace_back();
        for (const std::size_t i : shares[replica]) share.push_back((*workload.microbatches)[i]);
    }
    return all;
}

// What a rank needs at least where microbatches run one after the other, with everything recomputed.
std::vector<Bytes> least_memory(const Problem& problem, std::size_t microbatches) {
    const std::size_t ranks = problem.ranks.size();
    std::vector<Bytes> held(ranks * microbatches), transient(ranks * microbatches);
    for (const Pair& pair : problem.pairs) {
        const Task& task = problem.tasks[index(pair.forward)];
        const auto least = std::min_element(pair.modes.begin(), pair.modes.end(),
                                            [](const Mode& a, const Mode& b) { return a.held < b.held; });
        const std::size_t place = static_cast<std::size_t>(*task.microbatch) * ranks + index(task.rank);
        held[place] += least->held;
        transient[place] = std::max({transient[place], least->transient, least->forward_transient});
    }
    std::vector<Bytes> most(ranks);
    for (std::size_t place = 0; place < held.size(); ++place)
        most[place % ranks] = std::max(most[place % ranks], held[place] + transient[place]);
    for (std::size_t r = 0; r < ranks; ++r) most[r] += problem.ranks[r].base;
    return most;
}

Shortage shortage_of(const std::vector<Bytes>& needed, Bytes usable) {
    const auto fullest = std::max_element(needed.begin(), needed.end());
    return {static_cast<std::size_t>(fullest - needed.begin()), *fullest - usable};
}

// One layout: its partitions, their problems, and what the policies make of them.
class Trial {
public:
    Trial(const LayoutRequest& request, const costdb::CostDatabase& costs, const Layout& layout)
        : request_(request), costs_(costs), layout_(layout), usable_(usable_bytes(*request.cluster)) {}

    LayoutTrial run(bool every_replica) {
        const std::size_t replicas = request_.for_each_replica ? 1 : static_cast<std::size_t>(layout_.dp);
        const auto judged = sample_of(request_.microbatches, most_judged * replicas);
        judged_ = request_.for_each_replica ? judged.size() * static_cast<std::size_t>(layout_.dp) : judged.size();
        const auto workload = workload_of(judged);
        auto shares = heaviest_first(request_, workload);
        if (!every_replica) shares.resize(1);
        try_partition(partition::dip(workload), shares);
        try_partition(partition::balanced(workload, 1), shares);
        result_.settled = every_replica || layout_.dp == 1 || request_.for_each_replica;
        if (result_.tried) result_.shortage.reset();
        return std::move(result_);
    }

private:
    partition::Workload workload_of(const Share& microbatches) const {
        return {request_.model, request_.cluster, &costs_, layout_, &microbatches};
    }

    // Without a limit on memory, so that what is short is known.
    StepProblem problem(const Partition& partition, const Share& microbatches) const {
        auto input = partition::step_input(workload_of(microbatches), partition);
        input.name = "layout";
        input.capacity = Bytes{std::int64_t{1} << 60};
        return build_step(input);
    }

    void fell_short(const std::vector<Bytes>& needed) {
        const Shortage found = shortage_of(needed, usable_);
        if (!result_.shortage || found.bytes < result_.shortage->bytes) result_.shortage = found;
    }

    // With the memory of the cluster; nothing if the share needs more.
    std::optional<StepProblem> fitting(const Partition& partition, const Share& share) {
        // One microbatch shows quickly whether the weights alone are too large.
        for (const Share& some : {Share{share.front()}, share}) {
            auto step = problem(partition, some);
            const auto needed = least_memory(step.problem, some.size());
            if (shortage_of(needed, usable_).bytes > Bytes{}) {
                fell_short(needed);
                return std::nullopt;
            }
            if (some.size() < share.size()) continue;
            for (auto& rank : step.problem.ranks) rank.capacity = usable_;
            return step;
        }
        return std::nullopt;
    }

    void try_partition(const Partition& partition, const std::vector<Share>& shares) {
        constexpr std::array<std::string_view, 3> policies{"dual-queue", "1f1b", "gpipe"};
        std::array<std::optional<Duration>, policies.size()> slowest;
        slowest.fill(Duration{});
        for (const Share& share : shares) {
            const auto step = fitting(partition, share);
            if (!step) return;
            const Replayer replayer(step->problem);
            for (std::size_t p = 0; p < policies.size(); ++p) {
                if (!slowest[p]) continue;
                const auto applied = search::apply_policy(policies[p], replayer);
                if (!applied.schedule)
                    slowest[p].reset();
                else
                    slowest[p] = std::max(*slowest[p], applied.replay.makespan + step->optimizer);
            }
        }
        for (std::size_t p = 0; p < policies.size(); ++p)
            if (slowest[p]) keep(partition, policies[p], *slowest[p]);
    }

    void keep(const Partition& partition, std::string_view policy, Duration time) {
        if (result_.tried && time >= result_.tried->step) return;
        result_.tried = LayoutTried{layout_, judged_, time, partition.name, std::string(policy)};
    }

    const LayoutRequest& request_;
    const costdb::CostDatabase& costs_;
    const Layout& layout_;
    LayoutTrial result_;
    Bytes usable_;
    std::size_t judged_ = 0;  // microbatches of all replicas
};

}  // namespace

LayoutTrial try_layout(const LayoutRequest& request, const costdb::CostDatabase& costs, const Layout& layout,
                       bool every_replica) {
    return Trial(request, costs, layout).run(every_replica);
}

}  // namespace pipeweaver::planner
