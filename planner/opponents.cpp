#include "planner/opponents.hpp"

#include "pipeweaver/search/policies.hpp"
#include "planner/split_search.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

void merge_baselines(const Comparison& compared, Plan& plan) {
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
    const Schedule& schedule = of->schedules[of->place_of(best->policy)];
    return BaselinePlan{*best, of->candidate, schedule, replay(of->candidate.step.problem, schedule)};
}

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

std::optional<Robustness> robustness_of(const Comparison& compared, std::size_t best,
                                        const std::vector<Baseline>& against, std::uint64_t seed,
                                        const Executor& execute) {
    if (against.empty()) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<std::vector<Scheduled>> baselines(against.size());
    std::deque<StepProblem> splits;  // that baselines are of
    for (const auto& replica : compared) {
        plan.push_back({&replica[best].searched(), &*replica[best].found.schedule});
        for (std::size_t i = 0; i < against.size(); ++i)
            for (const Compared& one : replica) {
                if (!is_of(against[i], one.candidate.partition)) continue;
                const std::size_t known = one.place_of(against[i].policy);
                const StepProblem& step =
                    one.split[known] ? splits.emplace_back(*split_step(one.candidate.step)) : one.candidate.step;
                baselines[i].push_back({&step, &one.schedules[known]});
            }
    }
    Robustness result = robustness(plan, baselines, seed, execute);
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i].partition;
        result.against[i].chunks_per_rank = against[i].chunks_per_rank;
        result.against[i].policy = against[i].policy;
    }
    return result;
}

}  // namespace pipeweaver::planner
