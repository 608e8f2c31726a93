#include "planner/schedule/smaller_peak.hpp"

#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/lower_memory.hpp"

namespace pipeweaver::planner {

using namespace schedule;

void take_smaller_peak(const Replayer& replayer, const Target& target, const std::vector<PolicyRun>& policies,
                       const search::Options& options, search::Found& found, const Executor& execute,
                       const Time& time) {
    if (!found.schedule || found.stop_reason == StopReason::stopped) return;
    const Problem& problem = replayer.problem();
    std::vector<search::FoundSchedule> known;
    known.reserve(policies.size());
    for (const PolicyRun& run : policies)
        if (run.applies() && (target.breaks == nullptr || !target.breaks(problem, *run.result.schedule)))
            known.push_back({*run.result.schedule, run.makespan(), run.policy});
    search::take_known(replayer, options, known, found);
    if (problem.tasks.size() > search::most_tasks_in_rounds) return;
    search::lower_memory(replayer, options, execute, found, time.keep_going(), peak_rounds);
}

}  // namespace pipeweaver::planner
