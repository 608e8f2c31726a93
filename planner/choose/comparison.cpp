#include "planner/choose/comparison.hpp"

#include "pipeweaver/search/policies.hpp"
#include "planner/choose/split_search.hpp"

#include <algorithm>
#include <deque>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

bool is_of(const Baseline& baseline, const Partition& partition) {
    return baseline.partition == partition.name && baseline.chunks_per_rank == partition.chunks_per_rank;
}

Compared compare_one(const Request& request, const Partition& partition, std::size_t replica,
                     const Microbatches& microbatches, const std::vector<std::string>& policies,
                     const Executor& execute) {
    const Setup& setup = *request.setup;
    auto units = partition::units(partition, setup.model, microbatches);
    require_plannable(microbatches.size(), count_tasks(partition, units));
    EvaluationWanted wanted{.split = request.split != Split::never,
                            .bound = bounds_of(static_cast<std::size_t>(setup.layout.dp))};
    if (!policies.empty()) wanted.policies = policies;
    const StepWanted step{.name = problem_name(setup, partition, replica), .replica = replica};
    return {evaluate(setup, partition, std::move(units), step, wanted, execute)};
}

std::vector<std::string> names_of(const std::vector<std::string>& policies) {
    if (!policies.empty()) return policies;
    std::vector<std::string> names;
    for (const auto& policy : search::policies()) names.push_back(policy.name);
    return names;
}

// Why the policy is not a baseline of the partition; empty: it is one.
std::string why_not(const Evaluation& known, const std::string& policy) {
    if (known.shortage) return known.shortage->text();
    const PolicyRun* run = known.run(policy);
    return run->result.schedule ? std::string() : run->result.why_not;
}

}  // namespace

Comparison compare(const Request& request, const std::vector<Partition>& partitions,
                   const std::vector<Microbatches>& replicas, const std::vector<std::string>& policies,
                   const Executor& execute) {
    Comparison compared(replicas.size(), std::vector<Compared>(partitions.size()));
    const auto one = [&](std::size_t job) {
        const std::size_t r = job / partitions.size(), p = job % partitions.size();
        compared[r][p] = compare_one(request, partitions[p], r, replicas[r], policies, execute);
    };
    // A single one has the threads for its policies.
    const std::size_t jobs = replicas.size() * partitions.size();
    run_jobs(jobs == 1 ? in_order : execute, jobs, one);
    return compared;
}

Baselines baselines_of(const Comparison& compared, const std::vector<std::string>& policies) {
    Baselines result;
    for (std::size_t p = 0; p < compared.front().size(); ++p) {
        const Partition& partition = compared.front()[p].partition();
        for (const std::string& policy : names_of(policies)) {
            Baseline slowest{partition.name, partition.chunks_per_rank, policy};
            std::string refused;
            for (const auto& replica : compared) {
                const Evaluation& known = replica[p].known;
                if (refused.empty()) refused = why_not(known, policy);
                if (!refused.empty()) break;
                const Duration makespan = known.run(policy)->makespan();
                slowest.bound = std::max(slowest.bound.value_or(Duration{}), known.bound.value);
                if (makespan <= slowest.makespan) continue;
                slowest.makespan = makespan;
                slowest.step = makespan + known.cut.step.optimizer;
            }
            if (refused.empty())
                result.all.push_back(slowest);
            else
                result.not_applicable.push_back({partition.name, partition.chunks_per_rank, policy, refused});
        }
    }
    return result;
}

void sharpen(Comparison& compared, std::size_t best, const std::vector<std::size_t>& replicas, Split split,
             Baselines& baselines, const Executor& execute) {
    run_jobs(execute, replicas.size(), [&](std::size_t k) {
        Compared& one = compared[replicas[k]][best];
        const StepProblem& whole = one.known.cut.step;
        const auto parts = split == Split::never ? std::nullopt : split_step(whole);
        one.known.bound = parts ? bound_of_every_choice(whole, *parts) : search::best_bound(Replayer(whole.problem));
        set_bound(one.found, one.known.bound);
    });
    Duration largest{};
    for (const std::size_t r : replicas) largest = std::max(largest, compared[r][best].known.bound.value);
    for (Baseline& one : baselines.all)
        if (is_of(one, compared.front()[best].partition())) one.bound = std::max(one.bound.value_or(largest), largest);
}

const Baseline* fastest_policy(const Baselines& baselines) {
    const Baseline* fastest = nullptr;
    for (const Baseline& one : baselines.all)
        if (!one.is_opponent && (fastest == nullptr || one.step < fastest->step)) fastest = &one;
    return fastest;
}

std::optional<BaselinePlan> pictured(const OpponentRun& run, std::size_t replica) {
    BaselinePlan plan{run.baseline, run.cuts[replica], run.schedules[replica], {}};
    set_lags(plan.cut.step, plan.schedule);
    plan.replay = replay(plan.cut.step.problem, plan.schedule);
    return plan;
}

std::optional<Robustness> robustness_of(const Comparison& compared, std::size_t best,
                                        const std::vector<std::size_t>& judged,
                                        const std::optional<OpponentRun>& opponent, const Baseline* policy,
                                        const Draws& draws, const Executor& execute) {
    if (!opponent && policy == nullptr) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<const Baseline*> against;
    std::vector<Side> sides;
    std::deque<StepProblem> splits;  // that policies are of
    plan.reserve(judged.size());
    for (const std::size_t r : judged)
        plan.push_back({&compared[r][best].searched(), &*compared[r][best].found.schedule});
    if (opponent) {
        against.push_back(&opponent->baseline);
        Side& side = sides.emplace_back();
        for (std::size_t r = 0; r < opponent->cuts.size(); ++r)
            side.push_back({&opponent->cuts[r].step, &opponent->schedules[r]});
    }
    if (policy != nullptr) {
        against.push_back(policy);
        Side& side = sides.emplace_back();
        for (const std::size_t r : judged)
            for (const Compared& one : compared[r]) {
                if (!is_of(*policy, one.partition())) continue;
                const PolicyRun& run = *one.known.run(policy->policy);
                const StepProblem& whole = one.known.cut.step;
                const StepProblem& step = run.on_split ? splits.emplace_back(*split_step(whole)) : whole;
                side.push_back({&step, &*run.result.schedule});
            }
    }
    Robustness result = robustness(plan, sides, draws, execute);
    result.replicas = judged.size();
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i]->partition;
        result.against[i].chunks_per_rank = against[i]->chunks_per_rank;
        result.against[i].policy = against[i]->policy;
    }
    return result;
}

}  // namespace pipeweaver::planner
