// What was decided before any schedule was searched: the layout, and which replica takes which microbatches.
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
    return fmt::format(
        "<tr{}><th scope=\"row\">{} x {} x {}{}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        chosen ? " class=\"best\"" : "", one.layout.tp, one.layout.pp, one.layout.dp, others(one.layout),
        escape(one.partition), escape(one.policy), one.microbatches, human(one.step), human(one.per_microbatch()),
        times(ratio(one.per_microbatch(), fastest)));
}

std::string above_mean(Duration load, Duration mean) {
    if (mean == Duration{0}) return human(load);
    return fmt::format("{}, {} above the mean", human(load), percent(schedule::relative_gap(load, mean)));
}

}  // namespace

std::string layouts(const LayoutChoice& choice) {
    std::string table =
        "<div class=\"wide\"><table><thead><tr><th>tp x pp x dp</th><th>partition</th><th>schedule</th>"
        "<th class=\"n\">microbatches</th><th class=\"n\">step</th><th class=\"n\">a microbatch</th>"
        "<th class=\"n\">over the fastest</th></tr></thead><tbody>\n";
    const Duration fastest = choice.tried.front().per_microbatch();
    for (std::size_t i = 0; i < choice.tried.size(); ++i) table += layout_row(choice.tried[i], fastest, i == 0);
    table += "</tbody></table></div>\n";
    std::vector<std::string> refused;
    for (const LayoutRefused& one : choice.refused)
        refused.push_back(fmt::format("{}: {}", plural(one.count, "layout"), one.why));
    std::string html = folded(fmt::format("{} that fit", plural(choice.tried.size(), "layout")), table,
                              choice.tried.size() <= most_rows_open);
    if (refused.empty()) return html;
    html += "<p class=\"not\">Refused:</p>\n<ul class=\"not\">\n";
    for (const std::string& line : refused) html += fmt::format("<li>{}</li>\n", escape(line));
    return html + "</ul>\n";
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
