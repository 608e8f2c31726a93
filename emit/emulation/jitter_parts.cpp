// Steps that vary, as text and as JSON.
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/planner/training_cost.hpp"
#include "pipeweaver/search/policy_names.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace pipeweaver::emit {

using planner::DrawnMakespans;
using planner::JitterReport;
using planner::JitterRequest;
using planner::slowed_percents;
using planner::SlowRank;
using Writer = nlohmann::ordered_json;

namespace {

Writer drawn_json(const DrawnMakespans& drawn) {
    return {{"steady_ns", drawn.steady.count()},
            {"p50_ns", drawn.p50.count()},
            {"p90_ns", drawn.p90.count()},
            {"p99_ns", drawn.p99.count()}};
}

Writer asked_jitter_json(const JitterRequest& asked) {
    Writer json{{"steps", asked.steps}, {"seed", asked.seed}, {"task", asked.task}};
    if (asked.slow)
        json["slow"] = {{"rank", or_null(asked.slow->rank)}, {"least", asked.slow->least}, {"most", asked.slow->most}};
    else
        json["rank"] = asked.rank;
    return json;
}

std::string slow_text(const SlowRank& slow) {
    const std::string who = slow.rank ? fmt::format("rank {}", *slow.rank) : std::string("one rank of each step");
    const std::string by = slow.least == slow.most ? percent(slow.least)
                                                   : fmt::format("{} to {}", percent(slow.least), percent(slow.most));
    return fmt::format("{} by {} longer", who, by);
}

std::string varied_text(const JitterRequest& asked) {
    const std::string ranks =
        asked.slow ? slow_text(*asked.slow) : fmt::format("every rank's by {}", percent(asked.rank));
    return fmt::format("every task's time by {} (a standard deviation), {}; {} steps of seed {}", percent(asked.task),
                       ranks, planner::with_commas(static_cast<double>(asked.steps)), asked.seed);
}

std::string drawn_table(const JitterReport& report) {
    TextTable table({{"makespan", true, 12},
                     {"steady", false, 14},
                     {"p50", false, 14},
                     {"p90", false, 14},
                     {"p99", false, 14},
                     {"lists lose, p50", false, 16},
                     {"p99", false, 9}},
                    1);
    const auto lose = [](Duration lists, Duration other) {
        return fmt::format("{:+.2f} %", 100 * (ratio(lists, other) - 1));
    };
    const auto add = [&](const std::string& name, const DrawnMakespans& drawn, bool own) {
        table.add({name, seconds(drawn.steady, 6), seconds(drawn.p50, 6), seconds(drawn.p90, 6), seconds(drawn.p99, 6),
                   own ? "" : lose(report.lists.p50, drawn.p50), own ? "" : lose(report.lists.p99, drawn.p99)});
    };
    add("lists", report.lists, true);
    add("ready queue", report.ready_queue, false);
    if (report.one_f_one_b) add(search::one_f_one_b_policy, *report.one_f_one_b, false);
    const std::string without =
        report.one_f_one_b ? "" : fmt::format("without {}: {}\n", search::one_f_one_b_policy, report.why_no_1f1b);
    return table.text() + without;
}

// The ranks whose slowness costs most, in their order.
std::vector<std::size_t> costliest_ranks(const JitterReport& report) {
    constexpr std::size_t most_rank_rows = 16;
    std::vector<std::size_t> ranks(report.slowed.size());
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](std::size_t a, std::size_t b) { return report.slowed[a].back() > report.slowed[b].back(); });
    if (ranks.size() > most_rank_rows) ranks.resize(most_rank_rows);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::string slowed_table(const JitterReport& report) {
    const auto ranks = costliest_ranks(report);
    std::string text = "what it adds to the steady lists if one rank's tasks take longer by so much";
    if (ranks.size() < report.slowed.size()) text += fmt::format("; the {} that cost most", ranks.size());
    std::vector<TextTable::Column> columns{{"rank", true, 12}};
    for (const int one : slowed_percents) columns.push_back({fmt::format("{} %", one), false, 14});
    TextTable table(std::move(columns), 1);
    for (const std::size_t r : ranks) {
        std::vector<std::string> row{std::to_string(r)};
        for (const Duration makespan : report.slowed[r])
            row.push_back(fmt::format("{:+.2f} %", 100 * (ratio(makespan, report.lists.steady) - 1)));
        table.add(std::move(row));
    }
    return text + "\n" + table.text();
}

// In one line: what they would train is not modelled.
std::string waiting_line(const JitterReport& report) {
    const std::string local =
        report.replicas > 1 ? fmt::format("{} where replicas meet at the very end alone (local steps; {} replayed), ",
                                          percent(report.local_saves), report.replicas)
                            : std::string();
    return fmt::format(
        "without waiting, off the mean makespan: {}at most {} where no rank waits for another (stale steps); what such "
        "steps train is not modelled\n",
        local, percent(report.stale_saves));
}

}  // namespace

nlohmann::ordered_json jitter_json(const JitterReport& report) {
    Writer slowed = Writer::array();
    for (std::size_t r = 0; r < report.slowed.size(); ++r) {
        Writer makespans = Writer::array();
        for (const Duration one : report.slowed[r]) makespans.push_back(one.count());
        slowed.push_back({{"rank", r}, {"makespan_ns", std::move(makespans)}});
    }
    Writer usual = nullptr;
    if (report.one_f_one_b) usual = drawn_json(*report.one_f_one_b);
    return {{"asked", asked_jitter_json(report.asked)},
            {"lists", drawn_json(report.lists)},
            {"ready_queue", drawn_json(report.ready_queue)},
            {"one_f_one_b", std::move(usual)},
            {"why_no_1f1b", report.why_no_1f1b.empty() ? Writer(nullptr) : Writer(report.why_no_1f1b)},
            {"slowed_percent", slowed_percents},
            {"slowed", std::move(slowed)},
            {"replicas", report.replicas},
            {"local_saves", report.local_saves},
            {"stale_saves", report.stale_saves}};
}

std::string jitter_text(const JitterReport& report) {
    const std::string_view of = report.replicas > 1 ? ", of the slowest replica" : "";
    return fmt::format("\nif times vary{}: {}\n{}{}{}", of, varied_text(report.asked), drawn_table(report),
                       slowed_table(report), waiting_line(report));
}

}  // namespace pipeweaver::emit
