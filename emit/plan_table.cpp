// The plan as text.
#include "emit/not_applicable.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/picture.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::emit {

using namespace emulator;
using namespace planner;

namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string seconds(Duration time) { return fmt::format("{:.3f} s", static_cast<double>(time.count()) * 1e-9); }

std::string heading(const Request& request, const Plan& plan) {
    std::size_t items = 0;
    for (const auto& microbatch : request.microbatches) items += microbatch.items.size();
    return fmt::format(
        "{} on {} x {}, tp {} x pp {} x dp {}; {}: {} samples in {} microbatches, {} items\n\n"
        "step {}   MFU {} (model FLOPs, recomputation not counted, over bf16 peak)   bound {}, gap {}\n",
        request.model.name, request.cluster.gpus, request.cluster.device, request.layout.tp, request.layout.pp,
        request.layout.dp, request.batch, request.samples.size(), request.microbatches.size(), items,
        seconds(plan.step), percent(plan.mfu), seconds(plan.lower_bound),
        percent(search::relative_gap(plan.makespan, plan.lower_bound)));
}

std::string schedules(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas.front();
    const Duration after = plan.step - plan.makespan;
    std::string text = fmt::format("\n{:<12} {:<14} {:>6} {:>11} {:>11} {:>8} {:>8}\n", "partition", "schedule",
                                   "chunks", "step", "bound", "gap", "vs plan");
    const auto row = [&](std::string_view partition, std::string_view policy, std::int64_t chunks, Duration makespan,
                         Duration bound) {
        const double versus = static_cast<double>((makespan + after).count()) / static_cast<double>(plan.step.count());
        text += fmt::format("{:<12} {:<14} {:>6} {:>11} {:>11} {:>8} {:>7.3f}x\n", partition, policy, chunks,
                            seconds(makespan + after), seconds(bound), percent(search::relative_gap(makespan, bound)),
                            versus);
    };
    row(replica.candidate.partition.name, "plan", replica.candidate.partition.chunks_per_rank, plan.makespan,
        plan.lower_bound);
    for (const Baseline& b : plan.baselines) row(b.partition, b.policy, b.chunks_per_rank, b.makespan, b.bound);
    return text + not_applicable_text(not_applicable(plan.not_applicable));
}

std::string layouts(const std::optional<LayoutChoice>& choice) {
    if (!choice) return {};
    constexpr std::size_t shown = 4;
    std::string text =
        fmt::format("\nlayout: the fastest of {} that fit, by policies without a search\n", choice->tried.size());
    for (std::size_t i = 0; i < std::min(shown, choice->tried.size()); ++i) {
        const LayoutTried& one = choice->tried[i];
        text += fmt::format("  tp {:<2} pp {:<3} dp {:<4} {:>10} a microbatch, {} microbatches in {} ({}, {})\n",
                            one.layout.tp, one.layout.pp, one.layout.dp, human(one.per_microbatch()), one.microbatches,
                            seconds(one.step), one.partition, one.policy);
    }
    for (const LayoutRefused& one : choice->refused) text += fmt::format("  {} refused: {}\n", one.count, one.why);
    return text;
}

std::string replicas(const Request& request, const Plan& plan) {
    if (plan.replicas.size() == 1) return {};
    const auto over_mean = [&](Duration load) { return percent(search::relative_gap(load, plan.loads.mean)); };
    const bool balanced = request.sharing == partition::Sharing::balanced;
    std::string text = fmt::format("microbatches go to replicas {}: the largest load is {} above the mean",
                                   balanced ? "by cost" : "in turn", over_mean(plan.loads.largest));
    if (balanced) text += fmt::format(" (in turn {})", over_mean(plan.loads.largest_in_turn));
    return text + "; memory and picture are those of replica 0\n";
}

std::string memory(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas.front();
    std::string text =
        fmt::format("\n{:<6} {:>11} {:>11} {:>12} {:>12}\n", "rank", "peak", "of usable", "weights+opt", "activations");
    for (std::size_t r = 0; r < replica.found.replay.peak.size(); ++r) {
        const StaticMemory& fixed = replica.candidate.step.memory[r];
        const Bytes peak = replica.found.replay.peak[r];
        text += fmt::format("{:<6} {:>11} {:>11} {:>12} {:>12}\n", r, human(peak),
                            human(*replica.candidate.step.problem.ranks[r].capacity), human(fixed.total()),
                            human(peak - fixed.total()));
    }
    return text;
}

std::string basis(const Plan& plan) {
    std::string text = "\nbusy time rests on costs that are";
    for (const auto b :
         {costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated, costdb::Basis::modelled})
        text += fmt::format(" {} {}{}", costdb::name_of(b), percent(plan.shares.of(b)),
                            b == costdb::Basis::modelled ? "\n" : ",");
    text += "and goes to";
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const double share = std::accumulate(std::begin(plan.shares.by[c]), std::end(plan.shares.by[c]), 0.0);
        if (share > 0) text += fmt::format(" {} {},", name_of(static_cast<OperatorClass>(c)), percent(share));
    }
    text.back() = '\n';
    return text;
}

std::string robustness(const Plan& plan) {
    if (!plan.robustness) return {};
    std::string text =
        fmt::format("if costs are wrong by their own error estimates ({} replays), schedules take of the plan's time\n",
                    plan.robustness->replays);
    for (const Gain& g : plan.robustness->against)
        text += fmt::format("  {:<33} p10 {:.2f}x, p50 {:.2f}x, p90 {:.2f}x; the plan wins {}\n",
                            fmt::format("{}, {}, {} chunk{}", g.partition, g.policy, g.chunks_per_rank,
                                        g.chunks_per_rank == 1 ? "" : "s"),
                            g.p10, g.p50, g.p90, g.wins);
    return text;
}

std::string torch(const Plan& plan) {
    const TorchPlan& t = plan.torch;
    if (!t.found.schedule) return fmt::format("\nPyTorch: no schedule: {}\n", t.why_not);
    const auto& p = t.padding;
    const double padding =
        p.padded_patches == 0 ? 0 : 1 - static_cast<double>(p.real_patches) / static_cast<double>(p.padded_patches);
    return fmt::format(
        "\nPyTorch (torch/schedule.csv): {} with {} chunk{} a rank, every microbatch padded to {} tokens and {} items "
        "({} of the items'\n"
        "positions are padding), recompute {}: makespan {}, {:.2f}x the plan's\n",
        t.candidate.partition.name, t.candidate.partition.chunks_per_rank,
        t.candidate.partition.chunks_per_rank == 1 ? "" : "s", p.tokens, p.items, percent(padding),
        name_of(t.recompute), seconds(t.found.replay.makespan),
        static_cast<double>(t.found.replay.makespan.count()) / static_cast<double>(plan.makespan.count()));
}

}  // namespace

std::string plan_table(const Request& request, const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas.front();
    std::string text = heading(request, plan) + replicas(request, plan) + layouts(request.layout_choice) +
                       schedules(plan) + memory(plan) + basis(plan) + robustness(plan);
    for (const std::string& note : replica.candidate.partition.notes) text += fmt::format("{}\n", note);
    for (const std::string& assumption : request.model.assumed) text += fmt::format("assumed: {}\n", assumption);
    text += torch(plan);
    return text + "\n" +
           picture(Replayer(replica.candidate.step.problem), *replica.found.schedule, replica.found.replay);
}

std::string solution_table(const Problem& problem, const search::Found& found) {
    std::string text = fmt::format(
        "{}: {} tasks on {} ranks\nmakespan {}   bound {} ({})   gap {}\nfound by {}, {} after {} rounds and {} "
        "evaluations\n",
        problem.name, problem.tasks.size(), problem.ranks.size(), human(found.replay.makespan), human(found.bound),
        found.bound_name, percent(search::relative_gap(found.replay.makespan, found.bound)), found.strategy,
        name_of(found.stop_reason), found.rounds, found.evaluations);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const auto& capacity = problem.ranks[r].capacity;
        text += fmt::format("rank {:<3} peak {}{}\n", r, human(found.replay.peak[r]),
                            capacity ? fmt::format(" of {}", human(*capacity)) : "");
    }
    return text + picture(Replayer(problem), *found.schedule, found.replay);
}

}  // namespace pipeweaver::emit
