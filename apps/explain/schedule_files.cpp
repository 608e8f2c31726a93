#include "apps/explain/schedule_files.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/options.hpp"
#include "pipeweaver/measured/measured_plan.hpp"

#include <system_error>
#include <utility>

namespace pipeweaver::apps {

bool ScheduleFiles::is_folder() const {
    std::error_code ignored;
    return std::filesystem::is_directory(problem, ignored);
}

std::filesystem::path ScheduleFiles::solution_file() const {
    return is_folder() ? measured::schedule_folder(problem, replica) / "solution.json"
                       : std::filesystem::path(solution);
}

schedule::Solved ScheduleFiles::read() const {
    if (is_folder()) {
        if (!solution.empty()) fail(ErrorKind::input, "SOLUTION: goes with a problem file, not with a plan's folder");
        return schedule::read_solved(solution_file());
    }
    if (solution.empty()) fail_missing("SOLUTION", "a solution file");
    auto file = schedule::read_problem(problem);
    auto schedule = schedule::read_schedule(solution, file);
    return {std::move(file), std::move(schedule)};
}

schedule::Replay ScheduleFiles::replay(const schedule::Replayer& replayer, const schedule::Schedule& schedule) const {
    auto replay = replayer.replay(schedule);
    if (replay.outcome != schedule::Outcome::completed)
        fail(ErrorKind::limit, "{}: {}", solution_file().string(), schedule::why_it_fails(replayer.problem(), replay));
    schedule::check_claims(solution_file(), schedule, replay);
    return replay;
}

}  // namespace pipeweaver::apps
