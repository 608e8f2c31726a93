// Which partition a job takes: candidates judged on a sample of its batches, by a policy, the best of them by a search.
//
// Determinism  A function of the request and the effort, but for `keep_going`: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/request.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A partition as it was judged on the sample.
struct PartitionTried {
    partition::Partition partition;
    std::size_t batches = 0;  ///< of the sample, that `step` is the mean of
    bool searched = false;    ///< `step` is of searches; else of the fastest of the policies that were tried
    Duration step{};          ///< of one replica, with optimizer
    std::string why_not{};    ///< not empty: it does not fit, or no policy applies
};

struct PartitionChoice {
    partition::Partition
        partition;  ///< that is taken: of those within 0.5 % of the best the one with the fewest chunks
    partition::ChosenOn chosen_on{};
    std::vector<PartitionTried>
        tried;               ///< searched ones first, then those judged on more batches, then by step; empty:
                             ///< there was nothing to choose
    bool cut_short = false;  ///< `keep_going` ended the searches
};

/// How much work the choice may be.
struct ChoiceEffort {
    std::size_t finalists = 3;  ///< that are searched; one alone is not
    std::size_t batches = 2;    ///< of the sample, on which they are
    std::uint64_t rounds = 2;   ///< of each search, after its starts
    std::size_t most_tasks =
        12'000;  ///< of all those searches' problems; fewer finalists and batches where they are larger
    std::size_t most_judged =
        250'000;  ///< tasks of all problems that policies judge; fewer batches where they are larger
};

/// What a plan does by itself, in a fraction of a second, and what is worth a minute for a partition that stays.
inline constexpr ChoiceEffort quick_choice{};
inline constexpr ChoiceEffort thorough_choice{8, 5, 10, 1'000'000, 10'000'000};

/// The partition that the request fixes, or the best on its sample. Where no candidate fits, the first of them, whose
/// plan then says what is short. `keep_going` is asked between searches; none: to the end.
[[nodiscard]] PartitionChoice choose_partition(const Request& request, const ChoiceEffort& effort,
                                               const Executor& execute, const std::function<bool()>& keep_going = {});

/// A stage with the work that the sample gives it.
struct StageLoad {
    emulator::StageLayers stage;
    Duration time{};  ///< forward and backward of a microbatch, the mean of the sample's
};

/// What a partition makes of the sample, rank by rank.
struct PartitionLoads {
    std::vector<StageLoad> stages;  ///< of all chains
    std::vector<StageLoad> dealt;   ///< of dealt modules: what a GPU of each rank takes, on average
    std::vector<Bytes> fixed;       ///< per rank: weights, gradients, optimizer state, buffers; empty: more than it has
    Bytes usable;                   ///< of every rank
    [[nodiscard]] std::vector<const StageLoad*> all() const;  ///< dealt ones first
    [[nodiscard]] std::vector<Duration> rank_times() const;
};
[[nodiscard]] PartitionLoads loads_of(const Request& request, const partition::Partition& partition);

}  // namespace pipeweaver::planner
