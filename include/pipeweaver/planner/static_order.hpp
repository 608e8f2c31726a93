// One order for all batches of a job: what a plan that is made once does to the batches that come after it.
//
// Method       Every batch of the sample is searched; each of the schedules found is carried over to the other batches
//              (search/carry_over.hpp: every task takes its place, a batch of another size the nearest before), and the
//              one that is fastest over all of them is the job's order. Generous: modes that do not fit give way to
//              those that do, and microbatches may be matched by work.
// Determinism  Without an end in time a function of job and batch.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

struct Plan;

class StaticOrder {
public:
    /// Searches the batches of the job's sample on the partition, or the batch where the sample has none, each for an
    /// equal part of `time`, by the job's rounds. Throws Error{limit} where none has a schedule that fits.
    StaticOrder(const Job& job, const Batch& batch, const partition::Partition& partition, const Executor& execute,
                const Time& time);

    /// That of a plan's slowest replica; none: it was not searched for, or is of so many tasks that carrying it over
    /// takes long beside other initial schedules.
    static std::optional<StaticOrder> of_plan(const Plan& plan);

    /// One that was kept as files. Pre: `schedule` is of `problem`, a step of the partition.
    StaticOrder(partition::Partition partition, schedule::Problem problem, schedule::Schedule schedule);

    const schedule::Problem& problem() const { return problem_; }
    const schedule::Schedule& schedule() const { return schedule_; }

    /// The step of a batch in that order, of its slowest replica; none: it cannot be carried over.
    [[nodiscard]] std::optional<Duration> step(const Job& job, const Batch& batch, const Executor& execute) const;

    /// The order on a step of its partition, for a search to begin with; nothing where it cannot be carried over, or
    /// where it is of split backwards and `step` is of whole ones, or the reverse.
    [[nodiscard]] std::vector<schedule::Schedule> carried(const emulator::StepProblem& step) const;

private:
    std::optional<Duration> step_of(const emulator::Setup& setup, const schedule::Problem& order,
                                    const schedule::Schedule& schedule, bool split,
                                    const std::vector<workloads::Microbatch>& batch) const;

    partition::Partition partition_;
    schedule::Problem problem_;  ///< that `schedule_` is of
    schedule::Schedule schedule_;
    bool split_ = false;  ///< whether its backwards are
};

}  // namespace pipeweaver::planner
