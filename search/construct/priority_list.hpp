// A list scheduler with two things that Dispatcher's ways to choose lack: it can look ahead to what is about to arrive,
// and it can keep the number of microbatches between begin and end small. Safe in memory by construction (see
// bankers_memory.hpp).
//
//   U, the more urgent, arrives after 1; L is long and ready      without look_ahead |LLLLU|      with it |.ULLLL|
#pragma once

#include "search/construct/list_scheduler.hpp"

namespace pipeweaver::search {

struct ListRules {
    std::vector<std::uint32_t> position;  ///< per task; smaller runs first; all differ
    /// Of all tasks that could start before any of them could end, the first by position, even if the rank must wait
    /// for it: nothing long is begun when something urgent is about to arrive, and no rank waits so long that another
    /// task would have fitted in before. B. Giffler, G. L. Thompson, "Algorithms for solving production-scheduling
    /// problems", Operations Research 8, 1960. Without: of those that can start first.
    bool look_ahead = false;
    /// A microbatch (by its place among the numbers in use) begins only when the one this many before it has ended on
    /// all ranks; 0: at any time. The rule is lifted whenever nothing else could go on.
    std::uint32_t window = 0;
};

class PriorityList : public ListScheduler {
public:
    explicit PriorityList(const Flat& flat);

    /// Schedules all tasks. Pre: prepare() found nothing short. Time O(tasks * (ready tasks of a rank + a memory
    /// test)).
    void run(const ListRules& rules);

    std::uint32_t microbatches() const { return static_cast<std::uint32_t>(size_.size()); }

private:
    void begin();
    NextTask next_task(std::uint32_t rank) const;
    bool waits(std::uint32_t task) const;
    void place(std::uint32_t task);
    std::int64_t start(std::uint32_t task) const;

    // A candidate's time is its first end if looking ahead, else its first start.
    const ListRules* rules_ = nullptr;
    std::vector<std::uint32_t> microbatch_, size_;  // per task: its microbatch's place; per microbatch: tasks

    std::vector<std::uint32_t> left_;                // per microbatch: tasks that are not placed
    std::uint32_t ended_ = 0;                        // microbatches before this place have ended
    bool gate_open_ = false;                         // the window is lifted for one task
    std::vector<std::vector<std::uint32_t>> ready_;  // per rank
};

}  // namespace pipeweaver::search
