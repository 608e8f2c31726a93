// What commands share: the budget's clock, progress on a terminal, and the answer on stdout.
#pragma once

#include "apps/options.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan_options.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <optional>
#include <string>

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
    mutable std::chrono::steady_clock::time_point last_shown_{};
    mutable bool shown_ = false;
};

/// The limits of searches, with a clock.
struct Limits : planner::SearchLimits {
    Executor executor() const;

    /// What a search by the strategy is asked for; empty: the default one.
    search::Options search_options(const std::string& strategy) const;

    /// A search that begins now and may use `share` of the time.
    search::KeepGoing begin(const Console& console, double share) const;

    /// What was measured, for run.json: seconds since `start`, threads, budget, host.
    nlohmann::ordered_json run(std::chrono::steady_clock::time_point start) const;

    /// The same beside what else `json` has, as the answers of bench have it.
    void add_run(nlohmann::ordered_json& json, std::chrono::steady_clock::time_point start) const;
};

}  // namespace pipeweaver::apps
