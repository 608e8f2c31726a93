// Schedules to begin with.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/candidate.hpp"

#include <string>

namespace pipeweaver::search {

struct InitialSchedule {
    std::string name;
    Candidate candidate;               ///< not valid() where it does not run, does not fit or breaks a rule
    Energy before;                     ///< of the same order before spare memory was spent,
    std::vector<std::uint32_t> mode;   ///< and its modes: what other orders fit under, too
    std::optional<Shortage> shortage;  ///< of a list schedule that does not fit
};

/// A schedule that a caller gave; not valid() where it is of another problem, does not run, does not fit or breaks a
/// rule.
[[nodiscard]] Candidate given_schedule(const Flat& flat, const schedule::Schedule& schedule);

/// The given schedules, all policies, and list schedules by (choice, priority, memory modes), in a fixed order; of more
/// than 20,000 tasks those alone that take time near linear in tasks, and one priority.
[[nodiscard]] std::vector<InitialSchedule> initial_schedules(const Flat& flat,
                                                             const std::vector<schedule::Schedule>& given,
                                                             const Executor& execute);

}  // namespace pipeweaver::search
