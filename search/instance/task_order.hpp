// The order of tasks on every rank, and one sequence of all tasks that is topological for edges and ranks' orders
// together; one task moved at a time.
//
//   sequence                 ... B0 f2 F1 f1 ...      capitals are on one rank
//   F1 moved before B0       ... F1 B0 f2 f1 ...      or ... f2 F1 B0 f1 ... if F1 waits for f2
//
// A move reorders the window of the sequence between the two tasks it concerns (as in D. J. Pearce and P. H. J. Kelly,
// "A dynamic topological sort algorithm for directed acyclic graphs", JEA 11, 2006). What lies outside keeps its place.
#pragma once

#include "search/instance/flat.hpp"

namespace pipeweaver::search {

class TaskOrder {
public:
    explicit TaskOrder(const Flat& flat);

    /// Pre: `sequence` is topological for edges and ranks' orders.
    void load(std::span<const std::uint32_t> sequence);

    /// All tasks, and the place of each there.
    const std::vector<std::uint32_t>& sequence() const { return sequence_; }
    std::uint32_t place(std::uint32_t task) const { return node_[task].place; }

    /// Ranks' orders one after the other, and the spot of each task there.
    std::uint32_t at(std::uint32_t spot) const { return row_[spot]; }
    std::uint32_t spot(std::uint32_t task) const { return node_[task].spot; }
    std::uint32_t row_begin(std::uint32_t rank) const { return first_[rank]; }
    std::uint32_t row_end(std::uint32_t rank) const { return first_[rank + 1]; }
    std::uint32_t rank(std::uint32_t task) const { return node_[task].rank; }

    // A row begins with begin() and ends with end(rank), which are numbered as tasks are; the place of end() is after
    // that of all tasks.
    std::uint32_t begin() const { return flat_->tasks(); }
    std::uint32_t end(std::uint32_t rank) const { return flat_->tasks() + 1 + rank; }
    std::uint32_t previous(std::uint32_t task) const { return node_[task].previous; }
    std::uint32_t next(std::uint32_t task) const { return node_[task].next; }

    /// Moves `task` before (after) `other`, which precedes (follows) it on their rank. False, and nothing is changed,
    /// if that would close a cycle.
    bool move_before(std::uint32_t task, std::uint32_t other);
    bool move_after(std::uint32_t task, std::uint32_t other);

    /// Pre: the last move succeeded, and nothing has changed since.
    void take_back();

    /// The last move: the task, and what was before and after it.
    struct Move {
        std::uint32_t task = 0, previous = 0, next = 0;
        std::uint32_t from = 0, to = 0;  ///< spots
    };
    const Move& last_move() const { return move_; }
    /// It changed places from the first to the last of these.
    std::uint32_t window_first() const { return window_first_; }
    std::uint32_t window_last() const { return window_first_ + static_cast<std::uint32_t>(window_.size()) - 1; }

private:
    struct Node {
        std::uint32_t place, previous, next, spot, rank, mark;
    };

    void next_stamp();
    bool mark_ancestors(std::uint32_t task, std::uint32_t first, std::uint32_t last);
    bool mark_descendants(std::uint32_t task, std::uint32_t first, std::uint32_t last);
    void reorder(std::uint32_t first, std::uint32_t last, bool marked_first);
    void relink(std::uint32_t task, std::uint32_t previous, std::uint32_t next);
    void shift_row(std::uint32_t from, std::uint32_t to);

    const Flat* flat_;
    std::vector<std::uint32_t> first_;  // per rank: where its row begins in row_; one more at the end
    std::vector<Node> node_;            // per task, begin(), and end() of each rank
    std::vector<std::uint32_t> sequence_, row_;

    Move move_;
    std::uint32_t window_first_ = 0;
    std::vector<std::uint32_t> window_;  // of the sequence, as it was
    std::vector<std::uint32_t> scratch_;
    std::uint32_t stamp_ = 0;
};

}  // namespace pipeweaver::search
