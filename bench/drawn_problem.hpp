// The five published set-ups and, of batches drawn for them, the schedule problem that every search is given.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/schedule/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::bench {

struct SetUp {
    const char *model, *cluster, *dataset;
};

/// The step of a batch of one replica in partition dip, as it was published: what the published search is given. Throws
/// Error{limit} where it does not fit.
[[nodiscard]] planner::Cut published_step(const planner::Request& request);

/// The options of a benchmark that draws batches for them.
struct DrawnProblems {
    std::string model, costs_file;
    std::int64_t batches;
    std::optional<std::int64_t> microbatches;

    void add_to(OptionTable& options);

    /// Those that were asked for.
    [[nodiscard]] std::vector<SetUp> set_ups() const;

    /// The problem of the batch of that seed, called "MODEL-SEED": all microbatches one replica's, in the partition
    /// dip, backwards whole.
    [[nodiscard]] schedule::Problem draw(const SetUp& set_up, std::uint64_t seed, const Executor& execute) const;
};

}  // namespace pipeweaver::bench
