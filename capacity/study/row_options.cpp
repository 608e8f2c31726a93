#include "capacity/study/row_options.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/layout_choice.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

OptionValues options_of(const Cell& cell, const planner::LayoutAndZero& as) {
    OptionValues asked = cell.asked;
    const auto set = [&](std::string_view name, std::int64_t degree) { asked.set(name, std::to_string(degree)); };
    set("tp", as.layout.tp);
    if (as.layout.cp > 1) set("cp", as.layout.cp);
    set("pp", as.layout.pp);
    set("dp", as.layout.dp);
    if (as.layout.ep > 1) set("ep", as.layout.ep);
    set("zero", as.zero);
    if (as.zero >= 2) asked.set("bucket", "0B");
    return asked;
}

planner::PlanConfiguration job_in(const Cell& cell, const planner::LayoutAndZero& as) {
    planner::PlanConfiguration job = *cell.job;
    planner::WorkloadOptions& workload = job.plan.workload;
    workload.layout_as.clear();
    workload.tp = {as.layout.tp, false};
    if (as.layout.cp > 1) workload.cp = {as.layout.cp, false};
    workload.pp = {as.layout.pp, false};
    workload.dp = {as.layout.dp, false};
    if (as.layout.ep > 1) workload.ep = {as.layout.ep, false};
    workload.overrides.zero = as.zero;
    if (as.zero >= 2) workload.overrides.bucket = Bytes{};
    return job;
}

namespace {

Planned planned_of(const planner::Plan& plan) {
    using costdb::Basis;
    Planned planned{.step = plan.step, .partition = plan.partition().name};
    for (const planner::ReplicaPlan& replica : plan.replicas)
        for (const Bytes peak : replica.found.replay.peak) planned.memory = std::max(planned.memory, peak);
    planned.gap = static_cast<double>((plan.makespan - plan.lower_bound).count()) /
                  static_cast<double>(std::max<std::int64_t>(1, plan.lower_bound.count()));
    planned.exact = plan.shares.of(Basis::exact);
    planned.interpolated = plan.shares.of(Basis::interpolated);
    planned.extrapolated = plan.shares.of(Basis::extrapolated);
    planned.modelled = plan.shares.of(Basis::modelled);
    return planned;
}

// The flags' step on the batch as the plan has it.
void judge_closely(const planner::Request& of, Row& row, const Executor& execute, const planner::Time& time) {
    const emulator::Layout& in = of.job.setup->layout;
    planner::LayoutRequest request;
    request.setup = of.job.setup.get();
    request.tp = in.tp;
    request.pp = in.pp;
    request.dp = in.dp;
    request.cp = in.cp;
    request.ep = in.ep;
    request.context = in.context;
    request.microbatches = of.batch.microbatches;
    request.target = of.job.target;
    request.only_launched = request.closely = true;
    const auto choice = planner::judge_layouts(request, execute, time);
    if (!choice.tried.empty()) row.flags_step = choice.best().step;
}

}  // namespace

void plan_row(const Cell& cell, const planner::LayoutAndZero& as, Row& row, const Executor& execute,
              const planner::Time& time) {
    const auto job = job_in(cell, as);
    planner::Wanted wanted;
    wanted.targets = wanted.robustness = wanted.opponents = false;
    wanted.only_examined = true;  // of hundreds of replicas the most loaded decide
    try {
        const auto request = job.plan.request(job.limits, execute);
        judge_closely(request, row, execute, time);
        const auto made = planner::try_plan(request.job, request.batch, execute, time, wanted);
        if (made.plan)
            row.planned = planned_of(*made.plan);
        else
            row.why_not_planned = made.why_not;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        row.why_not_planned = error.what();
    }
}

}  // namespace pipeweaver::capacity
