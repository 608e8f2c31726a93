// pipeweaver explain: why a rank waits in a plan, and what would shorten that.
#include "pipeweaver/schedule/explain.hpp"

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "apps/explain/schedule_files.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/explanation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::apps {

namespace {

using schedule::Problem;

schedule::Instant instant_of(const std::string& text, const Problem& problem) {
    const std::size_t colon = text.find(':');
    const auto most = static_cast<std::int64_t>(problem.ranks.size()) - 1;
    const auto rank = integer_in(std::string_view(text).substr(0, colon), 0, most);
    if (colon == std::string::npos || !rank)
        fail(ErrorKind::input, "--at: {}",
             must_be(std::string_view(text), fmt::format("RANK:TIME like 0:1.2ms, with a rank from 0 to {}", most)));
    try {
        return {RankId{static_cast<std::uint32_t>(*rank)}, parse_duration(text.substr(colon + 1))};
    } catch (const Error& error) {
        throw error.in("--at");
    }
}

// The only task of this label, or that of this number.
TaskId task_called(const std::string& name, const Problem& problem) {
    std::vector<std::string> labels;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        labels.push_back(problem.tasks[i].label);
        if (labels.back() == name) found.push_back(i);
    }
    if (found.size() > 1)
        fail(ErrorKind::input, "--task: '{}' is the label of {} tasks, allowed are their numbers, like {} on rank {}",
             name, found.size(), found.front(), index(problem.tasks[found.front()].rank));
    if (found.empty()) {
        const auto number = integer_in(name, 0, static_cast<std::int64_t>(problem.tasks.size()) - 1);
        if (number) return TaskId{static_cast<std::uint32_t>(*number)};
        const auto near = nearest(name, labels);
        fail(ErrorKind::input, "--task: {}",
             must_be(std::string_view(name),
                     fmt::format("a task's label{}, or its number up to {}", near ? " like '" + *near + "'" : "",
                                 problem.tasks.size() - 1)));
    }
    return TaskId{static_cast<std::uint32_t>(found.front())};
}

struct ExplainSchedule {
    explicit ExplainSchedule(CLI::App& app) : options(app) {
        add_operand(app, "plan", files.problem, "FILE", "the folder of a plan, or a problem file, gzip allowed");
        add_operand(app, "solution", files.solution, "FILE", "solution file, gzip allowed; not with a folder");
        options.group("What is asked");
        options.text("at", at, "RANK:TIME", "what this rank does or waits for then, like 2:1.2s");
        options.text("task", task, "TASK", "what this task waits for: its label, or its number in the problem file");
        options.integer("replica", files.replica, 0, 1'000'000, "which replica of a plan's folder (default 0)");
        console.add_to(app);
    }

    void run() const {
        options.apply();
        if (files.problem.empty()) fail_missing("PLAN", "a plan's folder, or a problem file and its solution");
        if (!at.empty() && !task.empty()) fail(ErrorKind::input, "--task: goes without --at");
        if (!files.is_folder() && files.replica != 0)
            fail(ErrorKind::input, "--replica: goes with a plan's folder, {} is none", files.problem);
        const auto solved = files.read();
        const Problem& problem = solved.file.problem;
        const schedule::Replayer replayer(problem);
        static_cast<void>(files.replay(replayer, solved.schedule));
        schedule::Query asked;
        if (!at.empty()) asked.at = instant_of(at, problem);
        if (!task.empty()) asked.task = task_called(task, problem);
        const auto all = schedule::explain(replayer, solved.schedule, asked);
        if (console.json)
            print_json(emit::explanation_json(problem, asked, all));
        else
            print_text("{}", emit::explanation_text(problem, asked, all));
    }

    Options options;
    Console console;
    ScheduleFiles files;
    std::string at, task;
};

}  // namespace

void add_explain(CLI::App& program) {
    add_command<ExplainSchedule>(
        program, "explain", "why a rank waits in a plan, and what would shorten that",
        {.synopsis = "(PLAN [--replica N] | PROBLEM SOLUTION) [--at RANK:TIME | --task TASK] [--json]",
         .description =
             "Says what a rank does or waits for at some time, or what a task waits for: the chain of tasks and "
             "transfers back to the step's begin, and what would shorten it: the step replayed with a task or all "
             "passes of a module a tenth shorter, or without a transfer. Asked for neither, it explains the makespan "
             "and lists each rank's longest waits.\n"
             "The order of the tasks and what is recomputed stay as they are; `pipeweaver plan` searches others.",
         .examples = {{"What decides how long a step takes, and where ranks wait",
                       "pipeweaver explain examples/measured"},
                      {"Why a rank is idle then", "pipeweaver explain examples/measured --at 0:8ms"},
                      {"What a task waits for, for a program",
                       "pipeweaver explain examples/measured --task m0.vit0.s1.F --json"}},
         .files = {{"PLAN", "a folder that plan or solve --stages wrote, or one of its folders with a schedule"},
                   {"PROBLEM, SOLUTION", "pipeweaver-problem/1 and pipeweaver-solution/1"}},
         .see_also = {"pipeweaver replay", "pipeweaver plan", "docs/reading-the-report.md", "docs/formats.md"}});
}

}  // namespace pipeweaver::apps
