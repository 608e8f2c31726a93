#include "capacity/study/rows.hpp"

#include "capacity/study/host_ends.hpp"
#include "capacity/study/own_gpus.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/planner/ends.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipeweaver::capacity {

namespace {

// None where no network is known, or its domains hold no tensor parallel group.
std::optional<FaultColumns> faults_of(const Study& study, const Cell& cell, const emulator::Layout& layout) {
    if (study.faulty == 0) return std::nullopt;
    const auto network = workloads::network_of(cell.machine);
    if (!network || cell.gpus % network->node != 0 || why_no_group(*network, layout.tp)) return std::nullopt;
    return fault_columns({.network = *network, .gpus = cell.gpus, .faulty = study.faulty, .tp = layout.tp});
}

std::optional<RowInput> input_or_why_not(const Cell& cell, const Point& point) {
    try {
        return input_by_flags(cell, point);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        RowInput none;
        none.why_not = error.what();
        return none;
    }
}

}  // namespace

double cost_of(const Study& study, const Row& row, bool has_prices) {
    if (row.pace.run) return has_prices ? *row.pace.run->usd : row.pace.run->gpu_hours;
    return static_cast<double>(study.cells[row.cell].gpus) * static_cast<double>(row.step().count());
}

double time_of(const Row& row) { return row.pace.run ? row.pace.run->days : static_cast<double>(row.step().count()); }

bool meets(const Constraints& limits, const Row& row, double factor) {
    const auto& run = row.pace.run;
    if (!run) return true;
    if (limits.days && run->days * factor > *limits.days) return false;
    return !(limits.usd && run->usd && *run->usd * factor > *limits.usd);
}

void judge_by_step(const Study& study, const CellFacts& facts, Row& row) {
    const Cell& cell = study.cells[row.cell];
    row.pace = pace_of(study, cell, facts, row.step());
    row.cores_bought = row.fed() == nullptr ? 0 : cores_to_buy(study, cell, row.fed()->cores);
    row.usd_of_cores = 0;
    if (auto& run = row.pace.run; run && row.cores_bought > 0) {
        row.usd_of_cores = static_cast<double>(row.cores_bought) * study.cores->usd * run->days * 24;
        if (run->usd) *run->usd += row.usd_of_cores;
    }
    row.meets = meets(study.constraints, row, 1);
    const auto far = row.far();
    const double longest = std::max(1 + row.error_percent / 100, far ? ratio(*far, row.step()) : 1);
    row.at_risk = row.meets && !meets(study.constraints, row, longest);
}

std::optional<std::size_t> fastest_point(const CellResult& result, bool (*takes)(const Point&)) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point& point = result.points[i];
        if (point.status != PointStatus::judged || (takes != nullptr && !takes(point))) continue;
        if (!best || point.step < result.points[*best].step) best = i;
    }
    return best;
}

Row row_of(const Study& study, const CellResult& result, std::size_t place) {
    const Cell& cell = study.cells[result.cell];
    const Point& point = result.points[place];
    Row row{.cell = result.cell, .point = place, .flags_step = point.step};
    row.flags_far = point.far;
    row.memory_left = result.facts.usable - point.memory;
    row.error_percent = result.facts.error_percent;
    row.modelled = result.facts.footing == name_of(emulator::Footing::modelled);
    row.command =
        point.split ? command_on_own_gpus(cell, point) : options_of(cell, point.as).command("pipeweaver plan");
    if (!point.split) row.faults = faults_of(study, cell, point.as.layout);
    row.input = input_or_why_not(cell, point);
    judge_by_step(study, result.facts, row);
    return row;
}

Pace pace_of(const Study& study, const Cell& cell, const CellFacts& facts, Duration step) {
    const workloads::Cluster& cluster = cell.machine;
    const double seconds = static_cast<double>(step.count()) * 1e-9, gpus = static_cast<double>(cell.gpus);
    Pace pace;
    pace.tokens_per_second = static_cast<double>(facts.tokens) / seconds;
    pace.tokens_per_second_per_gpu = pace.tokens_per_second / gpus;
    pace.samples_per_second = static_cast<double>(facts.samples) / seconds;
    pace.tflops_per_gpu = facts.model_flops / seconds / gpus * 1e-12;
    pace.mfu = facts.model_flops / (seconds * gpus * workloads::device(cluster.device).bf16_flops);
    if (study.training_tokens > 0)
        pace.run = planner::training_cost(study.training_tokens, step, facts.tokens, cluster);
    return pace;
}

OptionValues options_of(const Cell& cell, const planner::LayoutAndZero& as) {
    OptionValues asked = cell.asked;
    if (cell.job && cell.job->plan.workload.automatic_headroom)
        if (const auto kept = headroom_of(cell); kept != emulator::usual_headroom || asked.find("headroom") != nullptr)
            asked.set("headroom", planner::text_of_headroom(kept));
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
    workload.headroom = headroom_of(cell);
    workload.automatic_headroom = workload.usual_headroom_is_auto = false;
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

Planned planned_of(const planner::Plan& plan, const emulator::Setup& setup) {
    using costdb::Basis;
    Planned planned{.step = plan.step, .partition = plan.partition().name};
    if (const auto end = planner::far_end(plan, setup)) planned.far = end->most();
    for (const planner::ReplicaPlan& replica : plan.replicas)
        for (const Bytes peak : peaks_of(replica.cut.step, replica.found.replay.peak))
            planned.memory = std::max(planned.memory, peak);
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
    if (choice.tried.empty()) return;
    const Duration judged = std::exchange(row.flags_step, choice.best().step);
    const planner::LayoutAndZero as{choice.best().layout, choice.best().zero};
    row.flags_far = far_by_flags(std::move(request), as, row.flags_step, execute);
    // What decides is the loader, which takes as long for either step.
    if (row.input && row.input->waits > Duration{})
        row.input->waits = std::max(Duration{}, judged + row.input->waits - row.flags_step);
}

// Of the planned step: where not all replicas were replayed, no less than the flags' step waits, which is no faster.
RowInput planned_input(const planner::Request& request, const planner::Plan& plan, const Row& row,
                       const Executor& execute) {
    const std::int64_t replicas = request.job.setup->layout.dp;
    RowInput own = row_input(planner::input_of_advised(request, plan, execute), replicas);
    const bool is_of_all = own.why_not.empty() && plan.replicas.size() == static_cast<std::size_t>(replicas);
    return is_of_all || !row.input || row.input->waits <= own.waits ? own : *row.input;
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
        if (!made.plan) {
            row.why_not_planned = made.why_not;
            return;
        }
        row.planned = planned_of(*made.plan, *request.job.setup);
        if (request.job.loader) row.planned->input = planned_input(request, *made.plan, row, execute);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        row.why_not_planned = error.what();
    }
}

}  // namespace pipeweaver::capacity
