// Schedules to begin with.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/construct/dispatch.hpp"
#include "search/instance/candidate.hpp"
#include "search/instance/priorities.hpp"

#include <span>
#include <string>
#include <vector>

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

/// The given schedules, all policies, and list schedules by (choice, priority, memory modes), in a fixed order; a few
/// at a time, since in a large problem each takes its time: there the dual queue of short microbatches comes first.
/// Keeps a reference to `flat`.
class InitialSchedules {
public:
    /// `have_policies`: those of all policies are among the given ones.
    InitialSchedules(const Flat& flat, std::vector<schedule::Schedule> given, bool have_policies = false);

    bool done() const;

    /// The next `most`, or a few more; fewer at the end.
    [[nodiscard]] std::vector<InitialSchedule> next(std::size_t most, const Executor& execute);

private:
    // A given schedule or a policy's, or list schedules of one priority under one choice of modes.
    struct Job {
        bool alone = false;
        std::size_t number = 0;  // then: of the given schedules, and after them of the policies
        std::size_t priority = 0, mode = 0, first_choice = 0, end_choice = 0;

        std::size_t schedules() const { return alone ? 1 : end_choice - first_choice; }
    };

    bool is_large() const;
    void add_all_alone();
    void add_lists();
    void try_alone(std::size_t number, InitialSchedule& mine) const;
    void try_lists(const Job& job, std::span<InitialSchedule> mine) const;

    const Flat& flat_;
    std::vector<schedule::Schedule> given_;
    std::vector<std::string> policies_;
    bool have_policies_;
    std::vector<Priority> by_;                      // of list schedules, for each of
    std::vector<std::vector<std::uint32_t>> mode_;  // these modes; empty: none was tried yet
    std::vector<Job> jobs_;                         // lists last
    std::size_t next_ = 0;
};

}  // namespace pipeweaver::search
