// The plan as text.
#include "emit/plan/ladder_facts.hpp"
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

// How full the microbatches are, in tokens.
double fill(const Job& job, const Batch& batch) {
    std::int64_t tokens = 0, room = 0;
    for (const auto& microbatch : batch.microbatches) {
        tokens += microbatch.tokens;
        room += std::max(microbatch.tokens, job.setup->model.microbatch_tokens);
    }
    return static_cast<double>(tokens) / static_cast<double>(room);
}

std::string plan_heading(const Job& job, const Batch& batch, const Plan& plan) {
    return fmt::format(
        "{}; {}: {}{} ({} of their {} tokens), {}\n\n"
        "step {} = makespan {} + {} optimizer   MFU {} (model FLOPs, recomputation not counted, over bf16 peak)\n"
        "bound {} on the makespan{}, gap {}\n",
        setup_text(*job.setup), batch.name, batch_text(batch),
        job.packing == workloads::Packing::given ? "" : fmt::format(" packed {}", name_of(job.packing)),
        percent(fill(job, batch)), job.setup->model.microbatch_tokens, items_text(batch), seconds(plan.step),
        seconds(plan.makespan), seconds(plan.step - plan.makespan), percent(plan.mfu), seconds(plan.lower_bound),
        job.setup->layout.dp > 1 ? fmt::format(" (the largest of {} replicas)", job.setup->layout.dp) : "",
        percent(schedule::relative_gap(plan.makespan, plan.lower_bound)));
}

// Which of the plan's backwards are split, if any.
std::string split(const Plan& plan) {
    std::size_t all = 0, split = 0;
    for (const ReplicaPlan& replica : plan.replicas) {
        all += replica.backwards;
        split += replica.split_backwards;
    }
    if (split == 0) return {};
    return fmt::format(
        "{} of {} backwards are split into an input gradient, that others wait for, and a weight gradient\n", split,
        all);
}

// Of all replicas; what is lost is the slowest's.
std::string waits(const Plan& plan) {
    PortWaits all{.lost = plan.replicas[plan.slowest].waits.lost};
    for (const ReplicaPlan& replica : plan.replicas) {
        all.transfers += replica.waits.transfers;
        all.waited += replica.waits.waited;
    }
    return line(waits_text(all));
}

std::string over_plan_text(const Baseline& one, const Plan& plan) {
    if (one.padded == plan.is_padded) return times(ratio(one.step, plan.step)) + " the plan's";
    return one.padded ? "padded, which the plan is not" : "not padded, which the plan is";
}

// The fastest that the target launches, or null; beside a ladder nothing else is what the plan is held against.
const Baseline* fastest_launched(const Baselines& baselines) {
    const auto found = std::find_if(baselines.all.begin(), baselines.all.end(),
                                    [](const Baseline& one) { return one.is_opponent && one.launched; });
    return found == baselines.all.end() ? nullptr : &*found;
}

// The fastest opponent and how to run it, and the one that the job's sample chose; the lines above the table.
std::string opponent(const Job& job, const Plan& plan) {
    const bool has_ladder = !plan.ladder.rungs.empty();
    const Baseline* one = has_ladder ? fastest_launched(plan.baselines) : plan.baselines.fastest_opponent();
    if (one == nullptr) return {};
    std::string text = fmt::format(
        "\n{}: {}: step {}, {}\n",
        has_ladder ? fmt::format("the fastest known schedule that {} launches", planner::target(job.target).option)
                   : "opponent, the fastest of what engineers run",
        words_of(*one), seconds(one->step), over_plan_text(*one, plan));
    if (!one->command.empty()) text += "  " + one->command + "\n";
    const Baseline& chosen = *plan.baselines.opponent();
    if (&chosen == one || (has_ladder && !chosen.launched)) return text;
    return text + fmt::format("on {} it is {}: here step {}, {}\n", plan.baselines.chosen_on.text(), words_of(chosen),
                              seconds(chosen.step), over_plan_text(chosen, plan));
}

constexpr std::size_t opponents_shown = 8;

std::string schedules(const Plan& plan) {
    TextTable table({{"partition", true, 24},
                     {"schedule", true, 14},
                     {"chunks", false, 6},
                     {"recompute", true, 10},
                     {"makespan", false, 10},
                     {"gap", false, 8},
                     {"step", false, 10},
                     {"vs plan", false, 8}},
                    1);
    const auto add = [&](const Baseline& one, const std::string& recompute) {
        table.add({one.partition, one.policy, std::to_string(one.chunks_per_rank), recompute, seconds(one.makespan),
                   one.bound ? percent(schedule::relative_gap(one.makespan, *one.bound)) : "-", seconds(one.step),
                   one.padded == plan.is_padded ? times(ratio(one.step, plan.step))
                   : one.padded                 ? "padded"
                                                : "unpadded"});
    };
    add(as_baseline(plan), recompute_of(plan));
    std::size_t opponents = 0;
    for (const Baseline& b : plan.baselines.all)
        if (!b.is_opponent || ++opponents <= opponents_shown) add(b, recompute_of(b));
    std::string text = "\n" + table.text();
    if (opponents > opponents_shown)
        text += fmt::format("{} more opponents are in plan.json and report.html\n", opponents - opponents_shown);
    return text;
}

std::string chosen_on(const Plan& plan) {
    const PartitionChoice& choice = plan.partition_choice;
    return fmt::format("\npartition chosen on {}{}\n", choice.chosen_on.text(),
                       choice.tried.empty() ? "" : fmt::format(", the best of {}", choice.tried.size()));
}

std::string layouts(const std::optional<LayoutChoice>& choice) {
    if (!choice) return {};
    constexpr std::size_t shown = 10;
    const auto& tried = choice->tried;
    std::string text = fmt::format("\nlayout: {} of {} that fit{}, by known schedules{}\n",
                                   choice->taken == 0 ? "the fastest" : "as fast as any", tried.size(),
                                   choice->equal_batch ? " for the same batch" : "",
                                   choice->best().searched ? ", the best of them by a short search" : "");
    for (std::size_t i = 0; i < tried.size(); ++i) {
        const LayoutTried& one = tried[i];
        if (i >= shown && !one.is_own && i != choice->taken) continue;
        const auto cp = one.layout.cp > 1 ? fmt::format("cp {:<2} ", one.layout.cp) : "";
        const auto ep = one.layout.ep > 1 ? fmt::format("ep {:<3} ", one.layout.ep) : "";
        const auto time = choice->equal_batch
                              ? fmt::format("step {:>9}", seconds(one.step))
                              : fmt::format("{:>9} a microbatch, {} microbatches in {}", human(one.per_microbatch()),
                                            one.microbatches, seconds(one.step));
        text += fmt::format("{} tp {:<2} {}pp {:<3} dp {:<4} {}zero {}  {}, {} ({} {}, {}, recompute {}){}\n",
                            i == choice->taken ? ">" : " ", one.layout.tp, cp, one.layout.pp, one.layout.dp, ep,
                            one.zero, time, human(one.memory), one.partition, one.chunks_per_rank, one.policy,
                            recompute_of(one), one.is_own ? ", your own" : "");
    }
    if (choice->own_refused) text += fmt::format("  your own refused: {}\n", *choice->own_refused);
    for (const LayoutRefused& one : choice->refused) text += fmt::format("  {} refused: {}\n", one.count, one.why);
    if (choice->passed_over > 0)
        text += fmt::format("  {} not tried: even without recomputation they would take longer\n", choice->passed_over);
    if (choice->cut_short) text += fmt::format("  {}\n", cut_short_text(*choice));
    return text;
}

std::string replicas_text(const Job& job, const Plan& plan) {
    if (plan.replicas.size() == 1) return {};
    const auto over_mean = [&](Duration load) { return percent(schedule::relative_gap(load, plan.loads.mean)); };
    const bool balanced = job.sharing == partition::Sharing::balanced;
    std::string text = fmt::format("microbatches go to replicas {}: the largest load is {} above the mean",
                                   plan.loads.by_loading ? "by cost and loading"
                                   : balanced            ? "by cost"
                                                         : "in turn",
                                   over_mean(plan.loads.largest));
    if (balanced) text += fmt::format(" (in turn {})", over_mean(plan.loads.largest_in_turn));
    return text + fmt::format(", the slowest schedule {} above theirs\n",
                              percent(schedule::relative_gap(plan.makespan, mean_makespan(plan))));
}

std::size_t fullest_replica(const std::vector<std::vector<Bytes>>& peaks, std::size_t rank) {
    std::size_t fullest = 0;
    for (std::size_t r = 1; r < peaks.size(); ++r)
        if (peaks[r][rank] > peaks[fullest][rank]) fullest = r;
    return fullest;
}

// Bytes that a GPU holds for a parameter, with what ZeRO shares out among its copies from that stage on.
std::string state_bytes(const Job& job, std::int64_t each, std::string_view what, int from_stage) {
    const auto& layout = job.setup->layout;
    const bool shared = job.setup->recipe.zero >= from_stage;
    const auto bytes = [&](std::int64_t copies) {
        return static_cast<double>(each) / static_cast<double>(shared ? copies : 1);
    };
    auto text = fmt::format("{:.3g} B{}", bytes(layout.weight_copies()), what);
    if (shared) text += fmt::format(" ({} B / {})", each, layout.cp > 1 ? "(cp dp)" : "dp");
    return text;
}

// What a GPU holds of it for a parameter of an expert; empty without experts.
std::string expert_bytes(const Job& job, std::int64_t each, int from_stage) {
    const auto& modules = job.setup->model.modules;
    if (std::none_of(modules.begin(), modules.end(), [](const auto& m) { return m.architecture.moe.has_value(); }))
        return {};
    const emulator::Recipe& recipe = job.setup->recipe;
    const std::int64_t copies =
        recipe.zero >= from_stage ? job.setup->layout.expert_copies(recipe.execution.experts.tensor_parallel) : 1;
    return fmt::format(", of experts {:.3g} B ({} B / {} copies)",
                       static_cast<double>(each) / static_cast<double>(copies), each, copies);
}

// What a GPU holds for a trained parameter, and for a frozen one.
std::string parameter_bytes(const Job& job) {
    const emulator::Recipe& recipe = job.setup->recipe;
    const emulator::StateBytes& each = recipe.state;
    std::string text = "a trained parameter: " + state_bytes(job, each.weight, " weight", 3);
    if (recipe.zero >= 3) text += expert_bytes(job, each.weight, 3);
    text += ", " + state_bytes(job, each.gradient, " gradient", 2);
    if (recipe.zero >= 2) text += expert_bytes(job, each.gradient, 2);
    if (each.whole > 0) text += fmt::format(" and {} B whole", each.whole);
    text += ", " + state_bytes(job, each.optimizer, " optimizer", 1) + expert_bytes(job, each.optimizer, 1);
    return text + "; a frozen one: " + state_bytes(job, each.weight, "", 3);
}

std::string memory(const Job& job, const Plan& plan) {
    const bool several = plan.replicas.size() > 1;
    std::string text = fmt::format("\nmemory of a GPU{}; {}\n", kept_free(job.setup->headroom), parameter_bytes(job));
    TextTable table({{"rank", true, 6},
                     {"peak", false, 11},
                     {"of usable", false, 11},
                     {"weights+opt", false, 12},
                     {"activations", false, 12},
                     {"fullest replica", false, 16}},
                    1);
    std::vector<std::string> at_update;
    std::vector<std::vector<Bytes>> peaks;
    for (const ReplicaPlan& one : plan.replicas) peaks.push_back(peaks_of(one.cut.step, one.found.replay.peak));
    for (std::size_t rank = 0; rank < peaks.front().size(); ++rank) {
        const std::size_t number = fullest_replica(peaks, rank);
        const ReplicaPlan& replica = plan.replicas[number];
        const StaticMemory& fixed = replica.cut.step.memory[rank];
        const Bytes peak = peaks[number][rank], passes = replica.found.replay.peak[rank];
        if (peak > passes) at_update.push_back(std::to_string(rank));
        table.add({std::to_string(rank), human(peak), human(*replica.cut.step.problem.ranks[rank].capacity),
                   human(fixed.total()), human(passes - fixed.total()), several ? std::to_string(replica.number) : ""});
    }
    text += table.text();
    if (!at_update.empty())
        text += fmt::format("at its peak when the optimizer updates: rank {}\n", fmt::join(at_update, ", "));
    return text + emulator::not_counted() + "\n";
}

std::string robustness_text(const Plan& plan) {
    if (!plan.robustness) return {};
    const Robustness& robustness = *plan.robustness;
    std::string text = fmt::format(
        "if costs are wrong ({} replays{}), the makespan is p10 {}, p50 {}, p90 {}, and memory is exceeded in {};\n"
        "schedules take of the plan's time\n",
        robustness.replays,
        robustness.replicas < plan.replicas.size() ? fmt::format(" of the {} most loaded replicas", robustness.replicas)
                                                   : "",
        seconds(robustness.p10), seconds(robustness.p50), seconds(robustness.p90), robustness.out_of_memory);
    for (const Gain& g : robustness.against)
        text += fmt::format("  {:<33} p10 {:.2f}x, p50 {:.2f}x, p90 {:.2f}x; the plan wins {}, loses {}\n",
                            fmt::format("{}, {}, {}{}", g.partition, g.policy, plural(g.chunks_per_rank, "chunk"),
                                        told_apart(robustness, g)),
                            g.p10, g.p50, g.p90, g.wins, g.losses);
    return text;
}

std::string padding_text(const partition::Padded& p) {
    if (!is_padded(p)) return "";
    return fmt::format("every microbatch padded to {} tokens and {} items ({} of the items'\npositions are padding), ",
                       p.tokens, p.items, percent(padded_share(p.real_patches, p.padded_patches)));
}

// What a target that has a schedule of its own runs, and what its users would run without a plan.
std::string target_text(const Plan& plan, const TargetPlan& own) {
    const planner::Target& row = planner::target(own.target);
    if (!own.found.schedule) return fmt::format("\n{}: no schedule: {}\n", row.title, own.why_not);
    const auto chunks = [](std::int64_t count) { return plural(count, "chunk") + " a rank"; };
    const Duration makespan = own.found.replay.makespan;
    const bool first_alone = is_of_first_alone(plan, row);
    std::string text = fmt::format("\n{} ({}{}): {} with {}, {}recompute {}: makespan {}, {:.2f}x the plan's{}\n",
                                   row.title, schedule_file(row), for_which_replicas(plan, row), own.cut.partition.name,
                                   chunks(own.cut.partition.chunks_per_rank), padding_text(own.padding),
                                   name_of(own.recompute), seconds(makespan), ratio(makespan, compared_with(plan, row)),
                                   first_alone ? " for this replica" : "");
    for (const std::string& policy : row.compared)
        if (const TargetBaseline* best = own.best(policy))
            text += fmt::format("{}{} takes {} ({}, {}, recompute {}), {:.2f}x this schedule\n",
                                is_padded(own.padding) ? "with the same padding " : "", policy, seconds(best->makespan),
                                best->partition, chunks(best->chunks_per_rank), name_of(best->recompute),
                                ratio(best->makespan, makespan));
    return own.choice.other
               ? text + fmt::format("of what was found for {}, {}", row.title, line(choice_text(own.choice)))
               : text;
}

}  // namespace

std::string plan_table(const Job& job, const Batch& batch, const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    std::string text = plan_heading(job, batch, plan) + split(plan) + waits(plan) + replicas_text(job, plan) +
                       layouts(job.layout_choice) + chosen_on(plan) + opponent(job, plan) + schedules(plan) +
                       not_applicable_text(not_applicable(plan.baselines.not_applicable)) + memory(job, plan) + "\n" +
                       shares_text(plan.shares) + robustness_text(plan) + line(choice_text(plan.choice));
    for (const std::string& line : layout_lines(replica.cut.partition, job.setup->model)) text += line + "\n";
    for (const std::string& note : replica.cut.partition.notes) text += fmt::format("{}\n", note);
    for (const std::string& assumption : assumptions(job, batch)) text += fmt::format("assumed: {}\n", assumption);
    for (const TargetPlan& own : plan.targets) text += target_text(plan, own);
    text += "\n";
    if (plan.replicas.size() > 1)
        text +=
            fmt::format("replica {} of {}, the slowest: ", plan.replicas[plan.slowest].number, plan.replicas.size());
    return text + picture(Replayer(replica.cut.step.problem), *replica.found.schedule, replica.found.replay);
}

std::string solution_table(const Problem& problem, const search::Found& found) {
    std::string text = fmt::format(
        "{}: {} tasks on {} ranks\nmakespan {}   bound {} ({})   gap {}\nfound by {}, {} after {} rounds and {} "
        "evaluations\n",
        problem.name, problem.tasks.size(), problem.ranks.size(), human(found.replay.makespan), human(found.bound),
        found.bound_name, percent(schedule::relative_gap(found.replay.makespan, found.bound)), found.strategy,
        name_of(found.stop_reason), found.rounds, found.evaluations);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const auto& capacity = problem.ranks[r].capacity;
        text += fmt::format("rank {:<3} peak {}{}\n", r, human(found.replay.peak[r]),
                            capacity ? fmt::format(" of {}", human(*capacity)) : "");
    }
    return text + picture(Replayer(problem), *found.schedule, found.replay);
}

}  // namespace pipeweaver::emit
