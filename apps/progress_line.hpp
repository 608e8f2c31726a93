// What a command is at, in a line on stderr.
#pragma once

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/planner/time.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace pipeweaver::apps {

/// "partition 7/29", or "replica 2/4: 40 rounds, 3.91 s, gap 4.0 %"; without a gap where there is no bound. After it,
/// where they are known, what of all is done and how long the rest takes: ", 40 % done, 3.00 s left".
[[nodiscard]] std::string progress_line(const planner::Doing& doing);

/// How much of a plan is done, by what it is at: each kind of work has its part of the whole (parts_of_plan), of which
/// every round of jobs leaves half. Threads: any number may ask at once.
class PlanShare {
public:
    /// `budget`: what the command may take since it began; none: all that it needs.
    PlanShare(const Stopwatch& since, std::optional<Duration> budget) : since_(since), budget_(budget) {}

    /// With the share of the whole, which never falls, and the time until the end.
    planner::Doing operator()(planner::Doing doing);

    /// About how long what was left out would have taken: these parts of the whole, of which so much was not done.
    Duration longer_for(double parts) const;

private:
    double of_its_part(const planner::Doing& doing, std::size_t part);

    const Stopwatch since_;
    const std::optional<Duration> budget_;
    mutable std::mutex mutex_;
    std::optional<std::size_t> part_;
    double left_of_part_ = 1, share_ = 0;
};

/// "1 round", "40 rounds".
[[nodiscard]] std::string rounds_of(std::uint64_t count);

}  // namespace pipeweaver::apps
