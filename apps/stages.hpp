// `pipeweaver solve --stages`: measured stage times in place of a problem file.
#pragma once

#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::apps {

/// What the other options of `solve` say of the plan.
struct StagesWanted {
    std::string strategy;  ///< empty: the default
    std::string target;    ///< of planner::targets(): whose rules the plan keeps
    std::string out;       ///< folder
};

/// --stages, --microbatches, --capacity, --link, --split-slowdown.
struct StageOptions {
    std::string table;
    std::optional<std::int64_t> microbatches;
    std::optional<Bytes> capacity;
    std::optional<Bandwidth> link;
    std::optional<double> split_slowdown;

    void add_to(Options& options);

    bool given() const { return !table.empty(); }

    /// Throws Error{input} where they contradict each other or a problem file.
    void check(const std::string& problem) const;

    /// Plans, writes the folder and prints the answer. Pre: given(), check() passed, microbatches.
    void solve(const StagesWanted& wanted, const Limits& limits, const Console& console) const;
};

}  // namespace pipeweaver::apps
