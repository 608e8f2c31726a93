#include "pipeweaver/planner/layout.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/search/policies.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;
using workloads::Architecture;

namespace {

// In the order in which they are checked.
enum Reason { other_nodes, heads, columns, layers, few_microbatches, memory, reasons };

// "tp must divide 8: vit has 16, llm 40".
std::string divisible(const LayoutRequest& request, std::int64_t Architecture::*size) {
    std::int64_t common = 0;
    std::vector<std::string> modules;
    for (const auto& module : request.model->modules) {
        common = std::gcd(common, module.architecture.*size);
        modules.push_back(
            fmt::format("{}{} {}", module.name, modules.empty() ? " has" : "", module.architecture.*size));
    }
    return fmt::format("tp must divide {}: {}", common, fmt::join(modules, ", "));
}

std::string shallowest(const LayoutRequest& request) {
    const auto& modules = request.model->modules;
    const auto& least = *std::min_element(modules.begin(), modules.end(), [](const auto& a, const auto& b) {
        return a.architecture.layers < b.architecture.layers;
    });
    return fmt::format("{} has {}", least.name, least.architecture.layers);
}

std::string name_of(Reason reason, const LayoutRequest& request) {
    switch (reason) {
        case other_nodes:
            return fmt::format("tp does not divide the {} GPUs of a node", request.cluster->gpus_per_node);
        case heads:
            return "tp does not divide a module's attention heads; " + divisible(request, &Architecture::heads);
        case columns:
            return "tp does not divide a module's feed-forward columns; " + divisible(request, &Architecture::ffn);
        case layers:
            return "pp is more than a module's layers; " + shallowest(request);
        case few_microbatches:
            return "more replicas than microbatches";
        default:
            return "does not fit the memory";
    }
}

// The rank that is furthest from fitting.
struct Shortage {
    std::size_t rank = 0;
    Bytes bytes;
};

struct Candidate {
    Layout layout;
    std::optional<LayoutTried> tried{};
    std::optional<Reason> refused{};
    std::optional<Shortage> shortage{};  // with Reason::memory
    std::exception_ptr failure{};
    bool settled = false;  // judged by all of its replicas; else by the most loaded, and none may take less
};

std::vector<std::int64_t> divisors(std::int64_t number) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d * d <= number; ++d)
        if (number % d == 0) {
            all.push_back(d);
            if (d * d != number) all.push_back(number / d);
        }
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<Candidate> candidates(const LayoutRequest& request) {
    std::vector<Candidate> all;
    const std::int64_t gpus = request.cluster->gpus;
    for (const std::int64_t tp : divisors(gpus))
        for (const std::int64_t pp : divisors(gpus / tp)) {
            const Layout layout{.tp = tp, .pp = pp, .dp = gpus / tp / pp};
            if (tp != request.tp.value_or(tp) || pp != request.pp.value_or(pp)) continue;
            if (layout.dp == request.dp.value_or(layout.dp)) all.push_back({.layout = layout});
        }
    return all;
}

std::optional<Reason> refusal(const LayoutRequest& request, const Layout& layout) {
    if (request.cluster->gpus_per_node % layout.tp != 0) return other_nodes;
    if (const auto found = conflict(layout, *request.model)) {
        constexpr std::array by_kind{heads, columns, layers};
        return by_kind[static_cast<std::size_t>(found->what)];
    }
    const auto microbatches = static_cast<std::int64_t>(request.microbatches.size());
    if (!request.for_each_replica && microbatches < layout.dp) return few_microbatches;
    return std::nullopt;
}

constexpr std::size_t most_judged = 32;  // microbatches of a replica

// At most `count` of them, evenly spread.
std::vector<workloads::Microbatch> sample_of(const std::vector<workloads::Microbatch>& all, std::size_t count) {
    if (all.size() <= count) return all;
    std::vector<workloads::Microbatch> sample;
    for (std::size_t i = 0; i < count; ++i) sample.push_back(all[i * all.size() / count]);
    return sample;
}

using Share = std::vector<workloads::Microbatch>;

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
    Trial(const LayoutRequest& request, const costdb::CostDatabase& costs, Candidate& candidate)
        : request_(request), costs_(costs), candidate_(candidate), usable_(usable_bytes(*request.cluster)) {}

    // By the most loaded replica, or by all of them.
    void run(bool every_replica) {
        const std::size_t replicas = request_.for_each_replica ? 1 : static_cast<std::size_t>(candidate_.layout.dp);
        const auto judged = sample_of(request_.microbatches, most_judged * replicas);
        judged_ =
            request_.for_each_replica ? judged.size() * static_cast<std::size_t>(candidate_.layout.dp) : judged.size();
        partition::Workload workload{request_.model, request_.cluster, &costs_, candidate_.layout, &judged};
        auto shares = heaviest_first(request_, workload);
        if (!every_replica) shares.resize(1);
        candidate_.tried.reset();
        try_partition(partition::dip(workload), shares);
        try_partition(partition::balanced(workload, 1), shares);
        candidate_.settled = every_replica || candidate_.layout.dp == 1 || request_.for_each_replica;
        if (candidate_.tried) candidate_.shortage.reset();
        if (!candidate_.tried) candidate_.refused = memory;
    }

private:
    // Without a limit on memory, so that what is short is known.
    StepProblem problem(const Partition& partition, const std::vector<workloads::Microbatch>& microbatches) const {
        StepInput input;
        input.name = "layout";
        input.model = request_.model;
        input.cluster = request_.cluster;
        input.costs = &costs_;
        input.layout = candidate_.layout;
        input.chains = partition.chains;
        input.units = partition::units(partition, *request_.model, microbatches);
        input.capacity = Bytes{std::int64_t{1} << 60};
        return build_step(input);
    }

    void fell_short(const std::vector<Bytes>& needed) {
        const Shortage found = shortage_of(needed, usable_);
        if (!candidate_.shortage || found.bytes < candidate_.shortage->bytes) candidate_.shortage = found;
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
        if (candidate_.tried && time >= candidate_.tried->step) return;
        candidate_.tried = LayoutTried{candidate_.layout, judged_, time, partition.name, std::string(policy)};
    }

    const LayoutRequest& request_;
    const costdb::CostDatabase& costs_;
    Candidate& candidate_;
    Bytes usable_;
    std::size_t judged_ = 0;  // microbatches of all replicas
};

bool is_faster(const LayoutTried& a, const LayoutTried& b) {
    return std::tuple(a.per_microbatch(), a.layout.tp, a.layout.pp) <
           std::tuple(b.per_microbatch(), b.layout.tp, b.layout.pp);
}

// Judges the fastest by all of its replicas until the fastest has been.
void settle_fastest(const LayoutRequest& request, const costdb::CostDatabase& costs, std::vector<Candidate>& all) {
    while (true) {
        Candidate* fastest = nullptr;
        for (Candidate& one : all)
            if (one.tried && (fastest == nullptr || is_faster(*one.tried, *fastest->tried))) fastest = &one;
        if (fastest == nullptr || fastest->settled) return;
        Trial(request, costs, *fastest).run(true);
    }
}

std::vector<Candidate> try_all(const LayoutRequest& request, const costdb::CostDatabase& costs,
                               const Executor& execute) {
    auto all = candidates(request);
    execute(all.size(), [&](std::size_t i) {
        try {
            all[i].refused = refusal(request, all[i].layout);
            if (!all[i].refused) Trial(request, costs, all[i]).run(false);
        } catch (...) {
            all[i].failure = std::current_exception();
        }
    });
    for (const Candidate& candidate : all)
        if (candidate.failure) std::rethrow_exception(candidate.failure);
    settle_fastest(request, costs, all);
    return all;
}

LayoutChoice choice_of(const LayoutRequest& request, const std::vector<Candidate>& all) {
    LayoutChoice choice;
    std::array<std::size_t, reasons> count{};
    for (const Candidate& candidate : all) {
        if (candidate.tried) choice.tried.push_back(*candidate.tried);
        if (candidate.refused) ++count[*candidate.refused];
    }
    std::sort(choice.tried.begin(), choice.tried.end(), is_faster);
    for (std::size_t reason = 0; reason < reasons; ++reason)
        if (count[reason] > 0) choice.refused.push_back({name_of(static_cast<Reason>(reason), request), count[reason]});
    return choice;
}

std::string text(const Layout& layout) { return fmt::format("tp {} x pp {} x dp {}", layout.tp, layout.pp, layout.dp); }

std::string text(const LayoutChoice& choice) {
    std::string all;
    for (const LayoutRefused& refused : choice.refused)
        all += fmt::format("{}{} ({})", all.empty() ? "" : "; ", refused.why, refused.count);
    return all;
}

// The candidate that is short of the least; null if memory refused none.
const Candidate* closest(const std::vector<Candidate>& all) {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : all)
        if (candidate.shortage && (!best || candidate.shortage->bytes < best->shortage->bytes)) best = &candidate;
    return best;
}

}  // namespace

std::string what_would_fit(const LayoutRequest& request, const costdb::CostDatabase& costs, const Executor& execute) {
    constexpr int most_doublings = 6;
    LayoutRequest free = request;
    free.tp = free.pp = free.dp = std::nullopt;
    workloads::Cluster cluster = *request.cluster;
    free.cluster = &cluster;
    for (int doublings = 0; doublings <= most_doublings; ++doublings, cluster.gpus *= 2) {
        const auto choice = choice_of(free, try_all(free, costs, execute));
        if (choice.tried.empty()) continue;
        return doublings == 0 ? fmt::format("{} fits on these GPUs", text(choice.layout()))
                              : fmt::format("{} GPUs fit it as {}", cluster.gpus, text(choice.layout()));
    }
    return fmt::format("not even {} GPUs fit it in any layout", request.cluster->gpus << most_doublings);
}

LayoutChoice choose_layout(const LayoutRequest& request, const costdb::CostDatabase& costs, const Executor& execute) {
    PIPEWEAVER_ASSERT(!request.microbatches.empty());
    require_supported(*request.model);
    const auto all = try_all(request, costs, execute);
    auto choice = choice_of(request, all);
    if (!choice.tried.empty()) return choice;
    const auto fixed = [](const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "auto"; };
    const auto asked = fmt::format("--tp {} --pp {} --dp {} on {} GPUs", fixed(request.tp), fixed(request.pp),
                                   fixed(request.dp), request.cluster->gpus);
    if (all.empty()) fail(ErrorKind::input, "{}: the numbers given do not divide the GPUs", asked);
    if (const Candidate* near = closest(all))
        fail(ErrorKind::limit,
             "{}: no layout fits the memory; {} comes closest: rank {} is {} short of the {} usable of a {}; {}", asked,
             text(near->layout), near->shortage->rank, human(near->shortage->bytes),
             human(usable_bytes(*request.cluster)), request.cluster->device, what_would_fit(request, costs, execute));
    const bool short_of_memory =
        std::any_of(all.begin(), all.end(), [](const Candidate& c) { return c.refused == memory; });
    fail(short_of_memory ? ErrorKind::limit : ErrorKind::input, "{}: no layout is possible: {}", asked, text(choice));
}

}  // namespace pipeweaver::planner
