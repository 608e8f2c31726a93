// What a search found, and what it shows on the way.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::search {

/// What a caller may show while the search runs.
struct Progress {
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    Duration best{};
    Duration bound{};
    std::string_view found_by;  ///< empty: there is no schedule yet; `best` is a time that none exceeds
};

/// Why a search must end; none: go on.
using KeepGoing = std::function<std::optional<schedule::StopReason>(const Progress&)>;

/// A schedule and what found it.
struct FoundSchedule {
    schedule::Schedule schedule;
    Duration makespan{};
    std::string strategy;
};

/// A round after which the best or the bound was better than ever before.
struct Improvement {
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    Duration best{};
    Duration bound{};
    std::string found_by;
};

struct Found {
    std::optional<schedule::Schedule> schedule;  ///< none: no schedule that fits was found
    std::string why_not;                         ///< where there is none: which rank, how many bytes
    schedule::Replay replay;                     ///< of `schedule`
    Duration bound{};
    std::string bound_name;
    std::string strategy;  ///< what found the schedule
    schedule::StopReason stop_reason = schedule::StopReason::rounds;
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    std::optional<FoundSchedule> first;  ///< the best initial schedule: what the search began with
    std::vector<Improvement> history;    ///< how it went, round by round; ends with `schedule`
    /// What Options::alternatives asked for, as far as the search came by it: other schedules than `schedule`, each
    /// with another order or other modes, smallest makespan first. They keep memory and rules, too. The strategy dip
    /// has none.
    std::vector<FoundSchedule> alternatives;
};

}  // namespace pipeweaver::search
