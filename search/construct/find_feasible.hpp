// Looks for any schedule within memory where no canonical order fits (see bankers_memory.hpp), whatever its makespan.
//
// A state is a sequence of all tasks that the edges allow, and a memory mode per pair. What is missing in it is the
// sum, over all tasks, of the bytes by which the rank's memory is above its room while the task runs, or below zero
// after it. Steps are annealed until nothing is missing. A step helps one task that lacks memory:
//
//   push   a task before it on its rank that leaves memory taken goes after it, and what waits for that task with it;
//   pull   a task after it that gives memory back goes before it, and what that task waits for with it;
//   move   the task itself goes elsewhere, in the same way;
//   mode   another mode for a pair of its rank.
//
// Memory on a rank depends on the rank's order alone, so a step is judged by the stretch of the sequence it changes.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "search/instance/flat.hpp"
#include "search/tuning.hpp"

#include <optional>

namespace pipeweaver::search {

/// One annealing.
class FeasibleAnnealing {
public:
    /// Pre: `sequence` holds all tasks, none before its predecessors.
    FeasibleAnnealing(const Flat& flat, std::span<const std::uint32_t> sequence, std::span<const std::uint32_t> mode);

    /// Steps until nothing is missing or about `work` tasks were looked at.
    void run(Random& random, std::uint64_t work);

    bool fits() const { return short_.empty(); }
    const std::vector<std::uint32_t>& sequence() const { return sequence_; }
    const std::vector<std::uint32_t>& mode() const { return mode_; }
    std::uint64_t steps() const { return steps_; }

private:
    struct Level {
        std::int64_t before = 0;   // bytes on the task's rank before it starts
        std::int64_t missing = 0;  // too many while it runs, or too few after it
    };

    void measure();
    Level level(std::uint32_t task, std::int64_t before) const;
    void gather_one(std::uint32_t place, std::uint32_t task, const Groups<Arc>& ties);
    void gather(std::uint32_t task, std::uint32_t to);
    void gather_back(std::uint32_t task, std::uint32_t to);
    bool judge(std::uint32_t first, Random& random);
    void move(std::uint32_t task, std::uint32_t to, Random& random);
    void change_mode(std::uint32_t pair, std::uint32_t mode, Random& random);
    void step(Random& random);
    void set_short(std::uint32_t task, bool is_short);
    void begin_cycle();

    const Flat& flat_;
    Groups<std::uint32_t> lanes_;         // tasks that may help each other: of one rank and component
    std::vector<std::uint32_t> lane_of_;  // per task
    Groups<std::uint32_t> lane_pairs_;    // pairs with a choice, per lane
    double unit_ = 0;                     // of bytes, for temperatures

    std::vector<std::uint32_t> sequence_, place_, mode_;
    std::vector<Cost> costs_;
    std::vector<Level> level_;                  // per task
    std::vector<std::uint32_t> short_, where_;  // tasks that lack memory; per task its index there, or none

    double temperature_ = 0;
    std::uint64_t work_ = 0, cycle_ = 0, cycle_length_ = 0, cycle_end_ = 0;

    // Of the step being judged.
    std::vector<std::uint32_t> stretch_, moved_;
    std::vector<Level> new_level_;
    std::vector<std::int64_t> used_;     // per rank
    std::vector<std::uint64_t> known_;   // per rank: step in which used_ was set
    std::vector<std::uint64_t> marked_;  // per task: step in which it was marked
    std::uint64_t steps_ = 0;
};

/// Several annealings at once, from different canonical orders and modes.
class FeasibleSearch {
public:
    FeasibleSearch(const Flat& flat, std::uint64_t seed);

    /// Works for about 10 ms. Returns a schedule that keeps within memory, if one was found.
    std::optional<schedule::Schedule> round(const Executor& execute);

    std::uint64_t steps() const { return steps_; }

    /// Going on is not worth its time.
    bool exhausted() const { return rounds_ >= tuning.feasible.most_rounds; }

private:
    const Flat& flat_;
    std::uint64_t seed_;
    std::vector<FeasibleAnnealing> slots_;
    std::uint64_t rounds_ = 0, steps_ = 0;
};

}  // namespace pipeweaver::search
