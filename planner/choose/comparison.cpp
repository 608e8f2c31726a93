#include "planner/choose/comparison.hpp"

#include "pipeweaver/search/policies.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

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
    EvaluationWanted wanted{.split = request.split != Split::never};
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
                slowest.bound = std::max(slowest.bound, known.bound.value);
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

std::optional<BaselinePlan> best_chain(const std::vector<Compared>& replica, const std::vector<Baseline>& baselines) {
    const Compared* of = nullptr;
    const Baseline* best = nullptr;
    const auto rank = [](const Compared& c, const Baseline& b) {
        return std::tuple(c.partition().chains.size() > 1, b.makespan);
    };
    for (const Compared& compared : replica)
        for (const Baseline& one : baselines) {
            if (!is_of(one, compared.partition())) continue;
            if (one.policy != "1f1b" && one.policy != "interleaved") continue;
            if (best && rank(compared, one) >= rank(*of, *best)) continue;
            of = &compared;
            best = &one;
        }
    if (!best) return std::nullopt;
    const Schedule& schedule = *of->known.run(best->policy)->result.schedule;
    BaselinePlan plan{*best, of->known.cut, schedule, {}};
    set_lags(plan.cut.step, schedule);
    plan.replay = replay(plan.cut.step.problem, schedule);
    return plan;
}

std::vector<Baseline> opponents(const Baselines& baselines) {
    std::vector<Baseline> all;
    const auto add = [&](const Baseline& baseline) {
        for (const Baseline& one : all)
            if (one.partition == baseline.partition && one.policy == baseline.policy) return;
        all.push_back(baseline);
    };
    const auto fastest_of_all = std::min_element(baselines.all.begin(), baselines.all.end(),
                                                 [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    if (fastest_of_all != baselines.all.end()) add(*fastest_of_all);
    if (baselines.best_chain) add(baselines.best_chain->baseline);
    for (const auto& [partition, policy] : usual_pairs) {
        const Baseline* fastest = nullptr;
        for (const Baseline& one : baselines.all)
            if (one.partition == partition && one.policy == policy && (!fastest || one.makespan < fastest->makespan))
                fastest = &one;
        if (fastest) add(*fastest);
    }
    return all;
}

std::optional<Robustness> robustness_of(const Comparison& compared, std::size_t best,
                                        const std::vector<Baseline>& against, const Draws& draws,
                                        const Executor& execute) {
    if (against.empty()) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<std::vector<Scheduled>> baselines(against.size());
    std::deque<StepProblem> splits;  // that baselines are of
    for (const auto& replica : compared) {
        plan.push_back({&replica[best].searched(), &*replica[best].found.schedule});
        for (std::size_t i = 0; i < against.size(); ++i)
            for (const Compared& one : replica) {
                if (!is_of(against[i], one.partition())) continue;
                const PolicyRun& run = *one.known.run(against[i].policy);
                const StepProblem& whole = one.known.cut.step;
                const StepProblem& step = run.on_split ? splits.emplace_back(*split_step(whole)) : whole;
                baselines[i].push_back({&step, &*run.result.schedule});
            }
    }
    Robustness result = robustness(plan, baselines, draws, execute);
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i].partition;
        result.against[i].chunks_per_rank = against[i].chunks_per_rank;
        result.against[i].policy = against[i].policy;
    }
    return result;
}

}  // namespace pipeweaver::planner
