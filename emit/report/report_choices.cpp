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

std::string layout_row(const LayoutTried& one, Duration fastest, bool chosen) {
    return fmt::format("<tr{}><th scope=\"row\">{} x {} x {}{}</th>{}{}{}{}{}{}{}{}{}</tr>\n",
                       chosen ? " class=\"best\"" : "", one.layout.tp, one.layout.pp, one.layout.dp,
                       others(one.layout) + (one.is_own ? " (your own)" : ""), cell("ZeRO", std::to_string(one.zero)),
                       cell("partition, chunks", fmt::format("{} {}", one.partition, one.chunks_per_rank)),
                       cell("schedule", one.policy), cell("recompute", recompute_of(one)),
                       number_cell("memory", human(one.memory)),
                       number_cell("microbatches", std::to_string(one.microbatches)),
                       number_cell("step", human(one.step)), number_cell("a microbatch", human(one.per_microbatch())),
                       number_cell("over the fastest", times(ratio(one.per_microbatch(), fastest))));
}

// Those that were tried, the chosen one and the user's own among the first.
std::string tried_table(const LayoutChoice& choice) {
    LongList list{
        "<div class=\"wide\"><table class=\"layouts stack\"><thead><tr><th>tp x pp x dp</th><th>ZeRO</th>"
        "<th>partition, chunks</th><th>schedule</th><th>recompute</th><th class=\"n\">memory</th>"
        "<th class=\"n\">microbatches</th><th class=\"n\">step</th><th class=\"n\">a microbatch</th>"
        "<th class=\"n\">over the fastest</th></tr></thead><tbody>\n",
        "</tbody></table></div>\n",
        {},
        "slower"};
    const Duration fastest = choice.tried.front().per_microbatch();
    for (std::size_t i = 0; i < choice.tried.size(); ++i) {
        list.rows.push_back(layout_row(choice.tried[i], fastest, i == choice.taken));
        if (i == choice.taken || choice.tried[i].is_own) list.kept.push_back(i);
    }
    return fmt::format("<p>{} that fit:</p>\n", plural(choice.tried.size(), "layout")) + first_of(list);
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
    std::string html = tried_table(choice);
    if (refused.empty()) return html;
    LongList list{"<ul class=\"not\">\n", "</ul>\n", {}, "more reasons"};
    for (const std::string& line : refused) list.rows.push_back(fmt::format("<li>{}</li>\n", escape(line)));
    return html + "<p class=\"not\">Refused:</p>\n" + first_of(list);
}

std::string replicas(const Job& job, const Batch& batch, const Plan& plan) {
    const bool balanced = job.sharing == partition::Sharing::balanced;
    std::vector<std::string> facts{
        fact("microbatches go to replicas", balanced ? "by cost" : "in turn"),
        fact("mean load", human(plan.loads.mean)),
        fact("largest load", above_mean(plan.loads.largest, plan.loads.mean)),
    };
    if (balanced)
        facts.push_back(
            fact("largest load, had they gone in turn", above_mean(plan.loads.largest_in_turn, plan.loads.mean)));
    facts.push_back(fact("slowest schedule", above_mean(plan.makespan, mean_makespan(plan))));
    std::string table =
        "<div class=\"wide\"><table><thead><tr><th>replica</th><th class=\"n\">microbatches</th>"
        "<th class=\"n\">tokens</th><th class=\"n\">items</th><th class=\"n\">schedule</th><th class=\"n\">gap</th>"
        "</tr></thead><tbody>\n";
    for (const ReplicaPlan& replica : plan.replicas) {
        std::int64_t tokens = 0;
        std::size_t items = 0;
        for (const std::size_t m : replica.microbatches) {
            tokens += batch.microbatches[m].tokens;
            items += batch.microbatches[m].items.size();
        }
        const Duration makespan = replica.found.replay.makespan;
        table += fmt::format(
            "<tr{}><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
            "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            makespan == plan.makespan ? " class=\"best\"" : "", replica.number, replica.microbatches.size(), tokens,
            items, human(makespan), percent(schedule::relative_gap(makespan, replica.found.bound)));
    }
    table += "</tbody></table></div>\n";
    return fact_table(facts) +
           folded(plural(plan.replicas.size(), "replica"), table, plan.replicas.size() <= most_rows_open);
}

}  // namespace pipeweaver::emit::report_parts
