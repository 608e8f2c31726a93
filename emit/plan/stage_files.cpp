#include "pipeweaver/emit/stage_files.hpp"

#include "emit/plan/parts.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;
using namespace planner;

std::vector<FileToWrite> stage_files(const StageRequest& request, const StagePlan& plan,
                                     const std::filesystem::path& folder) {
    std::vector<FileToWrite> files;
    const StageSchedule& best = plan.best;
    add_schedule(files, folder, {"free"}, best.problem, best.found);
    files.push_back({folder / "report.html", report(request, plan)});
    for (const StageSchedule& own : plan.targets)
        if (own.found.schedule)
            add_schedule(files, folder / planner::target(own.target).folder, {own.target}, own.problem, own.found);
    return files;
}

nlohmann::ordered_json stage_json(const StagePlan& plan) {
    using Json = nlohmann::ordered_json;
    Json answer = solution_answer(plan.best.problem, plan.best.found);
    answer["peak_bytes"] = Json::array();
    for (const Bytes peak : plan.best.found.replay.peak) answer["peak_bytes"].push_back(peak.count);
    answer["policies"] = Json::array();
    for (const PolicyRun& one : plan.policies) {
        const Duration makespan = one.result.replay.makespan;
        if (one.result.schedule)
            answer["policies"].push_back({{"policy", one.policy},
                                          {"makespan_ns", makespan.count()},
                                          {"gap", schedule::relative_gap(makespan, plan.best.found.bound)}});
        else
            answer["policies"].push_back({{"policy", one.policy}, {"why_not", one.result.why_not}});
    }
    for (const auto& [name, problem, found] : plan.targets)
        answer[planner::target(name).folder] =
            found.schedule ? solution_answer(problem, found) : Json{{"why_not", found.why_not}};
    return answer;
}

namespace {

std::string policies(const StagePlan& plan) {
    const search::Found& best = plan.best.found;
    TextTable table(
        {{"schedule", true, 14}, {"time", false, 11}, {"bound", false, 11}, {"gap", false, 8}, {"vs plan", false, 8}},
        1);
    const auto row = [&](const std::string& name, Duration makespan) {
        table.add({name, human(makespan), human(best.bound), percent(schedule::relative_gap(makespan, best.bound)),
                   times(ratio(makespan, best.replay.makespan))});
    };
    row("plan", best.replay.makespan);
    for (const PolicyRun& one : plan.policies)
        if (one.result.schedule) row(one.policy, one.result.replay.makespan);
    return "\n" + table.text() + not_applicable_text(not_applicable(plan.policies));
}

std::string target_text(const StagePlan& plan, const StageSchedule& own) {
    const search::Found& found = own.found;
    const planner::Target& row = planner::target(own.target);
    if (!found.schedule) return fmt::format("\n{}: no schedule: {}\n", row.title, found.why_not);
    return fmt::format("\n{} ({}): makespan {}, {} the plan's\n", row.title, schedule_file(row),
                       human(found.replay.makespan),
                       times(ratio(found.replay.makespan, plan.best.found.replay.makespan)));
}

}  // namespace

std::string stage_table(const StagePlan& plan) {
    std::string text = solution_table(plan.best.problem, plan.best.found) + policies(plan);
    for (const StageSchedule& own : plan.targets) text += target_text(plan, own);
    return text;
}

}  // namespace pipeweaver::emit
