#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/torch_plan.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <tuple>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;
using partition::Workload;

namespace {

// Shares of the budget. The modality-aware partition has most to gain from a search.
constexpr double torch_share = 0.3;
constexpr double torch_share_if_wanted = 0.5;
constexpr double main_part = 0.7;  // of what is left

constexpr std::int64_t virtual_chunks = 2;  // of the interleaved baseline

std::vector<Partition> partitions(const Request& request, const Workload& workload) {
    const auto asked = [&](std::string_view name) { return request.partition.empty() || request.partition == name; };
    std::int64_t layers = 0;
    for (const auto& module : workload.model->modules) layers += module.architecture.layers;
    std::vector<Partition> all;
    if (asked("dip")) all.push_back(partition::dip(workload));
    for (const std::int64_t chunks : {std::int64_t{1}, virtual_chunks}) {
        if (chunks * workload.layout.pp > layers) continue;
        if (asked("megatron")) all.push_back(partition::megatron(workload, chunks));
        if (asked("balanced")) all.push_back(partition::balanced(workload, chunks));
    }
    return all;
}

struct Shared {
    partition::Shares shares;
    ReplicaLoads loads;
};

Shared share(const Request& request, const Workload& workload) {
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    const auto costs = partition::microbatch_costs(workload);
    const auto largest = [&](const partition::Shares& shares) {
        const auto loads = partition::loads(shares, costs);
        return *std::max_element(loads.begin(), loads.end());
    };
    const auto turn = partition::in_turn(costs.size(), replicas);
    Shared shared{request.sharing == partition::Sharing::in_turn ? turn : partition::balance(costs, replicas), {}};
    shared.loads.largest = largest(shared.shares);
    shared.loads.mean = std::accumulate(costs.begin(), costs.end(), Duration{}) / request.layout.dp;
    shared.loads.largest_in_turn = largest(turn);
    return shared;
}

// One partition with one replica's microbatches: its problem, and what the policies make of it.
struct Compared {
    Candidate candidate;
    std::vector<Baseline> baselines;
    std::vector<NotApplicable> not_applicable;
    std::vector<Schedule> schedules;  // of the baselines
    std::optional<Error> refused;     // does not fit at all
    search::Found found;              // if it was searched

    std::optional<Duration> best_baseline() const {
        std::optional<Duration> best;
        for (const Baseline& baseline : baselines)
            if (!best || baseline.makespan < *best) best = baseline.makespan;
        return best;
    }
};

StepInput step_input(const Request& request, const costdb::CostDatabase& costs, const Candidate& candidate,
                     std::string name) {
    StepInput input;
    input.name = std::move(name);
    input.model = &request.model;
    input.cluster = &request.cluster;
    input.costs = &costs;
    input.layout = request.layout;
    input.chains = candidate.partition.chains;
    input.units = candidate.units;
    return input;
}

std::string problem_name(const Request& request, const Partition& partition, std::size_t replica) {
    return fmt::format("{}-{}{}-r{:03}", request.model.name, partition.name, partition.chunks_per_rank, replica);
}

constexpr std::size_t most_tasks = 50'000;  // of a replica; policies and bounds take minutes beyond

void require_plannable(std::size_t microbatches, std::size_t tasks) {
    if (tasks <= most_tasks) return;
    fail(ErrorKind::input,
         "a replica has {} microbatches of {} tasks or more, allowed are {} tasks: take a smaller batch, or more "
         "replicas (--dp)",
         microbatches, tasks, most_tasks);
}

// Forwards and backwards of all units, counted before anything of that size is built.
std::size_t count_tasks(const Candidate& candidate) {
    std::size_t tasks = 0;
    for (const auto& microbatch : candidate.units)
        for (std::size_t c = 0; c < microbatch.size(); ++c)
            tasks += 2 * microbatch[c].size() * candidate.partition.chains[c].stages.size();
    return tasks;
}

Compared compare(const Request& request, const costdb::CostDatabase& costs, const Partition& partition,
                 std::size_t replica, const std::vector<workloads::Microbatch>& microbatches) {
    Compared result;
    result.candidate.partition = partition;
    result.candidate.units = partition::units(partition, request.model, microbatches);
    require_plannable(microbatches.size(), count_tasks(result.candidate));
    const auto refuse = [&](const std::string& policy, const std::string& why) {
        result.not_applicable.push_back({partition.name, partition.chunks_per_rank, policy, why});
    };
    try {
        result.candidate.step =
            build_step(step_input(request, costs, result.candidate, problem_name(request, partition, replica)));
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::limit) throw;
        for (const auto& policy : search::policies()) refuse(policy.name, error.what());
        result.refused = error;
        return result;
    }
    const Replayer replayer(result.candidate.step.problem);
    const Duration bound = search::best_bound(replayer).value;
    for (const auto& policy : search::policies()) {
        auto applied = search::apply_policy(policy.name, replayer);
        if (!applied.schedule) {
            refuse(policy.name, applied.why_not);
            continue;
        }
        result.baselines.push_back({partition.name, partition.chunks_per_rank, policy.name, applied.replay.makespan,
                                    bound, applied.replay.makespan + result.candidate.step.optimizer});
        result.schedules.push_back(std::move(*applied.schedule));
    }
    return result;
}

using Parts = std::vector<std::vector<workloads::Microbatch>>;  // per replica

// Per replica, per partition. Of several errors, the first in this order is thrown, whoever ran when.
std::vector<std::vector<Compared>> compare_all(const Request& request, const costdb::CostDatabase& costs,
                                               const std::vector<Partition>& all, const Parts& parts,
                                               const Executor& execute) {
    std::vector<std::vector<Compared>> compared(parts.size(), std::vector<Compared>(all.size()));
    std::vector<std::exception_ptr> failures(parts.size() * all.size());
    execute(failures.size(), [&](std::size_t job) {
        const std::size_t r = job / all.size(), p = job % all.size();
        try {
            compared[r][p] = compare(request, costs, all[p], r, parts[r]);
        } catch (...) {
            failures[job] = std::current_exception();
        }
    });
    for (const auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
    return compared;
}

search::Found search_in(const Compared& compared, const Request& request, const Executor& execute,
                        const search::KeepGoing& keep_going) {
    search::Options options;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.starts = compared.schedules;
    return search::solve(Replayer(compared.candidate.step.problem), options, execute, keep_going);
}

// Which partitions are worth a search: the first (modality-aware if there is one) and the best of the others.
std::vector<std::size_t> worth_searching(const std::vector<std::vector<Compared>>& compared) {
    std::vector<std::size_t> chosen;
    std::optional<std::size_t> best;
    const auto slowest = [&](std::size_t p) {
        std::optional<Duration> worst;
        for (const auto& replica : compared) {
            const auto time = replica[p].best_baseline();
            if (!time) return std::optional<Duration>();
            worst = std::max(worst.value_or(Duration{0}), *time);
        }
        return worst;
    };
    for (std::size_t p = 0; p < compared.front().size(); ++p) {
        if (p == 0) {
            if (!compared.front()[0].refused) chosen.push_back(0);
        } else if (slowest(p) && (!best || *slowest(p) < *slowest(*best))) {
            best = p;
        }
    }
    if (best) chosen.push_back(*best);
    return chosen;
}

[[noreturn]] void nothing_fits(const std::vector<std::vector<Compared>>& compared) {
    for (const auto& replica : compared)
        for (const Compared& one : replica) {
            if (one.refused) throw *one.refused;
            if (!one.found.why_not.empty())
                fail(ErrorKind::limit, "{}: {}", one.candidate.partition.name, one.found.why_not);
        }
    fail(ErrorKind::limit, "no partition has a schedule that fits the ranks' memory");
}

// The searched partition whose slowest replica is fastest; ties go to the earlier.
std::size_t winner(const std::vector<std::vector<Compared>>& compared, const std::vector<std::size_t>& searched) {
    std::optional<std::size_t> best;
    Duration best_time{};
    for (const std::size_t p : searched) {
        Duration slowest{};
        bool complete = true;
        for (const auto& replica : compared) {
            complete = complete && replica[p].found.schedule;
            if (replica[p].found.schedule) slowest = std::max(slowest, replica[p].found.replay.makespan);
        }
        if (!complete || (best && slowest >= best_time)) continue;
        best = p;
        best_time = slowest;
    }
    if (!best) nothing_fits(compared);
    return *best;
}

// Of partition `best`; ties go to the earlier.
std::size_t slowest_replica(const std::vector<std::vector<Compared>>& compared, std::size_t best) {
    std::size_t slowest = 0;
    for (std::size_t r = 1; r < compared.size(); ++r)
        if (compared[r][best].found.replay.makespan > compared[slowest][best].found.replay.makespan) slowest = r;
    return slowest;
}

// A policy counts where it applies on every replica, with the time of the slowest; a bound of any replica is one of the
// step.
void merge_baselines(const std::vector<std::vector<Compared>>& compared, Plan& plan) {
    for (std::size_t p = 0; p < compared.front().size(); ++p)
        for (const auto& policy : search::policies()) {
            std::optional<Baseline> slowest;
            std::optional<NotApplicable> refused;
            Duration bound{};
            for (const auto& replica : compared) {
                for (const NotApplicable& why : replica[p].not_applicable)
                    if (why.policy == policy.name && !refused) refused = why;
                for (const Baseline& one : replica[p].baselines) {
                    if (one.policy != policy.name) continue;
                    if (!slowest || one.makespan > slowest->makespan) slowest = one;
                    bound = std::max(bound, one.bound);
                }
            }
            if (refused) plan.not_applicable.push_back(*refused);
            if (refused || !slowest) continue;
            slowest->bound = bound;
            plan.baselines.push_back(*slowest);
        }
}

// The schedule of a baseline of this partition, or null.
const Schedule* baseline_schedule(const Compared& compared, std::string_view policy) {
    for (std::size_t i = 0; i < compared.baselines.size(); ++i)
        if (compared.baselines[i].policy == policy) return &compared.schedules[i];
    return nullptr;
}

bool is_of(const Baseline& baseline, const Partition& partition) {
    return baseline.partition == partition.name && baseline.chunks_per_rank == partition.chunks_per_rank;
}

// What an engineer would run without a planner: 1f1b or interleaved, on a fixed chain before any other partition.
// With its schedule on this replica.
std::optional<BaselinePlan> best_chain(const std::vector<Compared>& replica, const std::vector<Baseline>& baselines) {
    const Compared* of = nullptr;
    const Baseline* best = nullptr;
    const auto rank = [](const Compared& c, const Baseline& b) {
        return std::tuple(c.candidate.partition.chains.size() > 1, b.makespan);
    };
    for (const Compared& compared : replica)
        for (const Baseline& one : baselines) {
            if (!is_of(one, compared.candidate.partition)) continue;
            if (one.policy != "1f1b" && one.policy != "interleaved") continue;
            if (best && rank(compared, one) >= rank(*of, *best)) continue;
            of = &compared;
            best = &one;
        }
    if (!best) return std::nullopt;
    const Schedule& schedule = *baseline_schedule(*of, best->policy);
    return BaselinePlan{*best, of->candidate, schedule, replay(of->candidate.step.problem, schedule)};
}

// What the plan must stand up to: the fastest of all known schedules, the chain it is pictured beside, and the usual
// pairs, each with the chunks it is fastest with.
std::vector<Baseline> opponents(const Plan& plan) {
    std::vector<Baseline> all;
    const auto add = [&](const Baseline& baseline) {
        for (const Baseline& one : all)
            if (one.partition == baseline.partition && one.policy == baseline.policy) return;
        all.push_back(baseline);
    };
    const auto fastest_of_all = std::min_element(plan.baselines.begin(), plan.baselines.end(),
                                                 [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    if (fastest_of_all != plan.baselines.end()) add(*fastest_of_all);
    if (plan.best_chain) add(plan.best_chain->baseline);
    for (const auto& [partition, policy] : usual_pairs) {
        const Baseline* fastest = nullptr;
        for (const Baseline& one : plan.baselines)
            if (one.partition == partition && one.policy == policy && (!fastest || one.makespan < fastest->makespan))
                fastest = &one;
        if (fastest) add(*fastest);
    }
    return all;
}

// The plan (partition `best`) against those baselines, under costs that are wrong by their own error estimates.
std::optional<Robustness> robustness_of(const std::vector<std::vector<Compared>>& compared, std::size_t best,
                                        const std::vector<Baseline>& against, std::uint64_t seed,
                                        const Executor& execute) {
    if (against.empty()) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<std::vector<Scheduled>> baselines(against.size());
    for (const auto& replica : compared) {
        plan.push_back({&replica[best].candidate.step, &*replica[best].found.schedule});
        for (std::size_t i = 0; i < against.size(); ++i)
            for (const Compared& one : replica)
                if (is_of(against[i], one.candidate.partition))
                    baselines[i].push_back({&one.candidate.step, baseline_schedule(one, against[i].policy)});
    }
    Robustness result = robustness(plan, baselines, seed, execute);
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i].partition;
        result.against[i].chunks_per_rank = against[i].chunks_per_rank;
        result.against[i].policy = against[i].policy;
    }
    return result;
}

// Adds a schedule's busy time, recomputation included, in nanoseconds.
void add_shares(const StepProblem& step, const Schedule& schedule, TimeShares& sum) {
    const auto add = [&](const PassCost& cost, double times) {
        for (std::size_t c = 0; c < operator_classes; ++c)
            for (std::size_t b = 0; b < PassCost::bases; ++b)
                sum.by[c][b] += times * static_cast<double>(cost.shares[c][b].time.count());
    };
    for (const PassCost& cost : step.cost) add(cost, 1);
    for (std::size_t k = 0; k < step.problem.pairs.size(); ++k) {
        const Pair& pair = step.problem.pairs[k];
        const PassCost& again = step.recompute[index(pair.backward)];
        if (again.total() == Duration{0}) continue;
        const Duration extra = pair.modes[schedule.mode[k]].backward - pair.modes.front().backward;
        add(again, static_cast<double>(extra.count()) / static_cast<double>(again.total().count()));
    }
}

void normalise(TimeShares& shares) {
    double sum = 0;
    for (const auto& row : shares.by) sum = std::accumulate(std::begin(row), std::end(row), sum);
    if (sum == 0) return;
    for (auto& row : shares.by)
        for (double& share : row) share /= sum;
}

}  // namespace

double TimeShares::of(costdb::Basis basis) const {
    double sum = 0;
    for (const auto& row : by) sum += row[static_cast<std::size_t>(basis)];
    return sum;
}

Plan make_plan(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
               const Allowance& allowance) {
    check(request.layout, request.cluster, request.model);
    const auto replicas = static_cast<std::size_t>(request.layout.dp);
    if (request.microbatches.size() < replicas)
        fail(ErrorKind::input, "--dp: {} replicas are more than the batch's {} microbatches, and each needs one",
             replicas, request.microbatches.size());
    // Every microbatch passes each rank at least once.
    const std::size_t most_of_one = (request.microbatches.size() + replicas - 1) / replicas;
    require_plannable(most_of_one, 2 * most_of_one * static_cast<std::size_t>(request.layout.pp));
    const Workload workload{&request.model, &request.cluster, &costs, request.layout, &request.microbatches};
    const auto all = partitions(request, workload);

    const Shared shared = share(request, workload);
    Parts parts(replicas);
    for (std::size_t r = 0; r < replicas; ++r)
        for (const std::size_t i : shared.shares[r]) parts[r].push_back(request.microbatches[i]);
    auto compared = compare_all(request, costs, all, parts, execute);

    const auto searched = worth_searching(compared);
    const double for_torch = request.for_torch ? torch_share_if_wanted : torch_share;
    for (const std::size_t p : searched) {
        const double part = searched.size() == 1 ? 1 : p == searched.front() ? main_part : 1 - main_part;
        const double share = (1 - for_torch) * part / static_cast<double>(replicas);
        for (auto& replica : compared) replica[p].found = search_in(replica[p], request, execute, allowance(share));
    }
    const std::size_t best = winner(compared, searched);

    Plan plan;
    plan.loads = shared.loads;
    merge_baselines(compared, plan);
    plan.slowest = slowest_replica(compared, best);
    plan.best_chain = best_chain(compared[plan.slowest], plan.baselines);
    plan.robustness = robustness_of(compared, best, opponents(plan), request.seed, execute);
    Duration optimizer{};
    for (std::size_t r = 0; r < replicas; ++r) {
        ReplicaPlan replica;
        replica.microbatches = shared.shares[r];
        replica.candidate = std::move(compared[r][best].candidate);
        replica.found = std::move(compared[r][best].found);
        plan.makespan = std::max(plan.makespan, replica.found.replay.makespan);
        plan.lower_bound = std::max(plan.lower_bound, replica.found.bound);
        optimizer = std::max(optimizer, replica.candidate.step.optimizer);
        plan.model_flops += replica.candidate.step.model_flops;
        add_shares(replica.candidate.step, *replica.found.schedule, plan.shares);
        plan.replicas.push_back(std::move(replica));
    }
    normalise(plan.shares);
    plan.step = plan.makespan + optimizer;
    const double peak =
        workloads::device(request.cluster.device).bf16_flops * static_cast<double>(request.layout.gpus());
    plan.mfu = plan.model_flops / (peak * static_cast<double>(plan.step.count()) * 1e-9);
    plan.torch = make_torch_plan(request, costs, all, parts.front(), execute, allowance(for_torch));
    if (request.for_torch && !plan.torch.found.schedule) fail(ErrorKind::limit, "torch-csv: {}", plan.torch.why_not);
    return plan;
}

}  // namespace pipeweaver::planner
