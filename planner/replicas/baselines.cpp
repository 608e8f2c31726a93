#include "planner/replicas/baselines.hpp"

#include "planner/schedule/schedule_step.hpp"
#include "planner/way/run.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

const Baseline* Baselines::opponent() const {
    const Baseline* first = nullptr;
    for (const Baseline& one : all)
        if (one.way && (first == nullptr || *one.way < *first->way)) first = &one;
    return first;
}

ReplicaTimes times_of(const Step& known) {
    ReplicaTimes times{{}, known.bound.value, known.cut.step.optimizer};
    for (const PolicyRun& run : known.policies)
        times.policies.push_back({run.policy, run.makespan(), run.applies() ? std::string() : run.result.why_not});
    return times;
}

Baselines baselines_of(const partition::Partition& partition, const std::vector<ReplicaTimes>& replicas) {
    Baselines result;
    for (std::size_t p = 0; p < replicas.front().policies.size(); ++p) {
        Baseline slowest{partition.name, partition.chunks_per_rank, replicas.front().policies[p].policy};
        std::string refused;
        for (const ReplicaTimes& replica : replicas) {
            const PolicyTime& one = replica.policies[p];
            if (refused.empty()) refused = one.why_not;
            if (!refused.empty()) break;
            slowest.bound = std::max(slowest.bound.value_or(Duration{}), replica.bound);
            if (one.makespan <= slowest.makespan) continue;
            slowest.makespan = one.makespan;
            slowest.step = one.makespan + replica.optimizer;
        }
        if (refused.empty())
            result.all.push_back(slowest);
        else
            result.not_applicable.push_back({partition.name, partition.chunks_per_rank, slowest.policy, refused});
    }
    return result;
}

const Baseline* fastest_policy(const Baselines& baselines) {
    const Baseline* fastest = nullptr;
    for (const Baseline& one : baselines.all)
        if (!one.is_opponent && (fastest == nullptr || one.step < fastest->step)) fastest = &one;
    return fastest;
}

BaselinePlan pictured(const OpponentRun& run, std::size_t replica) {
    const Step& step = run.steps[replica];
    BaselinePlan plan{run.baseline, take_cut(step), run.schedules[replica], {}};
    plan.replay = settle(step.input, plan.cut.step, plan.schedule).replay;
    return plan;
}

std::optional<Robustness> robustness_of(const std::vector<const ScheduledStep*>& examined, const OpponentRun* opponent,
                                        const Baseline* policy, const Draws& draws, const Executor& execute) {
    if (opponent == nullptr && policy == nullptr) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<const Baseline*> against;
    std::vector<Side> sides;
    plan.reserve(examined.size());
    for (const ScheduledStep* one : examined) plan.push_back({&one->searched(), &*one->found.schedule});
    if (opponent != nullptr) {
        against.push_back(&opponent->baseline);
        Side& side = sides.emplace_back();
        for (std::size_t r = 0; r < examined.size(); ++r)
            side.push_back({&opponent->steps[r].cut.step, &opponent->schedules[r]});
    }
    if (policy != nullptr) {
        against.push_back(policy);
        Side& side = sides.emplace_back();
        for (const ScheduledStep* one : examined) {
            const PolicyRun& run = *one->step.run(policy->policy);
            side.push_back({&one->step.form(run.on_split), &*run.result.schedule});
        }
    }
    Robustness result = robustness(plan, sides, draws, execute);
    result.replicas = examined.size();
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i]->partition;
        result.against[i].chunks_per_rank = against[i]->chunks_per_rank;
        result.against[i].policy = against[i]->policy;
        result.against[i].recompute = against[i]->recompute;
    }
    return result;
}

std::optional<OpponentRun> pipelined_opponent(const Job& job, const Opponents& opponents, const Baselines& baselines,
                                              const std::vector<Microbatches>& replicas) {
    const Baseline* best = nullptr;  // rows stand by their steps
    for (const Baseline& one : baselines.all)
        if (one.way && one.on_own_ranks && (best == nullptr || (one.launched && !best->launched))) best = &one;
    if (!best) return std::nullopt;
    const OpponentWay& way = opponents.ways[*best->way];
    OpponentRun run{.baseline = *best, .steps = {}, .schedules = {}};
    BuiltWay steps(way, replicas, target(job.target));
    WayResult ran = steps.run(way.policy, best->recompute, true);
    if (!ran.runs()) return std::nullopt;
    run.baseline.recompute = ran.recompute;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        run.steps.push_back(steps.take(r));
        run.schedules.push_back(std::move(ran.replicas[r].schedule));
    }
    return run;
}

}  // namespace pipeweaver::planner
