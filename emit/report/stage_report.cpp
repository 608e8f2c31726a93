// report.html of a plan from measured stage times, and of a search: the same template without what they do not know.
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
using search::Found;

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
    return fmt::format(
        "{}, {}{}", options.capacity ? human(*options.capacity) + " a rank" : "memory not limited",
        options.link
            ? fmt::format("{:.4g} GB/s between ranks", static_cast<double>(options.link->bytes_per_second) * 1e-9)
            : "transfers take no time",
        options.split_slowdown == 1 ? std::string()
                                    : fmt::format(", split backwards {} times as long", options.split_slowdown));
}

std::string asked(const StageRequest& request) {
    return escape(fmt::format("{} on {}, {}; {}. Times and sizes are those of {}: none is estimated.",
                              plural(request.table.stages.size(), "stage"), plural(request.table.ranks(), "rank"),
                              plural(request.options.microbatches, "microbatch"), limits(request), file_name(request)));
}

std::string waiting_figure(const StagePlan& plan) {
    const auto all = times_by_kind(plan.best.problem, plan.best.found).back().ranks;
    Duration sum{};
    for (const Duration time : all) sum += time;
    const auto most = std::max_element(all.begin(), all.end());
    const Duration makespan = plan.best.found.replay.makespan;
    return figure(
        "waiting", percent(ratio(sum, makespan) / static_cast<double>(all.size())),
        fmt::format("mean of the ranks; rank {} the most, {}", most - all.begin(), percent(ratio(*most, makespan))));
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
    return text + waiting_figure(plan) + fullest_rank(plan.best.problem, found.replay.peak);
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
    std::vector<Drawn> all{{"plan", caption("Plan", plan.best.found.strategy, plan.best.found.replay.makespan),
                            &problem, &*plan.best.found.schedule, &plan.best.found.replay, chunks(problem)}};
    if (const PolicyRun* known = fastest_policy(plan)) {
        const Problem& its = plan.problem_of(*known);
        all.push_back({"chain", caption("Best known schedule", known->policy, known->result.replay.makespan), &its,
                       &*known->result.schedule, &known->result.replay, chunks(its)});
    }
    return all;
}

std::string schedules(const StagePlan& plan) {
    const search::Found& best = plan.best.found;
    const Duration makespan = best.replay.makespan;
    Table table("pairs stack", {"schedule", number("step"), number("bound"), number("gap"), number("over plan")});
    const auto add = [&](const std::string& name, Duration time, std::string_view classes = "") {
        table.add({name, human(time), human(best.bound), percent(schedule::relative_gap(time, best.bound)),
                   times(ratio(time, makespan))},
                  classes);
    };
    add("plan", makespan, "best");
    std::vector<const PolicyRun*> sorted;
    for (const PolicyRun& one : plan.policies)
        if (one.result.schedule) sorted.push_back(&one);
    std::stable_sort(sorted.begin(), sorted.end(), [](const PolicyRun* a, const PolicyRun* b) {
        return a->result.replay.makespan < b->result.replay.makespan;
    });
    for (const PolicyRun* one : sorted) add(one->policy, one->result.replay.makespan);
    return table.wide() + not_applicable_list(not_applicable(plan.policies));
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

std::string stage_table(const StageTable& of) {
    Table table("", {head("stage"), number("rank"), number("forward"), number("backward"), number("weight gradient"),
                     number("activations"), number("weights"), number("output")});
    for (std::size_t s = 0; s < of.stages.size(); ++s) {
        const StageTimes& stage = of.stages[s];
        table.add({std::to_string(s), std::to_string(index(stage.rank)), human(stage.forward), human(stage.backward),
                   stage.weight ? human(*stage.weight) : "not split", human(stage.activation), human(stage.weights),
                   human(stage.send)});
    }
    return table.html();
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

// Of a search: how it went, and the schedule it began with above the one it ended with.

std::string asked(const Problem& problem, const SearchAsked& asked) {
    std::string text = fmt::format("{} on {}; strategy {}, seed {}", plural(problem.tasks.size(), "task"),
                                   plural(problem.ranks.size(), "rank"), asked.strategy, asked.seed);
    if (!asked.target.empty()) text += fmt::format("; under the rules of {}", asked.target);
    if (asked.warm) text += "; begun with a given schedule";
    return escape(text + ".");
}

// Of the makespan; the schedule may be a later one that is as long.
std::string finder(const Found& found) {
    const auto& last = found.history.back();
    return last.best == found.replay.makespan ? last.found_by : found.strategy;
}

std::string figures(const Problem& problem, const Found& found) {
    const Duration makespan = found.replay.makespan;
    return figure("makespan", human(makespan), fmt::format("found by {}", finder(found))) +
           figure("start over best", times(ratio(found.first->makespan, makespan)),
                  fmt::format("began with {}: {}", found.first->strategy, human(found.first->makespan))) +
           gap_figure(makespan, found.bound, "this problem") +
           figure("rounds", std::to_string(found.rounds),
                  fmt::format("{}, ended by {}", plural(found.evaluations, "evaluation"), name_of(found.stop_reason))) +
           fullest_rank(problem, found.replay.peak);
}

std::string inputs(const Problem& problem, const SearchAsked& asked, const Found& found) {
    std::vector<std::string> facts{fact("problem", problem.name), fact("strategy", asked.strategy),
                                   fact("seed", std::to_string(asked.seed))};
    if (!asked.target.empty()) facts.push_back(fact("rules of", asked.target));
    facts.push_back(fact("began with", fmt::format("{}, {}", found.first->strategy, human(found.first->makespan))));
    facts.push_back(found_fact("found", found));
    return fact_table(facts);
}

}  // namespace

std::string report(const StageRequest& request, const StagePlan& plan) {
    const auto pictures = drawn(plan);
    const search::Found& found = plan.best.found;
    Parts parts = picture_parts(pictures, pictures.front());
    parts.merge(Parts{{"stages", ""},
                      {"title", escape(file_name(request))},
                      {"asked", asked(request)},
                      {"figures", figures(request, plan)},
                      {"pairs", schedules(plan)},
                      {"progress", progress(found)},
                      {"ranks", time_of_ranks(times_by_kind(plan.best.problem, found), found.replay.makespan)},
                      {"targets", targets(plan)},
                      {"inputs", inputs(request, plan)}});
    return filled_page(parts);
}

std::string report(const Problem& problem, const SearchAsked& how, const Found& found) {
    const Replay first = replay(problem, found.first->schedule);
    const std::vector<Drawn> pictures{
        {"first", caption("Before", found.first->strategy, first.makespan), &problem, &found.first->schedule, &first},
        {"plan", caption("After", finder(found), found.replay.makespan), &problem, &*found.schedule, &found.replay}};
    Parts parts = picture_parts(pictures, pictures.back());
    parts.merge(Parts{{"title", escape(problem.name)},
                      {"asked", asked(problem, how)},
                      {"figures", figures(problem, found)},
                      {"search", progress(found)},
                      {"ranks", time_of_ranks(times_by_kind(problem, found), found.replay.makespan)},
                      {"inputs", inputs(problem, how, found)}});
    return filled_page(parts);
}

}  // namespace pipeweaver::emit
