// The default strategy: rounds of a fixed number of slots, each working from its own state, merged in order.
//
//   round 0   starts: given schedules, policies, list schedules under several priorities and memory modes
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
#include "search/improve/stagger_phase.hpp"

#include <memory>
#include <string>

namespace pipeweaver::search {

/// What was tuned by experiment (docs and README of the module say on what).
struct Tuning {
    std::size_t slots = 8;
    std::size_t stagger_slots = 2;    ///< twice as many for several models
    std::uint64_t group_rounds = 25;  ///< of the group search at least; it ends after as many without a better one
    std::uint64_t most_group_rounds = 60;
    std::uint64_t group_tasks = 1500;    ///< problems of more tasks have fewer group rounds in proportion
    std::uint64_t group_from_cycle = 5;  ///< from its end on, the group search goes on between cycles
    double group_share = 2;              ///< for so many times the rounds of the cycle before, at first
    double least_group_share = 0.125, most_group_share = 4;
    std::uint64_t group_sync_rounds = 8;  ///< group rounds after which the worse half of the slots follows the better
    std::uint64_t group_work = 3'000;     ///< tasks scheduled per slot and round of the group search, about
    std::uint64_t anneal_work = 300'000;  ///< tasks times evaluations per slot and round of annealing
    std::uint64_t first_cycle = 40;       ///< rounds of the first annealing cycle; each next is half as long again
    double hot = 0.02;                    ///< first temperature of a cycle, as a part of makespan / sqrt(tasks)
    double cold = 0.0005;
    double hotter = 6;  ///< every second cycle begins this many times hotter
    double weight = 0.5;
    std::uint64_t sync_rounds = 4;  ///< annealing rounds after which the worse half of the slots follows the better
    std::uint32_t rebuild_permille = 3;
};

class Engine {
public:
    Engine(const Flat& flat, std::uint64_t seed, std::int64_t bound, const Tuning& tuning = {},
           const NearWanted& near = {});

    /// Round 0. Says why if nothing fits.
    std::optional<std::string> start(const std::vector<schedule::Schedule>& given, const Executor& execute);

    /// One more round. Pre: start() found a schedule.
    void round(const Executor& execute);

    /// Takes a schedule found elsewhere, if it is better.
    void adopt(const Candidate& candidate, std::string_view who);

    /// No makespan is smaller than `bound`.
    void raise_bound(std::int64_t bound) { bound_ = std::max(bound_, bound); }

    /// Nothing is smaller than best().
    void prove() { bound_ = best_.energy.makespan; }

    const Candidate& best() const { return best_; }
    std::vector<Known> near() const { return near_.others(best_); }
    const std::string& found_by() const { return found_by_; }
    std::uint64_t rounds() const { return rounds_; }
    std::uint64_t evaluations() const { return evaluations_; }
    bool optimal() const { return best_.valid() && best_.energy.makespan <= bound_; }

private:
    struct Slot {
        Slot(const Flat& flat, const TaskGroups& by) : walk(flat), large(flat, by) {}

        Walk walk;
        LargeSteps large;
        Candidate best;
    };

    void merge(std::string_view who);
    std::uint64_t line(std::size_t slot) const;
    void group_round(const Executor& execute);
    void stagger_round(const Executor& execute);
    void begin_turn_of_groups();
    void begin_cycle();
    void anneal_round(const Executor& execute);
    std::uint64_t group_rounds(std::uint64_t of_few_tasks) const;
    bool in_group_search() const;
    void follow_the_better();

    const Flat& flat_;
    Tuning tuning_;
    std::uint64_t seed_;
    std::int64_t bound_;
    StepChoices choices_;
    TaskGroups groups_;
    std::vector<Slot> slots_;
    std::unique_ptr<GroupPhase> group_phase_;  // only while it lasts
    std::unique_ptr<StaggerPhase> stagger_;
    std::vector<std::uint32_t> group_mode_;  // modes under which both run
    Candidate best_;
    NearSchedules near_;
    std::string found_by_;
    std::uint64_t rounds_ = 0, evaluations_ = 0;
    std::uint64_t improved_ = 0;  // the last round that found something better
    std::uint64_t cycle_ = 0, cycle_length_ = 0, cycle_round_ = 0;
    std::uint64_t group_rounds_left_ = 0;  // before the next cycle
    double group_share_;
    bool groups_gained_ = false;  // something better in their last turn
};

}  // namespace pipeweaver::search
