// The report's tables of results: every (partition, policy), where the time goes, what the costs rest on,
// whether the plan wins under wrong costs.
#include "emit/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::emit::report_parts {

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

using RankTime = std::array<Duration, parts>;

// Replica 0 over the whole step. What a memory mode adds to a task is recomputation.
std::vector<RankTime> rank_times(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas.front();
    const StepProblem& step = replica.candidate.step;
    const auto costs = Replayer(step.problem).costs(replica.found.schedule->mode);
    std::vector<RankTime> ranks(step.problem.ranks.size(), RankTime{});
    for (std::size_t i = 0; i < step.problem.tasks.size(); ++i) {
        RankTime& rank = ranks[index(step.problem.tasks[i].rank)];
        for (std::size_t c = 0; c < operator_classes; ++c)
            for (const auto& share : step.cost[i].shares[c]) rank[c] += share.time;
        rank[recomputation] += costs[i].duration - step.problem.tasks[i].duration;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        ranks[r][tail] = step.problem.ranks[r].tail;
        ranks[r][optimizer] = plan.step - plan.makespan;
        ranks[r][waiting] = plan.step - std::accumulate(ranks[r].begin(), ranks[r].end(), Duration{0});
    }
    return ranks;
}

std::vector<std::size_t> parts_that_occur(const std::vector<RankTime>& ranks) {
    std::vector<std::size_t> there;
    for (std::size_t p = 0; p < parts; ++p)
        if (std::any_of(ranks.begin(), ranks.end(), [&](const RankTime& rank) { return rank[p] != Duration{0}; }))
            there.push_back(p);
    return there;
}

double share(Duration part, Duration whole) {
    return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string color_legend(const std::vector<std::size_t>& shown) {
    std::string html = "<ul class=\"legend\">";
    for (const std::size_t part : shown)
        html += fmt::format(
            "<li><svg class=\"swatch\" viewBox=\"0 0 14 14\"><rect class=\"c{}\" width=\"14\" "
            "height=\"14\"/></svg>{}</li>",
            part, name_of_part(part));
    return html + "</ul>\n";
}

std::string pair_row(std::string_view classes, const Baseline& pair, Duration after, Duration step) {
    const double versus = share(pair.makespan + after, step);
    return fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        classes.empty() ? "" : fmt::format(" class=\"{}\"", classes), escape(pair.partition), escape(pair.policy),
        pair.chunks_per_rank, human(pair.makespan + after), human(pair.bound + after),
        percent(search::relative_gap(pair.makespan, pair.bound)), times(versus));
}

}  // namespace

std::string pair_table(const Plan& plan) {
    const auto& partition = plan.replicas.front().candidate.partition;
    const Duration after = plan.step - plan.makespan;
    std::string html =
        "<table class=\"pairs\"><thead><tr><th>partition</th><th>schedule</th><th class=\"n\">chunks a rank</th>"
        "<th class=\"n\">step</th><th class=\"n\">bound</th><th class=\"n\">gap</th><th class=\"n\">over plan</th></tr>"
        "</thead><tbody>\n";
    html += pair_row("best", {partition.name, partition.chunks_per_rank, "plan", plan.makespan, plan.lower_bound},
                     after, plan.step);
    auto sorted = plan.baselines;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Baseline& a, const Baseline& b) { return a.makespan < b.makespan; });
    for (const Baseline& pair : sorted) html += pair_row("", pair, after, plan.step);
    for (const NotApplicable& pair : plan.not_applicable)
        html += fmt::format(
            "<tr class=\"not\"><td>{}</td><td>{}</td><td class=\"n\">{}</td><td colspan=\"4\">not "
            "applicable: {}</td></tr>\n",
            escape(pair.partition), escape(pair.policy), pair.chunks_per_rank, escape(pair.why));
    return html + "</tbody></table>\n";
}

std::string time_of_ranks(const Plan& plan) {
    const auto ranks = rank_times(plan);
    const auto shown = parts_that_occur(ranks);
    std::string pictures, table = "<table><thead><tr><th>rank</th>";
    for (const std::size_t part : shown) table += fmt::format("<th class=\"n\">{}</th>", name_of_part(part));
    table += "</tr></thead><tbody>\n";
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::vector<BarPart> bar;
        table += fmt::format("<tr><th scope=\"row\">{}</th>", r);
        for (const std::size_t part : shown) {
            const Duration time = ranks[r][part];
            bar.push_back({part, share(time, plan.step),
                           fmt::format("rank {}: {} {}, {}", r, name_of_part(part), human(time),
                                       percent(share(time, plan.step)))});
            table += fmt::format("<td class=\"n\">{}</td>", percent(share(time, plan.step)));
        }
        table += "</tr>\n";
        pictures += row("share", fmt::format("rank {}", r),
                        stacked_bar(bar, fmt::format("where the time of rank {} goes; the table has the figures", r)));
    }
    return pictures + color_legend(shown) + "<div class=\"wide\">" + table + "</tbody></table></div>\n";
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
    if (!plan.robustness) return "<p>Neither 1f1b nor interleaved applies: there is nothing to compare with.</p>\n";
    const Robustness& r = *plan.robustness;
    std::string html = "<div class=\"wide\"><table><thead><tr><th>against</th>";
    for (const std::string_view name : {"gain p10", "gain p50", "gain p90", "plan wins"})
        html += fmt::format("<th class=\"n\">{}</th>", name);
    html += fmt::format("</tr></thead><tbody>\n<tr><th scope=\"row\">{}</th>",
                        escape(fmt::format("{}, {}, {} a rank", r.partition, r.policy,
                                           plural(static_cast<std::size_t>(r.chunks_per_rank), "chunk"))));
    for (const double gain : {r.gain_p10, r.gain_p50, r.gain_p90})
        html += fmt::format("<td class=\"n\">{}</td>", times(gain));
    return html + fmt::format("<td class=\"n\">{} of {}</td></tr>\n</tbody></table></div>\n", r.wins, r.replays);
}

}  // namespace pipeweaver::emit::report_parts
