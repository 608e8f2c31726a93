// What was decided before any schedule was searched: the layout, and which replica takes which microbatches.
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

// Degrees that most layouts do without.
std::string others(const emulator::Layout& layout) {
    const auto cp = layout.cp > 1 ? fmt::format(", cp {}", layout.cp) : "";
    const auto ep = layout.ep > 1 ? fmt::format(", ep {}", layout.ep) : "";
    return cp + ep;
}

// Those that were tried, the chosen one and the user's own among the first.
std::string tried_table(const LayoutChoice& choice) {
    Table table("layouts stack",
                {head("tp x pp x dp"), "ZeRO", "partition, chunks", "schedule", "recompute", number("memory"),
                 number("microbatches"), number("step"), number("a microbatch"), number("over the fastest")});
    const Duration fastest = choice.tried.front().per_microbatch();
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < choice.tried.size(); ++i) {
        const LayoutTried& one = choice.tried[i];
        table.add({fmt::format("{} x {} x {}{}{}", one.layout.tp, one.layout.pp, one.layout.dp, others(one.layout),
                               one.is_own ? " (your own)" : ""),
                   std::to_string(one.zero), fmt::format("{} {}", one.partition, one.chunks_per_rank), one.policy,
                   recompute_of(one), human(one.memory), std::to_string(one.microbatches), human(one.step),
                   human(one.per_microbatch()), times(ratio(one.per_microbatch(), fastest))},
                  i == choice.taken ? "best" : "");
        if (i == choice.taken || one.is_own) kept.push_back(i);
    }
    return fmt::format("<p>{} that fit:</p>\n", plural(choice.tried.size(), "layout")) +
           table.first_of("slower", std::move(kept));
}

std::string above_mean(Duration load, Duration mean) {
    if (mean == Duration{0}) return human(load);
    return fmt::format("{}, {} above the mean", human(load), percent(schedule::relative_gap(load, mean)));
}

}  // namespace

std::string layouts(const LayoutChoice& choice) {
    std::vector<std::string> refused;
    for (const LayoutRefused& one : choice.refused)
        refused.push_back(fmt::format("{}: {}", plural(one.count, "layout"), one.why));
    if (choice.own_refused) refused.push_back(fmt::format("your own: {}", *choice.own_refused));
    if (choice.passed_over > 0)
        refused.push_back(fmt::format("{}, not tried: even without recomputation slower than those that were",
                                      plural(choice.passed_over, "layout")));
    if (choice.cut_short) refused.push_back(cut_short_text(choice));
    if (refused.empty()) return tried_table(choice);
    return tried_table(choice) + "<p class=\"not\">Refused:</p>\n" + first_items(refused, "more reasons");
}

std::string replicas(const Job& job, const Batch& batch, const Plan& plan) {
    const bool balanced = job.sharing == partition::Sharing::balanced;
    std::vector<std::string> facts{
        fact("microbatches go to replicas", plan.loads.by_loading ? "by cost and loading"
                                            : balanced            ? "by cost"
                                                                  : "in turn"),
        fact("mean load", human(plan.loads.mean)),
        fact("largest load", above_mean(plan.loads.largest, plan.loads.mean)),
    };
    if (balanced)
        facts.push_back(
            fact("largest load, had they gone in turn", above_mean(plan.loads.largest_in_turn, plan.loads.mean)));
    facts.push_back(fact("slowest schedule", above_mean(plan.makespan, mean_makespan(plan))));
    Table table("", {head("replica"), number("microbatches"), number("tokens"), number("items"), number("schedule"),
                     number("gap")});
    for (const ReplicaPlan& replica : plan.replicas) {
        std::int64_t tokens = 0;
        std::size_t items = 0;
        for (const std::size_t m : replica.microbatches) {
            tokens += batch.microbatches[m].tokens;
            items += batch.microbatches[m].items.size();
        }
        const Duration makespan = replica.found.replay.makespan;
        table.add(
            {std::to_string(replica.number), std::to_string(replica.microbatches.size()), std::to_string(tokens),
             std::to_string(items), human(makespan), percent(schedule::relative_gap(makespan, replica.found.bound))},
            makespan == plan.makespan ? "best" : "");
    }
    return fact_table(facts) +
           folded(plural(plan.replicas.size(), "replica"), table.wide(), plan.replicas.size() <= most_rows_open);
}

}  // namespace pipeweaver::emit::report_parts
