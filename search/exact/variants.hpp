// Two problems near a given one that exact search solves sooner: an easier one, for a bound, and a narrower one, for a
// schedule. Choices of memory modes are what makes exact search slow, so both leave choices to some ranks only.
//
// Easier       Only one rank has a choice. On the others each pair has one mode, in every number the smallest over its
//              modes that fit (instance/fitting_modes.hpp): no schedule has it in another.
//   Proof that its optimum is a bound: take any schedule of the problem, its orders kept. In the easier problem no task
//   lasts longer, so it ends no later. At each place in a rank's order a pair that is open holds, passes and keeps no
//   more than before and nothing less than 0, so no capacity is exceeded; nor does a rank give back more than it took,
//   as long as no task without a pair gives back more than it takes (where one does, there is no easier problem).
// Narrower     One rank's order and modes are given; what remains are the orders and modes of the others. Its schedules
//              are schedules of the problem.
#pragma once

#include "search/instance/flat.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace pipeweaver::search {

/// A problem made of another, with the same tasks, edges and pairs. Stays where it is: its parts point to each other.
struct Variant {
    Variant(schedule::Problem made, const Rules& rules)
        : problem(std::move(made)), replayer(problem), flat(replayer, rules) {}
    Variant(const Variant&) = delete;
    Variant& operator=(const Variant&) = delete;
    ~Variant() = default;

    const schedule::Problem problem;
    const schedule::Replayer replayer;
    const Flat flat;
};

/// The easier problem. Nothing if no other rank has a choice, or as said above.
[[nodiscard]] std::unique_ptr<const Variant> with_choice_on(const Flat& flat, const Rules& rules, std::uint32_t rank);

/// The narrower problem: the rank as in `schedule`, all its pairs in mode 0 of one.
/// Pre: the schedule keeps the rules, and the rank's memory.
[[nodiscard]] std::unique_ptr<const Variant> with_rank_as_in(const Flat& flat, const Rules& rules, std::uint32_t rank,
                                                             const schedule::Schedule& schedule);

/// Of the ranks with a choice, the one with the largest one-machine bound, then the most work; nothing if none has.
[[nodiscard]] std::optional<std::uint32_t> busiest_with_choice(const Flat& flat);

}  // namespace pipeweaver::search
