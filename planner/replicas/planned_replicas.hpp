// All replicas of a plan, as far as they are remembered: of many, those that are examined and the slowest of the
// others.
#pragma once

#include "planner/replicas/plan_replica.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace pipeweaver::planner {

/// Plans one replica.
using MakeReplica = std::function<PlannedReplica(std::size_t number, const Executor& execute, const Time& time)>;

class PlannedReplicas {
public:
    /// Pre: the arguments outlive it.
    PlannedReplicas(const AllReplicas& all, const std::vector<std::size_t>& numbers, const OnReplica& on_replica);

    /// Plans each within its share of a part of the time.
    void plan(const Executor& execute, const Time& time, double part);

    /// The same in another way than by plan_replica().
    void plan(const MakeReplica& make, const Executor& execute, const Time& time, double part);

    /// Why the first that has no plan has none; empty: all are planned.
    std::string why_not() const;

    /// Of the slowest, with the optimizer. Pre: all are planned, and so below.
    Duration step() const;

    /// Those that are replayed under perturbed costs: the first of those that are examined. None where time is short
    /// and they take some.
    std::vector<const ScheduledStep*> replayed(const Time& time) const;

    const std::vector<ReplicaTimes>& times() const { return times_; }
    const RobustChoice& choice(std::size_t place) const { return replicas_[place].scheduled.choice; }

    std::vector<ReplicaPlan> take();

private:
    bool is_slower(std::size_t place, std::size_t other) const;
    void keep(std::size_t place, PlannedReplica one);

    const AllReplicas& all_;
    const std::vector<std::size_t>& numbers_;
    const OnReplica& on_replica_;
    std::vector<PlannedReplica> replicas_;
    std::vector<ReplicaTimes> times_;
    std::optional<std::size_t> slowest_;  // of those that are not examined
    std::mutex mutex_;
};

}  // namespace pipeweaver::planner
