#include "planner/schedule/split_search.hpp"

#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/policies.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

double longer_in_parts(const StepProblem& whole) {
    double parts = 0, together = 0;
    for (std::size_t k = 0; k < whole.split.size(); ++k) {
        if (whole.split[k].modes.empty()) continue;
        const Mode& split = whole.split[k].modes.front();
        parts += static_cast<double>((split.backward + split.weight).count());
        together += static_cast<double>(whole.problem.pairs[k].modes.front().backward.count());
    }
    return together > 0 ? parts / together : 1;
}

search::Options with_starts(search::Options options, std::vector<Schedule> starts) {
    options.starts = std::move(starts);
    return options;
}

// Whether I and W never take time or memory that B would not: then all split is as good as any choice.
bool takes_no_more(const StepProblem& whole) {
    for (std::size_t k = 0; k < whole.split.size(); ++k)
        for (std::size_t m = 0; m < whole.split[k].modes.size(); ++m) {
            const Mode &split = whole.split[k].modes[m], &own = whole.problem.pairs[k].modes[m];
            if (split.transient > own.transient || split.kept > own.held + own.transient) return false;
            if (split.backward + split.weight > own.backward) return false;
        }
    return true;
}

bool ahead(const search::Found& one, const search::Found& other) {
    return one.schedule && (!other.schedule || one.replay.makespan < other.replay.makespan);
}

// By time; one that ended by itself would end there again.
bool was_ended(const search::Found& found) {
    return found.stop_reason == StopReason::budget || found.stop_reason == StopReason::stopped;
}

// For the split step.
std::vector<Schedule> starts_of_parts(const Searchable& known) {
    auto starts = known.split_starts;
    for (const Schedule& start : known.starts) starts.push_back(with_weights(known.split->problem, start));
    return starts;
}

// Of the split step; ends early where it is longer than `whole`, if that is given, when `half` is over.
search::Found search_parts(const Searchable& known, const search::Options& options, const Executor& execute,
                           const Time& time, const Time& half, const std::optional<search::Found>& whole) {
    auto keep_going = time.keep_going();
    if (keep_going && whole && whole->schedule)
        keep_going = [&](const search::Progress& progress) {
            const bool longer = progress.rounds >= fair_rounds && progress.best >= whole->replay.makespan;
            return longer ? half.stop(progress) : time.stop(progress);
        };
    return search_on_ports(*known.split, options, execute, keep_going);
}

// The choice of backwards to split that a schedule of all split ones needs, and what the search began with.
SplitChoice needed_by(const Problem& split, const search::Found& found) {
    SplitChoice keep = needed(split, *found.schedule, found.replay);
    if (!found.first) return keep;
    const Schedule& first = found.first->schedule;
    const SplitChoice more = needed(split, first, replay(split, first));
    for (std::size_t k = 0; k < keep.size(); ++k) keep[k] = keep[k] || more[k];
    return keep;
}

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

void set_bound(search::Found& found, const search::Bound& bound) {
    found.bound = bound.value;
    found.bound_name = bound.name;
    for (search::Improvement& one : found.history) one.bound = bound.value;
    if (!found.schedule) return;
    if (found.replay.makespan == bound.value)
        found.stop_reason = StopReason::optimal;
    else if (found.stop_reason == StopReason::optimal)
        found.stop_reason = StopReason::rounds;
}

Searchable searchable(const Step& step, bool may_split) {
    Searchable all;
    all.whole = &step.cut.step;
    if (may_split && step.split) all.split = &*step.split;
    all.bound = step.bound;
    if (const PolicyRun* fastest = step.fastest()) {
        all.is_crowded = loses_much(fastest->makespan(), fastest->waits.lost);
        all.fastest_is_split = fastest->on_split;
    }
    all.have_policies = step.policies.size() == search::policies().size() && !step.lacks_policies();
    for (const PolicyRun& run : step.policies)
        if (run.result.schedule) (run.on_split ? all.split_starts : all.starts).push_back(*run.result.schedule);
    return all;
}

Searched search_split(const Searchable& known, Split split, const search::Options& options, const Executor& execute,
                      const Time& time) {
    auto of_whole = with_starts(options, known.starts);
    of_whole.starts_have_policies = known.have_policies;
    // Always the same parts, in the same order: a record of them is played back (planner/session.hpp).
    const Time short_part = time.fraction(fractions.whole_backwards), half = time.fraction(fractions.split_ahead);
    const Time early = time.fraction(fractions.before_ports);
    const Time& first = known.is_crowded ? early : time;
    const auto search_whole = [&](const Time& within) {
        return search_on_ports(*known.whole, of_whole, execute, within.keep_going());
    };
    const auto search_on = [&](const StepProblem& step, search::Found found, const search::Options& asked) {
        return search_again(step, std::move(found), asked, execute, time.keep_going());
    };
    if (split == Split::never || !known.split) return {search_on(*known.whole, search_whole(first), of_whole), false};
    const auto of_parts = with_starts(options, starts_of_parts(known));
    if (split == Split::automatic && !known.fastest_is_split && longer_in_parts(*known.whole) > margins.splitting) {
        Searched result{search_on(*known.whole, search_whole(first), of_whole), false};
        set_bound(result.found, known.bound);
        return result;
    }
    std::optional<search::Found> whole;
    if (split == Split::automatic) whole = search_whole(short_part);
    auto parts = search_parts(known, of_parts, execute, first, half, whole);
    const bool keep_whole = whole && !ahead(parts, *whole);
    if (keep_whole && !options.max_rounds && was_ended(*whole)) {
        auto again = search_whole(first);
        if (!ahead(*whole, again)) whole = std::move(again);
    }
    search::Bound bound = known.bound;
    if (parts.bound > bound.value && takes_no_more(*known.whole)) bound = {parts.bound_name, parts.bound};
    Searched result{keep_whole ? std::move(*whole) : std::move(parts), !keep_whole};
    result.found = search_on(result.split ? *known.split : *known.whole, std::move(result.found),
                             result.split ? of_parts : of_whole);
    set_bound(result.found, bound);
    return result;
}

StepProblem join_needless(const StepProblem& whole, const StepProblem& split, search::Found& found) {
    const Problem with_waits = with_lags(split.problem, replay_on_ports(split, *found.schedule).lags);
    StepProblem step = require_step(split_backwards(whole, needed_by(with_waits, found)));
    Replay joined = replay_on_ports(step, merged(split.problem, *found.schedule, step.problem)).replay;
    if (joined.makespan > found.replay.makespan) {
        // What a whole backward sends later has met other transfers at its port.
        step = split;
        joined = std::move(found.replay);
    }
    found.schedule = merged(split.problem, *found.schedule, step.problem);
    if (found.first) found.first->schedule = merged(split.problem, found.first->schedule, step.problem);
    found.alternatives.clear();
    found.replay = std::move(joined);
    return step;
}

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
