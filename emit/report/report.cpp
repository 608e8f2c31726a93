#include "pipeweaver/emit/report.hpp"

#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit {

using namespace planner;
using namespace report_parts;

namespace {

std::string asked(const Job& job, const Batch& batch) {
    std::size_t items = 0;
    for (const auto& microbatch : batch.microbatches) items += microbatch.items.size();
    return escape(fmt::format("{}. {}. Batch {}: {}{} in {}, {}.", parameters_text(job.setup->model),
                              emulator::name_of(job.setup->layout), batch.name, plural(batch.samples.size(), "sample"),
                              not_taken(batch), plural(batch.microbatches.size(), "microbatch"),
                              plural(items, "item")));
}

std::string fullest_rank(const Plan& plan) {
    std::size_t replica = 0, rank = 0;
    Bytes most;
    for (std::size_t r = 0; r < plan.replicas.size(); ++r)
        for (std::size_t k = 0; k < plan.replicas[r].found.replay.peak.size(); ++k) {
            const Bytes peak = plan.replicas[r].found.replay.peak[k];
            if (peak <= most) continue;
            most = peak;
            replica = r;
            rank = k;
        }
    const auto& limit = plan.replicas[replica].cut.step.problem.ranks[rank].capacity;
    const std::string where = plan.replicas.size() == 1
                                  ? fmt::format("rank {}", rank)
                                  : fmt::format("replica {}, rank {}", plan.replicas[replica].number, rank);
    return figure("fullest rank", human(most), limit ? fmt::format("{}, limit {}", where, human(*limit)) : where);
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
            fmt::format("{} over {}", below->name, best.name), times(ratio(below->step, best.step)),
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
    return text + mfu_and_gap(plan) + fullest_rank(plan);
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
    Duration horizon{1};
    for (const Drawn& one : pictures) horizon = std::max(horizon, end_of(one));
    const std::string title =
        escape(fmt::format("{} on {} x {}", job.setup->model.name, job.setup->cluster.gpus, job.setup->cluster.device));
    Parts parts{{"plan", ""},
                {"title", title},
                {"asked", asked(job, batch)},
                {"figures", figures(plan)},
                {"horizon", fmt::format("{}", horizon.count())},
                {"which", which(plan)},
                {"which_chain", which_chain(plan)},
                {"axis", axis_labels(horizon)},
                {"schedules", schedule_pictures(pictures, horizon)},
                {"memory", memory_pictures(pictures.front(), horizon)},
                {"how_to_run", how_to_run(job, plan)},
                {"pairs", pair_table(plan)},
                {"progress", progress(plan.replicas[plan.slowest].found) + waits(plan.replicas[plan.slowest])},
                {"ranks", time_of_ranks(plan)},
                {"basis", time_by_basis(plan)},
                {"robustness", robustness(plan)},
                {"batch", batch_section(batch, plan)},
                {"targets", targets(plan)},
                {"inputs", inputs(job, batch, plan)}};
    if (!plan.ladder.rungs.empty()) parts.emplace("ladder", ladder(job, batch, plan));
    if (job.layout_choice) parts.emplace("layouts", layouts(*job.layout_choice));
    if (plan.replicas.size() > 1) parts.emplace("replicas", replicas(job, batch, plan));
    return filled_page(parts);
}

}  // namespace pipeweaver::emit
