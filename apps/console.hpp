// What commands share: the budget's clock, progress on a terminal, and the answer on stdout.
#pragma once

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/search_limits.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/options.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace pipeweaver::apps {

/// --json and --quiet.
struct Console {
    bool json = false;
    bool quiet = false;

    void add_to(CLI::App& app);

    /// A line for people, on stderr.
    void say(std::string_view line) const;

    /// Rewrites one line on stderr while a search runs; only on a terminal and unless quiet.
    void show(const search::Progress& progress) const;

    /// Ends the rewritten line.
    void clear() const;

private:
    mutable std::optional<Stopwatch> since_shown_;
};

/// The limits of searches, with a clock.
struct Limits : planner::SearchLimits {
    Executor executor() const;

    /// What a search by the strategy is asked for; empty: the default one.
    search::Options search_options(const std::string& strategy) const;

    /// The budget, which begins now; the search that uses it is shown.
    planner::Time begin(const Console& console) const;

    /// What was measured, for run.json: seconds of `start`, threads, budget, host.
    nlohmann::ordered_json run(const Stopwatch& start) const;

    /// The same beside what else `json` has, as the answers of bench have it.
    void add_run(nlohmann::ordered_json& json, const Stopwatch& start) const;
};

}  // namespace pipeweaver::apps
