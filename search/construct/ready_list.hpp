// The tasks of one rank and kind that could be placed: answers which comes first by priority among those that memory
// may allow, without looking at the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipeweaver::search {

/// What a task wants of its rank's memory.
struct Want {
    std::int64_t acquire = INT64_MAX;
    std::int64_t net = INT64_MAX;  ///< what it keeps
    std::int64_t key = INT64_MAX;  ///< what else it is compared by: see BankersMemory::bar
};

/// Tasks that keep `net` or more and whose key is `key` or more are refused.
struct Bar {
    std::int64_t net = INT64_MAX;
    std::int64_t key = INT64_MAX;
};

/// A set of slots 0 ... count - 1, each empty or with what its task wants. Smaller slots have higher priority.
class ReadyList {
public:
    /// Empties the list and sets the number of slots. Time O(count).
    void reset(std::size_t count) {
        for (leaves_ = 1; leaves_ < count;) leaves_ *= 2;
        least_.assign(2 * leaves_, {});
    }

    /// Pre: slot < count. Time O(log count).
    void insert(std::size_t slot, const Want& want) { set(slot, want); }
    void remove(std::size_t slot) { set(slot, {}); }

    static constexpr std::size_t nothing = SIZE_MAX;

    /// The first slot whose task acquires at most `free` and that the bar leaves, or `nothing`. Pre: free < INT64_MAX.
    /// Time O(log count) for each subtree of which the one key passes in one task and the other in another; few.
    std::size_t first(std::int64_t free, const Bar& bar) const {
        std::size_t node = 1;
        while (true) {
            if (!passes(least_[node], free, bar)) {  // then nothing below does: on to the next subtree
                while (node % 2 == 1) node /= 2;
                if (node == 0) return nothing;
                ++node;
            } else if (node >= leaves_) {
                return node - leaves_;
            } else {
                node *= 2;
            }
        }
    }

private:
    static bool passes(const Want& want, std::int64_t free, const Bar& bar) {
        return want.acquire <= free && (want.net < bar.net || want.key < bar.key);
    }

    void set(std::size_t slot, const Want& want) {
        std::size_t node = slot + leaves_;
        for (least_[node] = want; node > 1;) {
            node /= 2;
            const Want &a = least_[2 * node], &b = least_[2 * node + 1];
            least_[node] = {std::min(a.acquire, b.acquire), std::min(a.net, b.net), std::min(a.key, b.key)};
        }
    }

    std::size_t leaves_ = 1;
    std::vector<Want> least_ = std::vector<Want>(2);  // a tree: the smallest of the slots below, each key for itself
};

}  // namespace pipeweaver::search
