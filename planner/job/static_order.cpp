#include "pipeweaver/planner/static_order.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/search/carry_over.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/schedule/schedule_step.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

struct Order {
    Problem problem;
    Schedule schedule;
    bool split = false;
    Duration makespan{};
};

bool is_split(const Problem& problem) {
    return std::any_of(problem.tasks.begin(), problem.tasks.end(),
                       [](const Task& task) { return task.kind == TaskKind::weight_gradient; });
}

std::optional<Order> order_of(const Job& job, const partition::Partition& partition, const Microbatches& batch,
                              const Executor& execute, const Time& time) {
    const ScheduledStep one =
        schedule_step(build(*job.setup, partition, batch, {.name = "search", .most_tasks = sizes.tasks}),
                      short_search(job, {search::dual_queue_policy}), execute, time);
    if (!one.found.schedule) return std::nullopt;
    return Order{one.searched().problem, *one.found.schedule, one.on_split, one.found.replay.makespan};
}

}  // namespace

StaticOrder::StaticOrder(const Job& job, const Batch& batch, const partition::Partition& partition,
                         const Executor& execute, const Time& time) {
    partition_ = partition;
    const auto batches = batches_of(job, batch);
    std::optional<Duration> best;
    for (const Microbatches& one : batches) {
        const auto left = static_cast<double>(&batches.back() - &one + 1);  // of the batches, this one included
        auto order = order_of(job, partition, one, execute, time.fraction(1 / left));
        if (!order) continue;
        Duration sum{};
        for (const Microbatches& other : batches) {
            const auto step = &other == &one
                                  ? std::optional(order->makespan)
                                  : step_of(*job.setup, order->problem, order->schedule, order->split, other);
            sum += step.value_or(10 * order->makespan);
        }
        if (best && sum >= *best) continue;
        best = sum;
        problem_ = std::move(order->problem);
        schedule_ = std::move(order->schedule);
        split_ = order->split;
    }
    if (!best) fail(ErrorKind::limit, "{}: no batch of the sample has a schedule that fits", partition.name);
}

std::optional<StaticOrder> StaticOrder::of_plan(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const Problem& problem = replica.cut.step.problem;
    if (replica.found.rounds == 0 || !effort_of(problem.tasks.size(), 1).keeps_order) return std::nullopt;
    return StaticOrder(plan.partition(), problem, *replica.found.schedule);
}

StaticOrder::StaticOrder(partition::Partition partition, Problem problem, Schedule schedule)
    : partition_(std::move(partition)),
      problem_(std::move(problem)),
      schedule_(std::move(schedule)),
      split_(is_split(problem_)) {}

std::optional<Duration> StaticOrder::step_of(const Setup& setup, const Problem& order, const Schedule& schedule,
                                             bool split, const std::vector<workloads::Microbatch>& batch) const {
    auto known = build(setup, partition_, batch, {.name = "static"});
    if (known.shortage) return std::nullopt;
    auto parts = split ? split_step(known.cut.step) : std::nullopt;
    if (split && !parts) return std::nullopt;
    const StepProblem& step = split ? *parts : known.cut.step;
    std::optional<Duration> best;
    for (const Schedule& carried : search::carry_over(order, schedule, Replayer(step.problem))) {
        const Duration makespan = replay_on_ports(step, carried).replay.makespan + step.optimizer;
        best = std::min(best.value_or(makespan), makespan);
    }
    return best;
}

std::vector<Schedule> StaticOrder::carried(const StepProblem& step) const {
    if (is_split(step.problem) != split_) return {};
    return search::carry_over(problem_, schedule_, Replayer(step.problem));
}

std::optional<Duration> StaticOrder::step(const Job& job, const Batch& batch, const Executor& execute) const {
    const Assignment assignment = assign(job, batch, execute);
    std::vector<std::optional<Duration>> steps(assignment.microbatches.size());
    run_jobs(execute, steps.size(), [&](std::size_t r) {
        steps[r] = step_of(*job.setup, problem_, schedule_, split_, assignment.microbatches[r]);
    });
    Duration slowest{};
    for (const auto& one : steps) {
        if (!one) return std::nullopt;
        slowest = std::max(slowest, *one);
    }
    return slowest;
}

}  // namespace pipeweaver::planner
