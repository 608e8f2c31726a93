// What feeds the GPUs of a row, and what its CPU cores cost.
#include "capacity/study/rows.hpp"
#include "pipeweaver/planner/emulate_options.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::capacity {

namespace {

// The cell's step in the point's layout, as launch flags run it.
planner::EmulateOptions flags_of(const Cell& cell, const Point& point) {
    const planner::PlanConfiguration job = job_in(cell, point.as);
    planner::EmulateOptions asked;
    asked.workload = job.plan.for_target(job.plan.workload);
    asked.batch = job.plan.batch;
    asked.target = job.plan.target;
    asked.recompute = planner::step_recompute_named(point.recompute);
    asked.any_memory = true;  // it was judged to fit
    if (point.as.layout.pp == 1) return asked;
    asked.job.partition = point.partition;
    asked.policy = point.policy;
    asked.chunks = point.chunks;
    return asked;
}

RowInput none_for(std::string why) {
    RowInput none;
    none.why_not = std::move(why);
    return none;
}

}  // namespace

RowInput row_input(const planner::Input& input, std::int64_t replicas) {
    if (!input.why_not.empty()) return none_for(input.why_not);
    const loader::Queue& queue = input.loader.queue;
    RowInput row;
    row.waits = input.waits;
    row.cores = replicas * std::min(queue.workers, queue.cores.value_or(queue.workers));
    if (input.decides) row.decides = input.stages[*input.decides].name;
    if (input.enough) row.enough_workers = input.enough->workers;
    return row;
}

std::optional<RowInput> input_by_flags(const Cell& cell, const Point& point) {
    if (!cell.job || cell.job->plan.batch.loader.empty()) return std::nullopt;
    const auto seed = static_cast<std::uint64_t>(cell.job->limits.seed);
    const auto run = planner::try_emulate(flags_of(cell, point).request(seed, in_order), in_order);
    if (run.why_not) return none_for(run.why_not->what());
    const planner::Input& input = *run.emulation->input;
    RowInput row = row_input(input, point.as.layout.dp);
    // Replicas that are dealt by loading may train for longer than the point's, which are dealt by cost.
    if (row.waits > Duration{}) row.waits = std::max(row.waits, input.step - point.step);
    return row;
}

std::int64_t cores_to_buy(const Study& study, const Cell& cell, std::int64_t cores) {
    if (!study.cores) return 0;
    const double with_gpus = study.cores->included * static_cast<double>(cell.gpus);
    const auto beside = static_cast<std::int64_t>(std::ceil(std::max(0.0, static_cast<double>(cores) - with_gpus)));
    const std::int64_t node = study.cores->node;
    return (beside + node - 1) / node * node;
}

}  // namespace pipeweaver::capacity
