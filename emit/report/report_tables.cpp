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

// A part of a stacked bar, which is one row: part i has the class c<i>, its width in millionths of the whole, and a
// hover text.
struct BarPart {
    std::size_t color = 0;
    double share = 0;
    std::string hover;
};
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view description) {
    std::string bar = fmt::format(
        "<svg class=\"stack\" viewBox=\"0 0 1000000 20\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        escape(description));
    std::int64_t from = 0;
    for (const BarPart& part : parts) {
        const std::int64_t width = std::llround(part.share * 1e6);
        if (width > 0)
            bar +=
                fmt::format("<rect class=\"c{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"20\"><title>{}</title></rect>",
                            part.color, from, width, escape(part.hover));
        from += width;
    }
    return bar + "</svg>";
}

}  // namespace

std::vector<TimePart> parts_that_occur(std::vector<TimePart> parts) {
    std::erase_if(parts, [](const TimePart& part) {
        return std::all_of(part.ranks.begin(), part.ranks.end(), [](Duration time) { return time == Duration{0}; });
    });
    return parts;
}

std::string not_applicable_list(const std::vector<std::string>& lines) {
    return lines.empty() ? "" : "<p class=\"not\">Not applicable:</p>\n" + first_items(lines, "more that do not apply");
}

std::string pair_table(const Plan& plan) {
    Table table("pairs stack", {"partition", "schedule", "recompute", number("chunks a rank"), number("makespan"),
                                number("bound"), number("gap"), number("step"), number("over plan")});
    const auto add = [&](const Baseline& one, const std::string& recompute, std::string_view classes = "") {
        table.add({one.partition, one.policy + (one.padded ? ", padded" : ""), recompute,
                   std::to_string(one.chunks_per_rank), human(one.makespan), one.bound ? human(*one.bound) : "",
                   one.bound ? percent(schedule::relative_gap(one.makespan, *one.bound)) : "", human(one.step),
                   one.padded == plan.is_padded ? times(ratio(one.step, plan.step)) : ""},
                  classes);
    };
    add(as_baseline(plan), recompute_of(plan), "best");
    auto sorted = plan.baselines.all;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Baseline& a, const Baseline& b) { return a.step < b.step; });
    for (const Baseline& one : sorted) add(one, recompute_of(one));
    // The plan's own row is not counted: it stands above the fastest ten.
    return table.first_of("slower", {html::first_rows}) +
           not_applicable_list(not_applicable(plan.baselines.not_applicable));
}

std::string time_of_ranks(const std::vector<TimePart>& all, Duration whole) {
    const auto shown = parts_that_occur(all);
    std::vector<html::Column> columns{head("rank")};
    for (const TimePart& part : shown) columns.push_back(number(part.name));
    Table table("", std::move(columns));
    std::string pictures;
    for (std::size_t r = 0; r < all.front().ranks.size(); ++r) {
        std::vector<BarPart> bar;
        std::vector<std::string> texts{std::to_string(r)};
        for (const TimePart& part : shown) {
            const double share = ratio(part.ranks[r], whole);
            bar.push_back({part.color, share,
                           fmt::format("rank {}: {} {}, {}", r, part.name, human(part.ranks[r]), percent(share))});
            texts.push_back(percent(share));
        }
        table.add(texts);
        pictures += row("share", fmt::format("rank {}", r),
                        stacked_bar(bar, fmt::format("where the time of rank {} goes; the table has the figures", r)));
    }
    std::vector<Colored> legend;
    legend.reserve(shown.size());
    for (const TimePart& part : shown) legend.push_back({part.name, part.color});
    return pictures + color_legend(legend) + table.wide();
}

std::vector<TimePart> times_by_kind(const Problem& problem, const search::Found& found) {
    const std::vector<Duration> none(problem.ranks.size());
    std::vector<TimePart> all;
    for (const std::size_t color : {0UL, 1UL, 1UL, 3UL, 4UL}) all.push_back({kind_names[all.size()], color, none});
    all.push_back({"tail", 6, none});
    TimePart waiting{"waiting", waiting_color, std::vector(problem.ranks.size(), found.replay.makespan)};
    const auto spend = [&](std::size_t part, std::size_t rank, Duration time) {
        all[part].ranks[rank] += time;
        waiting.ranks[rank] -= time;
    };
    const auto part_of = [](TaskKind kind) {  // an input gradient counts as a backward
        return static_cast<std::size_t>(kind == TaskKind::input_gradient ? TaskKind::backward : kind);
    };
    const auto costs = Replayer(problem).costs(found.schedule->mode);
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        spend(part_of(problem.tasks[i].kind), index(problem.tasks[i].rank), costs[i].duration);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r)
        if (!found.schedule->order[r].empty()) spend(all.size() - 1, r, problem.ranks[r].tail);
    all.push_back(std::move(waiting));
    return all;
}

std::string time_of_ranks(const Plan& plan) {
    std::vector<TimePart> all;
    for (std::size_t p = 0; p < parts; ++p) all.push_back({name_of_part(p), color_of_part(p), {}});
    for (const RankTime& rank : rank_times(plan))
        for (std::size_t p = 0; p < parts; ++p) all[p].ranks.push_back(rank[p]);
    return time_of_ranks(all, plan.step);
}

std::string time_by_basis(const Plan& plan) {
    std::vector<html::Column> columns{head("operators")};
    for (const auto basis : bases) columns.push_back(number(std::string(costdb::name_of(basis))));
    columns.push_back(number("together"));
    Table table("", std::move(columns));
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const double sum = of_class(plan.shares, c);
        if (sum == 0) continue;
        std::vector<std::string> texts{std::string(name_of(static_cast<OperatorClass>(c)))};
        for (const double one : plan.shares.by[c]) texts.push_back(percent(one));
        texts.push_back(percent(sum));
        table.add(texts);
    }
    std::vector<std::string> all{"all"};
    for (const auto basis : bases) all.push_back(percent(plan.shares.of(basis)));
    all.push_back(percent(1));
    table.add(all, "sum");
    return table.html();
}

std::string robustness(const Plan& plan) {
    if (!plan.is_searched) return "<p>No order was searched: none was replayed under wrong costs.</p>\n";
    if (plan.lacks_robustness) return "<p>Replays under wrong costs were left out for lack of time.</p>\n";
    if (!plan.robustness)
        return "<p>No usual schedule applies on any partition: there is nothing to compare with.</p>\n";
    const Robustness& robust = *plan.robustness;
    std::string html = fmt::format(
        "<p id=\"makespans\">The plan's makespan is {} in the median, {} at p10 and {} at p90. A rank holds more than "
        "it has in {} of {} replays{}.</p>\n",
        human(robust.p50), human(robust.p10), human(robust.p90), robust.out_of_memory, robust.replays,
        robust.replicas < plan.replicas.size() ? fmt::format(" of the {} most loaded replicas", robust.replicas) : "");
    Table table("", {head("against"), number("gain p10"), number("gain p50"), number("gain p90"), number("plan wins"),
                     number("loses")});
    for (const Gain& gain : robust.against)
        table.add({fmt::format("{}, {}, {} a rank{}", gain.partition, gain.policy,
                               plural(gain.chunks_per_rank, "chunk"), told_apart(robust, gain)),
                   times(gain.p10), times(gain.p50), times(gain.p90),
                   fmt::format("{} of {}", gain.wins, robust.replays), std::to_string(gain.losses)});
    html += table.wide();
    const std::string choice = choice_text(plan.choice);
    return choice.empty() ? html
                          : html + fmt::format("<p id=\"choice\">Of what the search found, {}.</p>\n", escape(choice));
}

}  // namespace pipeweaver::emit::report_parts
