#include "pipeweaver/measured/report.hpp"

#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::measured {

namespace {

using Writer = nlohmann::ordered_json;

constexpr std::size_t most_tasks = 10;

double error_of(Duration planned, Duration measured) {
    const auto of = static_cast<double>(std::max<std::int64_t>(1, planned.count()));
    return static_cast<double>((measured - planned).count()) / of;
}

std::string signed_percent(double part) { return fmt::format("{:+.1f} %", 100 * part); }

std::string signed_text(Duration time) {
    return fmt::format("{}{}", time < Duration{0} ? '-' : '+', human(std::chrono::abs(time)));
}

std::string heading(const Planned& planned, const Comparison& all) {
    return fmt::format(
        "{}: planned {}, measured {} ({}), first pass to last; step {} of {}\n"
        "difference {} = longer passes {} + transfers and waiting {}\n",
        planned.problem.name, human(all.planned), human(all.measured),
        signed_percent(error_of(all.planned, all.measured)), all.step, all.steps,
        signed_text(all.measured - all.planned), signed_text(all.run), signed_text(all.wait));
}

std::string group_table(const Comparison& all) {
    TextTable table({{"passes through", true, 22},
                     {"kind", false, 5},
                     {"passes", false, 8},
                     {"planned", false, 14},
                     {"measured", false, 14},
                     {"error", false, 10},
                     {"of the step", false, 16}},
                    0);
    for (const GroupError& one : all.groups)
        table.add({one.modules, std::string(1, one.kind), std::to_string(one.passes), human(one.planned),
                   human(one.measured), signed_percent(error_of(one.planned, one.measured)), signed_text(one.on_step)});
    return "\n" + table.text();
}

std::string clock_text(const Clocks& clocks, std::size_t rank) {
    if (rank == clocks.reference) return "reference";
    if (!clocks.uncertainty[rank]) return "one side only";
    return fmt::format("+- {}", human(*clocks.uncertainty[rank]));
}

std::string rank_table(const Comparison& all) {
    TextTable table({{"rank", true, 6},
                     {"busy planned", false, 14},
                     {"measured", false, 14},
                     {"waits planned", false, 14},
                     {"measured", false, 14},
                     {"beside peers", false, 14},
                     {"clock", false, 16}},
                    0);
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
        const RankTimes& rank = all.ranks[r];
        table.add({std::to_string(r), human(rank.planned_busy), human(rank.measured_busy), human(rank.planned_wait),
                   human(rank.measured_wait), rank.factor ? fmt::format("x{:.3f}", *rank.factor) : "no peers",
                   clock_text(all.clocks, r)});
    }
    return "\n" + table.text();
}

std::string task_table(const Planned& planned, const Comparison& all) {
    TextTable table({{"task", true, 34},
                     {"rank", false, 6},
                     {"planned", false, 14},
                     {"measured", false, 14},
                     {"change", false, 14}},
                    0);
    for (std::size_t i = 0; i < std::min(most_tasks, all.tasks.size()); ++i) {
        const TaskError& one = all.tasks[i];
        const auto& task = planned.problem.tasks[one.task];
        table.add({task.label, std::to_string(index(task.rank)), human(one.planned), human(one.measured),
                   signed_text(one.measured - one.planned)});
    }
    return "\n" + table.text();
}

std::string verdict(const Comparison& all) {
    std::string text = "\n";
    bool any = false;
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
        if (!all.ranks[r].slow) continue;
        any = true;
        text += fmt::format("slow: rank {} takes {:.3f} times what its peers take for the same passes\n", r,
                            *all.ranks[r].factor);
    }
    if (!any) text += "no rank is slow beside its peers\n";
    if (all.clocks.loosened > Duration{0})
        text += fmt::format("clocks: messages contradict each other by {}: each bound is loosened by that\n",
                            human(all.clocks.loosened));
    return text;
}

Writer clocks_json(const Clocks& clocks) {
    Writer ranks = Writer::array();
    for (std::size_t r = 0; r < clocks.offset.size(); ++r)
        ranks.push_back({{"rank", r},
                         {"offset_ns", clocks.offset[r].count()},
                         {"uncertainty_ns", clocks.uncertainty[r] ? Writer(clocks.uncertainty[r]->count()) : nullptr}});
    return {{"reference", clocks.reference}, {"loosened_ns", clocks.loosened.count()}, {"ranks", std::move(ranks)}};
}

Writer groups_json(const Comparison& all) {
    Writer groups = Writer::array();
    for (const GroupError& one : all.groups)
        groups.push_back({{"modules", one.modules},
                          {"kind", std::string(1, one.kind)},
                          {"passes", one.passes},
                          {"planned_ns", one.planned.count()},
                          {"measured_ns", one.measured.count()},
                          {"error", error_of(one.planned, one.measured)},
                          {"on_step_ns", one.on_step.count()}});
    return groups;
}

Writer ranks_json(const Comparison& all) {
    Writer ranks = Writer::array();
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
        const RankTimes& one = all.ranks[r];
        ranks.push_back({{"rank", r},
                         {"planned_busy_ns", one.planned_busy.count()},
                         {"measured_busy_ns", one.measured_busy.count()},
                         {"planned_wait_ns", one.planned_wait.count()},
                         {"measured_wait_ns", one.measured_wait.count()},
                         {"factor", or_null(one.factor)},
                         {"slow", one.slow}});
    }
    return ranks;
}

}  // namespace

std::string comparison_text(const Planned& planned, const Comparison& comparison) {
    return heading(planned, comparison) + group_table(comparison) + rank_table(comparison) +
           task_table(planned, comparison) + verdict(comparison);
}

Writer comparison_json(const Planned& planned, const Comparison& comparison) {
    Writer tasks = Writer::array();
    for (const TaskError& one : comparison.tasks) {
        const auto& task = planned.problem.tasks[one.task];
        tasks.push_back({{"task", one.task},
                         {"label", task.label},
                         {"rank", index(task.rank)},
                         {"planned_ns", one.planned.count()},
                         {"measured_ns", one.measured.count()}});
    }
    return {{"format", "pipeweaver-comparison/1"},
            {"problem", planned.problem.name},
            {"replica", planned.replica},
            {"steps", comparison.steps},
            {"step", comparison.step},
            {"planned_ns", comparison.planned.count()},
            {"measured_ns", comparison.measured.count()},
            {"run_ns", comparison.run.count()},
            {"wait_ns", comparison.wait.count()},
            {"clocks", clocks_json(comparison.clocks)},
            {"groups", groups_json(comparison)},
            {"ranks", ranks_json(comparison)},
            {"tasks", std::move(tasks)}};
}

}  // namespace pipeweaver::measured
