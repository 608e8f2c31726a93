// The limits of searches, as every command that searches takes them.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <optional>

namespace pipeweaver::planner {

/// --budget, --max-rounds, --seed, --threads: the limits of searches.
struct SearchLimits {
    std::optional<Duration> budget;
    std::optional<std::int64_t> max_rounds;
    std::int64_t seed = 1;
    std::int64_t threads = 0;  ///< 0: as many as the machine has

    void add_to(OptionTable& options);

    std::optional<std::uint64_t> rounds() const;

    /// --threads, or a thread for each core.
    int wanted_threads() const;

    /// wanted_threads(), without --threads as far as they can be made. Throws Error{limit} where --threads cannot be.
    int thread_count() const;
};

}  // namespace pipeweaver::planner
