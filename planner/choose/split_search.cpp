#include "planner/choose/split_search.hpp"

#include "pipeweaver/search/policies.hpp"
#include "planner/choose/port_search.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr double first_share = 1.0 / 6;   // of a search both ways, for whole backwards
constexpr double half_share = 1.0 / 2;    // after which split ones must be shorter
constexpr double early_share = 2.0 / 3;   // where another search is likely, which gets the rest
constexpr std::uint64_t fair_rounds = 5;  // but not before so many: the first rounds on a large problem gain most

// By how much all I and W may be longer than the backwards that they are parts of for a search of split ones to be worth
// its time: where traffic has nothing beside it in either (tensor parallelism), they lose more than their order can win.
constexpr double worth_splitting = 1.03;

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

Searchable searchable(const Evaluation& known, std::optional<StepProblem> split) {
    Searchable all;
    all.whole = &known.cut.step;
    all.bound = known.bound;
    all.split = std::move(split);
    if (const PolicyRun* fastest = known.fastest()) {
        all.is_crowded = loses_much(fastest->makespan(), fastest->waits.lost);
        all.fastest_is_split = fastest->on_split;
    }
    all.have_policies =
        known.policies.size() == search::policies().size() &&
        std::none_of(known.policies.begin(), known.policies.end(), [](const PolicyRun& run) { return run.left_out; });
    for (const PolicyRun& run : known.policies)
        if (run.result.schedule) (run.on_split ? all.split_starts : all.starts).push_back(*run.result.schedule);
    return all;
}

Limits limits(const Allowance& allowance, const Share& share) {
    return {allowance(share), allowance(first_share * share), allowance(half_share * share),
            allowance(early_share * share)};
}

namespace {

bool ahead(const search::Found& one, const search::Found& other) {
    return one.schedule && (!other.schedule || one.replay.makespan < other.replay.makespan);
}

// For the split step.
std::vector<Schedule> starts_of_parts(const Searchable& known) {
    auto starts = known.split_starts;
    for (const Schedule& start : known.starts) starts.push_back(with_weights(known.split->problem, start));
    return starts;
}

// Of the split step; ends early where it is longer than `whole`, if that is given.
search::Found search_parts(const Searchable& known, const search::Options& options, const Executor& execute,
                           const Limits& limits, const std::optional<search::Found>& whole) {
    auto keep_going = limits.all;
    if (whole && whole->schedule && limits.half)
        keep_going = [&](const search::Progress& progress) {
            const bool longer = progress.rounds >= fair_rounds && progress.best >= whole->replay.makespan;
            return longer ? limits.half(progress) : limits.all(progress);
        };
    return search_on_ports(*known.split, options, execute, keep_going);
}

}  // namespace

Searched search_split(const Searchable& known, Split split, const search::Options& options, const Executor& execute,
                      const Limits& limits) {
    auto of_whole = with_starts(options, known.starts);
    of_whole.starts_have_policies = known.have_policies;
    Limits first = limits;
    if (known.is_crowded) first.all = limits.early;
    const auto search_whole = [&](const search::KeepGoing& keep_going) {
        return search_on_ports(*known.whole, of_whole, execute, keep_going);
    };
    if (split == Split::never || !known.split)
        return {search_again(*known.whole, search_whole(first.all), of_whole, execute, limits.all), false};
    const auto of_parts = with_starts(options, starts_of_parts(known));
    if (split == Split::automatic && !known.fastest_is_split && longer_in_parts(*known.whole) > worth_splitting) {
        Searched result{search_again(*known.whole, search_whole(first.all), of_whole, execute, limits.all), false};
        set_bound(result.found, known.bound);
        return result;
    }
    std::optional<search::Found> whole;
    if (split == Split::automatic) whole = search_whole(limits.first);
    auto parts = search_parts(known, of_parts, execute, first, whole);
    const bool keep_whole = whole && !ahead(parts, *whole);
    if (keep_whole && !options.max_rounds) {
        auto again = search_whole(first.all);
        if (!ahead(*whole, again)) whole = std::move(again);
    }
    search::Bound bound = known.bound;
    if (parts.bound > bound.value && takes_no_more(*known.whole)) bound = {parts.bound_name, parts.bound};
    Searched result{keep_whole ? std::move(*whole) : std::move(parts), !keep_whole};
    result.found = search_again(result.split ? *known.split : *known.whole, std::move(result.found),
                                result.split ? of_parts : of_whole, execute, limits.all);
    set_bound(result.found, bound);
    return result;
}

namespace {

// The choice of backwards to split that a schedule of all split ones needs, and what the search began with.
SplitChoice needed_by(const Problem& split, const search::Found& found) {
    SplitChoice keep = needed(split, *found.schedule, found.replay);
    if (!found.first) return keep;
    const Schedule& first = found.first->schedule;
    const SplitChoice more = needed(split, first, replay(split, first));
    for (std::size_t k = 0; k < keep.size(); ++k) keep[k] = keep[k] || more[k];
    return keep;
}

}  // namespace

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

}  // namespace pipeweaver::planner
