// The report's tables of results: every (partition, policy), where the time goes, what the costs rest on,
// whether the plan wins under wrong costs.
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::emit::report_parts {

using namespace schedule;
using namespace emulator;
using namespace planner;

namespace {

// What a rank does besides the operator classes, numbered on from them: also the colours.
enum Part : std::size_t { recomputation = operator_classes, tail, optimizer, waiting, parts };

std::string name_of_part(std::size_t part) {
    if (part < operator_classes) return std::string(name_of(static_cast<OperatorClass>(part)));
    constexpr std::array<std::string_view, parts - operator_classes> names{"recomputation", "gradient tail",
                                                                           "optimizer", "waiting"};
    return std::string(names[part - operator_classes]);
}

// The classes that came last share the last colour.
constexpr std::size_t color_of_part(std::size_t part) {
    constexpr auto last = static_cast<std::size_t>(OperatorClass::experts);
    if (part >= operator_classes) return waiting_color - (waiting - part);
    return part < last ? part : waiting_color + 1;
}

using RankTime = std::array<Duration, parts>;

// The slowest replica over the whole step. What a memory mode adds to a task is recomputation.
std::vector<RankTime> rank_times(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const StepProblem& step = replica.cut.step;
    const auto costs = Replayer(step.problem).costs(replica.found.schedule->mode);
    std::vector<RankTime> ranks(step.problem.ranks.size(), RankTime{});
    for (std::size_t i = 0; i < step.problem.tasks.size(); ++i) {
        RankTime& rank = ranks[index(step.problem.tasks[i].rank)];
        for (std::size_t c = 0; c < operator_classes; ++c)
            for (const auto& share : step.cost_of(i).shares[c]) rank[c] += share.time;
        // Traffic beside compute takes no time of the rank.
        rank[static_cast<std::size_t>(OperatorClass::collective)] -= step.cost_of(i).total() - step.cost_of(i).time;
        rank[recomputation] += costs[i].duration - step.problem.tasks[i].duration;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        ranks[r][tail] = step.problem.ranks[r].tail;
        ranks[r][optimizer] = plan.step - plan.makespan;
        ranks[r][waiting] = plan.step - std::accumulate(ranks[r].begin(), ranks[r].end(), Duration{0});
    }
    return ranks;
}

std::vector<TimePart> parts_that_occur(std::vector<TimePart> parts) {
    std::erase_if(parts, [](const TimePart& part) {
        return std::all_of(part.ranks.begin(), part.ranks.end(), [](Duration time) { return time == Duration{0}; });
    });
    return parts;
}

}  // namespace

std::string not_applicable_list(const std::vector<std::string>& lines) {
    if (lines.empty()) return {};
    LongList list{"<ul class=\"not\">\n", "</ul>\n", {}, "more that do not apply"};
    for (const std::string& line : lines) list.rows.push_back(fmt::format("<li>{}</li>\n", escape(line)));
    return "<p class=\"not\">Not applicable:</p>\n" + first_of(list);
}

std::string pair_table(const Plan& plan) {
    const auto& partition = plan.replicas.front().cut.partition;
    const auto row = [&](const Baseline& pair, const std::string& recompute, bool best) {
        return compared_row({{pair.partition, pair.policy + (pair.padded ? ", padded" : ""), recompute},
                             pair.chunks_per_rank,
                             pair.makespan,
                             pair.bound,
                             pair.step,
                             pair.padded == plan.is_padded},
                            plan.step, best);
    };
    Baseline own{partition.name, partition.chunks_per_rank, "plan"};
    own.makespan = plan.makespan;
    own.bound = plan.lower_bound;
    own.step = plan.step;
    own.padded = plan.is_padded;
    auto sorted = plan.baselines.all;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    const std::string head =
        "<div class=\"wide\"><table class=\"pairs stack\"><thead><tr><th>partition</th><th>schedule</th>"
        "<th>recompute</th><th class=\"n\">chunks a rank</th><th class=\"n\">makespan</th><th class=\"n\">bound</th>"
        "<th class=\"n\">gap</th><th class=\"n\">step</th><th class=\"n\">over plan</th></tr></thead><tbody>\n";
    // The plan's own row is not counted: it stands above the fastest ten.
    LongList list{head, "</tbody></table></div>\n", {}, "slower"};
    for (const Baseline& pair : sorted) list.rows.push_back(row(pair, recompute_of(pair), false));
    if (list.rows.empty()) list.rows.emplace_back();
    list.rows.front().insert(0, row(own, recompute_of(plan), true));
    return first_of(list) + not_applicable_list(not_applicable(plan.baselines.not_applicable));
}

std::string time_of_ranks(const std::vector<TimePart>& all, Duration whole) {
    const auto shown = parts_that_occur(all);
    std::string pictures, table = "<table><thead><tr><th>rank</th>";
    for (const TimePart& part : shown) table += fmt::format("<th class=\"n\">{}</th>", escape(part.name));
    table += "</tr></thead><tbody>\n";
    for (std::size_t r = 0; r < all.front().ranks.size(); ++r) {
        std::vector<BarPart> bar;
        table += fmt::format("<tr><th scope=\"row\">{}</th>", r);
        for (const TimePart& part : shown) {
            const double share = ratio(part.ranks[r], whole);
            bar.push_back({part.color, share,
                           fmt::format("rank {}: {} {}, {}", r, part.name, human(part.ranks[r]), percent(share))});
            table += fmt::format("<td class=\"n\">{}</td>", percent(share));
        }
        table += "</tr>\n";
        pictures += row("share", fmt::format("rank {}", r),
                        stacked_bar(bar, fmt::format("where the time of rank {} goes; the table has the figures", r)));
    }
    std::vector<Colored> legend;
    legend.reserve(shown.size());
    for (const TimePart& part : shown) legend.push_back({part.name, part.color});
    return pictures + color_legend(legend) + "<div class=\"wide\">" + table + "</tbody></table></div>\n";
}

std::string time_of_ranks(const Plan& plan) {
    std::vector<TimePart> all;
    for (std::size_t p = 0; p < parts; ++p) all.push_back({name_of_part(p), color_of_part(p), {}});
    for (const RankTime& rank : rank_times(plan))
        for (std::size_t p = 0; p < parts; ++p) all[p].ranks.push_back(rank[p]);
    return time_of_ranks(all, plan.step);
}

std::string time_by_basis(const Plan& plan) {
    constexpr std::array bases{costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated,
                               costdb::Basis::modelled};
    std::string html = "<table><thead><tr><th>operators</th>";
    for (const auto basis : bases) html += fmt::format("<th class=\"n\">{}</th>", costdb::name_of(basis));
    html += "<th class=\"n\">together</th></tr></thead><tbody>\n";
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const auto& by = plan.shares.by[c];
        const double sum = std::accumulate(std::begin(by), std::end(by), 0.0);
        if (sum == 0) continue;
        html += fmt::format("<tr><th scope=\"row\">{}</th>", name_of(static_cast<OperatorClass>(c)));
        for (const double one : by) html += fmt::format("<td class=\"n\">{}</td>", percent(one));
        html += fmt::format("<td class=\"n\">{}</td></tr>\n", percent(sum));
    }
    html += "<tr class=\"sum\"><th scope=\"row\">all</th>";
    for (const auto basis : bases) html += fmt::format("<td class=\"n\">{}</td>", percent(plan.shares.of(basis)));
    return html + "<td class=\"n\">100.0 %</td></tr>\n</tbody></table>\n";
}

std::string robustness(const Plan& plan) {
    if (!plan.is_searched) return "<p>No order was searched: none was replayed under wrong costs.</p>\n";
    if (plan.lacks_robustness) return "<p>Replays under wrong costs were left out for lack of time.</p>\n";
    if (!plan.robustness)
        return "<p>No usual schedule applies on any partition: there is nothing to compare with.</p>\n";
    const Robustness& robust = *plan.robustness;
    std::string html = fmt::format(
        "<p id=\"makespans\">The plan's makespan is {} in the median, {} at p10 and {} at p90. A rank holds more than "
        "it "
        "has in {} of {} replays{}.</p>\n",
        human(robust.p50), human(robust.p10), human(robust.p90), robust.out_of_memory, robust.replays,
        robust.replicas < plan.replicas.size() ? fmt::format(" of the {} most loaded replicas", robust.replicas) : "");
    html += "<div class=\"wide\"><table><thead><tr><th>against</th>";
    for (const std::string_view name : {"gain p10", "gain p50", "gain p90", "plan wins", "loses"})
        html += fmt::format("<th class=\"n\">{}</th>", name);
    html += "</tr></thead><tbody>\n";
    for (const Gain& gain : robust.against) {
        html += fmt::format("<tr><th scope=\"row\">{}</th>",
                            escape(fmt::format("{}, {}, {} a rank{}", gain.partition, gain.policy,
                                               plural(gain.chunks_per_rank, "chunk"), told_apart(robust, gain))));
        for (const double percentile : {gain.p10, gain.p50, gain.p90})
            html += fmt::format("<td class=\"n\">{}</td>", times(percentile));
        html += fmt::format("<td class=\"n\">{} of {}</td><td class=\"n\">{}</td></tr>\n", gain.wins, robust.replays,
                            gain.losses);
    }
    html += "</tbody></table></div>\n";
    const std::string choice = choice_text(plan.choice);
    return choice.empty() ? html
                          : html + fmt::format("<p id=\"choice\">Of what the search found, {}.</p>\n", escape(choice));
}

}  // namespace pipeweaver::emit::report_parts
