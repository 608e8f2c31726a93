#include "planner/job/choose_packing.hpp"

#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/job/sample.hpp"
#include "planner/schedule/schedule_step.hpp"

#include <algorithm>

namespace pipeweaver::planner {

namespace {

// Of one replica, by the initial schedules of a search: which packing is shorter rounds seldom change.
Duration step_of(const Job& job, const partition::Partition& partition, const Microbatches& batch) {
    ScheduleWanted wanted = short_search(job, quick_policies);
    wanted.max_rounds = 0;
    const ScheduledStep searched = schedule_step(
        build(*job.setup, partition, batch, {.name = "search", .most_tasks = sizes.tasks}), wanted, in_order);
    if (!searched.found.schedule) return Duration::max();
    return searched.found.replay.makespan + searched.step.cut.step.optimizer;
}

}  // namespace

Request choose_packing(std::vector<Request> packed, const Executor& execute) {
    const Request& first = packed.front();
    const auto choice = choose_partition(first.job, first.batch, quick_choice, execute);
    const std::size_t batches = std::min(batches_of(first.job, first.batch).size(), sizes.packing_batches);
    std::vector<Duration> steps(packed.size() * batches);
    run_jobs(execute, steps.size(), [&](std::size_t k) {
        const Request& request = packed[k / batches];
        steps[k] = step_of(request.job, choice.partition, batches_of(request.job, request.batch)[k % batches]);
    });
    std::size_t best = 0;
    std::vector<double> sums(packed.size());
    for (std::size_t k = 0; k < steps.size(); ++k) sums[k / batches] += static_cast<double>(steps[k].count());
    for (std::size_t p = 1; p < packed.size(); ++p)
        if (sums[p] < margins.packing * sums[0] && sums[p] < sums[best]) best = p;
    packed[best].job.fixed = partition::PartitionFile{choice.partition, choice.chosen_on};
    return std::move(packed[best]);
}

}  // namespace pipeweaver::planner
