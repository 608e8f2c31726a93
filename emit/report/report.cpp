#include "pipeweaver/emit/report.hpp"

#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/embedded.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>

#include <algorithm>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_emit_report_template[], pipeweaver_emit_report_template_end[];
}

namespace pipeweaver::emit::report_parts {

std::string filled_page(const Parts& parts) {
    Parts all = parts;
    all.emplace("style", html::style());
    return html::filled(embedded_text(pipeweaver_emit_report_template, pipeweaver_emit_report_template_end), all);
}

std::string gap_figure(Duration found, Duration bound, std::string_view of) {
    return figure("gap", percent(schedule::relative_gap(found, bound)),
                  found == bound ? fmt::format("makespan {}, proven optimal for {}", human(found), of)
                                 : fmt::format("makespan {} over bound {} of {}", human(found), human(bound), of));
}

std::string fullest_rank(const schedule::Problem& problem, const std::vector<Bytes>& peaks, std::string_view replica) {
    const auto most = std::max_element(peaks.begin(), peaks.end());
    const auto rank = most - peaks.begin();
    const auto& limit = problem.ranks[static_cast<std::size_t>(rank)].capacity;
    return figure("fullest rank", human(*most),
                  fmt::format("{}rank {}{}", replica, rank, limit ? ", limit " + human(*limit) : ""));
}

std::string caption(std::string_view name, std::string_view what, Duration makespan) {
    return fmt::format("{} <span>{}: {}</span>", escape(name), escape(what), escape(human(makespan)));
}

std::string found_fact(std::string_view name, const search::Found& found) {
    return fact(name, fmt::format("{}, gap {}; by {} in {} (ended by {}); bound {} ({}); signature {}",
                                  human(found.replay.makespan),
                                  percent(schedule::relative_gap(found.replay.makespan, found.bound)), found.strategy,
                                  plural(found.rounds, "round"), name_of(found.stop_reason), human(found.bound),
                                  found.bound_name, signature(*found.schedule, found.replay.makespan)));
}

}  // namespace pipeweaver::emit::report_parts

namespace pipeweaver::emit {

using namespace planner;
using namespace report_parts;

namespace {

std::string asked(const Job& job, const Batch& batch) {
    return escape(fmt::format("{}. {}. Batch {}: {}, {}.", workloads::parameters_by_module(job.setup->model),
                              emulator::name_of(job.setup->layout), batch.name, batch_text(batch), items_text(batch)));
}

std::string fullest_of_plan(const Plan& plan) {
    const auto most = [](const ReplicaPlan& one) {
        const auto peaks = peaks_of(one.cut.step, one.found.replay.peak);
        return *std::max_element(peaks.begin(), peaks.end());
    };
    const ReplicaPlan& fullest =
        *std::max_element(plan.replicas.begin(), plan.replicas.end(),
                          [&](const ReplicaPlan& a, const ReplicaPlan& b) { return most(a) < most(b); });
    return fullest_rank(fullest.cut.step.problem, peaks_of(fullest.cut.step, fullest.found.replay.peak),
                        plan.replicas.size() == 1 ? "" : fmt::format("replica {}, ", fullest.number));
}

std::string mfu_and_gap(const Plan& plan) {
    return figure("MFU", percent(plan.mfu), "model FLOPs, recomputation not counted, over bf16 peak") +
           gap_figure(plan.makespan, plan.lower_bound, "this partition and packing");
}

// The advised rung, on its terms: what the plan alone is known for stands there only where it is that rung.
std::string figures_of_ladder(const Plan& plan) {
    const Rung& best = plan.ladder.best();
    std::string text = figure("step", human(best.step), fmt::format("{}: {}", best.name, best.way));
    if (const Rung* below = plan.ladder.compared())
        text += figure(
            fmt::format("speedup over {}", below->name), times(ratio(below->step, best.step)),
            fmt::format("{}: the fastest below it that {} runs; step {}", below->way, best.target, human(below->step)));
    if (best.step == plan.step) text += mfu_and_gap(plan);
    return text + figure("fullest rank", human(best.peak), fmt::format("limit {}", human(best.usable)));
}

std::string figures(const Plan& plan) {
    if (!plan.ladder.rungs.empty()) return figures_of_ladder(plan);
    std::string text =
        figure("step", human(plan.step),
               fmt::format("makespan {} + optimizer {}", human(plan.makespan), human(plan.step - plan.makespan)));
    if (const Baseline* opponent = plan.baselines.fastest_opponent())
        text += figure(
            "opponent over plan", times(ratio(opponent->step, plan.step)),
            fmt::format("{}: the fastest of what engineers run; step {}", words_of(*opponent), human(opponent->step)));
    return text + mfu_and_gap(plan) + fullest_of_plan(plan);
}

std::vector<std::string> names_of(const std::vector<emulator::Recompute>& modes) {
    std::vector<std::string> names;
    names.reserve(modes.size());
    for (const emulator::Recompute mode : modes) names.push_back(name_of(mode));
    return names;
}

// The opponent's one setting, whatever its number; by rank there are several, which only their numbers tell apart.
std::vector<std::string> modes_of(const BaselinePlan& opponent) {
    std::size_t modes = 0;
    for (const std::uint32_t mode : opponent.schedule.mode) modes = std::max<std::size_t>(modes, mode + 1);
    const planner::StepRecompute& setting = *opponent.baseline.recompute;
    return std::vector<std::string>(modes, setting.by_rank ? "by rank" : name_of(setting));
}

std::vector<Drawn> drawn(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const auto& partition = replica.cut.partition;
    std::vector<Drawn> all{
        {.id = "plan",
         .heading =
             caption("Plan", fmt::format("{}, {} a rank", partition.name, plural(partition.chunks_per_rank, "chunk")),
                     replica.found.replay.makespan),
         .problem = &replica.cut.step.problem,
         .schedule = &*replica.found.schedule,
         .replay = &replica.found.replay,
         .modes = names_of(partition.modes),
         .optimizer = StepEnd{plan.makespan, plan.step - plan.makespan}}};
    if (const auto& other = plan.baselines.pictured)
        all.push_back(
            {.id = "chain",
             .heading = caption("Fastest opponent on these ranks", words_of(other->baseline), other->replay.makespan),
             .problem = &other->cut.step.problem,
             .schedule = &other->schedule,
             .replay = &other->replay,
             .modes = modes_of(*other),
             .optimizer = StepEnd{other->baseline.makespan, other->baseline.step - other->baseline.makespan}});
    return all;
}

std::string which(const Plan& plan) {
    if (plan.replicas.size() == 1) return {};
    return fmt::format("Replica {} of {} is shown, the slowest. ", plan.replicas[plan.slowest].number,
                       plan.replicas.size());
}

// The pictures are of one replica, the ratio above them of every schedule's slowest.
std::string which_chain(const Plan& plan) {
    if (plan.replicas.size() == 1 || !plan.baselines.pictured) return {};
    return fmt::format(
        "The schedule below the plan runs the same replica's microbatches in {}; its own slowest takes {}. ",
        human(plan.baselines.pictured->replay.makespan), human(plan.baselines.pictured->baseline.makespan));
}

// The search does not know them.
std::string waits(const ReplicaPlan& replica) {
    const std::string text = waits_text(replica.waits);
    if (text.empty()) return {};
    return fmt::format("<p>Searches take transfers as if each went at once; {}: {}.</p>\n", escape(text),
                       escape(human(replica.found.replay.makespan)));
}

}  // namespace

std::string report(const Job& job, const Batch& batch, const Plan& plan) {
    const auto pictures = drawn(plan);
    const std::string title =
        escape(fmt::format("{} on {} x {}", job.setup->model.name, job.setup->cluster.gpus, job.setup->cluster.device));
    Parts parts = picture_parts(pictures, pictures.front());
    parts["which"] = which(plan);
    parts["which_chain"] = which_chain(plan);
    parts.merge(Parts{{"plan", ""},
                      {"title", title},
                      {"asked", asked(job, batch)},
                      {"figures", figures(plan)},
                      {"how_to_run", how_to_run(job, plan)},
                      {"pairs", pair_table(plan)},
                      {"progress", progress(plan.replicas[plan.slowest].found) + waits(plan.replicas[plan.slowest])},
                      {"ranks", time_of_ranks(plan)},
                      {"basis", time_by_basis(plan)},
                      {"robustness", robustness(plan)},
                      {"batch", batch_section(batch, plan)},
                      {"targets", targets(plan)},
                      {"inputs", inputs(job, batch, plan)}});
    if (!plan.ladder.rungs.empty()) parts.emplace("ladder", ladder(job, batch, plan));
    if (job.layout_choice) parts.emplace("layouts", layouts(*job.layout_choice));
    if (plan.replicas.size() > 1) parts.emplace("replicas", replicas(job, batch, plan));
    return filled_page(parts);
}

}  // namespace pipeweaver::emit
