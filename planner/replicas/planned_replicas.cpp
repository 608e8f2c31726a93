#include "planner/replicas/planned_replicas.hpp"

#include "pipeweaver/planner/doing.hpp"
#include "planner/replicas/for_replicas.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

PlannedReplicas::PlannedReplicas(const AllReplicas& all, const std::vector<std::size_t>& numbers,
                                 const OnReplica& on_replica)
    : all_(all), numbers_(numbers), on_replica_(on_replica), replicas_(numbers.size()), times_(numbers.size()) {}

void PlannedReplicas::plan(const Executor& execute, const Time& time, double part) {
    const auto make = [&](std::size_t number, const Executor& on, const Time& mine) {
        return plan_replica(all_, number, on, mine);
    };
    plan(make, execute, time, part);
}

void PlannedReplicas::plan(const MakeReplica& make, const Executor& execute, const Time& time, double part) {
    std::vector<std::size_t> places(numbers_.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto work = [&](std::size_t place, const Executor& on, const Time& mine) {
        const Time shown = told(mine, all_.wanted.on_doing, {doing::replica, place + 1, numbers_.size(), {}});
        keep(place, make(numbers_[place], on, shown));
    };
    for_replicas(places, work, execute, time, part);
}

std::string PlannedReplicas::why_not() const {
    const auto none = std::find_if(replicas_.begin(), replicas_.end(),
                                   [](const PlannedReplica& one) { return !one.why_not.empty(); });
    return none == replicas_.end() ? std::string() : none->why_not;
}

Duration PlannedReplicas::step() const {
    Duration makespan{}, optimizer{};
    for (const PlannedReplica& one : replicas_) {
        makespan = std::max(makespan, one.plan.found.replay.makespan);
        optimizer = std::max(optimizer, one.plan.optimizer);
    }
    return makespan + optimizer;
}

std::vector<const ScheduledStep*> PlannedReplicas::replayed(const Time& time) const {
    std::vector<const ScheduledStep*> examined;
    std::size_t tasks = 1;
    for (const PlannedReplica& one : replicas_) {
        if (!one.plan.examined) continue;
        tasks = std::max(tasks, one.scheduled.searched().problem.tasks.size());
        examined.push_back(&one.scheduled);
    }
    const Effort effort = effort_of(tasks, std::max<std::size_t>(1, examined.size()));
    if (!effort.perturbs_anyhow && time.is_over()) return {};
    examined.resize(std::min(examined.size(), effort.perturbed));
    return examined;
}

std::vector<ReplicaPlan> PlannedReplicas::take() {
    std::vector<ReplicaPlan> plans;
    for (PlannedReplica& one : replicas_) plans.push_back(std::move(one.plan));
    return plans;
}

bool PlannedReplicas::is_slower(std::size_t place, std::size_t other) const {
    const auto makespan = [&](std::size_t p) { return replicas_[p].plan.found.replay.makespan; };
    return std::pair(makespan(place), other) > std::pair(makespan(other), place);
}

void PlannedReplicas::keep(std::size_t place, PlannedReplica one) {
    if (!one.why_not.empty()) {
        replicas_[place].why_not = std::move(one.why_not);
        return;
    }
    if (on_replica_) on_replica_(one.plan);
    times_[place] = std::move(one.times);
    if (!one.plan.examined) {
        one.scheduled.step = {};
        one.scheduled.found = {};
    }
    const std::scoped_lock lock(mutex_);
    replicas_[place] = std::move(one);
    if (!on_replica_ || replicas_[place].plan.examined) return;
    const std::size_t other = slowest_.value_or(place);
    slowest_ = is_slower(place, other) ? place : other;
    if (other != place) let_go(replicas_[*slowest_ == place ? other : place].plan);
}

}  // namespace pipeweaver::planner
