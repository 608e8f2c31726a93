// The report's second section: what is to be done for the ladder's best rung, and where that is said.
#include "emit/plan/ladder_text.hpp"
#include "emit/plan/launch_files.hpp"
#include "emit/plan/parts.hpp"
#include "emit/plan/rung_steps.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/targets.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::emit::report_parts {

using namespace planner;

namespace {

// A click selects all of it.
std::string command(std::string_view text) { return fmt::format("<pre class=\"command\">{}</pre>\n", escape(text)); }

std::string named(const Ladder& ladder, const Rung& rung) {
    const auto step = fmt::format("{}: step {}", rung.name, human(rung.step));
    if (ladder.is_now(rung)) return step + (ladder.now_is_said ? ", what runs now" : ", the best known today");
    if (!ladder.has_now()) return step;
    if (!are_comparable(rung, ladder.now())) return step + ", and one of it and now is padded";
    return fmt::format("{}, {} as fast as now", step, over_now_text(ladder, rung));
}

std::string best_rung(const Job& job, const Ladder& ladder) {
    const Rung& best = ladder.best();
    return fmt::format("<p class=\"do\"><strong>{}</strong><br>{}.</p>\n", escape(named(ladder, best)),
                       escape(ladder.is_now(best) ? keep_text(ladder) : what_to_do(job, ladder, best)));
}

std::string command_of_rung(const Ladder& ladder, const Rung& rung) {
    return fmt::format("<p class=\"prints\">{}</p>\n", escape(named(ladder, rung))) + command(rung.command);
}

// Of each rung that has one; the best's is open.
std::string emulate_commands(const Ladder& ladder) {
    std::string others;
    std::size_t count = 0;
    for (const auto* rungs : {&ladder.rungs, &ladder.beyond})
        for (const Rung& rung : *rungs) {
            if (rung.command.empty() || !rung.why_nothing.empty() || &rung == &ladder.best()) continue;
            others += command_of_rung(ladder, rung);
            ++count;
        }
    std::string html;
    if (!ladder.best().command.empty()) html = command_of_rung(ladder, ladder.best());
    if (count > 0) html += folded(fmt::format("{} of the other rungs", plural(count, "command")), others, html.empty());
    return html;
}

// The pictured schedule, from the plan's own files.
std::string replay_command(const Plan& plan) {
    const ReplicaPlan& replica = plan.replicas[plan.slowest];
    const auto folder = fmt::format("replica-{:03}", replica.number);
    return fmt::format("<p class=\"prints\">the plan's schedule{}: makespan {}, in this folder</p>\n",
                       plan.replicas.size() == 1 ? "" : fmt::format(" of replica {}", replica.number),
                       escape(human(replica.found.replay.makespan))) +
           command(fmt::format("pipeweaver replay {0}/problem.json.gz {0}/solution.json", folder));
}

// How targets load what was made for them.
std::string loading(const Plan& plan) {
    std::string html;
    for (const TargetPlan& own : plan.targets) {
        if (!own.found.schedule) continue;
        const planner::Target& target = planner::target(own.target);
        for (const emit::Target& row : emit::targets()) {
            if (row.of != own.target || row.how_to_run == nullptr) continue;
            const auto lines = row.how_to_run(
                {target.folder, own.microbatches.size(), target.fixed_shapes, is_of_first_alone(plan, target)});
            html += folded(fmt::format("{} loads its schedule", target.title),
                           fmt::format("<pre># {}</pre>\n", escape(fmt::format("{}", fmt::join(lines, "\n")))), false);
        }
    }
    return html;
}

// How the job's target launches the rung that flags say.
std::string launching(const Job& job, const Plan& plan) {
    const Rung* rung = plan.ladder.launched();
    std::string html;
    if (rung == nullptr || files_of_rung(job, plan.ladder, *rung).size() == rung->files.size()) return html;
    const launch::Launch launched = launch::launch_of(*rung);
    for (const emit::Target& row : emit::targets()) {
        if (!row.is_launched() || row.of != job.target || row.check_launch(launched)) continue;
        const auto lines = row.how_to_run({.folder = row.folder});
        html += folded(fmt::format("{} launches rung {}", row.title, rung->name),
                       fmt::format("<pre># {}</pre>\n", escape(fmt::format("{}", fmt::join(lines, "\n")))), false);
    }
    return html;
}

}  // namespace

std::string how_to_run(const Job& job, const Plan& plan) {
    std::string html;
    if (!plan.ladder.rungs.empty()) html += best_rung(job, plan.ladder);
    html += heading("Stages") + stage_section(job, plan);
    html += heading("Commands that print these steps");
    if (!plan.ladder.rungs.empty()) html += emulate_commands(plan.ladder);
    html += replay_command(plan) + launching(job, plan) + loading(plan);
    return html + heading("Files") + folder_section(job, plan);
}

}  // namespace pipeweaver::emit::report_parts
