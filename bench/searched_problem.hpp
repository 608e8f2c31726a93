// A problem searched with every strategy, and what every policy makes of it: what `bench search` compares.
#pragma once

#include "apps/console.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::bench {

/// What a folder's reference_values.json says of a problem; each value may be missing.
struct Reference {
    std::string kind;
    std::optional<Duration> best_known, lower_bound, dual_queue;
};

/// By the problems' names; empty if the folder has no such file.
[[nodiscard]] std::map<std::string, Reference> references(const std::filesystem::path& folder);

/// A schedule shorter than all before it, and when it was known: at the end of its round.
struct Improved {
    double seconds = 0;  ///< since the search began, its bounds and first schedules included
    Duration makespan{};
};

/// A run of one strategy: its result, and when it was how good.
struct StrategyRun {
    std::string strategy;
    search::Found found;
    std::vector<Improved> improvements;  ///< ends with `found`; empty without a schedule
    double seconds = 0;
    double seconds_to_1_percent = 0;
};

struct PolicyRun {
    std::string name;
    std::optional<Duration> makespan;
    std::string why_not;
};

struct SearchedProblem {
    std::string name, kind;  ///< problems of a kind are judged together
    std::size_t tasks = 0, ranks = 0;
    std::vector<StrategyRun> runs;  ///< the default strategy's first
    std::vector<PolicyRun> policies;
    Reference reference;

    const search::Found& found() const { return runs.front().found; }
    Duration makespan() const { return found().replay.makespan; }
    double gap() const { return schedule::relative_gap(makespan(), found().bound); }

    /// The one with the smallest makespan; null if none applies.
    const PolicyRun* best_policy() const;
};

/// How much longer `a` is, as a part of `b`.
[[nodiscard]] double above(Duration a, Duration b);

/// Searches with all of the budget. Throws Error{limit} if the schedule is wrong.
[[nodiscard]] StrategyRun run_strategy(const std::string& strategy, const schedule::Replayer& replayer,
                                       const apps::Limits& limits, const apps::Console& console);

/// Searches with all of the budget for each strategy. Throws Error{limit} if a schedule is wrong.
[[nodiscard]] SearchedProblem search_in_every_way(const std::filesystem::path& problem,
                                                  const std::map<std::string, Reference>& known,
                                                  const apps::Limits& limits, const apps::Console& console);

}  // namespace pipeweaver::bench
