#include "planner/layout/layout_trial.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "planner/evaluate/step.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

// At most `count` of them, evenly spread.
Microbatches sample_of(const Microbatches& all, std::size_t count) {
    if (all.size() <= count) return all;
    Microbatches sample;
    for (std::size_t i = 0; i < count; ++i) sample.push_back(all[i * all.size() / count]);
    return sample;
}

// What each replica runs, the most loaded first.
std::vector<Microbatches> heaviest_first(const LayoutRequest& request, const Setup& setup,
                                         const Microbatches& microbatches) {
    if (request.for_each_replica || setup.layout.dp == 1) return {microbatches};
    const auto costs = partition::microbatch_costs(setup, microbatches);
    const auto shares = partition::balance(costs, static_cast<std::size_t>(setup.layout.dp));
    const auto loads = partition::loads(shares, costs);
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
    std::vector<Microbatches> all;
    for (const std::size_t replica : order) {
        Microbatches& share = all.emplace_back();
        for (const std::size_t i : shares[replica]) share.push_back(microbatches[i]);
    }
    return all;
}

// What the passes of a rank need at least where microbatches run one after the other, with everything recomputed.
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
    return most;
}

// Of the rank that needs most, whether it is short or not.
MemoryShortage fullest_rank(const StepProblem& step, const std::vector<Bytes>& passes, Bytes usable) {
    std::size_t fullest = 0;
    const auto needed = [&](std::size_t rank) { return step.memory[rank].total() + passes[rank]; };
    for (std::size_t r = 1; r < passes.size(); ++r)
        if (needed(r) > needed(fullest)) fullest = r;
    return {RankId{static_cast<std::uint32_t>(fullest)}, step.memory[fullest], passes[fullest], usable, {}, {}, {}};
}

// One layout: its partitions, their problems, and what the policies make of them.
class Trial {
public:
    Trial(const LayoutRequest& request, const Layout& layout)
        : request_(request), setup_(with_layout(*request.setup, layout)), usable_(capacity_of(setup_)) {}

    LayoutTrial run(bool every_replica) {
        const auto dp = static_cast<std::size_t>(setup_.layout.dp);
        const auto some =
            sample_of(request_.microbatches, sizes.layout_microbatches * (request_.for_each_replica ? 1 : dp));
        tried_with_ = request_.for_each_replica ? some.size() * dp : some.size();
        auto shares = heaviest_first(request_, setup_, some);
        if (!every_replica) shares.resize(1);
        try_partition(partition::partitioner("dip").make(setup_, some, 0), shares);
        try_partition(partition::partitioner("balanced").make(setup_, some, 1), shares);
        result_.settled = every_replica || dp == 1 || request_.for_each_replica;
        if (result_.tried) result_.shortage.reset();
        return std::move(result_);
    }

private:
    // With the memory of the cluster; none if the share needs more.
    std::optional<Step> fitting(const Partition& partition, const Microbatches& share) {
        // Built without a limit on memory, so that what is short is known. One microbatch shows quickly whether the
        // weights alone are too large.
        const StepWanted wanted{.name = "layout", .capacity = Bytes{std::int64_t{1} << 60}};
        std::optional<Step> known;
        for (const Microbatches& some : {Microbatches{share.front()}, share}) {
            known = build(setup_, partition, some, wanted);
            if (known->shortage) fail(ErrorKind::limit, "{}", known->shortage->text());
            const StepProblem& step = known->cut.step;
            const auto fullest = fullest_rank(step, least_memory(step.problem, some.size()), usable_);
            if (fullest.short_by() > Bytes{}) {
                if (!result_.shortage || fullest.short_by() < result_.shortage->short_by()) result_.shortage = fullest;
                return std::nullopt;
            }
            if (some.size() == share.size()) break;
        }
        for (auto& rank : known->cut.step.problem.ranks) rank.capacity = usable_;
        return known;
    }

    void try_partition(const Partition& partition, const std::vector<Microbatches>& shares) {
        std::vector<std::string> policies = layout_policies;
        std::map<std::string, Duration> slowest;
        for (const Microbatches& share : shares) {
            auto known = fitting(partition, share);
            if (!known) return;
            apply_policies(*known, {.split = false, .bound = std::nullopt, .policies = policies});
            for (const PolicyRun& run : known->policies) {
                if (run.applies())
                    slowest[run.policy] = std::max(slowest[run.policy], run.makespan() + known->cut.step.optimizer);
                else
                    std::erase(policies, run.policy);
            }
        }
        for (const std::string& policy : policies) keep(partition, policy, slowest[policy]);
    }

    void keep(const Partition& partition, const std::string& policy, Duration time) {
        if (result_.tried && time >= result_.tried->step) return;
        result_.tried = LayoutTried{setup_.layout, tried_with_, time, partition.name, policy};
    }

    const LayoutRequest& request_;
    const Setup setup_;
    LayoutTrial result_;
    Bytes usable_;
    std::size_t tried_with_ = 0;  // microbatches of all replicas
};

}  // namespace

LayoutTrial try_layout(const LayoutRequest& request, const Layout& layout, bool every_replica) {
    return Trial(request, layout).run(every_replica);
}

}  // namespace pipeweaver::planner
