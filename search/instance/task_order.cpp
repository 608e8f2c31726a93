#include "search/instance/task_order.hpp"

#include <algorithm>

namespace pipeweaver::search {

TaskOrder::TaskOrder(const Flat& flat)
    : flat_(&flat),
      first_(flat.ranks() + 1),
      node_(flat.tasks() + 1 + flat.ranks()),
      sequence_(flat.tasks()),
      row_(flat.tasks()) {
    for (const std::uint32_t rank : flat.rank_of) ++first_[rank + 1];
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) first_[r + 1] += first_[r];
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) node_[i].rank = flat.rank_of[i];
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) node_[end(r)] = {UINT32_MAX, begin(), 0, first_[r], r, 0};
    window_.reserve(flat.tasks());
    scratch_.reserve(std::max(flat.tasks(), flat.ranks()));
}

void TaskOrder::load(std::span<const std::uint32_t> sequence) {
    sequence_.assign(sequence.begin(), sequence.end());
    for (std::uint32_t r = 0; r < flat_->ranks(); ++r) {
        node_[end(r)].previous = begin();
        node_[end(r)].spot = first_[r];  // of its next task
    }
    for (std::uint32_t i = 0; i < sequence_.size(); ++i) {
        const std::uint32_t task = sequence_[i];
        Node& node = node_[task];
        Node& end_of_row = node_[end(node.rank)];
        node.place = i;
        node.spot = end_of_row.spot++;
        node.previous = end_of_row.previous;
        node_[node.previous].next = task;
        end_of_row.previous = task;
        row_[node.spot] = task;
    }
    for (std::uint32_t r = 0; r < flat_->ranks(); ++r) node_[node_[end(r)].previous].next = end(r);
}

void TaskOrder::next_stamp() {
    if (++stamp_ > 0) return;
    for (Node& node : node_) node.mark = 0;
    stamp_ = 1;
}

// Marks what must stay before `task` among the places [first, last) of the sequence when it leaves its place in its
// row. False if a task of its own rank is among them.
bool TaskOrder::mark_ancestors(std::uint32_t task, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = node_[task].rank;
    for (const Arc& arc : flat_->before[task]) node_[arc.task].mark = stamp_;
    for (std::uint32_t i = last; i-- > first;) {
        const Node& seen = node_[sequence_[i]];
        if (seen.mark != stamp_) continue;
        if (seen.rank == rank) return false;
        for (const Arc& arc : flat_->cross_before[sequence_[i]]) node_[arc.task].mark = stamp_;
        node_[seen.previous].mark = stamp_;
    }
    return true;
}

// The same for what must stay after it, among the places (first, last].
bool TaskOrder::mark_descendants(std::uint32_t task, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t rank = node_[task].rank;
    for (const Arc& arc : flat_->after[task]) node_[arc.task].mark = stamp_;
    for (std::uint32_t i = first + 1; i <= last; ++i) {
        const Node& seen = node_[sequence_[i]];
        if (seen.mark != stamp_) continue;
        if (seen.rank == rank) return false;
        for (const Arc& arc : flat_->cross_after[sequence_[i]]) node_[arc.task].mark = stamp_;
        node_[seen.next].mark = stamp_;
    }
    node_[task].mark = stamp_;
    return true;
}

// Puts the marked tasks of the places [first, last] before or after the others, each part in its order.
void TaskOrder::reorder(std::uint32_t first, std::uint32_t last, bool marked_first) {
    window_first_ = first;
    window_.assign(sequence_.begin() + first, sequence_.begin() + last + 1);
    scratch_.clear();
    std::uint32_t place = first;
    for (const std::uint32_t task : window_) {
        if ((node_[task].mark == stamp_) == marked_first) {
            node_[task].place = place;
            sequence_[place++] = task;
        } else {
            scratch_.push_back(task);
        }
    }
    for (const std::uint32_t task : scratch_) {
        node_[task].place = place;
        sequence_[place++] = task;
    }
}

// Takes the task out of its row and puts it in between these two.
void TaskOrder::relink(std::uint32_t task, std::uint32_t previous, std::uint32_t next) {
    Node& node = node_[task];
    node_[node.previous].next = node.next;
    node_[node.next].previous = node.previous;
    node.previous = previous;
    node.next = next;
    node_[previous].next = task;
    node_[next].previous = task;
}

// Takes the task at spot `from` out of its row and puts it in at spot `to`.
void TaskOrder::shift_row(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t task = row_[from];
    for (std::uint32_t k = from; k > to; --k) node_[row_[k] = row_[k - 1]].spot = k;
    for (std::uint32_t k = from; k < to; ++k) node_[row_[k] = row_[k + 1]].spot = k;
    node_[row_[to] = task].spot = to;
}

bool TaskOrder::move_before(std::uint32_t task, std::uint32_t other) {
    next_stamp();
    const std::uint32_t first = node_[other].place, last = node_[task].place;
    if (!mark_ancestors(task, first, last)) return false;
    node_[task].mark = stamp_;
    reorder(first, last, true);
    move_ = {task, node_[task].previous, node_[task].next, node_[task].spot, node_[other].spot};
    shift_row(move_.from, move_.to);
    relink(task, node_[other].previous, other);
    return true;
}

bool TaskOrder::move_after(std::uint32_t task, std::uint32_t other) {
    next_stamp();
    const std::uint32_t first = node_[task].place, last = node_[other].place;
    if (!mark_descendants(task, first, last)) return false;
    reorder(first, last, false);
    move_ = {task, node_[task].previous, node_[task].next, node_[task].spot, node_[other].spot};
    shift_row(move_.from, move_.to);
    relink(task, other, node_[other].next);
    return true;
}

void TaskOrder::take_back() {
    shift_row(move_.to, move_.from);
    relink(move_.task, move_.previous, move_.next);
    for (std::uint32_t i = 0; i < window_.size(); ++i) {
        sequence_[window_first_ + i] = window_[i];
        node_[window_[i]].place = window_first_ + i;
    }
}

}  // namespace pipeweaver::search
