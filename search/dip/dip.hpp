// The published method of DIP (arXiv 2504.14145), for honest comparison: tree search over the order of segments; each
// order scheduled by the dual queue under frugal memory modes; then faster modes per rank, and the schedule timed
// again.
//
// As published
//   sequence     the item at place i of n has priority n - i; segments of one module, microbatch and direction are one
//                item with a fixed mutual order (the paper's symmetry reduction)
//   tree         dip_tree.hpp; of each new node several random completions, the best of which counts
//   schedule     Choice::dual_queue of dispatch.hpp
//   modes        dip_memory.hpp, each rank alone, by the sum of times
//   workers      share the tree, brought up to date once per wave of completions
//
// Left open by the paper, and decided here
//   forwards and backwards of a module in a microbatch are two items: they wait in different queues
//   the first completion of all is the items' given order, so the result is never worse than the greedy alone
//   memory       "disable the forward queue when a rank exceeds its capacity" overflows first and may get stuck: here a
//                task is placed only where the schedule can still be finished (bankers_memory.hpp)
//   frugal       the mode that holds least between forward and backward; where it does not fit, the one with the
//                smallest own peak, then any one mode for all
//   times        edges' lags count in the dual queue; after the modes all is timed again, the score is that makespan
//   ties, t = 0  as in dispatch.hpp; constants of the tree as in dip_tree.hpp
//   batch size   a wave has 8 nodes with 10 completions each, whatever the threads, so that the result is the same on
//                any number of them; a round is a part of a wave, to last 10 ms at most
// It has no bound of its own: it stops at the search's.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/options.hpp"
#include "search/construct/dispatch.hpp"
#include "search/dip/dip_memory.hpp"
#include "search/dip/dip_tree.hpp"
#include "search/strategy.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::search {

/// The items of a sequence: tasks by (microbatch, module, direction), numbered and inside in reading order.
[[nodiscard]] Groups<std::uint32_t> dip_items(const Flat& flat);

class Dip final : public Strategy {
public:
    /// Keeps references: both must outlive it.
    Dip(const Flat& flat, const Options& options);

    /// The given schedules and the items' own order.
    void start(const Executor& execute) override;
    void round(const Executor& execute) override;

    /// Every sequence has been tried, or nothing fits.
    bool exhausted() const override { return !best_.valid() || (wave_left_ == 0 && (!fits_ || tree_.exhausted())); }

    const Candidate& best() const override { return best_; }
    const std::string& found_by() const override { return found_by_; }
    std::string why_not() const override { return why_not_; }
    const Bound& bound() const override { return bound_; }
    std::uint64_t rounds() const override { return rounds_; }
    std::uint64_t evaluations() const override { return evaluations_; }

private:
    struct Slot {
        explicit Slot(const Flat& flat) : dispatcher(flat), memory(flat), current(flat), position(flat.tasks()) {}

        Dispatcher dispatcher;
        DipMemory memory;
        IncrementalSchedule current;
        Candidate best;
        std::vector<std::uint32_t> position, order;
        std::optional<std::uint32_t> node;     // of the tree, in this wave
        std::vector<std::uint32_t> beginning;  // the items that `node` fixes
        std::int64_t best_of_wave = INT64_MAX;
    };

    std::optional<Shortage> choose_frugal(Dispatcher& dispatcher);
    std::int64_t evaluate(Slot& slot) const;
    void begin_wave();
    void end_wave();
    void merge();

    const Flat& flat_;
    const Options& options_;
    Bound bound_;
    Groups<std::uint32_t> items_;
    DipTree tree_;
    bool fits_ = true;  // under some modes
    bool has_modes_;
    std::vector<std::uint32_t> frugal_;
    std::vector<std::unique_ptr<Slot>> slots_;
    Candidate best_;
    std::string found_by_, why_not_;
    std::uint64_t rounds_ = 0, evaluations_ = 0;
    std::uint64_t wave_left_ = 0;  // orders that the wave has still to try in each slot
};

}  // namespace pipeweaver::search
