#include "planner/schedule/schedule_step.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/lower_memory.hpp"
#include "planner/schedule/split_search.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

namespace {

// The fastest policy's schedule, of a step that is searched after it.
void take(ScheduledStep& scheduled, const PolicyRun& run) {
    scheduled.on_split = run.on_split;
    search::PolicyResult result = run.result;
    result.replay = replay_on_ports(scheduled.searched(), *result.schedule).replay;
    scheduled.found = search::as_found(run.policy, std::move(result), scheduled.step.bound);
}

class Scheduling {
public:
    Scheduling(Step step, const ScheduleWanted& wanted, const Executor& execute, const Time& time)
        : wanted_(wanted), execute_(execute), time_(time) {
        all_.step = std::move(step);
    }

    ScheduledStep run() {
        if (all_.step.shortage || all_.step.inexpressible) return std::move(all_);
        const Time search = time_.fraction(wanted_.choose ? fractions.search : 1);
        apply_policies();
        take_or_search(search);
        share_bound();
        if (wanted_.choose && all_.found.schedule) choose();
        if (all_.found.schedule) keep_below_policies();
        if (wanted_.full_bounds_last && all_.found.schedule && !time_.is_over()) {
            const search::Bound full = bound_of(all_.step, wanted_.split != Split::never);
            if (full.value > all_.step.bound.value) all_.step.bound = full;
            share_bound();
        }
        return std::move(all_);
    }

private:
    void apply_policies() {
        PoliciesWanted asked{.split = wanted_.split != Split::never, .bound = wanted_.policy_bounds};
        asked.policies = wanted_.policies;
        asked.time = wanted_.search ? time_.fraction(fractions.policies) : time_;
        asked.one_anyhow = effort_of(all_.step.tasks(), 1).policy_first;
        planner::apply_policies(all_.step, asked, execute_);
    }

    void take_or_search(const Time& search) {
        const PolicyRun* fastest = all_.step.fastest();
        const auto ended = wanted_.search ? search.stop() : std::optional(schedule::StopReason::stopped);
        if (!wanted_.search && fastest == nullptr) return say_why_none_applies();
        if (fastest == nullptr || !ended) return search_both(search);
        if (*ended == schedule::StopReason::budget && has_a_round()) return search_one_round(*fastest);
        take(all_, *fastest);
        if (all_.step.lacks_policies()) return;  // as the same plan by policy, which no time ended
        if (wanted_.search && all_.found.stop_reason != schedule::StopReason::optimal) all_.found.stop_reason = *ended;
    }

    // Reductions in buckets may take more of what was found than of a policy's schedule.
    void keep_below_policies() {
        const PolicyRun* fastest = all_.step.fastest();
        if (fastest == nullptr || all_.step.input.setup->recipe.bucket == Bytes{}) return;
        const auto found = replay_in_full(all_.step, all_.on_split, *all_.found.schedule);
        if (fastest->makespan() < found.replay.makespan) take(all_, *fastest);
    }

    // What was found and the step's policies are schedules of one problem: the larger of two bounds holds for all. Only
    // where rules bind the search alone, its bound is no bound of policies.
    void share_bound() {
        if (!all_.found.schedule) return;
        if (all_.step.bound.value > all_.found.bound)
            set_bound(all_.found, all_.step.bound);
        else if (wanted_.rules.fixed_order.empty())
            all_.step.bound = {all_.found.bound_name, all_.found.bound};
    }

    void say_why_none_applies() {
        for (const PolicyRun& run : all_.step.policies)
            all_.found.why_not += fmt::format("{}the policy '{}' does not apply: {}",
                                              all_.found.why_not.empty() ? "" : "; ", run.policy, run.result.why_not);
    }

    search::Options options() const {
        search::Options options;
        options.seed = wanted_.seed;
        options.max_rounds = wanted_.max_rounds;
        options.patience = wanted_.patience;
        options.rules = wanted_.rules;
        options.bounds = wanted_.bounds;
        options.alternatives = wanted_.rule.near(all_.step.cut.step.problem.tasks.size(), wanted_.problems);
        return options;
    }

    Searchable begun(bool may_split) const {
        Searchable both = searchable(all_.step, may_split);
        if (wanted_.more) {
            for (auto& one : wanted_.more(*both.whole)) both.starts.push_back(std::move(one));
            if (both.split != nullptr)
                for (auto& one : wanted_.more(*both.split)) both.split_starts.push_back(std::move(one));
        }
        return both;
    }

    void search_as(Split split, const search::Options& asked, const Time& time) {
        auto searched = search_split(begun(split != Split::never), split, asked, execute_, time);
        all_.found = std::move(searched.found);
        all_.on_split = searched.split;
    }

    void search_both(const Time& time) { search_as(wanted_.split, options(), time); }

    // Of steps small enough for near schedules to be compared, whatever is asked for.
    bool has_a_round() const { return wanted_.choose && usual_rule.near(all_.step.tasks(), wanted_.problems).most > 0; }

    // In the form of the fastest policy: what policies leave is mostly there.
    void search_one_round(const PolicyRun& fastest) {
        search::Options asked = options();
        asked.max_rounds = std::min<std::uint64_t>(1, asked.max_rounds.value_or(1));
        asked.bounds = search::BoundEffort::quick;
        search_as(fastest.on_split ? Split::always : Split::never, asked, {});
        set_bound(all_.found, all_.step.bound);
        if (all_.found.stop_reason == schedule::StopReason::rounds)
            all_.found.stop_reason = schedule::StopReason::budget;
    }

    // Two schedules of a step of thousands of GPUs take longer to replay a few hundred times than it took to find them.
    bool is_worth_comparing() const {
        return wanted_.rule.near(all_.searched().problem.tasks.size(), wanted_.problems).most > 0;
    }

    void choose() {
        const PolicyRun* fastest = all_.step.fastest();
        const auto limit = fastest == nullptr ? std::nullopt : std::optional(fastest->makespan());
        all_.choice = planner::choose(all_.searched(), all_.found, limit, wanted_.rule, wanted_.seed, execute_);
        if (is_worth_comparing()) {
            search::Options asked;
            asked.seed = wanted_.seed;
            asked.max_rounds = wanted_.max_rounds;
            asked.rules = wanted_.rules;
            lower_peak(all_.searched(), known_schedules(), all_.found, asked, wanted_.rule, execute_, time_);
        }
        // A lower peak may be shorter, too.
        all_.choice.smallest = std::min(all_.choice.smallest, all_.found.replay.makespan);
    }

    // What policies made of the form that was searched. They know no rules beyond the problem's.
    std::vector<search::FoundSchedule> known_schedules() const {
        std::vector<search::FoundSchedule> known;
        if (!wanted_.rules.fixed_order.empty()) return known;
        for (const PolicyRun& run : all_.step.policies)
            if (run.applies() && run.on_split == all_.on_split)
                known.push_back({*run.result.schedule, run.makespan(), run.policy});
        return known;
    }

    const ScheduleWanted& wanted_;
    const Executor& execute_;
    const Time& time_;
    ScheduledStep all_;
};

bool is_proven(const search::Found& found) { return found.replay.makespan == found.bound; }

// How long a makespan may be that is taken.
Duration longest_allowed(const search::Found& found, std::optional<Duration> limit, const ChoiceRule& rule) {
    const Duration smallest = found.replay.makespan;
    Duration longest = smallest;
    if (rule.by_median || !is_proven(found))
        longest += Duration{static_cast<std::int64_t>(rule.within * static_cast<double>(smallest.count()))};
    return limit ? std::max(smallest, std::min(longest, *limit)) : longest;
}

void take(const StepProblem& step, search::Found& found, std::size_t alternative) {
    search::FoundSchedule known = std::move(found.alternatives[alternative]);
    found.alternatives.erase(found.alternatives.begin() + static_cast<std::ptrdiff_t>(alternative));
    found.schedule = std::move(known.schedule);
    found.replay = replay_on_ports(step, *found.schedule).replay;
    found.strategy = std::move(known.strategy);
    if (found.stop_reason == StopReason::optimal && !is_proven(found)) found.stop_reason = StopReason::no_gain;
}

// The least full of what was found and known with this makespan.
search::Found least_full(const StepProblem& step, const search::Found& found,
                         std::span<const search::FoundSchedule> known_before) {
    search::Found least;
    least.schedule = found.schedule;
    least.replay = found.replay;
    least.strategy = found.strategy;
    least.rounds = found.rounds;
    const Problem& problem = step.problem;
    const auto offer = [&](const search::FoundSchedule& known) {
        if (known.makespan != found.replay.makespan) return;
        Replay replay = replay_on_ports(step, known.schedule).replay;
        if (!(search::standing_of(problem, replay) < search::standing_of(problem, least.replay))) return;
        least.schedule = known.schedule;
        least.replay = std::move(replay);
        least.strategy = known.strategy;
    };
    for (const search::FoundSchedule& known : found.alternatives) offer(known);
    for (const search::FoundSchedule& known : known_before) offer(known);
    return least;
}

}  // namespace

ScheduleWanted schedule_wanted(const Job& job) {
    return {.split = job.split, .seed = job.seed, .max_rounds = job.max_rounds};
}

std::string ScheduledStep::why_no_schedule() const {
    if (step.shortage) return step.shortage->text();
    return found.schedule ? std::string() : fmt::format("{}: {}", partition().name, found.why_not);
}

void ScheduledStep::require_schedule() const {
    if (const std::string why = why_no_schedule(); !why.empty()) fail(ErrorKind::limit, "{}", why);
}

ScheduledStep schedule_step(Step step, const ScheduleWanted& wanted, const Executor& execute, const Time& time) {
    return Scheduling(std::move(step), wanted, execute, time).run();
}

ScheduledStep take_policy(const Step& step, const PolicyRun& run) {
    ScheduledStep scheduled;
    scheduled.step.input = step.input;
    scheduled.step.cut = step.cut;
    scheduled.step.bound = step.bound;
    if (run.on_split) scheduled.step.split = step.split;
    take(scheduled, run);
    return scheduled;
}

FinishedStep finish(ScheduledStep scheduled) {
    FinishedStep finished;
    search::Found& found = finished.found;
    found = std::move(scheduled.found);
    StepProblem& step = scheduled.step.cut.step;
    if (scheduled.on_split) step = join_needless(step, *scheduled.step.split, found);
    PortReplay settled = settle(scheduled.step.input, step, *found.schedule);
    if (found.stop_reason == schedule::StopReason::optimal && settled.replay.makespan > found.replay.makespan)
        found.stop_reason = schedule::StopReason::no_gain;  // the best before what reductions in buckets add
    found.replay = std::move(settled.replay);
    finished.waits = settled.waits;
    finished.cut = take_cut(std::move(scheduled.step));
    return finished;
}

RobustChoice choose(const StepProblem& step, search::Found& found, std::optional<Duration> limit,
                    const ChoiceRule& rule, std::uint64_t seed, const Executor& execute) {
    RobustChoice choice;
    choice.rule = rule;
    choice.smallest = found.replay.makespan;
    const Duration longest = longest_allowed(found, limit, rule);
    std::vector<Side> sides{{{&step, &*found.schedule}}};  // alternatives are sorted by makespan
    for (const search::FoundSchedule& known : found.alternatives)
        if (known.makespan <= longest) sides.push_back({{&step, &known.schedule}});
    choice.alternatives = sides.size() - 1;
    if (sides.size() == 1) return choice;
    const std::size_t best = judge(sides, rule.by_median, {seed}, execute).taken;
    if (best == 0) return choice;
    // One that is better than all others may still not be clearly better than the first alone.
    const std::vector<Side> both{sides.front(), sides[best]};
    if (judge(both, rule.by_median, {seed}, execute).taken == 0) return choice;
    choice.other = true;
    const Draws draws{.seed = seed, .paired = true};
    choice.over_smallest = robustness(both.back(), {both.data(), 1}, draws, execute).against.front();
    take(step, found, best - 1);
    return choice;
}

void lower_peak(const StepProblem& step, std::span<const search::FoundSchedule> known, search::Found& found,
                const search::Options& options, const ChoiceRule& rule, const Executor& execute, const Time& time) {
    const auto stops = [&](const search::Progress& progress) {
        return time.stop(progress) ? std::optional(StopReason::stopped) : std::nullopt;
    };
    if (stops({})) return;
    const Problem& problem = step.problem;
    search::Found lower = least_full(step, found, known);
    const Problem with_waits = with_lags(problem, replay_on_ports(step, *lower.schedule).lags);
    const std::uint64_t rounds = std::min(peak_rounds, options.max_rounds.value_or(peak_rounds));
    search::lower_memory(Replayer(with_waits), options, execute, lower, stops, rounds);
    lower.replay = replay_on_ports(step, *lower.schedule).replay;  // in another order others wait
    if (lower.replay.makespan > found.replay.makespan) return;
    if (search::largest_peak(problem, lower.replay) >= search::largest_peak(problem, found.replay)) return;
    const std::vector<Side> sides{{{&step, &*found.schedule}}, {{&step, &*lower.schedule}}};
    const auto standings = judge(sides, rule.by_median, {options.seed}, execute).standings;
    const double allowed = rule.by_median ? 0 : rule.within;
    const double longest = (1 + allowed) * static_cast<double>(standings[0].median.count());
    if (static_cast<double>(standings[1].median.count()) > longest) return;
    found.schedule = std::move(lower.schedule);
    found.replay = std::move(lower.replay);
    found.strategy = std::move(lower.strategy);
}

}  // namespace pipeweaver::planner
