// Published schedules by name: for comparison, and for a search to begin with.
#pragma once

#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/found.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::search {

/// What a policy says of a problem: a schedule that runs within every rank's memory, or why there is none.
struct PolicyResult {
    std::optional<schedule::Schedule> schedule;
    schedule::Replay replay;  ///< of `schedule`, completed; empty otherwise
    std::string why_not;      ///< empty with a schedule
    Bytes short_by{};         ///< of a fixed order that does not fit: at the task that it comes to a stop at
};

struct Policy {
    std::string name;          ///< "gpipe", "1f1b", ...
    std::string about;         ///< one line
    bool needs_split = false;  ///< applies only where backwards are split into I and W
    bool fixed_order = false;  ///< an order that no time decides
    bool on_a_v = false;       ///< of two stages on each rank, whose second row goes back from the last rank
};

/// All policies, in the order of their introduction.
[[nodiscard]] const std::vector<Policy>& policies();

/// The policy of that name. Throws Error{input} for an unknown one, naming the nearest; `option` comes first.
[[nodiscard]] const Policy& policy(std::string_view name, std::string_view option = {});

/// Applies the policy. A problem with modes gets the fastest uniform mode that fits.
/// Throws Error{input} for an unknown name, naming the nearest.
[[nodiscard]] PolicyResult apply_policy(std::string_view name, const schedule::Replayer& replayer);

/// A policy's order of tasks where no time decides it.
struct PolicyOrder {
    std::vector<std::vector<TaskId>> ranks;
    std::string why_not;  ///< not empty: it has none on this problem
};

/// The order that the policy gives this problem. Pre: policy(name).fixed_order. Throws as apply_policy().
[[nodiscard]] PolicyOrder fixed_order(std::string_view name, const schedule::Replayer& replayer);

/// Which memory modes each rank has room for under an order: all that a rank holds follows from its own order and its
/// own modes. Keeps references to its arguments.
class OrderMemory {
public:
    OrderMemory(const schedule::Replayer& replayer, const PolicyOrder& order);

    /// Whether the rank has room with all its pairs in `mode`; those with fewer modes take their last. Time O(tasks of
    /// the rank).
    [[nodiscard]] bool fits(std::size_t rank, std::uint32_t mode);

private:
    const schedule::Replayer& replayer_;
    const PolicyOrder& order_;
    std::vector<schedule::TaskCost> costs_;  // a buffer
};

/// Applies a policy of a fixed order with a mode of its own for each rank: for all pairs of a rank the one index with
/// the smallest total time that the rank has room for, ties to the smaller. No uniform mode that fits is shorter where
/// the modes of a rank come in one order by time for all of its pairs; where two cross (one is faster for the pairs of
/// one module, the other for those of another), one may be. Time O(modes * tasks).
/// Pre: as fixed_order(). Throws as apply_policy().
[[nodiscard]] PolicyResult apply_policy_by_rank(std::string_view name, const schedule::Replayer& replayer);

/// What a policy says, as if a search had found it: with its schedule as the first and the only entry of the history,
/// or with why the policy does not apply. `bound` is the problem's.
[[nodiscard]] Found as_found(std::string_view policy, PolicyResult result, const Bound& bound);

}  // namespace pipeweaver::search
