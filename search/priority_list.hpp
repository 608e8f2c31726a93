// A list scheduler with two things that Dispatcher's ways to choose lack: it can look ahead to what is about to arrive,
// and it can keep the number of microbatches between begin and end small. Safe in memory by construction (see
// safe_memory.hpp).
#pragma once

#include "search/safe_memory.hpp"

namespace pipeweaver::search {

struct ListRules {
    std::vector<std::uint32_t> position;  ///< per task; smaller runs first; all differ
    /// Of all tasks that could start before any of them could end, the first by position, even if the rank must wait
    /// for it: nothing long is begun when something urgent is about to arrive, and no rank waits so long that another
    /// task would have fitted in before. B. Giffler, G. L. Thompson, "Algorithms for solving production-scheduling
    /// problems", Operations Research 8, 1960. Without: of those that can start first.
    bool look_ahead = false;
    /// A microbatch (by its place among the numbers in use) begins only when the one this many before it has ended on
    /// all ranks; 0: at any time. The rule rests whenever nothing else could go on.
    std::uint32_t window = 0;
};

class PriorityList {
public:
    explicit PriorityList(const Flat& flat);

    /// Sets the tasks' costs; see SafeMemory::prepare.
    std::optional<Shortage> prepare(std::span<const Cost> costs);

    /// Schedules all tasks. Pre: prepare() found nothing short. Time O(tasks * (ready tasks of a rank + a memory
    /// test)).
    void run(const ListRules& rules);

    const std::vector<std::uint32_t>& sequence() const { return sequence_; }
    std::uint32_t microbatches() const { return static_cast<std::uint32_t>(size_.size()); }

private:
    struct Candidate {
        std::uint32_t task = UINT32_MAX;
        std::int64_t time = INT64_MAX;  // what the ranks are compared by: first end if looking ahead, else first start
    };

    void begin();
    Candidate candidate(std::uint32_t rank) const;
    bool waits(std::uint32_t task) const;
    std::uint32_t next_rank();
    void place(std::uint32_t task);
    std::int64_t start(std::uint32_t task) const;

    const Flat& flat_;
    SafeMemory memory_;
    std::vector<Cost> costs_;
    const ListRules* rules_ = nullptr;
    std::vector<std::uint32_t> microbatch_, size_;  // per task: its microbatch's place; per microbatch: tasks

    std::vector<std::uint32_t> sequence_, missing_, left_;  // left_: tasks of the microbatch that are not placed
    std::uint32_t ended_ = 0;                               // microbatches before this place have ended
    bool gate_open_ = false;                                // the window rests for one task
    std::vector<std::int64_t> ready_at_, clock_;            // per task; per rank
    std::vector<std::vector<std::uint32_t>> ready_;         // per rank
    std::vector<Candidate> candidate_;                      // per rank
    std::vector<char> stale_;                               // per rank: candidate_ must be found again
    std::vector<std::uint64_t> refused_at_;                 // per task: relief + 1 when memory refused it
    std::uint64_t seen_relief_ = 0;
};

}  // namespace pipeweaver::search
