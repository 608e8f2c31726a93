// The states of the exact search: what is left of a partial schedule when only its future matters.
//
// Schedules are built in the order of start times: a step starts a task whose predecessors are placed, no earlier than
// the task started before it. Of the past the future needs the set of placed tasks, the modes of pairs not yet
// finished (together the *key*), what memory they may hold, when each rank is free, and when waiting tasks may start
// (the *times*). This is the dynamic programme of J. Gromicho, J. van Hoorn, F. Saldanha-da-Gama, G. Timmer, "Solving
// the job-shop scheduling problem optimally by dynamic programming", Computers & Operations Research 39 (2012), with
// memory and modes in the key.
//
// Modes       are decided as late as they matter, when the backward starts: what a pair holds from its forward on is
//             only bounded. On a rank let p1, p2, ... be the undecided pairs by the order of their forwards. At every
//             moment before, those of them that were open are the first j for some j, so the past says of them: p1 ...
//             pj hold at most B_j together, B_j the least room left by all others at such a moment. These *budgets* are
//             all the past says of memory; a choice is allowed if, with it, every budget holds the smallest amounts.
//             Budgets are lowered to what they imply: to a sum that modes can reach, and B_j to B_j+1 - least of p_j+1.
//             Modes whose forwards differ in duration or transient are told apart at the forward. Where an unpaired
//             task gives back more than it takes, a mode may hold too little; then all are decided at the forward.
//
// Dominance   Of two states with one key, the one with no later times and no smaller budgets replaces the other: each
//             step's times do not decrease with the times before it, nor its budgets increase as budgets decrease.
// Idle rule   Let `early` be a task that could start at s on its rank, and the search starts a task of another rank
//             later than s. Then `early` is *barred* until its rank has run another task: were it the rank's next task
//             all the same, starting it at s would leave every rank's order as it is and delay nothing.
//             Of steps at one moment on two ranks, only the order of task numbers is taken.
//   Proof that both rules together lose nothing: among all step sequences to one key take one that no other beats in
//   every time and budget and, of those with equal ones, the one with the largest last task. By induction its state
//   without the last step has a kept state no later, from where the last step gives the same. Were that step barred,
//   the sequence with the task in its earlier place would end with a strictly earlier free time of its rank; were it
//   against the order of numbers, exchanging the two would end in a larger last task. Both contradict the choice.
// Bound       of a state: a function of key and times that does not decrease with the times, so what it cuts is never
//             needed by the proof above.
#pragma once

#include "search/instance/flat.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

/// Membership in a set of tasks, kept as words.
inline void insert(std::uint64_t* set, std::uint32_t task) { set[task / 64] |= std::uint64_t{1} << (task % 64); }
inline bool contains(const std::uint64_t* set, std::uint32_t task) { return (set[task / 64] >> (task % 64) & 1) != 0; }

/// A state as words: header (number of undecided pairs), key (placed tasks, a byte per pair), barred tasks, memory (per
/// undecided pair, rank by rank in the order of their forwards: pair, budget), times. Records of one key have one size.
using Record = std::span<const std::uint64_t>;

/// Modes of a pair that are alike in its forward's duration and transient: which it is need not be known before the
/// backward starts.
struct ExactClass {
    std::vector<std::uint32_t> modes;
    std::int64_t least_held = 0, most_held = 0;
    std::int64_t shortest_backward = 0, shortest_weight = 0;
};

/// Arcs, costs and sets of a problem as the exact search wants them. Read-only after construction.
class ExactSpace {
public:
    /// Per task, of all schedules that are still of interest: `head` is a bound on its start, `tail` on what follows
    /// its end.
    ExactSpace(const Flat& flat, std::vector<std::int64_t> head, std::vector<std::int64_t> tail);

    /// Other, tighter ones. Pre: no state is loaded.
    void set_windows(std::vector<std::int64_t> head, std::vector<std::int64_t> tail);

    /// Limits of what it takes.
    static constexpr std::uint32_t most_tasks = 160, most_modes = 100;

    const Flat& flat() const { return *flat_; }
    std::size_t set_words() const { return set_words_; }
    std::size_t key_end() const { return 1 + set_words_ + mode_words_; }  ///< header included
    std::size_t memory_begin() const { return key_end() + set_words_; }
    std::int64_t head(std::uint32_t task) const { return head_[task]; }
    std::int64_t tail(std::uint32_t task) const { return tail_[task]; }

    /// The task's place among those of its rank by tail, the largest first.
    std::uint32_t by_tail(std::uint32_t task) const { return by_tail_[task]; }

    /// Sets of tasks, as set_words() words.
    const std::uint64_t* before(std::uint32_t task) const { return &before_[task * set_words_]; }
    const std::uint64_t* after(std::uint32_t task) const { return &after_[task * set_words_]; }
    const std::uint64_t* on_rank(std::uint32_t rank) const { return &on_rank_[rank * set_words_]; }

    /// What the task is to its pair; `plain` where there is no choice of modes.
    enum class Role : std::uint8_t { plain, forward, backward, weight };
    Role role(std::uint32_t task) const { return role_[task]; }
    bool closes(std::uint32_t task) const { return closes_[task] != 0; }
    const std::vector<ExactClass>& classes(std::uint32_t pair) const { return classes_[pair]; }
    std::uint32_t forward(std::uint32_t pair) const {
        return static_cast<std::uint32_t>(flat_->problem().pairs[pair].forward);
    }

    /// The state of an empty schedule.
    std::vector<std::uint64_t> root() const;

    /// All times of a schedule are multiples of this.
    std::int64_t unit() const { return unit_; }

    /// Byte of a pair in a key: 0 not begun or finished, else undecided within a class, or decided.
    static std::uint8_t undecided(std::size_t in_class) { return static_cast<std::uint8_t>(1 + in_class); }
    static std::uint8_t decided(std::uint32_t mode) { return static_cast<std::uint8_t>(0x80 | mode); }
    std::uint8_t byte(Record record, std::uint32_t pair) const {
        return static_cast<std::uint8_t>(record[1 + set_words_ + pair / 8] >> (pair % 8 * 8));
    }
    void set_byte(std::uint64_t* record, std::uint32_t pair, std::uint8_t value) const;

    /// Whether memory and times allow after `a` all that they allow after `b`. Pre: one key. May be false all the same.
    bool no_worse(Record a, Record b) const;

private:
    void fill_sets();
    void fill_pairs();
    void fill_classes(std::uint32_t pair, bool one_by_one);
    bool useless(std::uint32_t pair, std::uint32_t mode, std::uint32_t other, bool only_equal) const;
    const ExactClass& class_in(Record record, std::uint32_t pair) const {
        return classes_[pair][byte(record, pair) - std::size_t{1}];
    }
    bool no_tighter(Record a, Record b) const;
    std::uint64_t implied(Record a, Record b, std::size_t first, std::size_t j) const;

    const Flat* flat_;
    std::size_t set_words_ = 0, mode_words_ = 0;
    std::vector<std::int64_t> head_, tail_;
    std::vector<std::uint32_t> by_tail_;
    std::vector<std::uint64_t> before_, after_, on_rank_;
    std::vector<Role> role_;
    std::vector<char> closes_;
    std::vector<std::vector<ExactClass>> classes_;  // per pair
    std::int64_t unit_ = 1;
};

}  // namespace pipeweaver::search
