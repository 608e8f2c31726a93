// The states of the exact search: what is left of a partial schedule when only its future matters.
//
// Schedules are built in the order of start times: a step starts a task whose predecessors are placed, no earlier than
// the task started before it. Of the past the future needs the set of placed tasks, the modes of pairs not yet
// finished (together the *key*; memory follows from it), when each rank is free, and when waiting tasks may start (the
// *times*). This is the dynamic programme of J. Gromicho, J. van Hoorn, F. Saldanha-da-Gama, G. Timmer, "Solving the
// job-shop scheduling problem optimally by dynamic programming", Computers & Operations Research 39 (2012), with memory
// and modes in the key.
//
// Dominance   Of two states with one key, the one with no later times replaces the other: each step's times do not
//             decrease with the times before it, and what memory allows depends on the key alone.
// Idle rule   Let `early` be a task that could start at s on its rank, and the search starts a task of another rank
//             later than s. Then `early` is *barred* until its rank has run another task: were it the rank's next task
//             all the same, starting it at s would leave every rank's order as it is and delay nothing.
//             Of steps at one moment on two ranks, only the order of task numbers is taken.
//   Proof that both rules together lose nothing: among all step sequences to one key take one that no other beats in
//   every time and, of those with equal times, the one with the largest last task. By induction its state without
//   the last step has a kept state no later, from where the last step gives the same times. Were that step barred, the
//   sequence with the task in its earlier place would end with a strictly earlier free time of its rank; were it
//   against the order of numbers, exchanging the two would end in a larger last task. Both contradict the choice.
// Bound       of a state: a function of key and times that does not decrease with the times, so what it cuts is never
//             needed by the proof above.
#pragma once

#include "search/flat.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

/// A state as words: key (placed tasks, modes), barred tasks, then times. Times of one key have one meaning.
using Record = std::span<const std::uint64_t>;

/// Arcs, costs and sets of a problem as the exact search wants them. Read-only after construction.
class ExactSpace {
public:
    /// `rest`: per task, a bound on what follows its end in any schedule that is still of interest; `head` on its start.
    ExactSpace(const Flat& flat, std::vector<std::int64_t> head, std::vector<std::int64_t> rest);

    /// Most tasks it takes.
    static constexpr std::uint32_t most_tasks = 256;

    const Flat& flat() const { return *flat_; }
    std::size_t set_words() const { return set_words_; }
    std::size_t key_words() const { return set_words_ + mode_words_; }
    std::size_t times_begin() const { return key_words() + set_words_; }
    std::int64_t head(std::uint32_t task) const { return head_[task]; }
    std::int64_t rest(std::uint32_t task) const { return rest_[task]; }

    /// Sets of tasks, as set_words() words.
    const std::uint64_t* before(std::uint32_t task) const { return &before_[task * set_words_]; }
    const std::uint64_t* after(std::uint32_t task) const { return &after_[task * set_words_]; }
    const std::uint64_t* on_rank(std::uint32_t rank) const { return &on_rank_[rank * set_words_]; }

    /// Does the task begin (end) a pair that has a choice of modes?
    bool opens(std::uint32_t task) const { return role_[task] == 1; }
    bool closes(std::uint32_t task) const { return role_[task] == 2; }

    /// Modes worth trying, of a task that opens its pair.
    std::span<const std::uint32_t> choices(std::uint32_t task) const { return choices_[flat_->pair_of[task]]; }

    /// The state of an empty schedule.
    std::vector<std::uint64_t> root() const;

    /// All times of a schedule are multiples of this.
    std::int64_t unit() const { return unit_; }

private:
    void fill_sets();
    void fill_modes();
    void fill_unit();

    const Flat* flat_;
    std::size_t set_words_ = 0, mode_words_ = 0;
    std::vector<std::int64_t> head_, rest_;
    std::vector<std::uint64_t> before_, after_, on_rank_;
    std::vector<std::uint8_t> role_;
    std::vector<std::vector<std::uint32_t>> choices_;  // per pair
    std::int64_t unit_ = 1;
};

/// A step: a task is started, its pair in this mode.
struct ExactStep {
    std::uint32_t task = UINT32_MAX;
    std::uint32_t mode = 0;
};

/// A state unpacked: its steps, its bound. One per slot; allocates nothing after construction.
class ExactState {
public:
    explicit ExactState(const ExactSpace& space);

    /// Pre: `record` stays while the state is used. `last` is the step that led to it.
    void load(Record record, ExactStep last);

    /// Steps that memory and the rules allow and that do not end at `limit` or later, what must follow included.
    void steps(std::int64_t limit, std::vector<ExactStep>& out);

    /// Appends the record of the state after the step. Pre: one of steps().
    void append_after(ExactStep step, std::vector<std::uint64_t>& out);

    /// A bound on the makespan of what can come of the state; may stop early at `limit` or more.
    std::int64_t bound(std::int64_t limit);

    /// Sum of the ranks' free times: the less the better among states with one bound.
    std::int64_t lateness() const;

private:
    bool placed(std::uint32_t task) const { return (record_[task / 64] >> (task % 64) & 1) != 0; }
    std::uint32_t mode_of(std::uint32_t task) const;
    const Cost& cost(std::uint32_t task) const { return space_.flat().cost(task, mode_of(task)); }
    std::int64_t start(std::uint32_t task) const;
    bool ready(std::uint32_t task) const;
    bool fits(std::uint32_t task, const Cost& cost) const;
    bool against_order(std::uint32_t task) const;
    std::int64_t shortest(std::uint32_t task) const;
    std::int64_t machine_bound(std::uint32_t rank, std::int64_t limit);

    struct Job {
        std::int64_t head, work, tail;
    };

    const ExactSpace& space_;
    Record record_;
    ExactStep last_;
    std::int64_t last_start_ = 0;
    std::vector<std::int64_t> clock_, used_;  // per rank
    std::vector<std::int64_t> ready_;         // per task: 0 unless a predecessor is placed
    std::vector<std::uint32_t> waiting_;      // tasks not placed, in topological order
    std::vector<std::uint32_t> open_;         // of them, those whose predecessors are placed, ascending
    std::vector<std::int64_t> head_;
    std::vector<std::vector<Job>> jobs_;  // per rank
    std::vector<std::pair<std::int64_t, std::int64_t>> heap_;
};

}  // namespace pipeweaver::search
