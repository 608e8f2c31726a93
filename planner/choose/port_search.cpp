#include "planner/choose/port_search.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

// Proven is only what still reaches the bound.
void drop_proof(search::Found& found) {
    if (found.stop_reason == StopReason::optimal && found.replay.makespan > found.bound)
        found.stop_reason = StopReason::rounds;
}

void put_on_ports(const StepProblem& step, search::Found& found) {
    if (!found.schedule) return;
    found.replay = replay_on_ports(step, *found.schedule).replay;
    for (search::FoundSchedule& one : found.alternatives)
        one.makespan = replay_on_ports(step, one.schedule).replay.makespan;
    const auto shorter = [](const search::FoundSchedule& a, const search::FoundSchedule& b) {
        return a.makespan < b.makespan;
    };
    std::stable_sort(found.alternatives.begin(), found.alternatives.end(), shorter);
    if (!found.alternatives.empty() && found.alternatives.front().makespan < found.replay.makespan) {
        search::FoundSchedule first{std::move(*found.schedule), found.replay.makespan, std::move(found.strategy)};
        std::swap(first, found.alternatives.front());
        found.replay = replay_on_ports(step, first.schedule).replay;
        found.schedule = std::move(first.schedule);
        found.strategy = std::move(first.strategy);
        std::stable_sort(found.alternatives.begin(), found.alternatives.end(), shorter);
    }
    drop_proof(found);
}

}  // namespace

bool loses_much(Duration makespan, Duration lost) {
    return static_cast<double>(lost.count()) > worth_another_search * static_cast<double>((makespan - lost).count());
}

search::Found search_on_ports(const StepProblem& step, const search::Options& options, const Executor& execute,
                              const search::KeepGoing& keep_going) {
    auto found = search::solve(Replayer(step.problem), options, execute, keep_going);
    put_on_ports(step, found);
    return found;
}

search::Found search_again(const StepProblem& step, search::Found found, search::Options options,
                           const Executor& execute, const search::KeepGoing& keep_going) {
    if (!found.schedule) return found;
    const PortReplay on_ports = replay_on_ports(step, *found.schedule);
    if (!loses_much(on_ports.replay.makespan, on_ports.waits.lost)) return found;
    if (keep_going && keep_going({})) return found;
    options.starts.push_back(*found.schedule);
    const Problem longer = with_lags(step.problem, on_ports.lags);
    auto again = search::solve(Replayer(longer), options, execute, keep_going);
    put_on_ports(step, again);
    if (!again.schedule || again.replay.makespan >= found.replay.makespan) return found;
    again.bound = found.bound;
    again.bound_name = found.bound_name;
    for (search::Improvement& one : again.history) one.bound = found.bound;
    drop_proof(again);
    return again;
}

}  // namespace pipeweaver::planner
