// The default strategy: rounds of a fixed number of slots, each working from its own state, merged in order.
//
//   round 0   initial schedules: given ones, policies, list schedules under several priorities and memory modes; in a
//             problem of many tasks the first of them alone, and the others in the next rounds, a few in each
//   then      search over group priorities (group_search.hpp) and staggered pipelines (stagger.hpp), a number of rounds
//   then      annealing over single steps (anneal.hpp), in cycles that grow longer; each cycle begins from the best.
//             Later cycles have further rounds of the group search between them: it finds what annealing cannot reach.
//             Where several models share the ranks, staggered pipelines go on beside it, and every second slot begins
//             its cycles from what they found.
//
// What a slot does in a round is a function of its state, the seed and the number of its first evaluation; nothing else
// reaches it. All sizes depend on the problem alone.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "search/improve/alternatives.hpp"
#include "search/improve/anneal.hpp"
#include "search/improve/group_phase.hpp"
#include "search/improve/initial_schedules.hpp"
#include "search/improve/stagger.hpp"
#include "search/tuning.hpp"

#include <memory>
#include <string>

namespace pipeweaver::search {

class Engine {
public:
    Engine(const Flat& flat, std::uint64_t seed, std::int64_t bound, const EngineTuning& tuned = tuning.engine,
           const AlternativesWanted& wanted = {});

    /// Round 0. Says why if nothing fits. `have_policies`: those given are of all policies, too.
    std::optional<std::string> start(std::vector<schedule::Schedule> given, bool have_policies,
                                     const Executor& execute);

    /// Initial schedules are left.
    bool starting() const { return starts_.has_value(); }

    /// One more round. Pre: start() found a schedule.
    void round(const Executor& execute);

    /// Takes a schedule found elsewhere, if it is better.
    void adopt(const Candidate& candidate, std::string_view who);

    /// No makespan is smaller than `bound`.
    void raise_bound(std::int64_t bound) { bound_ = std::max(bound_, bound); }

    /// Nothing is smaller than best().
    void prove() { bound_ = best_.energy.makespan; }

    const Candidate& best() const { return best_; }
    std::vector<FoundSchedule> alternatives() const { return alternatives_.others(best_); }
    const std::string& found_by() const { return found_by_; }
    std::uint64_t rounds() const { return start_rounds_ + rounds_; }
    std::uint64_t evaluations() const { return evaluations_; }
    bool optimal() const { return best_.valid() && best_.energy.makespan <= bound_; }

private:
    struct Slot {
        Slot(const Flat& flat, const TaskGroups& by) : current(flat), large(flat, by) {}

        /// Of the group search; `current` must be free.
        void take_spent(const Flat& flat, const Candidate& found);

        IncrementalSchedule current;
        LargeSteps large;
        Candidate best;
        Energy plain;     ///< of what the group search found last,
        Candidate spent;  ///< and with the memory spent that it leaves
    };

    // What is known of the initial schedules so far.
    struct Begun {
        std::optional<Shortage> least;
        bool any = false;                 // that fits
        Energy plain;                     // the best before memory was spent,
        std::vector<std::uint32_t> mode;  // and its modes
        std::uint64_t count = 0;
    };

    void try_starts(std::uint64_t work, const Executor& execute);
    void try_with_less_memory(const Executor& execute);
    void begin_improving(const Executor& execute);
    void merge(std::string_view who);
    std::uint64_t line(std::size_t slot) const;
    void group_round(const Executor& execute);
    void stagger_round(const Executor& execute);
    void begin_turn_of_groups();
    void begin_cycle();
    void anneal_round(const Executor& execute);
    std::uint64_t group_rounds(std::uint64_t of_few_tasks, std::uint64_t few) const;
    bool in_group_search() const;
    void follow_the_better();

    const Flat& flat_;
    EngineTuning tuning_;
    std::uint64_t seed_;
    std::int64_t bound_;
    StepChoices choices_;
    TaskGroups groups_;
    std::vector<Slot> slots_;
    std::unique_ptr<GroupPhase> group_phase_;  // only while it lasts
    std::unique_ptr<Phase<StaggerSearch>> stagger_;
    std::vector<std::uint32_t> group_mode_;  // modes under which both run
    Candidate best_;
    Alternatives alternatives_;
    std::string found_by_;
    std::optional<InitialSchedules> starts_;  // while any are left
    Begun begun_;
    std::uint64_t start_rounds_ = 0;  // of further initial schedules; rounds_: of all that comes then
    std::uint64_t rounds_ = 0, evaluations_ = 0;
    std::uint64_t improved_ = 0;  // the last round that found something better
    std::uint64_t cycle_ = 0, cycle_length_ = 0, cycle_round_ = 0;
    std::uint64_t group_rounds_left_ = 0;  // before the next cycle
    double group_share_;
    bool groups_gained_ = false;  // something better in their last turn
};

}  // namespace pipeweaver::search
