// The tasks of one rank and kind that could be placed: answers which comes first by priority among those that the
// rank's free memory can take at all, without looking at the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::search {

/// A set of slots 0 ... count - 1, each empty or wanting some memory. Smaller slots have higher priority.
class ReadyList {
public:
    /// Empties the list and sets the number of slots. Time O(count).
    void reset(std::size_t count) {
        for (leaves_ = 1; leaves_ < count;) leaves_ *= 2;
        least_.assign(2 * leaves_, empty);
    }

    /// Time O(log count). Pre: slot < count, wanted < empty.
    void insert(std::size_t slot, std::int64_t wanted) { set(slot, wanted); }
    void remove(std::size_t slot) { set(slot, empty); }

    static constexpr std::size_t nothing = SIZE_MAX;

    /// The first slot that wants at most `free`, or `nothing`. Pre: free < empty. Time O(log count).
    std::size_t first(std::int64_t free) const {
        if (least_[1] > free) return nothing;
        std::size_t node = 1;
        while (node < leaves_) {
            node *= 2;
            if (least_[node] > free) ++node;
        }
        return node - leaves_;
    }

    static constexpr std::int64_t empty = INT64_MAX;

private:
    void set(std::size_t slot, std::int64_t wanted) {
        std::size_t node = slot + leaves_;
        least_[node] = wanted;
        while (node > 1) {
            node /= 2;
            const std::int64_t least =
                least_[2 * node] < least_[2 * node + 1] ? least_[2 * node] : least_[2 * node + 1];
            if (least_[node] == least) return;
            least_[node] = least;
        }
    }

    std::size_t leaves_ = 1;
    std::vector<std::int64_t> least_{empty, empty};  // a tree: the smallest of the slots below
};

}  // namespace pipeweaver::search
