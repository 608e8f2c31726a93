// report.html of a plan from measured stage times: the same template without what such a plan does not know.
#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;
using namespace report_parts;

namespace {

std::string file_name(const StageRequest& request) {
    return std::filesystem::path(request.table.name).filename().string();
}

// What the plan is pictured beside.
const PolicyRun* fastest_policy(const StagePlan& plan) {
    const PolicyRun* fastest = nullptr;
    for (const PolicyRun& one : plan.policies)
        if (one.result.schedule && (fastest == nullptr || one.result.replay.makespan < fastest->result.replay.makespan))
            fastest = &one;
    return fastest;
}

std::string limits(const StageRequest& request) {
    const auto& options = request.options;
    return fmt::format("{}, {}", options.capacity ? human(*options.capacity) + " a rank" : "memory not limited",
                       options.link ? fmt::format("{:.4g} GB/s between ranks",
                                                  static_cast<double>(options.link->bytes_per_second) * 1e-9)
                                    : "transfers take no time");
}

std::string asked(const StageRequest& request) {
    return escape(fmt::format("{} on {}, {}; {}. Times and sizes are those of {}: none is estimated.",
                              plural(request.table.stages.size(), "stage"), plural(request.table.ranks(), "rank"),
                              plural(request.options.microbatches, "microbatch"), limits(request), file_name(request)));
}

struct StageParts {
    enum : std::size_t { forward, backward, weight, waiting };
};

std::vector<TimePart> rank_times(const StagePlan& plan) {
    const Problem& problem = plan.best.problem;
    const std::vector<Duration> none(problem.ranks.size(), Duration{0});
    std::vector<TimePart> all{
        {"forward", 0, none}, {"backward", 1, none}, {"weight gradient", 3, none}, {"waiting", waiting_color, none}};
    const Duration makespan = plan.best.found.replay.makespan;
    all[StageParts::waiting].ranks.assign(none.size(), makespan);
    for (const Task& task : problem.tasks) {
        const std::size_t part = task.kind == TaskKind::forward           ? StageParts::forward
                                 : task.kind == TaskKind::weight_gradient ? StageParts::weight
                                                                          : StageParts::backward;
        all[part].ranks[index(task.rank)] += task.duration;
        all[StageParts::waiting].ranks[index(task.rank)] -= task.duration;
    }
    return all;
}

std::string waiting_figure(const StagePlan& plan) {
    const auto all = rank_times(plan)[StageParts::waiting].ranks;
    Duration sum{};
    for (const Duration time : all) sum += time;
    const auto most = std::max_element(all.begin(), all.end());
    const Duration makespan = plan.best.found.replay.makespan;
    return figure(
        "waiting", percent(ratio(sum, makespan) / static_cast<double>(all.size())),
        fmt::format("mean of the ranks; rank {} the most, {}", most - all.begin(), percent(ratio(*most, makespan))));
}

std::string fullest_rank(const StagePlan& plan) {
    const auto& peak = plan.best.found.replay.peak;
    const auto most = std::max_element(peak.begin(), peak.end());
    const auto rank = static_cast<std::size_t>(most - peak.begin());
    const auto& limit = plan.best.problem.ranks[rank].capacity;
    return figure("fullest rank", human(*most),
                  limit ? fmt::format("rank {}, limit {}", rank, human(*limit)) : fmt::format("rank {}", rank));
}

std::string figures(const StageRequest& request, const StagePlan& plan) {
    const search::Found& found = plan.best.found;
    const planner::Target& wanted = planner::target(request.target);
    std::string text =
        figure("step", human(found.replay.makespan),
               fmt::format("{}; found by {}",
                           has_own_plan(wanted) ? fmt::format("a schedule that {} runs", wanted.title) : "any schedule",
                           found.strategy));
    if (const PolicyRun* known = fastest_policy(plan))
        text +=
            figure("best known schedule over plan", times(ratio(known->result.replay.makespan, found.replay.makespan)),
                   fmt::format("{} in {}", known->policy, human(known->result.replay.makespan)));
    text += gap_figure(found.replay.makespan, found.bound, "these stages");
    return text + waiting_figure(plan) + fullest_rank(plan);
}

// A rank's stages have a colour each, alike on all ranks.
std::vector<std::string> chunks(const Problem& problem) {
    std::vector<std::size_t> before(problem.ranks.size(), 0);
    std::vector<std::string> of_stage;
    for (const Stage& stage : problem.stages) of_stage.push_back(fmt::format("chunk {}", before[index(stage.rank)]++));
    std::vector<std::string> names;
    for (const Task& task : problem.tasks) names.push_back(of_stage[static_cast<std::size_t>(*task.stage)]);
    return names;
}

std::vector<Drawn> drawn(const StagePlan& plan) {
    const Problem& problem = plan.best.problem;
    const auto groups = chunks(problem);
    std::vector<Drawn> all{{"plan", caption("Plan", plan.best.found.strategy, plan.best.found.replay.makespan),
                            &problem, &*plan.best.found.schedule, &plan.best.found.replay, groups}};
    if (const PolicyRun* known = fastest_policy(plan))
        all.push_back({"chain", caption("Best known schedule", known->policy, known->result.replay.makespan), &problem,
                       &*known->result.schedule, &known->result.replay, groups});
    return all;
}

std::string schedules(const StagePlan& plan) {
    const search::Found& best = plan.best.found;
    const Duration makespan = best.replay.makespan;
    const auto row = [&](std::string_view name, Duration time) {
        return compared_row({{std::string(name)}, {}, time, best.bound}, makespan, name == "plan");
    };
    std::string html =
        "<div class=\"wide\"><table class=\"pairs stack\"><thead><tr><th>schedule</th><th class=\"n\">step</th><th "
        "class=\"n\">bound</th>"
        "<th class=\"n\">gap</th><th class=\"n\">over plan</th></tr></thead><tbody>\n" +
        row("plan", makespan);
    std::vector<const PolicyRun*> sorted;
    for (const PolicyRun& one : plan.policies)
        if (one.result.schedule) sorted.push_back(&one);
    std::stable_sort(sorted.begin(), sorted.end(), [](const PolicyRun* a, const PolicyRun* b) {
        return a->result.replay.makespan < b->result.replay.makespan;
    });
    for (const PolicyRun* one : sorted) html += row(one->policy, one->result.replay.makespan);
    return html + "</tbody></table></div>\n" + not_applicable_list(not_applicable(plan.policies));
}

std::string target_facts(const StagePlan& plan, const planner::Target& target, const search::Found& found) {
    if (!found.schedule) return fmt::format("<p>There is no such schedule: {}</p>\n", escape(found.why_not));
    return fact_table(
        {fact("schedule", schedule_file(target)),
         fact("makespan", fmt::format("{}, {} the plan's", human(found.replay.makespan),
                                      times(ratio(found.replay.makespan, plan.best.found.replay.makespan)))),
         fact("gap", percent(schedule::relative_gap(found.replay.makespan, found.bound)))});
}

std::string targets(const StagePlan& plan) {
    std::string html;
    for (const StageSchedule& own : plan.targets) {
        const planner::Target& target = planner::target(own.target);
        html += target_section(target, target_facts(plan, target, own.found));
    }
    return html;
}

std::string stage_table(const StageTable& table) {
    std::string html = "<table><thead><tr><th>stage</th>";
    for (const std::string_view name :
         {"rank", "forward", "backward", "weight gradient", "activations", "weights", "output"})
        html += fmt::format("<th class=\"n\">{}</th>", name);
    html += "</tr></thead><tbody>\n";
    for (std::size_t s = 0; s < table.stages.size(); ++s) {
        const StageTimes& stage = table.stages[s];
        html += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>", s, index(stage.rank));
        for (const auto& cell : {human(stage.forward), human(stage.backward),
                                 stage.weight ? human(*stage.weight) : std::string("not split"),
                                 human(stage.activation), human(stage.weights), human(stage.send)})
            html += fmt::format("<td class=\"n\">{}</td>", cell);
        html += "</tr>\n";
    }
    return html + "</tbody></table>\n";
}

std::string inputs(const StageRequest& request, const StagePlan& plan) {
    const auto& options = request.options;
    std::string html = heading("Assumed") +
                       "<ul>\n<li>every microbatch takes the same time</li>\n"
                       "<li>transfers overlap with computation and do not compete for the link</li>\n"
                       "<li>a split backward gives its activations back after the weight gradient</li>\n</ul>\n";
    html +=
        heading("Asked") +
        fact_table({fact("stage times", file_name(request)), fact("microbatches", std::to_string(options.microbatches)),
                    fact("memory and transfers", limits(request)), fact("strategy", request.strategy),
                    fact("seed", std::to_string(request.seed)),
                    fact("schedule wanted", schedule_wanted(planner::target(request.target))),
                    found_fact("found", plan.best.found)});
    return html + heading("Stages") +
           folded(plural(request.table.stages.size(), "stage"),
                  "<div class=\"wide\">" + stage_table(request.table) + "</div>",
                  request.table.stages.size() <= most_rows_open);
}

}  // namespace

std::string report(const StageRequest& request, const StagePlan& plan) {
    const auto pictures = drawn(plan);
    Duration horizon{1};
    for (const Drawn& one : pictures) horizon = std::max(horizon, one.replay->makespan);
    return filled_page({{"stages", ""},
                        {"title", escape(file_name(request))},
                        {"asked", asked(request)},
                        {"figures", figures(request, plan)},
                        {"horizon", fmt::format("{}", horizon.count())},
                        {"which", ""},
                        {"which_chain", ""},
                        {"axis", axis_labels(horizon)},
                        {"schedules", schedule_pictures(pictures, horizon)},
                        {"memory", memory_pictures(pictures.front(), horizon)},
                        {"pairs", schedules(plan)},
                        {"progress", progress(plan.best.found)},
                        {"ranks", time_of_ranks(rank_times(plan), plan.best.found.replay.makespan)},
                        {"targets", targets(plan)},
                        {"inputs", inputs(request, plan)}});
}

}  // namespace pipeweaver::emit
