// Schedules to begin with.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/candidate.hpp"
#include "search/dispatch.hpp"

#include <string>

namespace pipeweaver::search {

struct Start {
    std::string name;
    Candidate candidate;               ///< not valid() where it does not run, does not fit or breaks a rule
    std::optional<Shortage> shortage;  ///< of a list schedule that does not fit
};

/// The given schedules, all policies, and list schedules by (choice, priority, memory modes), in a fixed order.
[[nodiscard]] std::vector<Start> make_starts(const Flat& flat, const std::vector<emulator::Schedule>& given,
                                             const Executor& execute);

}  // namespace pipeweaver::search
