#include "planner/schedule/port_search.hpp"

#include "pipeweaver/planner/tuning.hpp"

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

void take(const StepProblem& step, search::Found& found, Schedule schedule, std::string strategy) {
    found.replay = replay_on_ports(step, schedule).replay;
    found.schedule = std::move(schedule);
    found.strategy = std::move(strategy);
}

// The schedule changes places with the first alternative where that is shorter.
void put_alternatives_on_ports(const StepProblem& step, search::Found& found) {
    auto& all = found.alternatives;
    const auto sort = [&] {
        std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.makespan < b.makespan; });
    };
    for (search::FoundSchedule& one : all) one.makespan = replay_on_ports(step, one.schedule).replay.makespan;
    sort();
    if (all.empty() || all.front().makespan >= found.replay.makespan) return;
    search::FoundSchedule shortest{std::move(*found.schedule), found.replay.makespan, std::move(found.strategy)};
    std::swap(shortest, all.front());
    take(step, found, std::move(shortest.schedule), std::move(shortest.strategy));
    sort();
}

// What the search left behind may be shorter where transfers wait.
void compare_with_starts(const StepProblem& step, search::Found& found, const std::vector<Schedule>& starts) {
    const Replayer alone(step.problem);
    const Schedule* shortest = nullptr;
    Duration makespan = found.replay.makespan;
    for (const Schedule& start : starts) {
        if (alone.replay(start).outcome != Outcome::completed) continue;
        const Duration time = replay_on_ports(step, start).replay.makespan;
        if (time >= makespan) continue;
        shortest = &start;
        makespan = time;
    }
    if (shortest != nullptr) take(step, found, *shortest, "start");
}

void put_on_ports(const StepProblem& step, search::Found& found, const std::vector<Schedule>& starts) {
    if (!found.schedule) return;
    PortReplay on_ports = replay_on_ports(step, *found.schedule);
    found.replay = std::move(on_ports.replay);
    put_alternatives_on_ports(step, found);
    if (on_ports.waits.waited > 0) compare_with_starts(step, found, starts);
    drop_proof(found);
}

}  // namespace

bool loses_much(Duration makespan, Duration lost) {
    return static_cast<double>(lost.count()) > margins.ports * static_cast<double>((makespan - lost).count());
}

search::Found search_on_ports(const StepProblem& step, const search::Options& options, const Executor& execute,
                              const search::KeepGoing& keep_going) {
    auto found = search::solve(Replayer(step.problem), options, execute, keep_going);
    put_on_ports(step, found, options.starts);
    return found;
}

search::Found search_again(const StepProblem& step, search::Found found, search::Options options,
                           const Executor& execute, const search::KeepGoing& keep_going) {
    if (!found.schedule) return found;
    const PortReplay on_ports = replay_on_ports(step, *found.schedule);
    if (!loses_much(on_ports.replay.makespan, on_ports.waits.lost)) return found;
    if (keep_going && keep_going({})) return found;
    options.starts.push_back(*found.schedule);
    options.starts_have_policies = false;  // with other lags they decide otherwise
    const Problem longer = with_lags(step.problem, on_ports.lags);
    auto again = search::solve(Replayer(longer), options, execute, keep_going);
    put_on_ports(step, again, options.starts);
    if (!again.schedule || again.replay.makespan >= found.replay.makespan) return found;
    again.bound = found.bound;
    again.bound_name = found.bound_name;
    for (search::Improvement& one : again.history) one.bound = found.bound;
    drop_proof(again);
    return again;
}

}  // namespace pipeweaver::planner
